# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
#
# Build options, warnings, sanitizers, and the helper that makes a module library.
option(CKPT_TESTS "Build the tests" ON)
set(CKPT_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")
option(CKPT_FUZZ "Build the libFuzzer programs of tests/fuzz (clang)" OFF)

add_library(ckpt_flags INTERFACE)
target_compile_options(ckpt_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror)
target_compile_options(
  ckpt_flags
  INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>
    # GCC 12 sees overlaps and bounds errors in std::string that are none (GCC bugs 105329, 105651).
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow>")
if(CKPT_SANITIZE)
  add_compile_options(-fsanitize=${CKPT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CKPT_SANITIZE})
endif()
if(CKPT_FUZZ)
  # Coverage for the fuzzer in everything; a found overflow ends the program, and is then reported.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()

# ckpt_module(NAME SOURCES... [DEPENDS modules...]): static library ckpt_NAME of src/NAME, hidden
# symbols, linked into libckpt.so. Includes are spelled from src/ ("plan/plan.h").
function(ckpt_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(ckpt_${name} STATIC ${ARG_SOURCES})
  target_include_directories(ckpt_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(ckpt_${name} PRIVATE ckpt_flags)
  if(name STREQUAL util)
    target_precompile_headers(ckpt_util PRIVATE ${PROJECT_SOURCE_DIR}/src/util/pch.h)
  else()
    target_precompile_headers(ckpt_${name} REUSE_FROM ckpt_util)
  endif()
  foreach(dep ${ARG_DEPENDS})
    target_link_libraries(ckpt_${name} PUBLIC ckpt_${dep})
  endforeach()
endfunction()
