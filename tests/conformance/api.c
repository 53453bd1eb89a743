// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the library under test.
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct api api;

const char* library_path(void) {
  const char* path = getenv("CKPT_LIB");
  if (path != NULL && *path != '\0') return path;
  fprintf(stderr, "CKPT_LIB does not name the library to test\n");
  exit(2);
}

// ISO C has no cast from void* to a function pointer, hence memcpy.
static void find(void* library, const char* name, void* slot) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  memcpy(slot, &symbol, sizeof symbol);
}

void load_api(void) {
  void* library = dlopen(library_path(), RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
#define X(name) find(library, "ckpt_" #name, &api.name);
  CKPT_FUNCTIONS(X)
#undef X
}
