// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Breaks the file calls of this process as a plan says: the library's create, write, fsync, rename
// and so on are counted from 1, logged, killed before, failed, cut short or delayed.
//
// How it gets in: a test program that links `shim` with ENABLE_EXPORTS defines write, fsync, ...
// itself, and a library opened later binds to those. Forked ranks start with the shim off and call
// shim_reset. For programs that are not ours: LD_PRELOAD libshim.so, the plan's text in SHIM_PLAN.
//
// A plan is lines of words; `#` begins a comment line:
//
//   root /tmp/x/root                  only calls below this path (or on it) are events; required
//   log /tmp/x/rank0.log              appends "7 fsync PATH", "8 exchange PATH -> PATH !fail EIO"
//   seed 5                            of random delays
//   kill at=17                        SIGKILL to this process before its event 17
//   killall at=17                     ... to its process group
//   fail EIO op=fsync end=/root       the first fsync of the root itself fails
//   fail ENOSPC op=write path=model every
//   fail EINVAL op=exchange every     a file system that refuses RENAME_EXCHANGE
//   short 100 op=write nth=2          the second write transfers 100 bytes
//   delay 0-50 op=write every         milliseconds
//
// An event is chosen by number (at=) or by op (several: op=write,fsync), path (a part of it), end
// (how it ends) and which of those that fit: nth=, or every; the default is nth=1. `from=` is the
// first event number to be looked at. Both names of a rename are looked at. The first kill, fail or
// short that fits wins; delays come on top.
//
// Ops: create write fsync truncate allocate mkdir unlink rmdir link rename noreplace exchange close
// (close: of a file that was written to), and read where a rule names it.
//
// From the environment, at any time: SHIM_BOOT_ID and SHIM_HOST are what the process finds in
// /proc/sys/kernel/random/boot_id and from gethostname and uname: another host.
//
// Covered by shim_test.cc, which also says if libckpt calls something that is not seen here.
#pragma once

#include <stdint.h>

extern "C" {
// Starts over: event numbers, choices, log. NULL or "": off. A plan that cannot be read ends the
// process: a test must not pass because nothing was broken. Not while other threads do file calls.
__attribute__((visibility("default"))) void shim_reset(const char* plan);

// Events since then.
__attribute__((visibility("default"))) uint64_t shim_events(void);
}
