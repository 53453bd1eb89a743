# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
"""ckpt.h as ctypes sees it: every public struct, every constant, the functions that ckpt_ctypes
calls. Nothing here is Pythonic; layout() is compared with the C compiler's (clients_test.cc)."""
import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_void_p
from ctypes import c_int32 as i32, c_int64 as i64, c_uint32 as u32, c_uint64 as u64

OK = 0
STATUS = {  # status -> name without CKPT_ERR_
    -1: "INVALID_ARGUMENT", -2: "UNSUPPORTED", -3: "STATE", -4: "NOT_FOUND", -5: "CORRUPT", -6: "IO",
    -7: "NO_SPACE", -8: "NO_MEMORY", -9: "DEVICE", -10: "PARTICIPANTS", -11: "MISMATCH", -12: "PEER",
    -13: "COMM", -14: "CANCELLED", -15: "FORKED", -16: "EXISTS", -17: "COVERAGE", -18: "REPLICA",
    -19: "SHAPE", -20: "DTYPE", -21: "NO_CHECKPOINT", -22: "OWNED", -23: "LIMIT",
    -24: "OUTCOME_UNKNOWN", -127: "INTERNAL"}
CONDITION = {1: "ALIVE_ELSEWHERE", 2: "UNRESPONSIVE", 3: "DEAD", 4: "DISAGREES", 5: "FAILED",
             6: "UNKNOWN", 7: "LEFT"}
HEADER_ABI = 1 << 16 | 0
EVENT_PROGRESS, EVENT_MILESTONE, EVENT_WARNING, EVENT_RANK_LATE = 1, 2, 3, 4
AT_SNAPSHOT, AT_LOCAL, AT_REDUNDANT, AT_COMMITTED = 1, 2, 3, 4
SHARD_WHOLE, SHARD_BOX, SHARD_FLAT = 0, 1, 2
BLOB_PER_RANK, BLOB_SHARED, BLOB_FILE = 0, 1, 2
BLOB_OPTIONAL = 1
LOAD_LATEST, LOAD_STEP = 0, 1
LOAD_ALLOW_MISSING = 1 << 1
ABSENT = 2**64 - 1  # ckpt_blob.actual


