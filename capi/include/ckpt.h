/* SPDX-FileCopyrightText: the ckpt authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ckpt.h - the public C ABI of libckpt.so: save and load the state of a distributed training job.
 * Every rank calls, every rank gets the same answer, and what is on disk afterwards is either the
 * whole new checkpoint or the whole old one.  C99 and C++11; needs only <stdint.h>.
 *
 * The life of a job, on every rank:
 *
 *   ckpt_init                 once; all ranks together
 *   ckpt_state_new            then ckpt_state_add_tensors, ckpt_state_add_blob: what it holds
 *   ckpt_load                 resume; all ranks together
 *   ckpt_save_collective      every now and then; all ranks together
 *   ckpt_finalize             all ranks together; then ckpt_state_free, ckpt_ctx_free
 *
 * Rules of the ABI
 *
 *  R1 Structs start with uint32_t struct_size and are passed by pointer, never by value, never
 *     embedded, never in arrays.  All-zero is the safe default of every field, with one exception
 *     (ckpt_blob.writer_rank).  The caller sets struct_size = sizeof.  The library reads
 *     min(struct_size, its own size) bytes; a byte beyond them that is not zero is
 *     CKPT_ERR_UNSUPPORTED, never dropped in silence.  A struct_size below the size of the struct's
 *     first release, or above 4096, is CKPT_ERR_INVALID_ARGUMENT.  Output structs: at most
 *     struct_size bytes (8 .. 4096) are written, and their number is stored back into struct_size:
 *     who uses a struct again sets it again.
 *  R2 Fields, enumerators, flags and functions are only added, at the end.  Exported names sit in a
 *     version map (CKPT_1.0, CKPT_1.1 ...).  Unknown flags and enumerators, and reserved fields
 *     that are not zero, are CKPT_ERR_INVALID_ARGUMENT.
 *  R3 No C enum, bool, bit-field, long, size_t, FILE*, va_list or struct by value crosses the
 *     boundary.  This text is identical in every build.
 *  R4 Strings are UTF-8, NUL-terminated, and copied before the call returns.  Returned strings
 *     belong to the object they came from and live as long as it.
 *  R5 No C++ exception leaves the library; it never exits, aborts, installs signal handlers or
 *     writes to stdout.
 *  R6 Callbacks take (void* user) and run on the caller's thread inside a collective call,
 *     ckpt_poll or ckpt_reader_verify, unless CKPT_INIT_CALLBACKS_ANY_THREAD; what the library's
 *     threads have to say meanwhile is queued (bounded).  Inside one, only functions marked [cb]
 *     may be called; others return CKPT_ERR_STATE (pointers: NULL); a *_free takes effect when the
 *     call that runs the callback has returned.  An exception that a C++ callback throws stops at
 *     the library: an event callback is taken to ask for cancel.  Nothing else may leave a callback
 *     than its return: no longjmp, no raise of another language.  Exception to the thread: describe
 *     runs on a thread of its own with 200 ms, for it is needed exactly when the rank is elsewhere;
 *     a language whose runtime cannot be entered from such a thread leaves it NULL.
 *  R7 ckpt_ctx, ckpt_request, ckpt_reader: any thread.  One ckpt_state: one thread at a time.
 *     Collective calls of one ctx: the same order on every rank, which is checked, and one at a
 *     time (a second thread gets CKPT_ERR_STATE).  Freeing an object while another thread uses it
 *     is not allowed, as everywhere in C.
 *  R8 After fork() the child gets CKPT_ERR_FORKED from every handle of the parent; *_free only
 *     drops memory.  The library is NODELETE: dlclose does not unload it.
 *  R9 Every *_free accepts NULL and works after ckpt_finalize.  Every err pointer may be NULL.
 *
 * Marks below
 *  [collective] all ranks of the context must call it, with arguments that agree.  A rank that does
 *               not is named in the others' error.  A rank whose own arguments are bad takes part
 *               with that error, so that its peers return the same cause at once.
 *  [cb]         may be called inside a callback.
 *  [not in this version: ...]  exported, and returns CKPT_ERR_UNSUPPORTED with words; see
 *               ckpt_has_feature.
 *
 * Every function that returns a ckpt_status may return CKPT_ERR_NO_MEMORY, CKPT_ERR_STATE (inside a
 * callback; a context that was finalized), CKPT_ERR_FORKED and CKPT_ERR_INTERNAL (a bug of ours).
 * Sizes are bytes, times are as the suffix says (_ms, _ns), shapes and offsets are elements.
 */
