// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//! The state of ../../README.md: what this rank holds of it, by `base`.
use std::env;
use std::ops::Range;

use crate::abi::*;
use crate::ckpt::{BFloat16, Context, Part, Result, State};

const ROOM: usize = 64;

fn from_env(name: &str, otherwise: usize) -> usize {
    env::var(name).map_or(otherwise, |text| text.parse().expect(name))
}

pub fn rank() -> usize {
    from_env("RANK", 0)
}

pub fn size() -> usize {
    from_env("WORLD_SIZE", 1)
}

/// This rank's part of n items, as evenly as they go.
fn share(n: usize) -> Range<usize> {
    n * rank() / size()..n * (rank() + 1) / size()
}

fn bfloat16(x: f32) -> BFloat16 {
    BFloat16((x.to_bits() >> 16) as u16) // exact for the few bits of these values
}

#[derive(Debug, PartialEq)]
pub struct Tensors {
    w: Vec<f32>,
    bias: Vec<f32>,
    loss: [f64; 1],
    count: Vec<i64>,
    half: Vec<BFloat16>,
    bytes: Vec<u8>,
}

impl Tensors {
    pub fn new(base: i64) -> Tensors {
        let rows = share(7);
        let b = base as f32;
        Tensors {
            w: (rows.start * 5..rows.end * 5).map(|i| b + i as f32 / 2.0).collect(),
            bias: (0..5).map(|i| b + 100.0 + i as f32).collect(),
            loss: [base as f64 / 8.0],
            count: share(6).map(|i| base * 1_000_000_000_000 - i as i64).collect(),
            half: share(8).map(|i| bfloat16((b + i as f32 - 4.0) / 2.0)).collect(),
            bytes: share(9).map(|i| ((37 * i as i64 + base) % 256) as u8).collect(),
        }
    }

    pub fn describe<'a>(&'a mut self, state: &mut State<'a>) -> Result<()> {
        let (rows, bytes) = (share(7), share(9));
        let row_box =
            Part::Box { offset: &[rows.start as i64, 0], extent: &[rows.len() as i64, 5] };
        let byte_box = Part::Box { offset: &[bytes.start as i64], extent: &[bytes.len() as i64] };
        let flat = |n| Part::Flat { offset: share(n).start as i64 };
        state.add("model", "w", &[7, 5], row_box, &mut self.w)?;
        state.add("model", "bias", &[5], Part::Whole, &mut self.bias)?;
        state.add("model", "loss", &[], Part::Whole, &mut self.loss)?;
        state.add("optimizer", "count", &[6], flat(6), &mut self.count)?;
        state.add("optimizer", "half", &[8], flat(8), &mut self.half)?;
        state.add("optimizer", "bytes", &[9], byte_box, &mut self.bytes)
    }
}

/// Own, shared, file.
const BLOBS: [(&str, u32); 3] =
    [("état", CKPT_BLOB_PER_RANK), ("sampler", CKPT_BLOB_SHARED), ("config.json", CKPT_BLOB_FILE)];

fn blobs(base: i64) -> [Vec<u8>; 3] {
    let b = base as u8;
    let own = format!("base {} rank {}", base, rank()).into_bytes();
    [own, vec![b, b + 1, b + 2], format!("{{\"base\": {}}}\n", base).into_bytes()]
}

pub fn save(ctx: &Context, base: i64, step: i64, tag: &str) -> Result<i64> {
    let (mut tensors, mut contents, mut unused) = (Tensors::new(base), blobs(base), [0; 3]);
    let mut state = State::new(ctx)?;
    tensors.describe(&mut state)?;
    for (((name, scope), content), actual) in BLOBS.iter().zip(&mut contents).zip(&mut unused) {
        state.add_blob(*scope, 0, name, content, actual)?;
    }
    Ok(ctx.save(&mut state, step, tag, "k=v")?.step)
}

/// Into memory that holds something else; `saved_by` ranks wrote it.
pub fn load(ctx: &Context, base: i64, saved_by: usize) -> Result<i64> {
    let mut tensors = Tensors::new(base + 1);
    let (mut buffers, mut sizes) = ([[0u8; ROOM]; 3], [0u64; 3]);
    let mut state = State::new(ctx)?;
    tensors.describe(&mut state)?;
    for (((name, scope), buffer), size) in BLOBS.iter().zip(&mut buffers).zip(&mut sizes) {
        state.add_blob(*scope, CKPT_BLOB_OPTIONAL, name, buffer, size)?;
    }
    let step = ctx.load(&mut state)?.step;
    drop(state);
    assert_eq!(tensors, Tensors::new(base));
    if rank() >= saved_by {
        assert_eq!(sizes[0], u64::MAX, "a blob of a rank that did not save");
    }
    for ((content, buffer), size) in blobs(base).iter().zip(&buffers).zip(sizes) {
        if size != u64::MAX {
            assert_eq!(&buffer[..size as usize], &content[..]);
        }
    }
    let absent = sizes.iter().filter(|&&size| size == u64::MAX).count();
    assert_eq!(absent, usize::from(rank() >= saved_by));
    Ok(step)
}
