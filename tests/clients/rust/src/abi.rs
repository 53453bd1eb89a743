// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//! `ckpt.h` as Rust sees it: every public struct, the constants and functions that the client uses.
//! `layout` is compared with the C compiler's (clients_test.cc).
use std::mem::{size_of, size_of_val, MaybeUninit};
use std::os::raw::{c_char, c_void};

use libloading::Library;

/// How a field counts in the layout: u unsigned, i signed, p pointer.
trait Kind {
    const KIND: char;
}
macro_rules! kinds {
    ($($t:ty => $kind:literal),*) => { $(impl Kind for $t { const KIND: char = $kind; })* };
}
kinds!(u32 => 'u', u64 => 'u', i32 => 'i', i64 => 'i');
kinds!(Option<LogFn> => 'p', Option<EventFn> => 'p', Option<DescribeFn> => 'p');
impl<T> Kind for *const T {
    const KIND: char = 'p';
}
impl<T> Kind for *mut T {
    const KIND: char = 'p';
}
fn kind_of<T: Kind>(_: &T) -> char {
    T::KIND
}

/// Declares structs that begin with their size, `Default` as the ABI means it (all zero, the size
/// set), and `struct_layout`.
macro_rules! abi_structs {
    ($($name:ident { $($field:ident: $t:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            #[allow(non_camel_case_types)]
            pub struct $name { pub struct_size: u32, $(pub $field: $t),* }
            impl Default for $name {
                fn default() -> Self {
                    // SAFETY: integers, raw pointers and Option<fn>: all-zero is valid for each.
                    let zero: Self = unsafe { MaybeUninit::zeroed().assume_init() };
                    $name { struct_size: size_of::<Self>() as u32, ..zero }
                }
            }
        )*
        fn struct_layout() {
            $({
                println!("{} {}", stringify!($name), size_of::<$name>());
                let value = $name::default();
                let base = &value as *const _ as usize;
                abi_structs!(@field $name value base struct_size);
                $(abi_structs!(@field $name value base $field);)*
            })*
        }
    };
    (@field $name:ident $value:ident $base:ident $field:ident) => {
        let field = &$value.$field;
        let offset = field as *const _ as usize - $base;
        print!("{}.{} {} ", stringify!($name), stringify!($field), offset);
        println!("{} {}", size_of_val(field), kind_of(field));
    };
}

macro_rules! constants {
    ($($name:ident: $t:ty = $value:expr;)*) => {
        $(pub const $name: $t = $value;)*
        fn constant_layout() {
            $(println!("{} {}", stringify!($name), $name);)*
        }
    };
}

type Text = *const c_char;
type Dims = *const i64;
pub type LogFn = unsafe extern "C" fn(*mut c_void, i32, Text, Text);
pub type EventFn = unsafe extern "C" fn(*mut c_void, *const ckpt_event) -> i32;
pub type DescribeFn = unsafe extern "C" fn(*mut c_void, *mut c_char, u64) -> u64;

abi_structs! {
    ckpt_rank_report {
        rank: i32, condition: u32, reserved0: u32, heartbeat_age_ns: u64, phase_step: i64,
        host: Text, phase: Text, doing: Text, last_call: Text,
    }
    ckpt_error_cause {
        rank: i32, sys_errno: i32, reserved0: u32, path: Text, name: Text, field: Text,
    }
    ckpt_event {
        kind: u32, step: i64, milestone: u32, reserved0: u32, bytes_done: u64, bytes_total: u64,
        text: Text,
    }
    ckpt_comm {
        kind: u32, flags: u32, port: u32, handle: *const c_void, handle_size: u64, adapter: Text,
        rank: i32, size: i32, addr: Text, token: Text, stream: *mut c_void,
    }
    ckpt_init_options {
        flags: u32, comm: *const ckpt_comm, name: Text, root: Text, layout_note: Text, config: Text,
        contract_timeout_ms: u64, heartbeat_ms: u64, log: Option<LogFn>, log_user: *mut c_void,
        log_level: i32, io_threads: i32, on_event: Option<EventFn>, event_user: *mut c_void,
        describe: Option<DescribeFn>, describe_user: *mut c_void,
    }
    ckpt_advice { flags: u32, next_step: i64, seconds_left: u64 }
    ckpt_tensor {
        flags: u32, name: Text, group: Text, dtype: u32, store_dtype: u32, ndim: i32,
        shard_kind: u32, global_shape: Dims, offset: Dims, extent: Dims, flat_offset: i64,
        flat_count: i64, strides: Dims, data: *mut c_void, device_type: i32, device_id: i32,
        stream: *mut c_void,
    }
    ckpt_blob {
        flags: u32, scope: u32, writer_rank: i32, name: Text, data: *mut c_void, bytes: u64,
        actual: *mut u64,
    }
    ckpt_result {
        flags: u32, step: i64, tensors: u64, bytes: u64, bytes_written: u64, bytes_read: u64,
        bytes_exchanged: u64, missing: u64, unused: u64, plan_ns: u64, snapshot_ns: u64, io_ns: u64,
        commit_ns: u64, total_ns: u64,
    }
    ckpt_save_options {
        flags: u32, step: i64, tag: Text, on_existing: u32, on_busy: u32, contract_timeout_ms: u64,
        metadata: Text,
    }
    ckpt_load_options {
        flags: u32, which: u32, reserved0: u32, step: i64, uri: Text, contract_timeout_ms: u64,
    }
    ckpt_request_info {
        milestone: u32, bytes_done: u64, bytes_total: u64, job_bytes_done: u64,
        job_bytes_total: u64, waiting_ns: u64, waiting_rank: i32, reserved0: u32, phase: Text,
        file: Text,
    }
    ckpt_checkpoint_info {
        flags: u32, step: i64, sequence: u64, tag: Text, lineage: Text, layout_note: Text,
        path: Text, bytes: u64, tensors: u64, world_size: u64, created_unix_ns: i64,
    }
    ckpt_tensor_info {
        dtype: u32, name: Text, group: Text, alias_of: Text, file: Text, ndim: i32, reserved0: u32,
        global_shape: Dims, bytes: u64, file_offset: u64,
    }
    ckpt_file_info { reserved0: u32, name: Text, bytes: u64, writers: u64 }
    ckpt_blob_info { scope: u32, name: Text, rank: i32, reserved0: u32, bytes: u64 }
}

constants! {
    CKPT_HEADER_ABI: u32 = 1 << 16;
    CKPT_OK: i32 = 0;
    CKPT_ERR_MISMATCH: i32 = -11;
    CKPT_RANK_DISAGREES: u32 = 4;
    CKPT_EVENT_MILESTONE: u32 = 2;
    CKPT_AT_COMMITTED: u32 = 4;
    CKPT_SHARD_WHOLE: u32 = 0;
    CKPT_SHARD_BOX: u32 = 1;
    CKPT_SHARD_FLAT: u32 = 2;
    CKPT_BLOB_PER_RANK: u32 = 0;
    CKPT_BLOB_SHARED: u32 = 1;
    CKPT_BLOB_FILE: u32 = 2;
    CKPT_BLOB_OPTIONAL: u32 = 1;
    CKPT_LOAD_LATEST: u32 = 0;
}

pub fn print_layout() {
    struct_layout();
    constant_layout();
}

pub enum CkptError {}
pub enum CkptCtx {}
pub enum CkptState {}

macro_rules! functions {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The library's functions. It is never unloaded, so they stay good.
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            _library: Library,
        }
        impl Api {
            pub fn open(path: &str) -> Result<Api, libloading::Error> {
                // SAFETY: the types are those of ckpt.h, and opening it runs nothing of note.
                unsafe {
                    let library = Library::new(path)?;
                    Ok(Api {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

type Errors = *mut *mut CkptError;
functions! {
    fn ckpt_error_message(*const CkptError) -> Text;
    fn ckpt_error_rank_count(*const CkptError) -> u64;
    fn ckpt_error_rank(*const CkptError, u64, *mut ckpt_rank_report) -> i32;
    fn ckpt_error_get_cause(*const CkptError, *mut ckpt_error_cause) -> i32;
    fn ckpt_error_free(*mut CkptError);
    fn ckpt_init(u32, *const ckpt_init_options, *mut *mut CkptCtx, Errors) -> i32;
    fn ckpt_finalize(*mut CkptCtx, u64, Errors) -> i32;
    fn ckpt_ctx_free(*mut CkptCtx);
    fn ckpt_state_new(*mut CkptCtx, *mut *mut CkptState, Errors) -> i32;
    fn ckpt_state_add_tensors(
        *mut CkptState, *const *const ckpt_tensor, u64, *mut u64, Errors) -> i32;
    fn ckpt_state_add_blob(*mut CkptState, *const ckpt_blob, *mut u64, Errors) -> i32;
    fn ckpt_state_free(*mut CkptState);
    fn ckpt_save_collective(
        *mut CkptCtx, *mut CkptState, *const ckpt_save_options, *mut ckpt_result, *mut *mut c_void,
        Errors) -> i32;
    fn ckpt_load(
        *mut CkptCtx, *mut CkptState, *const ckpt_load_options, *mut ckpt_result, *mut *mut c_void,
        Errors) -> i32;
    fn ckpt_latest(*mut CkptCtx, *mut i64, Errors) -> i32;
}
