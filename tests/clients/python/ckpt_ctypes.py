# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
"""A small binding of libckpt.so for numpy arrays, by ctypes alone.

    with Context("checkpoints") as ctx:
        state = ctx.state()
        state.add("w", rows, global_shape=(4096, 512), offset=(rank * 1024, 0))
        try:
            step = ctx.load(state).step + 1
        except CkptError as e:
            if e.name != "NO_CHECKPOINT":
                raise

Calls that wait for other ranks release the interpreter's lock, as all of ctypes does.
"""
import ctypes
from ctypes import POINTER, byref, c_void_p
from dataclasses import dataclass

import numpy as np

import ckpt_abi as abi

DTYPES = {  # numpy's name -> DLPack's code
    "int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}


@dataclass(frozen=True)
class Cause:
    """Where it began. Text that is not known is None."""
    rank: int
    sys_errno: int
    path: str
    name: str
    field: str


@dataclass(frozen=True)
class RankReport:
    rank: int
    condition: str
    host: str
    phase: str
    phase_step: int
    doing: str
    last_call: str
    heartbeat_age_ns: int


class CkptError(Exception):
    """str(e) is the library's sentence; the rest is the same in parts."""

    def __init__(self, code, message, cause=None, ranks=()):
        self.code, self.cause, self.ranks = code, cause, list(ranks)
        self.name = abi.STATUS.get(code, f"status {code}")
        super().__init__(message or self.name)


def text(value):
    return None if value is None else value.decode()


def encoded(value):
    return None if value is None else value.encode()


def lines(pairs):
    return encoded("\n".join(f"{key}={value}" for key, value in pairs.items())) if pairs else None


def dtype_of(array):
    """CKPT_DTYPE of an array: 'bfloat16' is code 4, 16 bits."""
    kind = array.dtype.name.rstrip("0123456789")
    if kind not in DTYPES or not array.dtype.isnative:
        raise TypeError(f"no dtype of ckpt: {array.dtype}")
    return DTYPES[kind] | array.dtype.itemsize * 8 << 8 | 1 << 16


def dims(values):
    return (ctypes.c_int64 * len(values))(*values)


class Library:
    """The functions of the ABI, each raising what its ckpt_error says."""

    def __init__(self, path=None):
        self.raw = abi.open_library(path)

    def call(self, name, *arguments):
        error = c_void_p()
        status = getattr(self.raw, name)(*arguments, byref(error))
        try:
            if status < 0:
                raise self._exception(status, error)
        finally:
            self.raw.ckpt_error_free(error)

    def _exception(self, status, error):
        if not error:
            return CkptError(status, None)
        raw = abi.ErrorCause()
        self.raw.ckpt_error_get_cause(error, byref(raw))
        cause = Cause(raw.rank, raw.sys_errno, text(raw.path), text(raw.name), text(raw.field))
        ranks = [self._rank(error, i) for i in range(self.raw.ckpt_error_rank_count(error))]
        return CkptError(status, text(self.raw.ckpt_error_message(error)), cause, ranks)

    def _rank(self, error, i):
        r = abi.RankReport()
        self.raw.ckpt_error_rank(error, i, byref(r))
        condition = abi.CONDITION.get(r.condition, f"condition {r.condition}")
        return RankReport(r.rank, condition, text(r.host), text(r.phase), r.phase_step,
                          text(r.doing), text(r.last_call), r.heartbeat_age_ns)


class Context:
    """This rank's part in a job, and a root. `on_event(event)` may return True to cancel; what it
    raises cancels too, and comes out of the call."""

    def __init__(self, root, *, name=None, config=None, on_event=None, contract_timeout_ms=0,
                 library=None):
        self.library = library or Library()
        self._on_event, self._raised = on_event, None
        # ctypes drops a callback that nobody refers to; the library may call it until ctx_free.
        self._callback = abi.EventFn(self._event) if on_event else abi.EventFn()
        self.handle = c_void_p()
        options = abi.InitOptions(
            root=encoded(root), name=encoded(name), config=lines(config),
            on_event=self._callback, contract_timeout_ms=contract_timeout_ms)
        self.library.call("ckpt_init", abi.HEADER_ABI, byref(options), byref(self.handle))

    def _event(self, _user, event):
        try:
            return 1 if self._on_event(event.contents) else 0
        except BaseException as e:  # nothing may pass through the library
            self._raised = e
            return 1

    def _call(self, name, *arguments):
        self._raised = None
        try:
            self.library.call(name, self.handle, *arguments)
        finally:
            if self._raised is not None:
                raise self._raised

    def state(self):
        return State(self)

    def save(self, state, step, *, tag=None, metadata=None):
        """Saves the state of all ranks as one checkpoint. Collective."""
        options = abi.SaveOptions(step=step, tag=encoded(tag), metadata=lines(metadata))
        result = abi.Result()
        self._call("ckpt_save_collective", state.handle, byref(options), byref(result), None)
        return result

    def load(self, state, step=None, *, uri=None, flags=0):
        """Fills the state from the newest step, or from `step`. Collective."""
        options = abi.LoadOptions(
            flags=flags, which=abi.LOAD_LATEST if step is None else abi.LOAD_STEP, step=step or 0,
            uri=encoded(uri))
        result = abi.Result()
        self._call("ckpt_load", state.handle, byref(options), byref(result), None)
        return result

    def latest(self):
        step = ctypes.c_int64()
        self._call("ckpt_latest", byref(step))
        return step.value

    def set_phase(self, phase, step):
        self.library.raw.ckpt_set_phase(self.handle, encoded(phase), step)

    def finalize(self, timeout_ms=0):
        """Ends together with the other ranks. Collective."""
        self._call("ckpt_finalize", timeout_ms)

    def close(self):
        """Ends alone: the other ranks see this one as having left, unless it was finalized."""
        self.library.raw.ckpt_ctx_free(self.handle)
        self.handle = c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, kind, _value, _traceback):
        try:
            if kind is None:  # a rank that failed must not wait for the others
                self.finalize()
        finally:
            self.close()


