# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
"""The state that every client saves and loads, as ../README.md lists it: what it holds follows from
the number `base` and global positions alone, so that whatever one saved any other can check."""
import ml_dtypes
import numpy as np


def whole(base):
    """group -> name -> the whole tensor."""
    return {
        "model": {
            "w": (base + np.arange(35) / 2).astype(np.float32).reshape(7, 5),
            "bias": (base + 100 + np.arange(5)).astype(np.float32),
            "loss": np.array(base / 8, dtype=np.float64),
        },
        "optimizer": {
            "count": base * 10**12 - np.arange(6, dtype=np.int64),
            "half": ((base + np.arange(8) - 4) / 2).astype(ml_dtypes.bfloat16),
            "bytes": ((37 * np.arange(9) + base) % 256).astype(np.uint8),
        },
    }


def own_blob(base, rank):
    return f"base {base} rank {rank}".encode()


def shared_blob(base):
    return bytes([base, base + 1, base + 2])


def side_file(base):
    return f'{{"base": {base}}}\n'.encode()


def share(n, rank, size):
    """The part of n items that is this rank's, as evenly as they go."""
    return slice(n * rank // size, n * (rank + 1) // size)
