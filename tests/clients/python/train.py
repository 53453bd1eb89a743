# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
"""The client that ckpt_ctypes is tested by; ../README.md says what each mode does."""
import os
import sys

import numpy as np

import ckpt_abi
import job
from ckpt_ctypes import CkptError, Context, as_bytes

RANK, SIZE = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
METADATA = {"k": "v"}


class Held:
    """What this rank holds of the job's state, and the ckpt state that describes it."""

    def __init__(self, ctx, base):
        self.state = ctx.state()
        tensors = job.whole(base)
        model, optimizer = tensors["model"], tensors["optimizer"]
        self.rows, self.bytes = job.share(7, RANK, SIZE), job.share(9, RANK, SIZE)
        self.count, self.half = job.share(6, RANK, SIZE), job.share(8, RANK, SIZE)
        self.arrays = {
            "w": model["w"][self.rows].copy(), "bias": model["bias"], "loss": model["loss"],
            "count": optimizer["count"][self.count].copy(),
            "half": optimizer["half"][self.half].copy(),
            "bytes": optimizer["bytes"][self.bytes].copy()}
        add = self.state.add
        add("w", self.arrays["w"], global_shape=(7, 5), offset=(self.rows.start, 0))
        add("bias", self.arrays["bias"])
        add("loss", self.arrays["loss"])
        for name, shape, start in (("count", (6,), self.count.start), ("half", (8,), self.half.start)):
            add(name, self.arrays[name], group="optimizer", global_shape=shape, flat_offset=start)
        add("bytes", self.arrays["bytes"], group="optimizer", global_shape=(9,),
            offset=(self.bytes.start,))

    def add_blobs(self, contents, optional=False):
        """Own, shared, file. Returns how to learn the size of each."""
        scopes = ("état", ckpt_abi.BLOB_PER_RANK), ("sampler", ckpt_abi.BLOB_SHARED), (
            "config.json", ckpt_abi.BLOB_FILE)
        return [self.state.add_blob(name, scope, content, optional=optional)
                for (name, scope), content in zip(scopes, contents)]


def blobs(base):
    return [job.own_blob(base, RANK), job.shared_blob(base), job.side_file(base)]


def save(ctx, base, step, tag="client"):
    held = Held(ctx, base)
    held.add_blobs([as_bytes(content) for content in blobs(base)])
    return ctx.save(held.state, step, tag=tag, metadata=METADATA)


def load(ctx, base, saved_by):
    """Into memory that holds something else; `saved_by` ranks wrote it."""
    held, wanted = Held(ctx, base + 1), Held(ctx, base)
    buffers = [np.zeros(64, np.uint8) for _ in range(3)]
    sizes = held.add_blobs(buffers, optional=True)
    result = ctx.load(held.state)
    for name, array in held.arrays.items():
        np.testing.assert_array_equal(array, wanted.arrays[name], err_msg=name)
    for buffer, size, content in zip(buffers, sizes, blobs(base)):
        if size() is None:
            assert content == job.own_blob(base, RANK) and RANK >= saved_by
        else:
            assert buffer[:size()].tobytes() == content, buffer
    return result.step


def train(root, base):
    """A save, a save that fails since rank 1 has another tag, and the same again by all alike."""
    milestones = []

    def on_event(event):
        if event.kind == ckpt_abi.EVENT_MILESTONE:
            milestones.append((event.step, event.milestone))

    with Context(root, on_event=on_event) as ctx:
        assert save(ctx, base, 1).step == 1
        assert milestones[-1] == (1, ckpt_abi.AT_COMMITTED), milestones
        try:
            save(ctx, base + 1, 2, tag="other" if RANK == 1 else "client")
            raise AssertionError("ranks with different tags saved")
        except CkptError as e:
            assert (e.code, e.name, e.cause.field) == (-11, "MISMATCH", "tag"), (e, e.cause)
            # With one rank on each side the later is the one that is named.
            assert [(r.rank, r.condition) for r in e.ranks] == [(e.cause.rank, "DISAGREES")], e.ranks
            assert '"other" on rank 1' in str(e), e
        assert ctx.latest() == 1
        assert load(ctx, base, SIZE) == 1
        assert save(ctx, base + 1, 2).step == 2
        assert load(ctx, base + 1, SIZE) == 2


def main(mode, root=None, base="0", saved_by="0"):
    if mode == "--layout":
        print("\n".join(ckpt_abi.layout()))
    elif mode == "train":
        train(root, int(base))
    elif mode == "save":
        with Context(root) as ctx:
            save(ctx, int(base), int(base))
    elif mode == "load":
        with Context(root) as ctx:
            assert load(ctx, int(base), int(saved_by)) == int(base)
    else:
        sys.exit("usage: train.py --layout | train|save ROOT BASE | load ROOT BASE SAVED_BY")


main(*sys.argv[1:])