class State:
    """What this rank holds. Keeps the arrays and buffers alive whose addresses the library has."""

    def __init__(self, ctx):
        self._library, self._kept = ctx.library, []
        self.handle = c_void_p()
        self._library.call("ckpt_state_new", ctx.handle, byref(self.handle))

    def __del__(self):
        if self.handle:
            self._library.raw.ckpt_state_free(self.handle)

    def add(self, name, array, *, group=None, global_shape=None, offset=None, flat_offset=None):
        """A shard: all of a tensor; or the box of `global_shape` at `offset`; or, one-dimensional,
        the elements of `global_shape` from `flat_offset` on."""
        if not array.flags.c_contiguous:
            raise ValueError(f"{name}: not C-contiguous, so its memory is not the tensor's")
        shape = array.shape if global_shape is None else global_shape
        tensor = abi.Tensor(name=encoded(name), group=encoded(group), dtype=dtype_of(array),
                            ndim=len(shape), global_shape=dims(shape), data=array.ctypes.data)
        if offset is not None:
            tensor.shard_kind = abi.SHARD_BOX
            tensor.offset, tensor.extent = dims(offset), dims(array.shape)
        elif flat_offset is not None:
            tensor.shard_kind = abi.SHARD_FLAT
            tensor.flat_offset, tensor.flat_count = flat_offset, array.size
        self._kept.append(array)
        pointers = (POINTER(abi.Tensor) * 1)(ctypes.pointer(tensor))
        self._library.call("ckpt_state_add_tensors", self.handle, pointers, 1, None)

    def add_blob(self, name, scope, content, *, optional=False, writer_rank=-1):
        """`content`: a numpy array of bytes. After a load, the returned function tells how many
        bytes were found, None if there was no such blob."""
        actual = ctypes.c_uint64(0)
        self._kept += [content, actual]
        blob = abi.Blob(flags=abi.BLOB_OPTIONAL if optional else 0, scope=scope,
                        writer_rank=writer_rank, name=encoded(name), data=content.ctypes.data,
                        bytes=content.nbytes, actual=ctypes.pointer(actual))
        self._library.call("ckpt_state_add_blob", self.handle, byref(blob), None)
        return lambda: None if actual.value == abi.ABSENT else actual.value


def as_bytes(content):
    """Bytes as an array that add_blob takes."""
    return np.frombuffer(bytearray(content), dtype=np.uint8)
