// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the file libckpt.so shows to a loader: names, needs, flags.
#include <dlfcn.h>
#include <stdlib.h>

#include "suite.h"

enum { kMaxNames = 256, kMaxText = 1 << 17 };

typedef struct names {
  size_t count;
  char list[kMaxNames][64];
} names;

static int compare(const void* a, const void* b) { return strcmp(a, b); }

static void add(names* n, const char* begin, size_t length) {
  assert_true(n->count < kMaxNames && length < sizeof n->list[0]);
  memcpy(n->list[n->count], begin, length);
  n->list[n->count][length] = '\0';
  ++n->count;
}

static void expect_same(names* a, names* b, const char* what) {
  qsort(a->list, a->count, sizeof a->list[0], compare);
  qsort(b->list, b->count, sizeof b->list[0], compare);
  for (size_t i = 0; i < a->count && i < b->count; ++i) {
    if (strcmp(a->list[i], b->list[i]) == 0) continue;
    print_error("%s: %s against %s\n", what, a->list[i], b->list[i]);
    fail();
  }
  assert_int_equal(a->count, b->count);
}

static char* read_text(FILE* file) {
  char* text = calloc(1, kMaxText);
  assert_non_null(file);
  assert_true(fread(text, 1, kMaxText - 1, file) < kMaxText - 1);
  return text;
}

static char* read_file(const char* path) {
  FILE* file = fopen(path, "r");
  char* text = read_text(file);
  fclose(file);
  return text;
}

static char* output_of(const char* command) {
  char line[4096];
  snprintf(line, sizeof line, "%s '%s'", command, library_path());
  FILE* pipe = popen(line, "r");
  char* text = read_text(pipe);
  assert_int_equal(pclose(pipe), 0);
  return text;
}

static size_t identifier(const char* s) {
  return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

// Names before a '(' in declarations that begin with CKPT_API.
static void declared(names* out) {
  char* text = read_file(CKPT_HEADER);
  out->count = 0;
  for (char* at = strstr(text, "\nCKPT_API "); at != NULL; at = strstr(at + 1, "\nCKPT_API ")) {
    const char* paren = strchr(at, '(');
    const char* begin = paren;
    while (begin[-1] != ' ' && begin[-1] != '*') --begin;
    add(out, begin, (size_t)(paren - begin));
  }
  free(text);
}

static void exported(names* out) {
  char* text = output_of("nm -D --defined-only");
  out->count = 0;
  for (char* line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    const char* name = strrchr(line, ' ') + 1;
    if (strncmp(name, "CKPT_", 5) == 0) continue;  // the version node itself
    if (strstr(name, "@@CKPT_1.0") == NULL) print_error("%s has no version\n", name);
    assert_non_null(strstr(name, "@@CKPT_1.0"));
    add(out, name, identifier(name));
  }
  free(text);
}

static void exported_symbols_are_those_of_the_header(void) {
  static names a, b;
  exported(&a);
  declared(&b);
  assert_true(a.count > 40);
  expect_same(&a, &b, "exported against header");
}

static void version_map_lists_those_of_the_header(void) {
  static names a, b;
  char* text = read_file(CKPT_MAP);
  for (char* at = strstr(text, "\n    ckpt_"); at != NULL; at = strstr(at + 1, "\n    ckpt_")) {
    add(&a, at + 5, identifier(at + 5));
  }
  free(text);
  declared(&b);
  expect_same(&a, &b, "map against header");
}

static void suite_knows_every_function_of_the_header(void) {
  static names a, b;
#define X(name) add(&a, "ckpt_" #name, strlen("ckpt_" #name));
  CKPT_FUNCTIONS(X)
#undef X
  declared(&b);
  expect_same(&a, &b, "suite against header");
}

static void needed_holds_only_libc_libm_and_the_loader(void) {
  if (!CKPT_CHECK_NEEDED) skip();  // a debug build brings its sanitizers and a shared C++ runtime
  char* text = output_of("readelf -d");
  for (char* at = strstr(text, "(NEEDED)"); at != NULL; at = strstr(at + 1, "(NEEDED)")) {
    const char* name = strchr(at, '[') + 1;
    const int fine = strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libm.so", 7) == 0 ||
                     strncmp(name, "ld-linux", 8) == 0;
    if (!fine) print_error("NEEDED %.40s\n", name);
    assert_true(fine);
  }
  free(text);
}

static void library_stays_after_dlclose(void) {
  char* text = output_of("readelf -d");
  assert_non_null(strstr(text, "NODELETE"));
  free(text);
  void* again = dlopen(library_path(), RTLD_NOW | RTLD_LOCAL);
  assert_non_null(again);
  dlclose(again);
  dlclose(again);  // the suite's own
  assert_int_equal(api.abi_version(), CKPT_HEADER_ABI);
}

static const test_case kCases[] = {
    CASE(exported_symbols_are_those_of_the_header),
    CASE(version_map_lists_those_of_the_header),
    CASE(suite_knows_every_function_of_the_header),
    CASE(needed_holds_only_libc_libm_and_the_loader),
    CASE(library_stays_after_dlclose),
};
AREA(symbols, kCases);
