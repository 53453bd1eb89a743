# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
"""layout.py CKPT_H: a C program that prints what the C compiler makes of every public struct and
constant of the header, one line each, sorted as they stand there:

    ckpt_blob 56                size
    ckpt_blob.data 24 8 p       offset, size, kind: p pointer, u unsigned, i signed
    CKPT_BLOB_FILE 2

A client's --layout prints the same. The list comes from the header's own text, so that whatever is
added there is missed in the clients at once.
"""
import re
import sys

STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\} \1;", re.DOTALL)
CONSTANT = re.compile(r"^#define (CKPT_\w+) +[-(\d]", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)

HEAD = """#include <ckpt.h>
#include <stddef.h>
#include <stdio.h>

#define KIND(x) _Generic((x), uint32_t: 'u', uint64_t: 'u', int32_t: 'i', int64_t: 'i', default: 'p')
#define FIELD(s, f) \\
  printf(#s "." #f " %zu %zu %c\\n", offsetof(s, f), sizeof(((s*)0)->f), KIND(((s*)0)->f));
#define SIZE(s) printf(#s " %zu\\n", sizeof(s));
#define CONSTANT(c) printf(#c " %lld\\n", (long long)(c));

int main(void) {"""


def program(header):
    text = COMMENT.sub("", header)
    yield HEAD
    for name, body in STRUCT.findall(text):
        yield f"  SIZE({name})"
        for declaration in body.split(";")[:-1]:
            yield f"  FIELD({name}, {re.findall(r'[a-z_0-9]+', declaration)[-1]})"
    for name in CONSTANT.findall(text):
        yield f"  CONSTANT({name})"
    yield "  return 0;\n}"


print("\n".join(program(open(sys.argv[1], encoding="utf-8").read())))