#ifndef CKPT_H_INCLUDED
#define CKPT_H_INCLUDED
#include <stdint.h>
#if defined(__GNUC__) || defined(__clang__)
#define CKPT_API __attribute__((visibility("default")))
#else
#define CKPT_API
#endif
#ifdef __cplusplus
#define CKPT_NOEXCEPT noexcept
extern "C" {
#else
#define CKPT_NOEXCEPT
#endif

/* ---- version --------------------------------------------------------------------------------- */

#define CKPT_ABI_MAJOR 1u
#define CKPT_ABI_MINOR 0u
#define CKPT_HEADER_ABI ((CKPT_ABI_MAJOR << 16) | CKPT_ABI_MINOR)

/* The ABI that the library implements, as CKPT_HEADER_ABI packs it.  Any thread, any time.  [cb] */
CKPT_API uint32_t ckpt_abi_version(void) CKPT_NOEXCEPT;

/* The library's version, "0.1.0".  Static storage.  Any thread, any time.  [cb] */
CKPT_API const char* ckpt_version_string(void) CKPT_NOEXCEPT;

/* 1 if this library has the optional part `name`, else 0 (also for NULL and for names that it does
 * not know).  Any thread, any time.  [cb]
 *   in this version: "advise" "comm.env" "comm.self" "io.direct" "load.convert" "load.fallback"
 * "load.latest" "load.step" "pin" "reader.blob" "reader.verify" "replica.check" "retention"
 *                    "save.cast" "save.keep" "save.replace" "state.alias" "state.rename"
 *                    "state.strides"
 *   not yet:         "background" "comm.tcp" "comm.mpi" "comm.nccl" "comm.vtable"
 *                    "device.cuda" "io.uring" "reader.map" "reader.read" "save.async" "save.lazy"
 */
CKPT_API int32_t ckpt_has_feature(const char* name) CKPT_NOEXCEPT;

/* ---- status and errors ----------------------------------------------------------------------- */

/* Negative = error.  The list only grows: take an unknown negative value as a generic failure. */
typedef int32_t ckpt_status;
#define CKPT_OK 0
#define CKPT_PENDING 1
#define CKPT_ERR_INVALID_ARGUMENT (-1) /* fix the call */
#define CKPT_ERR_UNSUPPORTED (-2)      /* not in this version or not on this system; says what */
#define CKPT_ERR_STATE (-3)            /* not now: in a callback, finalized, another call runs */
#define CKPT_ERR_NOT_FOUND (-4)        /* that step, tensor or blob is not there */
#define CKPT_ERR_CORRUPT (-5)          /* what is on disk is damaged; names file and tensor */
#define CKPT_ERR_IO (-6)               /* the file system failed; cause has path and errno */
#define CKPT_ERR_NO_SPACE (-7)         /* disk or quota is full */
#define CKPT_ERR_NO_MEMORY (-8)        /* host memory; the error object itself may be NULL */
#define CKPT_ERR_DEVICE (-9)           /* an accelerator failed */
#define CKPT_ERR_PARTICIPANTS (-10)    /* some ranks did not call; ckpt_error_rank names them */
#define CKPT_ERR_MISMATCH (-11)        /* ranks made different calls or passed different things */
#define CKPT_ERR_PEER (-12)            /* reserved: all ranks return the first cause's code */
#define CKPT_ERR_COMM (-13)            /* ranks cannot talk to each other */
#define CKPT_ERR_CANCELLED (-14)       /* a callback asked for it */
#define CKPT_ERR_FORKED (-15)          /* a handle of the parent, used in a forked child */
#define CKPT_ERR_EXISTS (-16)          /* the step is there already */
#define CKPT_ERR_COVERAGE (-17)        /* shards leave a gap or overlap */
#define CKPT_ERR_REPLICA (-18)         /* declared copies differ */
#define CKPT_ERR_SHAPE (-19)           /* not the stored shape, or a shard outside its tensor */
#define CKPT_ERR_DTYPE (-20)           /* not the stored dtype */
#define CKPT_ERR_NO_CHECKPOINT (-21)   /* the root holds none at all: not NOT_FOUND, not CORRUPT */
#define CKPT_ERR_OWNED (-22)           /* another live run owns the root */
#define CKPT_ERR_LIMIT (-23)           /* larger than the caller's memory or a bound of ours */
#define CKPT_ERR_OUTCOME_UNKNOWN (-24) /* a commit could not be confirmed: ckpt_latest tells */
#define CKPT_ERR_INTERNAL (-127)       /* a bug in the library */

/* "OK", "PARTICIPANTS", "NO_SPACE": the constant without CKPT_ and ERR_; "UNKNOWN" for a number
 * that this library does not know.  Static storage.  Any thread, any time.  [cb] */
CKPT_API const char* ckpt_status_name(ckpt_status status) CKPT_NOEXCEPT;

/* What went wrong, in full.  Made by a failing call that was given `ckpt_error** err`; on success
 * *err is NULL.  Owned by the caller, who frees it with ckpt_error_free.  Plain memory: it outlives
 * the context, ckpt_finalize and fork, and may be read by several threads at once. */
typedef struct ckpt_error ckpt_error;

/* The code; CKPT_OK for NULL.  [cb] */
CKPT_API ckpt_status ckpt_error_status(const ckpt_error* e) CKPT_NOEXCEPT;

/* One sentence, "what, path or tensor: cause (rank r on host h)", the same on every rank of a
 * round.  "" for NULL.  Lives as long as `e`.  [cb] */
CKPT_API const char* ckpt_error_message(const ckpt_error* e) CKPT_NOEXCEPT;

/* Values of ckpt_rank_report.condition */
#define CKPT_RANK_ALIVE_ELSEWHERE 1u /* runs, but did not make the call */
#define CKPT_RANK_UNRESPONSIVE 2u    /* no heartbeat: stopped, swapping, or the network is cut */
#define CKPT_RANK_DEAD 3u            /* its process has ended */
#define CKPT_RANK_DISAGREES 4u       /* made another call, or passed something else */
#define CKPT_RANK_FAILED 5u          /* came with an error of its own */
#define CKPT_RANK_UNKNOWN 6u         /* nothing is known */
#define CKPT_RANK_LEFT 7u            /* freed its context or finalized */

/* What is known of one rank that a verdict names.  Strings are never NULL; "" = not known. */
typedef struct ckpt_rank_report {
  uint32_t struct_size;      /* in: sizeof; out: bytes written */
  int32_t rank;              /* of the context's ranks */
  uint32_t condition;        /* CKPT_RANK_* */
  uint32_t reserved0;        /* 0 */
  uint64_t heartbeat_age_ns; /* since it was last heard */
  int64_t phase_step;        /* as it gave to ckpt_set_phase; -1 = none */
  const char* host;          /* its host's name */
  const char* phase;         /* as it gave to ckpt_set_phase */
  const char* doing;         /* "running, 98 % cpu", "in syscall futex", or its describe's text */
  const char* last_call;     /* "ckpt_load(step=900) returned 41.2 s ago" */
} ckpt_rank_report;

/* How many ranks the error names; 0 for NULL.  [cb] */
CKPT_API uint64_t ckpt_error_rank_count(const ckpt_error* e) CKPT_NOEXCEPT;

/* The i-th of them, i < ckpt_error_rank_count.  CKPT_ERR_NOT_FOUND past the end,
 * CKPT_ERR_INVALID_ARGUMENT for NULL or a bad struct_size.  Strings belong to `e`.  [cb] */
CKPT_API ckpt_status ckpt_error_rank(const ckpt_error* e, uint64_t i,
                                     ckpt_rank_report* out) CKPT_NOEXCEPT;

/* The first cause, structured.  Strings may be NULL (not known, does not apply). */
typedef struct ckpt_error_cause {
  uint32_t struct_size; /* in: sizeof; out: bytes written */
  int32_t rank;         /* where it happened; -1 = not one rank's.  MISMATCH: of the fewer ranks,
                           one against one the later; ckpt_error_rank has all */
  int32_t sys_errno;    /* 0 = not a system call's */
  uint32_t reserved0;   /* 0 */
  const char* path;     /* file or folder */
  const char* name;     /* tensor, blob, option or configuration key */
  const char* field;    /* what disagrees: "tag", "dtype", ... */
} ckpt_error_cause;

/* Fills *out.  CKPT_ERR_INVALID_ARGUMENT for NULL or a bad struct_size.  Strings belong to `e`.
 * [cb] */
CKPT_API ckpt_status ckpt_error_get_cause(const ckpt_error* e, ckpt_error_cause* out) CKPT_NOEXCEPT;

/* Frees an error.  NULL is fine.  Any time, also in a forked child.  [cb] */
CKPT_API void ckpt_error_free(ckpt_error* e) CKPT_NOEXCEPT;

/* ---- handles and callbacks ------------------------------------------------------------------- */

typedef struct ckpt_ctx ckpt_ctx;         /* this rank's part in a group of ranks and a root */
typedef struct ckpt_state ckpt_state;     /* what this rank holds: tensors and blobs */
typedef struct ckpt_request ckpt_request; /* a save or load under way */
typedef struct ckpt_reader ckpt_reader;   /* a checkpoint being looked at, without ranks */

/* Values of ckpt_event.kind */
#define CKPT_EVENT_PROGRESS 1u  /* bytes_done of bytes_total */
#define CKPT_EVENT_MILESTONE 2u /* `milestone` was reached */
#define CKPT_EVENT_WARNING 3u   /* `text` says what went on less well than it should */
#define CKPT_EVENT_RANK_LATE 4u /* half of the contract timeout is over; `text` names the ranks */

/* What an event callback is told.  Valid only during the callback. */
typedef struct ckpt_event {
  uint32_t struct_size; /* the library's; a newer library may know more fields */
  uint32_t kind;        /* CKPT_EVENT_*; ignore kinds you do not know */
  int64_t step;         /* of the save or load; -1 = none */
  uint32_t milestone;   /* CKPT_AT_*; 0 = none.  A save without a request tells its last two at its
                           end */
  uint32_t reserved0;   /* 0 */
  uint64_t bytes_done;  /* of this rank */
  uint64_t bytes_total; /* 0 = not known */
  const char* text;     /* never NULL; a sentence, or the file that is read or written */
} ckpt_event;

/* A finished line, without newline.  level: 1 error, 2 warning, 3 information, 4 debug. */
typedef void (*ckpt_log_fn)(void* user, int32_t level, const char* component, const char* message);

/* Non-zero = please cancel: the whole job's operation ends with CKPT_ERR_CANCELLED, unless its
 * commit has begun. */
typedef int32_t (*ckpt_event_fn)(void* user, const ckpt_event* ev);

/* What is this rank doing (a stack, a phase)?  Writes at most `cap` bytes of text to `buf` and
 * returns how many; no NUL is needed.  Runs on a thread of the library's with 200 ms; what comes
 * later is not used. */
typedef uint64_t (*ckpt_describe_fn)(void* user, char* buf, uint64_t cap);

/* ---- how ranks find each other --------------------------------------------------------------- */

/* Values of ckpt_comm.kind.  AUTO takes the first complete pair of RANK + WORLD_SIZE,
 * OMPI_COMM_WORLD_RANK + _SIZE, PMI_RANK + PMI_SIZE, SLURM_PROCID + SLURM_STEP_NUM_TASKS; none of
 * them: one process; half a pair: INVALID_ARGUMENT.  docs/contract.md says how ranks then meet.
 * (The vtable, ckpt_comm_ops, will be in ckpt_adapter.h.) */
#define CKPT_COMM_AUTO 0u   /* from the environment, see below */
#define CKPT_COMM_SELF 1u   /* one rank, whatever the environment says */
#define CKPT_COMM_TCP 2u    /* [not in this version] rank, size, addr, port, token below */
#define CKPT_COMM_MPI 3u    /* [not in this version] handle = const MPI_Comm* */
#define CKPT_COMM_NCCL 4u   /* [not in this version] handle = ncclComm_t */
#define CKPT_COMM_VTABLE 5u /* [not in this version] handle = const ckpt_comm_ops* */

/* For AUTO and SELF all fields after `kind` stay zero. */
typedef struct ckpt_comm {
  uint32_t struct_size; /* sizeof */
  uint32_t kind;        /* CKPT_COMM_* */
  uint32_t flags;       /* 0 */
  uint32_t port;        /* TCP */
  const void* handle;   /* MPI, NCCL, VTABLE */
  uint64_t handle_size; /* MPI: sizeof(MPI_Comm) */
  const char* adapter;  /* MPI: adapter library; NULL = by the MPI that the process has loaded */
  int32_t rank;         /* TCP */
  int32_t size;         /* TCP */
  const char* addr;     /* TCP */
  const char* token;    /* TCP */
  void* stream;         /* NCCL */
} ckpt_comm;

/* ---- context --------------------------------------------------------------------------------- */

/* Flags of ckpt_init_options */
#define CKPT_INIT_CALLBACKS_ANY_THREAD (1u << 0) /* a permission; not used yet */
/* This rank takes part but writes no tensor, blob or side file.  Rank 0 writes what makes a
 * checkpoint of them in any case: folders, the headers of files, index files, the commit record. */
#define CKPT_INIT_NO_WRITE (1u << 1)

typedef struct ckpt_init_options {
  uint32_t struct_size;         /* sizeof */
  uint32_t flags;               /* CKPT_INIT_* */
  const ckpt_comm* comm;        /* NULL = AUTO */
  const char* name;             /* tells contexts of one job apart; NULL = "default" */
  const char* root;             /* folder of the checkpoints; made by the first save; not NULL */
  const char* layout_note;      /* "tp=2,dp=4": recorded and shown; NULL = none */
  const char* config;           /* "key=value\n...", docs/configuration.md; NULL = defaults */
  uint64_t contract_timeout_ms; /* how long ranks wait for a late one; 0 = 60 000 */
  uint64_t heartbeat_ms;        /* 0 = 1 000; at most 60 000 */
  ckpt_log_fn log;              /* NULL = silent, but for CKPT_LOG */
  void* log_user;               /* passed to log */
  int32_t log_level;            /* most detailed level for log, 1 .. 4; 0 = 2 (warnings) */
  int32_t io_threads;           /* 0 = the key io.threads; else 1 .. 256 and wins over the key */
  ckpt_event_fn on_event;       /* may be NULL */
  void* event_user;             /* passed to on_event */
  ckpt_describe_fn describe;    /* may be NULL */
  void* describe_user;          /* passed to describe */
} ckpt_init_options;

/* Makes this rank's context.  [collective]  Pass CKPT_HEADER_ABI as `header_abi`.
 * Success: *out is the context, which the caller frees with ckpt_ctx_free.  The root is not
 * touched.
 * Failure: *out is NULL.
 *   INVALID_ARGUMENT  an option, a configuration key (cause.name), half a pair of environment
 *                     variables: local to this rank, the peers see it missing
 *   UNSUPPORTED       another ABI; a comm kind, key or value that is not built
 *   MISMATCH          ranks differ in library build or job-wide configuration
 *   PARTICIPANTS      ranks did not come within contract_timeout_ms
 *   COMM              no connection
 * Callbacks and their user pointers must stay valid until ckpt_ctx_free has returned; a describe
 * that runs for longer than a second then: until it returns.
 * Several contexts may live in one process.  Any thread; contexts of one name one after another. */
CKPT_API ckpt_status ckpt_init(uint32_t header_abi, const ckpt_init_options* o, ckpt_ctx** out,
                               ckpt_error** err) CKPT_NOEXCEPT;

/* Waits for work under way and for the other ranks, then closes the context, whatever it returns:
 * from then on everything but frees and error accessors gives CKPT_ERR_STATE.  [collective]
 * timeout_ms: 0 = init's contract_timeout_ms; UINT64_MAX is INVALID_ARGUMENT (and closes nothing).
 *   PARTICIPANTS, MISMATCH   some ranks did not come, or made another call */
CKPT_API ckpt_status ckpt_finalize(ckpt_ctx* c, uint64_t timeout_ms,
                                   ckpt_error** err) CKPT_NOEXCEPT;

/* Frees a context.  Local: never waits for peers, who see this rank as LEFT if it was not
 * finalized; unfinished work is dropped.  States of this context can then only be freed. */
CKPT_API void ckpt_ctx_free(ckpt_ctx* c) CKPT_NOEXCEPT;

/* This process's rank in the context and the number of its ranks, however they were found; -1 for
 * NULL.  Any thread, any time, also after ckpt_finalize.  [cb] */
CKPT_API int32_t ckpt_rank(const ckpt_ctx* c) CKPT_NOEXCEPT;
CKPT_API int32_t ckpt_size(const ckpt_ctx* c) CKPT_NOEXCEPT;

/* Says what this rank is doing, for the errors of other ranks: "forward", 101.  Copies at most 63
 * bytes; about 80 ns.  Harmless at any time: NULL context, after finalize, in a forked child.  Any
 * thread.  [cb] */
CKPT_API void ckpt_set_phase(ckpt_ctx* c, const char* phase, int64_t step) CKPT_NOEXCEPT;

/* Tells the library of a signal (its number, or 0), for ckpt_advise: to be called by the host's own
 * handler.  Async-signal-safe.  NULL context: nothing.  Until ckpt_ctx_free is called.  [cb] */
CKPT_API void ckpt_notify_signal(ckpt_ctx* c, int32_t what) CKPT_NOEXCEPT;

/* Flags of ckpt_advice */
#define CKPT_ADVICE_SAVE_NOW (1u << 0)
#define CKPT_ADVICE_EXIT_SOON (1u << 1)

typedef struct ckpt_advice {
  uint32_t struct_size;  /* in: sizeof; out: bytes written */
  uint32_t flags;        /* CKPT_ADVICE_* */
  int64_t next_step;     /* when to ask again: step + 1 in this version */
  uint64_t seconds_left; /* until the process is to end; 0 = not known, always so in this version */
} ckpt_advice;

/* Should the job save or end now?  The same answer on all ranks: SAVE_NOW and EXIT_SOON if any rank
 * was told of a signal (ckpt_notify_signal) that no advise has answered yet, else no flag.  A
 * signal is answered once; after a failed advise the next one answers it.  One that comes while an
 * advise runs is for this or the next one.  `step` must agree.  On error *out is all zero.
 *   INVALID_ARGUMENT (step below 0, out), PARTICIPANTS, MISMATCH
 *   IO                a rank that has arrived stands still for io.stall_timeout_ms
 *   COMM              rank 0 has been lost, as an earlier call said  [collective] */
CKPT_API ckpt_status ckpt_advise(ckpt_ctx* c, int64_t step, ckpt_advice* out,
                                 ckpt_error** err) CKPT_NOEXCEPT;

/* ---- state ----------------------------------------------------------------------------------- */

/* dtype = code | bits << 8 | lanes << 16: the bytes of a DLDataType (dlpack.h: 0 int, 1 uint,
 * 2 float, 4 bfloat, 5 complex, 6 bool, 10 float8 e4m3fn, 12 float8 e5m2, 14 float8 e8m0,
 * 17 float4 e2m1fn).  Whole-byte types that safetensors cannot name (complex128, int128, ...) are
 * stored as U8 with one more dimension; a load gives them back as they were.  Packed: F4, two
 * elements in a byte, passed through; its last dimension, offsets and extents there, flat ranges
 * and outer strides must be multiples of 2, and the last dimension contiguous.  Other packed types
 * are UNSUPPORTED. */
#define CKPT_DTYPE(code, bits) ((uint32_t)(code) | ((uint32_t)(bits) << 8) | (1u << 16))
#define CKPT_BOOL 0x10806u
#define CKPT_I8 0x10800u
#define CKPT_I16 0x11000u
#define CKPT_I32 0x12000u
#define CKPT_I64 0x14000u
#define CKPT_U8 0x10801u
#define CKPT_U16 0x11001u
#define CKPT_U32 0x12001u
#define CKPT_U64 0x14001u
#define CKPT_F16 0x11002u
#define CKPT_F32 0x12002u
#define CKPT_F64 0x14002u
#define CKPT_BF16 0x11004u
#define CKPT_C64 0x14005u
#define CKPT_F8_E4M3 0x1080au
#define CKPT_F8_E5M2 0x1080cu
#define CKPT_F8_E8M0 0x1080eu
#define CKPT_F4 0x10411u

/* Values of ckpt_tensor.shard_kind: which part of the tensor this rank's memory holds */
#define CKPT_SHARD_WHOLE 0u /* all of it */
#define CKPT_SHARD_BOX 1u   /* offset and extent in each dimension: tensor parallel, FSDP2 */
#define CKPT_SHARD_FLAT 2u  /* a range of the row-major elements: ZeRO, FSDP1 */

/* Flags of ckpt_tensor */
#define CKPT_TENSOR_OPTIONAL (1u << 0) /* load: absence is not an error */
#define CKPT_TENSOR_READY (1u << 1)    /* device data needs no stream ordering; host: no effect */
/* Save: some rank must hold data of this name (an empty shard names it without any).  Load: may not
 * be missing, whatever CKPT_LOAD_ALLOW_MISSING and CKPT_TENSOR_OPTIONAL say. */
#define CKPT_TENSOR_REQUIRED (1u << 2)

/* One shard of one tensor.  Several shards, also of one rank, may share a name: together they must
 * cover the tensor; equal shards are copies (and compared, key replica.check). */
typedef struct ckpt_tensor {
  uint32_t struct_size;        /* sizeof */
  uint32_t flags;              /* CKPT_TENSOR_* */
  const char* name;            /* unique in its group; any UTF-8 but "" and "__metadata__" */
  const char* group;           /* [A-Za-z0-9_-]{1,64}, not "blobs"; NULL = "model" */
  uint32_t dtype;              /* CKPT_DTYPE, or any DLDataType with one lane */
  uint32_t store_dtype;        /* 0 = as dtype; else cast on save, and back on load: between
                                  F64, F32, BF16, F16, F8_E4M3 and F8_E5M2, nearest even */
  int32_t ndim;                /* of the whole tensor, 0 .. 64; 0 = one element */
  uint32_t shard_kind;         /* CKPT_SHARD_*; fields of the other kinds stay zero */
  const int64_t* global_shape; /* ndim dimensions of the whole tensor, in elements, the slowest
                                  first (row-major); NULL only if ndim is 0 */
  const int64_t* offset;       /* BOX: ndim values */
  const int64_t* extent;       /* BOX: ndim values */
  int64_t flat_offset;         /* FLAT: first element */
  int64_t flat_count;          /* FLAT: number of elements */
  const int64_t* strides;      /* ndim values, in elements, of the local shard: any order,
                                  negative, 0 (broadcast; save only); NULL = compact row-major.
                                  FLAT: NULL */
  void* data;                  /* the shard's first element; NULL only if it has none */
  int32_t device_type;         /* DLPack's; 0 and 1 = host; others: [not in this version] */
  int32_t device_id;           /* of a device; host: no effect */
  void* stream;                /* stream that produces or consumes data; host: no effect */
} ckpt_tensor;

/* Makes an empty state of a context.  Success: *out, which the caller frees with ckpt_state_free.
 * Failure: *out is NULL. */
CKPT_API ckpt_status ckpt_state_new(ckpt_ctx* c, ckpt_state** out, ckpt_error** err) CKPT_NOEXCEPT;

/* Adds n shards.  Descriptions are copied; `data` must stay valid while a save or load of this
 * state runs, and is touched at no other time.  It is not checked: memory that is not there ends
 * the process as it would anywhere.
 * Success: tensors get the ids *first_id, *first_id + 1, ...; first_id may be NULL.
 * Failure: the state is poisoned, since it no longer says what the rank holds: every save or load
 * of it fails on all ranks with this error.  Free it and make another.
 *   INVALID_ARGUMENT  name, group, dtype, shape, shard, flags, missing data (cause.name: which)
 *   SHAPE             a shard that lies outside its tensor
 *   LIMIT             more than 2^62 elements or bytes
 *   UNSUPPORTED       a cast that is not built, device memory, packed dtypes other than F4 */
CKPT_API ckpt_status ckpt_state_add_tensors(ckpt_state* s, const ckpt_tensor* const* t, uint64_t n,
                                            uint64_t* first_id, ckpt_error** err) CKPT_NOEXCEPT;

/* Declares that `alias` is another name of tensor `of` of the group (NULL = "model"): tied weights.
 * They are stored once, under `of` (key ties=duplicate: under every name), and load under any of
 * the names: into a state with or without the tie, also from a checkpoint that has only the alias.
 * Some ranks may declare what others do not; `alias` is given as a tensor by none.  Nothing is
 * guessed from equal pointers.
 * Failure: INVALID_ARGUMENT, and the state is poisoned. */
CKPT_API ckpt_status ckpt_state_add_alias(ckpt_state* s, const char* group, const char* alias,
                                          const char* of, ckpt_error** err) CKPT_NOEXCEPT;

/* The same shard at a new address.  `stream` as in ckpt_tensor.  INVALID_ARGUMENT for an unknown id
 * or NULL data of a shard with elements; the state is then poisoned, for its old address may be
 * gone. */
CKPT_API ckpt_status ckpt_state_update(ckpt_state* s, uint64_t id, void* data, void* stream,
                                       ckpt_error** err) CKPT_NOEXCEPT;

/* Values of ckpt_blob.scope */
#define CKPT_BLOB_PER_RANK 0u /* RNG state; kept per global rank, never merged */
#define CKPT_BLOB_SHARED 1u   /* identical on all ranks that give it (checked), stored once */
#define CKPT_BLOB_FILE 2u     /* side file at the top of the step folder: config.json */

/* Flags of ckpt_blob */
#define CKPT_BLOB_OPTIONAL (1u << 0) /* load: absence is not an error */
#define CKPT_BLOB_REQUIRED (1u << 1) /* save: every rank must give it */

/* Opaque bytes. */
typedef struct ckpt_blob {
  uint32_t struct_size; /* sizeof */
  uint32_t flags;       /* CKPT_BLOB_* */
  uint32_t scope;       /* CKPT_BLOB_PER_RANK, _SHARED, _FILE */
  int32_t writer_rank;  /* load, PER_RANK: whose; -1 = own.  NOTE: zero means rank 0's */
  const char* name;     /* FILE: a plain file name; others: any UTF-8 but "" */
  void* data;           /* the bytes; NULL only if `bytes` is 0 */
  uint64_t bytes;       /* save: size.  load: capacity; larger content is LIMIT, nothing changed */
  uint64_t* actual;     /* load: size found; UINT64_MAX = absent (OPTIONAL); may be NULL */
} ckpt_blob;

/* Adds a blob.  Its description is copied; `data` and `actual` must stay valid as for tensors.
 * Success: *id (may be NULL), counted apart from tensors.  Failure: as ckpt_state_add_tensors. */
CKPT_API ckpt_status ckpt_state_add_blob(ckpt_state* s, const ckpt_blob* b, uint64_t* id,
                                         ckpt_error** err) CKPT_NOEXCEPT;

/* The same blob with new content or place.  Failure: as ckpt_state_update. */
CKPT_API ckpt_status ckpt_state_update_blob(ckpt_state* s, uint64_t id, void* data, uint64_t bytes,
                                            ckpt_error** err) CKPT_NOEXCEPT;

/* From now on names of tensors and aliases that begin with from_prefix are stored, and looked up by
 * a load, with to_prefix instead: ("_orig_mod.", "") saves a wrapped model under its own names,
 * ("", "_orig_mod.") loads one that was saved with the prefix.  Of several renames the first that
 * fits is taken, once.  A save or load in which two names become equal is INVALID_ARGUMENT.
 * Failure: INVALID_ARGUMENT, and the state is poisoned. */
CKPT_API ckpt_status ckpt_state_rename(ckpt_state* s, const char* from_prefix,
                                       const char* to_prefix, ckpt_error** err) CKPT_NOEXCEPT;

/* Frees a state; the caller's tensors are not touched. */
CKPT_API void ckpt_state_free(ckpt_state* s) CKPT_NOEXCEPT;

/* ---- save and load --------------------------------------------------------------------------- */

/* Milestones of a save, in this order */
#define CKPT_AT_SNAPSHOT 1u  /* the trainer may change its tensors */
#define CKPT_AT_LOCAL 2u     /* this rank's bytes are written; not told in this version */
#define CKPT_AT_REDUNDANT 3u /* reserved */
#define CKPT_AT_COMMITTED 4u /* the checkpoint exists, durably */

/* Values of ckpt_save_options.on_existing: the step is there already.  AUTO replaces a step of our
 * own lineage (the old one stays until the new one is committed) and refuses another's and a
 * damaged one (EXISTS).  A job that loads a step of its root goes on with that step's lineage, one
 * that saves without a load begins a new one. */
#define CKPT_EXISTING_AUTO 0u
#define CKPT_EXISTING_REFUSE 1u  /* EXISTS */
#define CKPT_EXISTING_REPLACE 2u /* any; a WARNING says what was lost of others or by damage */
#define CKPT_EXISTING_KEEP 3u    /* OK, nothing is written; a damaged one is its error (CORRUPT) */

/* Values of ckpt_save_options.on_busy: the previous save is still being written (never the case in
 * this version) */
#define CKPT_BUSY_WAIT 0u
#define CKPT_BUSY_FAIL 1u /* STATE */

/* Flags of ckpt_result */
#define CKPT_RESULT_FELL_BACK (1u << 0) /* load: an older step than the newest was taken */

/* What a save or load did; times and bytes are of this rank. */
typedef struct ckpt_result {
  uint32_t struct_size;     /* in: sizeof; out: bytes written */
  uint32_t flags;           /* CKPT_RESULT_* */
  int64_t step;             /* saved or loaded; -1 = none */
  uint64_t tensors;         /* filled or contributed */
  uint64_t bytes;           /* filled or contributed */
  uint64_t bytes_written;   /* to files */
  uint64_t bytes_read;      /* from files */
  uint64_t bytes_exchanged; /* with other ranks */
  uint64_t missing;         /* load: tensors asked for and absent; see ckpt_state_name */
  uint64_t unused;          /* load: names present and not asked for */
  uint64_t plan_ns;         /* until who writes or reads what was known */
  uint64_t snapshot_ns;     /* until the trainer might have gone on */
  uint64_t io_ns;           /* writing, reading, syncing */
  uint64_t commit_ns;       /* votes and commit */
  uint64_t total_ns;        /* the whole call */
} ckpt_result;

/* Flags of ckpt_save_options */
#define CKPT_SAVE_LAZY (1u << 0) /* [not in this version] copy behind compute; see ckpt_fence */

typedef struct ckpt_save_options {
  uint32_t struct_size;         /* sizeof */
  uint32_t flags;               /* CKPT_SAVE_* */
  int64_t step;                 /* >= 0 */
  const char* tag;              /* recorded; must agree on all ranks; NULL = none */
  uint32_t on_existing;         /* CKPT_EXISTING_* */
  uint32_t on_busy;             /* CKPT_BUSY_* */
  uint64_t contract_timeout_ms; /* 0 = init's */
  const char* metadata;         /* "key=value\n..." into __metadata__ of each file: no '=' in a key,
                                   no newline in a value; NULL = none */
} ckpt_save_options;

/* Values of ckpt_load_options.which */
#define CKPT_LOAD_LATEST 0u /* the newest committed step; `step` stays 0 */
#define CKPT_LOAD_STEP 1u   /* `step` */

/* Flags of ckpt_load_options */
#define CKPT_LOAD_CONVERT (1u << 0) /* other dtypes than memory's may be stored: as store_dtype */
#define CKPT_LOAD_ALLOW_MISSING (1u << 1) /* names that are absent are counted, not an error */
#define CKPT_LOAD_NO_UNUSED (1u << 2)     /* unused names are an error */
#define CKPT_LOAD_FALLBACK (1u << 3)      /* LATEST is damaged: the next older step, WARNING */
#define CKPT_LOAD_NO_VERIFY (1u << 4)     /* do not compare checksums */

typedef struct ckpt_load_options {
  uint32_t struct_size;         /* sizeof */
  uint32_t flags;               /* CKPT_LOAD_* */
  uint32_t which;               /* CKPT_LOAD_LATEST, _STEP */
  uint32_t reserved0;           /* 0 */
  int64_t step;                 /* for CKPT_LOAD_STEP, >= 0 */
  const char* uri;              /* NULL = the context's root; else another root or a step folder */
  uint64_t contract_timeout_ms; /* 0 = init's */
} ckpt_load_options;

/* Saves the state of all ranks as one checkpoint.  [collective]
 * req == NULL: blocks until the outcome is known; `result` (may be NULL) is filled, also on error
 * as far as known.  req != NULL: [not in this version]; *req is NULL and `result` must be NULL.
 * Success: COMMITTED: the step survives kill -9 of every rank and power loss.
 * Failure: the same code and sentence on every rank; earlier checkpoints are as they were.
 *   INVALID_ARGUMENT  an option, a poisoned state, a state of another context (any rank's)
 *   UNSUPPORTED       an option that is not built; ranks that do not see one storage
 *   PARTICIPANTS      ranks did not call: ckpt_error_rank names them; the context stays usable
 *   MISMATCH          ranks passed different step, tag, options or descriptions (cause.field)
 *   COVERAGE          shards leave a gap or overlap;  REPLICA  copies differ
 *   EXISTS, OWNED     the step is there and not ours to replace; another live run owns the root
 *   IO, NO_SPACE      cause.path and cause.sys_errno
 *   CANCELLED         an event callback asked for it
 *   OUTCOME_UNKNOWN   the last step of the commit could not be confirmed; nothing was removed */
CKPT_API ckpt_status ckpt_save_collective(ckpt_ctx* c, ckpt_state* s, const ckpt_save_options* o,
                                          ckpt_result* result, ckpt_request** req,
                                          ckpt_error** err) CKPT_NOEXCEPT;

/* Fills the tensors and blobs of `dst` from a checkpoint, whatever number of ranks saved it.
 * [collective]  `result` and `req` as above.
 * Failure: codes before the first byte is read leave the memory of all ranks unchanged; after
 * CORRUPT, IO or PARTICIPANTS in the reading the contents of `dst` are unspecified and the message
 * says so.
 *   INVALID_ARGUMENT, UNSUPPORTED, PARTICIPANTS, MISMATCH, CANCELLED   as above
 *   NO_CHECKPOINT     the root holds none
 *   NOT_FOUND         that step, or names asked for, are absent (cause.name)
 *   CORRUPT           damaged; cause.path, cause.name
 *   SHAPE, DTYPE      not as stored
 *   LIMIT             a blob is larger than its capacity */
CKPT_API ckpt_status ckpt_load(ckpt_ctx* c, ckpt_state* dst, const ckpt_load_options* o,
                               ckpt_result* result, ckpt_request** req,
                               ckpt_error** err) CKPT_NOEXCEPT;

/* Values of `which` of ckpt_state_name */
#define CKPT_NAMES_MISSING 1u
#define CKPT_NAMES_UNUSED 2u

/* The i-th name that the last load into `s` missed or did not use; NULL past the end and for
 * anything else.  Belongs to `s`; valid until the next load into it. */
CKPT_API const char* ckpt_state_name(const ckpt_state* s, uint32_t which, uint64_t i) CKPT_NOEXCEPT;

/* The newest committed step of the context's root, as this rank sees it on disk now: for decisions
 * that all ranks must take alike, let one rank ask and tell the others.  Not collective.  Any
 * thread. NO_CHECKPOINT (*step is -1), CORRUPT, IO */
CKPT_API ckpt_status ckpt_latest(ckpt_ctx* c, int64_t* step, ckpt_error** err) CKPT_NOEXCEPT;

/* Delivers queued log lines and events on this thread.  Any thread.  CANCELLED is not reported here
 * but by the call that is cancelled. */
CKPT_API ckpt_status ckpt_poll(ckpt_ctx* c, ckpt_error** err) CKPT_NOEXCEPT;

/* ---- requests -------------------------------------------------------------------------------- */
/* [not in this version]: no call makes a ckpt_request yet.  NULL is INVALID_ARGUMENT, anything else
 * UNSUPPORTED. */

/* What the request has done so far.  Any time. */
CKPT_API ckpt_status ckpt_request_result(ckpt_request* r, ckpt_result* out) CKPT_NOEXCEPT;

/* May the tensor `name` change now?  Waits at most timeout_ms. */
CKPT_API ckpt_status ckpt_fence(ckpt_request* r, const char* name, uint64_t timeout_ms,
                                ckpt_error** err) CKPT_NOEXCEPT;

/* Waits for a milestone (CKPT_AT_*).  Local.  timeout_ms 0 = look; CKPT_PENDING when not yet. */
CKPT_API ckpt_status ckpt_wait(ckpt_request* r, uint32_t milestone, uint64_t timeout_ms,
                               ckpt_error** err) CKPT_NOEXCEPT;

/* Where a request is, and who waits for what. */
typedef struct ckpt_request_info {
  uint32_t struct_size;     /* in: sizeof; out: bytes written */
  uint32_t milestone;       /* last one reached, CKPT_AT_* */
  uint64_t bytes_done;      /* of this rank */
  uint64_t bytes_total;     /* of this rank */
  uint64_t job_bytes_done;  /* of all ranks */
  uint64_t job_bytes_total; /* of all ranks */
  uint64_t waiting_ns;      /* since the last progress */
  int32_t waiting_rank;     /* for whom; -1 = nobody */
  uint32_t reserved0;       /* 0 */
  const char* phase;        /* valid until the next call on the request by this thread */
  const char* file;         /* likewise */
} ckpt_request_info;

CKPT_API ckpt_status ckpt_request_status(ckpt_request* r, ckpt_request_info* out) CKPT_NOEXCEPT;

/* Values of `what` of ckpt_background */
#define CKPT_BACKGROUND_PAUSE 1u
#define CKPT_BACKGROUND_RESUME 2u
#define CKPT_BACKGROUND_TRIM 3u /* give staging memory back */

/* Controls this rank's background work.  Local.  [not in this version: UNSUPPORTED] */
CKPT_API ckpt_status ckpt_background(ckpt_ctx* c, uint32_t what, ckpt_error** err) CKPT_NOEXCEPT;

/* A descriptor that becomes readable when the request is done; -1 = none. */
CKPT_API int32_t ckpt_request_fd(ckpt_request* r) CKPT_NOEXCEPT;

/* Asks to cancel for the whole job, before the commit begins; all ranks get CANCELLED naming this
 * one.  [cb] */
CKPT_API ckpt_status ckpt_cancel(ckpt_request* r) CKPT_NOEXCEPT;

/* Frees a request.  Blocks until SNAPSHOT; then the work goes on in the background. */
CKPT_API void ckpt_request_free(ckpt_request* r) CKPT_NOEXCEPT;

/* ---- marks ----------------------------------------------------------------------------------- */

/* Keeps a committed step from retention (pinned = 1), or stops keeping it (0).  Local, durable when
 * it returns; gone when the step is saved again.  Only rank 0 owns the root and may mark its steps:
 * STATE on others, so call it under `if (ckpt_rank(c) == 0)`.  It may take the root, as a first
 * save does (OWNED; while an owner on another host is watched that takes up to 30 s).  Any thread.
 *   NOT_FOUND  no such step;  IO */
CKPT_API ckpt_status ckpt_pin(ckpt_ctx* c, int64_t step, int32_t pinned,
                              ckpt_error** err) CKPT_NOEXCEPT;

/* Marks a committed step, damaged or not, as one that LATEST passes over (by number it is still
 * loaded); saving it again clears the mark.  It does not count for retention, which removes it if
 * it is of the job's lineage and not pinned.
 * Otherwise as ckpt_pin. */
CKPT_API ckpt_status ckpt_mark_bad(ckpt_ctx* c, int64_t step, ckpt_error** err) CKPT_NOEXCEPT;

/* ---- inspection: no context, no communicator, no write --------------------------------------- */

/* Flags of ckpt_checkpoint_info */
#define CKPT_INFO_PINNED (1u << 0)
#define CKPT_INFO_BAD (1u << 1)

/* Strings of these structs are never NULL ("" = none) and belong to the reader. */
typedef struct ckpt_checkpoint_info {
  uint32_t struct_size;    /* in: sizeof; out: bytes written */
  uint32_t flags;          /* CKPT_INFO_* */
  int64_t step;            /* its number */
  uint64_t sequence;       /* grows with each commit in a root; alone says what is newer */
  const char* tag;         /* the save's */
  const char* lineage;     /* the run that it belongs to */
  const char* layout_note; /* of the ranks that saved */
  const char* path;        /* of the step folder */
  uint64_t bytes;          /* of all its files but the commit record */
  uint64_t tensors;        /* UINT64_MAX = not known (not the step that the reader opened) */
  uint64_t world_size;     /* ranks that saved */
  int64_t created_unix_ns; /* time of the commit */
} ckpt_checkpoint_info;

typedef struct ckpt_tensor_info {
  uint32_t struct_size;        /* in: sizeof; out: bytes written */
  uint32_t dtype;              /* CKPT_DTYPE */
  const char* name;            /* as saved */
  const char* group;           /* "model", ... */
  const char* alias_of;        /* the stored tensor that this name stands for; "" = itself */
  const char* file;            /* name within the step folder */
  int32_t ndim;                /* 0 .. 64 */
  uint32_t reserved0;          /* 0 */
  const int64_t* global_shape; /* ndim dimensions; belongs to the reader */
  uint64_t bytes;              /* of the whole tensor */
  uint64_t file_offset;        /* of its first byte, from the start of the file */
} ckpt_tensor_info;

typedef struct ckpt_file_info {
  uint32_t struct_size; /* in: sizeof; out: bytes written */
  uint32_t reserved0;   /* 0 */
  const char* name;     /* within the step folder */
  uint64_t bytes;       /* its size */
  uint64_t writers;     /* ranks that wrote it; 0 = the coordinator alone (index and side files) */
} ckpt_file_info;

typedef struct ckpt_blob_info {
  uint32_t struct_size; /* in: sizeof; out: bytes written */
  uint32_t scope;       /* CKPT_BLOB_PER_RANK, _SHARED, _FILE */
  const char* name;     /* as saved */
  int32_t rank;         /* PER_RANK: whose; else -1 */
  uint32_t reserved0;   /* 0 */
  uint64_t bytes;       /* its size */
} ckpt_blob_info;

/* Opens a checkpoint to look at: `uri` is a root (which = CKPT_LOAD_LATEST with step 0, or
 * CKPT_LOAD_STEP) or a step folder.  Reads and checks the commit record and the headers.
 * Success: *out, which the caller frees with ckpt_reader_free.  Failure: *out is NULL.
 *   INVALID_ARGUMENT, NO_CHECKPOINT, NOT_FOUND, CORRUPT, IO */
CKPT_API ckpt_status ckpt_open(const char* uri, uint32_t which, int64_t step, ckpt_reader** out,
                               ckpt_error** err) CKPT_NOEXCEPT;

/* The i-th committed step of the root, damaged ones first, then by sequence (a step folder: itself,
 * without its marks).  NOT_FOUND past the end; so below.  CORRUPT: its record is damaged; only
 * step, path and flags are filled. */
CKPT_API ckpt_status ckpt_reader_checkpoint(const ckpt_reader* r, uint64_t i,
                                            ckpt_checkpoint_info* out) CKPT_NOEXCEPT;

/* The i-th tensor of the open step, in order of files and offsets; then the aliases. */
CKPT_API ckpt_status ckpt_reader_tensor(const ckpt_reader* r, uint64_t i,
                                        ckpt_tensor_info* out) CKPT_NOEXCEPT;

/* The i-th file of the open step: tensors, blobs, then side files and index files. */
CKPT_API ckpt_status ckpt_reader_file(const ckpt_reader* r, uint64_t i,
                                      ckpt_file_info* out) CKPT_NOEXCEPT;

/* The k-th writer of the i-th file: its rank and how much it wrote. */
CKPT_API ckpt_status ckpt_reader_file_writer(const ckpt_reader* r, uint64_t i, uint64_t k,
                                             int32_t* rank, uint64_t* bytes) CKPT_NOEXCEPT;

/* The i-th blob of the open step, side files last. */
CKPT_API ckpt_status ckpt_reader_blob(const ckpt_reader* r, uint64_t i,
                                      ckpt_blob_info* out) CKPT_NOEXCEPT;

/* Reads the blob that dst->scope, name and (PER_RANK) writer_rank name into dst->data; *dst->actual
 * is its size.  NOT_FOUND (CKPT_BLOB_OPTIONAL: OK, *actual is UINT64_MAX); LIMIT: larger than
 * dst->bytes, nothing read; CORRUPT, IO. */
CKPT_API ckpt_status ckpt_reader_read_blob(ckpt_reader* r, const ckpt_blob* dst,
                                           ckpt_error** err) CKPT_NOEXCEPT;

/* Reads any box or flat range of a tensor.  [not in this version: UNSUPPORTED] */
CKPT_API ckpt_status ckpt_reader_read(ckpt_reader* r, const ckpt_tensor* dst,
                                      ckpt_error** err) CKPT_NOEXCEPT;

/* A view of a tensor until the reader is freed.
 * [not in this version: UNSUPPORTED; *data is NULL] */
CKPT_API ckpt_status ckpt_reader_map(ckpt_reader* r, const char* group, const char* name,
                                     const void** data, uint64_t* bytes,
                                     ckpt_error** err) CKPT_NOEXCEPT;

/* Compares every byte of every file with the record.  `on_event` (may be NULL) gets PROGRESS with
 * the file's name as text; non-zero ends it with CANCELLED.  CORRUPT names the first bad file and
 * tensor; NOT_FOUND, IO. */
CKPT_API ckpt_status ckpt_reader_verify(ckpt_reader* r, ckpt_event_fn on_event, void* user,
                                        ckpt_error** err) CKPT_NOEXCEPT;

/* Frees a reader and all that it lent. */
CKPT_API void ckpt_reader_free(ckpt_reader* r) CKPT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* CKPT_H_INCLUDED */
