# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
"""empty.py ROOT: saves empty tensors, on any number of ranks; the first one then opens the file
with the safetensors package alone."""
import os
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from ckpt_ctypes import Context

SHAPES = {"a": (0,), "b": (2, 0), "c": (0, 3), "d": (0,)}


def main(root):
    with Context(root) as ctx:
        state = ctx.state()
        for name, shape in SHAPES.items():
            state.add(name, np.zeros(shape, np.float32))
        ctx.save(state, 1)
    if os.environ.get("RANK", "0") == "0":
        found = load_file(Path(root) / "step-000000000001" / "model.safetensors")
        assert {name: array.shape for name, array in found.items()} == SHAPES, found


main(*sys.argv[1:])
