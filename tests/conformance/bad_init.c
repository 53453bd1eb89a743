// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Bad input to ckpt_init: each with its code, a sentence that names the thing, and no context.
#include <stdlib.h>

#include "suite.h"

static void refused(const ckpt_init_options* options, ckpt_status code, const char* words,
                    const char* name) {
  ckpt_ctx* ctx = (ckpt_ctx*)&code;
  ckpt_error* error = NULL;
  const ckpt_status status = api.init(CKPT_HEADER_ABI, options, &ctx, &error);
  assert_null(ctx);
  expect_blamed(status, error, code, words, name);
}

static void refused_config(const char* config, ckpt_status code, const char* words,
                           const char* key) {
  ckpt_init_options options = default_init();
  options.config = config;
  refused(&options, code, words, key);
}

static void config_lines(void) {
  refused_config("no.such=1", CKPT_ERR_INVALID_ARGUMENT, "line 1: unknown key", "no.such");
  refused_config("\n# note\nio.align=4KiB\nio.align=8KiB", CKPT_ERR_INVALID_ARGUMENT,
                 "line 4: duplicate key", "io.align");
  refused_config("io.threads", CKPT_ERR_INVALID_ARGUMENT, "line 1", "io.threads");
  refused_config("io.threads=0", CKPT_ERR_INVALID_ARGUMENT, "1 to 256", "io.threads");
  refused_config("io.align=5000", CKPT_ERR_INVALID_ARGUMENT, "power of two", "io.align");
  refused_config("max_file_bytes=-1", CKPT_ERR_INVALID_ARGUMENT, "max_file_bytes=-1",
                 "max_file_bytes");
  refused_config("max_file_bytes=99999999999999999999", CKPT_ERR_INVALID_ARGUMENT, "size",
                 "max_file_bytes");
  refused_config("keep_last=-1", CKPT_ERR_INVALID_ARGUMENT, "keep_last=-1", "keep_last");
  refused_config("slot.reuse=on", CKPT_ERR_UNSUPPORTED, "not in this version", "slot.reuse");
  refused_config("replica.check=maybe", CKPT_ERR_INVALID_ARGUMENT, "maybe", "replica.check");
  refused_config("io.align=\xff", CKPT_ERR_INVALID_ARGUMENT, "UTF-8", "config");
}

static void numbers_out_of_range(void) {
  ckpt_init_options options = default_init();
  options.flags = 1u << 31;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "0x80000000", "ckpt_init_options.flags");
  options = default_init();
  options.contract_timeout_ms = UINT64_MAX;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "contract_timeout_ms", "contract_timeout_ms");
  options = default_init();
  options.heartbeat_ms = 3600 * 1000;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "heartbeat_ms", "heartbeat_ms");
  options = default_init();
  options.log_level = 5;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "log_level is 5", "log_level");
  options.log_level = -1;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "log_level is -1", "log_level");
  options = default_init();
  options.io_threads = -1;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "io_threads is -1", "io_threads");
}

static void names_that_cannot_be(void) {
  ckpt_init_options options = default_init();
  options.root = NULL;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "root", "root");
  options.root = "";
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "root", "root");
  options = default_init();
  options.name = "";
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "name", "name");
  options.name = "\xff\xfe";
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "UTF-8", "name");
  options = default_init();
  options.layout_note = "tp=\xc0";
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "UTF-8", "layout_note");
}

static void ways_to_meet(void) {
  static const uint32_t later[] = {CKPT_COMM_TCP, CKPT_COMM_MPI, CKPT_COMM_NCCL, CKPT_COMM_VTABLE};
  ckpt_init_options options = default_init();
  ckpt_comm comm = {.struct_size = sizeof comm};
  options.comm = &comm;
  for (size_t i = 0; i < sizeof later / sizeof *later; ++i) {
    comm.kind = later[i];
    refused(&options, CKPT_ERR_UNSUPPORTED, "CKPT_COMM_", "comm.kind");
  }
  comm.kind = 99;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "99", "comm.kind");
  comm.kind = CKPT_COMM_SELF;
  comm.flags = 1;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "flag", "comm.flags");
  comm.flags = 0;
  comm.port = 80;
  refused(&options, CKPT_ERR_INVALID_ARGUMENT, "zero", "comm");
}

static void half_a_pair_of_environment_variables(void) {
  setenv("RANK", "0", 1);
  unsetenv("WORLD_SIZE");
  ckpt_init_options options = default_init();
  options.comm = NULL;
  ckpt_ctx* ctx = NULL;
  ckpt_error* error = NULL;
  const ckpt_status status = api.init(CKPT_HEADER_ABI, &options, &ctx, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "WORLD_SIZE");
}

static void no_place_for_the_context(void) {
  const ckpt_init_options options = default_init();
  ckpt_error* error = NULL;
  const ckpt_status status = api.init(CKPT_HEADER_ABI, &options, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "out");
}

static const test_case kCases[] = {
    CASE(config_lines),
    CASE(numbers_out_of_range),
    CASE(names_that_cannot_be),
    CASE(ways_to_meet),
    CASE(half_a_pair_of_environment_variables),
    CASE(no_place_for_the_context),
};
AREA(bad_init, kCases);
