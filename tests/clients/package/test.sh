#!/usr/bin/env bash
# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
#
# test.sh BUILD_FOLDER: installs it, moves the installation elsewhere, and builds the README's example from there, by
# find_package and by pkg-config. Each saves, loads, and saves again as one rank; the installed command checks that.
set -euo pipefail
readonly build=$1
cd "$(dirname "${BASH_SOURCE[0]}")"
readonly source=$(cd ../../.. && pwd)
readonly example=$source/examples/c_minimal/minimal.c
work=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-package.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
readonly prefix=$work/moved

die() { echo "package test: $*" >&2; exit 1; }

trains() { # PROGRAM: two runs in a new folder, the second goes on from the first
  local folder=$1.runs
  mkdir "$folder" && cd "$folder"
  [[ $("$1") == "rank 0: step 0 is committed, weights[first] = 1" ]] || die "$1: first run"
  [[ $("$1") == "rank 0: step 1 is committed, weights[first] = 2" ]] || die "$1: second run does not go on"
  "$prefix/bin/ckpt" verify "$folder/checkpoints" >/dev/null || die "$1: ckpt verify"
  cd - >/dev/null
}

cmake --install "$build" --prefix "$work/installed" >"$work/log" || die "$(<"$work/log")"
mv "$work/installed" "$prefix"
lib=$(dirname "$(find "$prefix" -name libckpt.so)")
[[ -f $prefix/include/ckpt.h && -f $prefix/share/doc/ckpt/LICENSE ]] || die "header or licence is missing"
[[ $(readlink "$lib/libckpt.so") == libckpt.so.1 ]] || die "libckpt.so does not lead to libckpt.so.1"
readelf -d "$lib/libckpt.so" | grep -q 'SONAME.*\[libckpt.so.1\]' || die "soname"
! readelf -d "$lib/libckpt.so" | grep -E 'R(UN)?PATH' || die "the library has a search path of its own"
! grep -rIF -e "$source" -e "$work/installed" "$lib/cmake" "$lib/pkgconfig" || die "names a folder that may be gone"

cmake -S . -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE="$example" >"$work/log" || die "$(<"$work/log")"
cmake --build "$work/cmake" >"$work/log" || die "$(<"$work/log")"
trains "$work/cmake/consumer"

export PKG_CONFIG_PATH=$lib/pkgconfig
read -ra flags < <(pkg-config --cflags --libs ckpt)
cc -std=c99 -Wall -Wextra -Werror "$example" "${flags[@]}" -o "$work/by_pkg_config"
LD_LIBRARY_PATH=$lib trains "$work/by_pkg_config"
echo "ckpt $(pkg-config --modversion ckpt): installed, moved, found twice, used"
