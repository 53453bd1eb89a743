// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//! A small safe binding: contexts and states that free themselves, slices that stay borrowed while
//! the library has their address, errors with their cause and ranks.
use std::ffi::{CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::rc::Rc;

use crate::abi::*;

#[derive(Debug)]
pub struct RankReport {
    pub rank: i32,
    pub condition: u32,
}

#[derive(Debug)]
pub struct Error {
    pub code: i32,
    pub message: String,
    pub cause_rank: i32,
    pub cause_field: Option<String>,
    pub ranks: Vec<RankReport>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

/// REQUIRES: NULL or a NUL-terminated string.
unsafe fn text(s: *const c_char) -> Option<String> {
    if s.is_null() {
        return None;
    }
    Some(CStr::from_ptr(s).to_string_lossy().into_owned())
}

fn c_string(s: &str) -> CString {
    CString::new(s).expect("a string for the library has no NUL")
}

impl Api {
    /// Runs a call that may make an error, and takes that error apart.
    fn check(&self, call: impl FnOnce(*mut *mut CkptError) -> i32) -> Result<()> {
        let mut error = null_mut();
        let code = call(&mut error);
        if code >= CKPT_OK {
            return Ok(());
        }
        // SAFETY: `error` is NULL or the call's; the accessors accept both.
        unsafe {
            let mut cause = ckpt_error_cause::default();
            (self.ckpt_error_get_cause)(error, &mut cause);
            let ranks = (0..(self.ckpt_error_rank_count)(error)).map(|i| {
                let mut report = ckpt_rank_report::default();
                (self.ckpt_error_rank)(error, i, &mut report);
                RankReport { rank: report.rank, condition: report.condition }
            });
            let result = Error {
                code,
                message: text((self.ckpt_error_message)(error)).unwrap_or_default(),
                cause_rank: cause.rank,
                cause_field: text(cause.field),
                ranks: ranks.collect(),
            };
            (self.ckpt_error_free)(error);
            Err(result)
        }
    }
}

/// Returns true to cancel.
pub type OnEvent = Box<dyn FnMut(&ckpt_event) -> bool>;

unsafe extern "C" fn deliver(user: *mut c_void, event: *const ckpt_event) -> i32 {
    let on_event = &mut *(user as *mut OnEvent);
    // A panic must not pass through the library: it asks for cancel instead.
    catch_unwind(AssertUnwindSafe(|| on_event(&*event))).unwrap_or(true) as i32
}

pub struct Context {
    api: Rc<Api>,
    raw: *mut CkptCtx,
    _on_event: Box<OnEvent>, // where the library finds it until ckpt_ctx_free
}

impl Context {
    pub fn new(api: Rc<Api>, root: &str, on_event: OnEvent) -> Result<Context> {
        let root = c_string(root);
        let mut on_event = Box::new(on_event);
        let options = ckpt_init_options {
            root: root.as_ptr(),
            on_event: Some(deliver),
            event_user: &mut *on_event as *mut OnEvent as *mut c_void,
            ..Default::default()
        };
        let mut raw = null_mut();
        api.check(|e| unsafe { (api.ckpt_init)(CKPT_HEADER_ABI, &options, &mut raw, e) })?;
        Ok(Context { api, raw, _on_event: on_event })
    }

    pub fn save(
        &self,
        state: &mut State,
        step: i64,
        tag: &str,
        metadata: &str,
    ) -> Result<ckpt_result> {
        let (tag, metadata) = (c_string(tag), c_string(metadata));
        let options = ckpt_save_options {
            step,
            tag: tag.as_ptr(),
            metadata: metadata.as_ptr(),
            ..Default::default()
        };
        let mut result = ckpt_result::default();
        let save = self.api.ckpt_save_collective;
        self.api.check(|e| unsafe {
            save(self.raw, state.raw, &options, &mut result, null_mut(), e)
        })?;
        Ok(result)
    }

    /// The newest step.
    pub fn load(&self, state: &mut State) -> Result<ckpt_result> {
        let options = ckpt_load_options { which: CKPT_LOAD_LATEST, ..Default::default() };
        let mut result = ckpt_result::default();
        let load = self.api.ckpt_load;
        self.api.check(|e| unsafe {
            load(self.raw, state.raw, &options, &mut result, null_mut(), e)
        })?;
        Ok(result)
    }

    pub fn latest(&self) -> Result<i64> {
        let mut step = 0;
        self.api.check(|e| unsafe { (self.api.ckpt_latest)(self.raw, &mut step, e) })?;
        Ok(step)
    }

    /// Ends together with the other ranks; a context that is dropped instead has left them.
    pub fn finalize(self) -> Result<()> {
        self.api.check(|e| unsafe { (self.api.ckpt_finalize)(self.raw, 0, e) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { (self.api.ckpt_ctx_free)(self.raw) }
    }
}

/// What may lie in a tensor, as the library names it. bfloat16 is given by its bits.
pub trait Element: Copy {
    const DTYPE: u32;
}
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct BFloat16(pub u16);
macro_rules! elements {
    ($($t:ty: $code:literal, $bits:literal;)*) => {
        $(impl Element for $t { const DTYPE: u32 = $code | $bits << 8 | 1 << 16; })*
    };
}
elements! { i64: 0, 64; u8: 1, 8; f32: 2, 32; f64: 2, 64; BFloat16: 4, 16; }

/// Which part of the tensor a slice holds.
pub enum Part<'s> {
    Whole,
    Box { offset: &'s [i64], extent: &'s [i64] },
    Flat { offset: i64 },
}

/// What this rank holds. The slices stay borrowed: the library has their addresses.
pub struct State<'a> {
    api: Rc<Api>,
    raw: *mut CkptState,
    _data: PhantomData<&'a mut [u8]>,
}

impl<'a> State<'a> {
    pub fn new(ctx: &Context) -> Result<State<'a>> {
        let mut raw = null_mut();
        ctx.api.check(|e| unsafe { (ctx.api.ckpt_state_new)(ctx.raw, &mut raw, e) })?;
        Ok(State { api: ctx.api.clone(), raw, _data: PhantomData })
    }

    pub fn add<T: Element>(
        &mut self,
        group: &str,
        name: &str,
        shape: &[i64],
        part: Part,
        data: &'a mut [T],
    ) -> Result<()> {
        let (group, name) = (c_string(group), c_string(name));
        let mut tensor = ckpt_tensor {
            name: name.as_ptr(),
            group: group.as_ptr(),
            dtype: T::DTYPE,
            ndim: shape.len() as i32,
            global_shape: shape.as_ptr(),
            data: data.as_mut_ptr() as *mut c_void,
            ..Default::default()
        };
        let mut elements = shape.iter().product::<i64>();
        match part {
            Part::Whole => tensor.shard_kind = CKPT_SHARD_WHOLE,
            Part::Box { offset, extent } => {
                assert_eq!((offset.len(), extent.len()), (shape.len(), shape.len()));
                tensor.shard_kind = CKPT_SHARD_BOX;
                tensor.offset = offset.as_ptr();
                tensor.extent = extent.as_ptr();
                elements = extent.iter().product();
            }
            Part::Flat { offset } => {
                tensor.shard_kind = CKPT_SHARD_FLAT;
                tensor.flat_offset = offset;
                tensor.flat_count = data.len() as i64;
                elements = tensor.flat_count;
            }
        }
        assert_eq!(elements, data.len() as i64, "{:?}", name);
        let tensors = [&tensor as *const ckpt_tensor];
        let add = self.api.ckpt_state_add_tensors;
        self.api.check(|e| unsafe { add(self.raw, tensors.as_ptr(), 1, null_mut(), e) })
    }

    /// `actual` (for loads): how many bytes were found, u64::MAX if there is no such blob.
    pub fn add_blob(
        &mut self,
        scope: u32,
        flags: u32,
        name: &str,
        data: &'a mut [u8],
        actual: &'a mut u64,
    ) -> Result<()> {
        let name = c_string(name);
        let blob = ckpt_blob {
            flags,
            scope,
            writer_rank: -1,
            name: name.as_ptr(),
            data: data.as_mut_ptr() as *mut c_void,
            bytes: data.len() as u64,
            actual,
            ..Default::default()
        };
        let add = self.api.ckpt_state_add_blob;
        self.api.check(|e| unsafe { add(self.raw, &blob, null_mut(), e) })
    }
}

impl Drop for State<'_> {
    fn drop(&mut self) {
        unsafe { (self.api.ckpt_state_free)(self.raw) }
    }
}
