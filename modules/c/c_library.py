"""libgridbuf.so.0 by ctypes, for tests: the structs of gridbuf.h, and its functions with a check of the status."""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Sequence

import numpy as np

HERE = pathlib.Path(__file__).parent
LIBRARY = HERE / "libgridbuf.so.0"
HEADER = HERE / "gridbuf.h"
MAX_NDIM = 64

(
    OK,
    VALUE,
    TYPE,
    INDEX,
    MEMORY,
    BUFFER,
    NO_SUCH_BUFFER,
    DEVICE_UNAVAILABLE,
    SYNC_CONFLICT,
    INTERNAL,
) = range(10)
HOST, DEVICE = 0, 1
READ, WRITE, READ_WRITE = 0, 1, 2
ON_HOST, ON_DEVICE, ON_BOTH, CUDA_MANAGED = 1, 2, 3, 4
ZEROED, POPULATE, READONLY, DELAYED = 1, 2, 4, 8
NONE = -(2**63)

c_lib = ctypes.CDLL(str(LIBRARY))
c_lib.gridbuf_last_error.restype = ctypes.c_char_p
c_lib.gridbuf_version.restype = ctypes.c_char_p
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("ndim", ctypes.c_int32),
        ("memory", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("device_id", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_char_p),
        ("backend", ctypes.c_char_p),
        ("dims", ctypes.POINTER(ctypes.c_char_p)),
        ("dim_kinds", ctypes.POINTER(ctypes.c_int32)),
        ("halo", ctypes.POINTER(ctypes.c_int64)),
        ("layout", ctypes.POINTER(ctypes.c_int32)),
        ("aligned_index", ctypes.POINTER(ctypes.c_int64)),
        ("alignment_bytes", ctypes.c_int64),
        ("device_layout", ctypes.POINTER(ctypes.c_int32)),
        ("device_alignment_bytes", ctypes.c_int64),
    ]


class Info(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int32),
        ("memory", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("readonly", ctypes.c_int32),
        ("dlpack_code", ctypes.c_uint8),
        ("dlpack_bits", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 2),
        ("dtype", ctypes.c_char * 64),
        ("itemsize_bytes", ctypes.c_int64),
        ("nbytes", ctypes.c_int64),
        ("alignment_bytes", ctypes.c_int64),
        ("shape", ctypes.c_int64 * MAX_NDIM),
        ("strides_bytes", ctypes.c_int64 * MAX_NDIM),
        ("lower_halo", ctypes.c_int64 * MAX_NDIM),
        ("upper_halo", ctypes.c_int64 * MAX_NDIM),
        ("aligned_index", ctypes.c_int64 * MAX_NDIM),
        ("layout", ctypes.c_int32 * MAX_NDIM),
    ]


class Item(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("start", ctypes.c_int64),
        ("stop", ctypes.c_int64),
        ("step", ctypes.c_int64),
    ]


class MemoryInfo(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t)] + [
        (name, ctypes.c_int64)
        for name in "live_blocks live_bytes peak_live_bytes cached_blocks cached_bytes cache_limit_bytes hits misses refusals".split()
    ]


class CError(Exception):
    """A status that is not GRIDBUF_OK."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"{status}: {c_lib.gridbuf_last_error().decode()}")


def call(name: str, *arguments: object) -> None:
    status = getattr(c_lib, "gridbuf_" + name)(*arguments)
    if status != OK:
        raise CError(status)


def make(name: str, *arguments: object) -> ctypes.c_void_p:
    """Calls a function whose last parameter is `out`."""
    out = ctypes.c_void_p(1)
    try:
        call(name, *arguments, ctypes.byref(out))
    except CError:
        assert out.value is None, "out is not NULL after an error"
        raise
    return out


def list_of(type_: type, values: Sequence[object] | None) -> object:
    return None if values is None else (type_ * len(values))(*values)


def options(extents: Sequence[int], **fields: object) -> Options:
    """Options from Python's values; `halo` is a sequence of pairs."""
    lists = {
        "dims": ctypes.c_char_p,
        "dim_kinds": ctypes.c_int32,
        "layout": ctypes.c_int32,
        "aligned_index": ctypes.c_int64,
    }
    lists["device_layout"] = ctypes.c_int32
    made = Options(
        struct_bytes=ctypes.sizeof(Options),
        ndim=len(extents),
        shape=list_of(ctypes.c_int64, extents),
    )
    for name, value in fields.items():
        if name == "halo":
            value = list_of(ctypes.c_int64, [width for pair in value for width in pair])
        elif name in lists:
            value = list_of(lists[name], [v.encode() if isinstance(v, str) else v for v in value])
        setattr(made, name, value.encode() if isinstance(value, str) else value)
    return made


def info(kind: str, handle: ctypes.c_void_p, *side: int) -> Info:
    found = Info(struct_bytes=ctypes.sizeof(Info))
    call(f"{kind}_info", handle, *side, ctypes.byref(found))
    return found


def items(*subscript: object) -> tuple[object, int]:
    """A subscript as Python writes it: integers, slices, None, …"""
    made = []
    for item in subscript:
        if isinstance(item, slice):
            start, stop = (NONE if end is None else end for end in (item.start, item.stop))
            made.append(Item(1, 0, start, stop, 1 if item.step is None else item.step))
        else:
            made.append(
                Item({None: 2, ...: 3}.get(item, 0), 0, item if isinstance(item, int) else 0, 0, 0)
            )
    return (Item * len(made))(*made), len(made)


def at(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Memory of the host as float64."""

    class Memory:
        __array_interface__ = {
            "data": (pointer, False),
            "shape": shape,
            "strides": strides,
            "typestr": "<f8",
            "version": 3,
        }

    return np.asarray(Memory())


def access(storage: ctypes.c_void_p, side: int, mode: int) -> np.ndarray:
    data = ctypes.c_void_p()
    call("storage_access", storage, side, mode, ctypes.byref(data))
    found = info("storage", storage, side)
    return at(
        data.value, tuple(found.shape[: found.ndim]), tuple(found.strides_bytes[: found.ndim])
    )
