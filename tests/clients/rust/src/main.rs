// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//! The Rust client; ../../README.md says what each mode does.
mod abi;
mod ckpt;
mod job;

use std::cell::Cell;
use std::env;
use std::error::Error;
use std::rc::Rc;

use abi::{Api, CKPT_AT_COMMITTED, CKPT_ERR_MISMATCH, CKPT_EVENT_MILESTONE, CKPT_RANK_DISAGREES};
use ckpt::{Context, OnEvent};

fn open(root: &str, on_event: OnEvent) -> Result<Context, Box<dyn Error>> {
    let path = env::var("CKPT_LIB").unwrap_or_else(|_| "libckpt.so.1".into());
    Ok(Context::new(Rc::new(Api::open(&path)?), root, on_event)?)
}

fn no_events() -> OnEvent {
    Box::new(|_| false)
}

fn expect_mismatch(error: &ckpt::Error) {
    assert_eq!(error.code, CKPT_ERR_MISMATCH, "{:?}", error);
    assert_eq!(error.cause_field.as_deref(), Some("tag"), "{:?}", error);
    // With one rank on each side the later is the one that is named.
    let ranks: Vec<_> = error.ranks.iter().map(|r| (r.rank, r.condition)).collect();
    assert_eq!(ranks, [(error.cause_rank, CKPT_RANK_DISAGREES)], "{:?}", error);
    assert!(error.to_string().contains("\"other\" on rank 1"), "{:?}", error);
}

fn train(root: &str, base: i64) -> Result<(), Box<dyn Error>> {
    let committed = Rc::new(Cell::new(-1));
    let seen = committed.clone();
    let on_event: OnEvent = Box::new(move |event| {
        if event.kind == CKPT_EVENT_MILESTONE && event.milestone == CKPT_AT_COMMITTED {
            seen.set(event.step);
        }
        false
    });
    let ctx = open(root, on_event)?;
    assert_eq!(job::save(&ctx, base, 1, "client")?, 1);
    assert_eq!(committed.get(), 1);
    let tag = if job::rank() == 1 { "other" } else { "client" };
    match job::save(&ctx, base + 1, 2, tag) {
        Err(error) => expect_mismatch(&error),
        Ok(_) => panic!("ranks with different tags saved"),
    }
    assert_eq!(ctx.latest()?, 1);
    assert_eq!(job::load(&ctx, base, job::size())?, 1);
    assert_eq!(job::save(&ctx, base + 1, 2, "client")?, 2);
    assert_eq!(job::load(&ctx, base + 1, job::size())?, 2);
    Ok(ctx.finalize()?)
}

fn save(root: &str, base: i64) -> Result<(), Box<dyn Error>> {
    let ctx = open(root, no_events())?;
    job::save(&ctx, base, base, "client")?;
    Ok(ctx.finalize()?)
}

fn load(root: &str, base: i64, saved_by: usize) -> Result<(), Box<dyn Error>> {
    let ctx = open(root, no_events())?;
    assert_eq!(job::load(&ctx, base, saved_by)?, base);
    Ok(ctx.finalize()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--layout"] => {
            abi::print_layout();
            Ok(())
        }
        ["train", root, base] => train(root, base.parse()?),
        ["save", root, base] => save(root, base.parse()?),
        ["load", root, base, saved_by] => load(root, base.parse()?, saved_by.parse()?),
        _ => {
            Err("usage: ckpt-client --layout | train|save ROOT BASE | load ROOT BASE SAVED_BY"
                .into())
        }
    }
}