class Struct(ctypes.Structure):
    """A struct of the ABI: its first field says how large it is."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


def struct(name, *fields):
    """fields: ("type", "name name ...") in the order of the header."""
    return type(name, (Struct,), {"_fields_": [("struct_size", u32)] + [
        (field, kind) for kind, names in fields for field in names.split()]})


dims = POINTER(i64)
RankReport = struct(
    "ckpt_rank_report", (i32, "rank"), (u32, "condition reserved0"), (u64, "heartbeat_age_ns"),
    (i64, "phase_step"), (c_char_p, "host phase doing last_call"))
ErrorCause = struct(
    "ckpt_error_cause", (i32, "rank sys_errno"), (u32, "reserved0"), (c_char_p, "path name field"))
Event = struct(
    "ckpt_event", (u32, "kind"), (i64, "step"), (u32, "milestone reserved0"),
    (u64, "bytes_done bytes_total"), (c_char_p, "text"))
Comm = struct(
    "ckpt_comm", (u32, "kind flags port"), (c_void_p, "handle"), (u64, "handle_size"),
    (c_char_p, "adapter"), (i32, "rank size"), (c_char_p, "addr token"), (c_void_p, "stream"))
LogFn = CFUNCTYPE(None, c_void_p, i32, c_char_p, c_char_p)
EventFn = CFUNCTYPE(i32, c_void_p, POINTER(Event))
DescribeFn = CFUNCTYPE(u64, c_void_p, c_void_p, u64)
InitOptions = struct(
    "ckpt_init_options", (u32, "flags"), (POINTER(Comm), "comm"),
    (c_char_p, "name root layout_note config"), (u64, "contract_timeout_ms heartbeat_ms"),
    (LogFn, "log"), (c_void_p, "log_user"), (i32, "log_level io_threads"), (EventFn, "on_event"),
    (c_void_p, "event_user"), (DescribeFn, "describe"), (c_void_p, "describe_user"))
Advice = struct("ckpt_advice", (u32, "flags"), (i64, "next_step"), (u64, "seconds_left"))
Tensor = struct(
    "ckpt_tensor", (u32, "flags"), (c_char_p, "name group"), (u32, "dtype store_dtype"),
    (i32, "ndim"), (u32, "shard_kind"), (dims, "global_shape offset extent"),
    (i64, "flat_offset flat_count"), (dims, "strides"), (c_void_p, "data"),
    (i32, "device_type device_id"), (c_void_p, "stream"))
Blob = struct(
    "ckpt_blob", (u32, "flags scope"), (i32, "writer_rank"), (c_char_p, "name"), (c_void_p, "data"),
    (u64, "bytes"), (POINTER(u64), "actual"))
Result = struct(
    "ckpt_result", (u32, "flags"), (i64, "step"),
    (u64, "tensors bytes bytes_written bytes_read bytes_exchanged missing unused"),
    (u64, "plan_ns snapshot_ns io_ns commit_ns total_ns"))
SaveOptions = struct(
    "ckpt_save_options", (u32, "flags"), (i64, "step"), (c_char_p, "tag"),
    (u32, "on_existing on_busy"), (u64, "contract_timeout_ms"), (c_char_p, "metadata"))
LoadOptions = struct(
    "ckpt_load_options", (u32, "flags which reserved0"), (i64, "step"), (c_char_p, "uri"),
    (u64, "contract_timeout_ms"))
RequestInfo = struct(
    "ckpt_request_info", (u32, "milestone"),
    (u64, "bytes_done bytes_total job_bytes_done job_bytes_total waiting_ns"),
    (i32, "waiting_rank"), (u32, "reserved0"), (c_char_p, "phase file"))
CheckpointInfo = struct(
    "ckpt_checkpoint_info", (u32, "flags"), (i64, "step"), (u64, "sequence"),
    (c_char_p, "tag lineage layout_note path"), (u64, "bytes tensors world_size"),
    (i64, "created_unix_ns"))
TensorInfo = struct(
    "ckpt_tensor_info", (u32, "dtype"), (c_char_p, "name group alias_of file"), (i32, "ndim"),
    (u32, "reserved0"), (dims, "global_shape"), (u64, "bytes file_offset"))
FileInfo = struct("ckpt_file_info", (u32, "reserved0"), (c_char_p, "name"), (u64, "bytes writers"))
BlobInfo = struct(
    "ckpt_blob_info", (u32, "scope"), (c_char_p, "name"), (i32, "rank"), (u32, "reserved0"),
    (u64, "bytes"))

FUNCTIONS = {  # name -> result, arguments
    "ckpt_error_status": (i32, [c_void_p]),
    "ckpt_error_message": (c_char_p, [c_void_p]),
    "ckpt_error_rank_count": (u64, [c_void_p]),
    "ckpt_error_rank": (i32, [c_void_p, u64, POINTER(RankReport)]),
    "ckpt_error_get_cause": (i32, [c_void_p, POINTER(ErrorCause)]),
    "ckpt_error_free": (None, [c_void_p]),
    "ckpt_init": (i32, [u32, POINTER(InitOptions), POINTER(c_void_p), POINTER(c_void_p)]),
    "ckpt_finalize": (i32, [c_void_p, u64, POINTER(c_void_p)]),
    "ckpt_ctx_free": (None, [c_void_p]),
    "ckpt_set_phase": (None, [c_void_p, c_char_p, i64]),
    "ckpt_state_new": (i32, [c_void_p, POINTER(c_void_p), POINTER(c_void_p)]),
    "ckpt_state_add_tensors": (
        i32, [c_void_p, POINTER(POINTER(Tensor)), u64, POINTER(u64), POINTER(c_void_p)]),
    "ckpt_state_add_blob": (i32, [c_void_p, POINTER(Blob), POINTER(u64), POINTER(c_void_p)]),
    "ckpt_state_free": (None, [c_void_p]),
    "ckpt_save_collective": (
        i32, [c_void_p, c_void_p, POINTER(SaveOptions), POINTER(Result), c_void_p,
              POINTER(c_void_p)]),
    "ckpt_load": (
        i32, [c_void_p, c_void_p, POINTER(LoadOptions), POINTER(Result), c_void_p,
              POINTER(c_void_p)]),
    "ckpt_latest": (i32, [c_void_p, POINTER(i64), POINTER(c_void_p)]),
}


def open_library(path=None):
    """libckpt.so of `path`, else of $CKPT_LIB, else where the loader finds it."""
    library = ctypes.CDLL(path or os.environ.get("CKPT_LIB") or "libckpt.so.1")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def layout():
    """Lines as the program of layout.py prints them."""
    kinds = {u32: "u", u64: "u", i32: "i", i64: "i"}
    for kind in Struct.__subclasses__():
        yield f"{kind.__name__} {ctypes.sizeof(kind)}"
        for name, of in kind._fields_:
            field = getattr(kind, name)
            yield f"{kind.__name__}.{name} {field.offset} {field.size} {kinds.get(of, 'p')}"
    yield f"CKPT_OK {OK}"
    yield from (f"CKPT_ERR_{name} {code}" for code, name in STATUS.items())
    yield from (f"CKPT_RANK_{name} {code}" for code, name in CONDITION.items())
    for name, value in globals().items():
        if name.startswith(("HEADER_", "EVENT_", "AT_", "SHARD_", "BLOB_", "LOAD_")):
            yield f"CKPT_{name} {value}"
