// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The one place where fmt is compiled.  Debian has no static libfmt and the library must not need a
// shared one; header-only mode would cost every source more than a second of compile time.
#ifndef FMT_HEADER_ONLY
#include <fmt/format-inl.h>

namespace fmt {
template auto detail::thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto detail::decimal_point_impl<char>(locale_ref) -> char;
}  // namespace fmt
#endif
