// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Versions and features.
#include "suite.h"

static void library_has_the_abi_of_this_header(void) {
  assert_int_equal(api.abi_version(), CKPT_HEADER_ABI);
  assert_true(*api.version_string() != '\0');
}

static void refused(uint32_t header_abi, const char* words) {
  const ckpt_init_options options = default_init();
  ckpt_ctx* ctx = (ckpt_ctx*)&options;
  ckpt_error* error = NULL;
  const ckpt_status status = api.init(header_abi, &options, &ctx, &error);
  assert_null(ctx);
  assert_non_null(strstr(api.error_message(error), "1.0"));  // the library's own
  expect_failed(status, error, CKPT_ERR_UNSUPPORTED, words);
}

static void another_abi_is_refused_with_both_versions(void) {
  refused(2u << 16, "2.0");
  refused(CKPT_HEADER_ABI + 1, "1.1");
  refused(0, "0.0");
}

static void features_tell_the_truth(void) {
  static const char* const there[] = {
      "comm.env",      "comm.self", "io.direct",   "load.convert", "load.latest",  "replica.check",
      "reader.verify", "save.cast", "state.alias", "state.rename", "state.strides"};
  static const char* const not_yet[] = {"comm.tcp", "comm.mpi",   "comm.nccl", "device.cuda",
                                        "io.uring", "save.async", "save.lazy", "reader.map"};
  for (size_t i = 0; i < sizeof there / sizeof *there; ++i) {
    assert_int_equal(api.has_feature(there[i]), 1);
  }
  for (size_t i = 0; i < sizeof not_yet / sizeof *not_yet; ++i) {
    assert_int_equal(api.has_feature(not_yet[i]), 0);
  }
  assert_int_equal(api.has_feature("no.such"), 0);
  assert_int_equal(api.has_feature(""), 0);
  assert_int_equal(api.has_feature(NULL), 0);
}

static const test_case kCases[] = {
    CASE(library_has_the_abi_of_this_header),
    CASE(another_abi_is_refused_with_both_versions),
    CASE(features_tell_the_truth),
};
AREA(version, kCases);
