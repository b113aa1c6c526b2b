"""What a program that shares nothing with gridbuf does with a storage: it reads and writes memory by address.

Host memory is touched where it is; device memory through the C table of the device (`gridbuf.testing.device_table`), by
the conformance suite's own overlay of it, so that nothing here can be wrong in the way gridbuf is wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from gridbuf import testing
from gridbuf_conformance.abi.device import TableAccess
from gridbuf_conformance.interfaces.dlpack_structs.structs import Exported
from gridbuf_conformance.abi.memory import Memory

__all__ = [
    "KINDS",
    "Foreign",
    "OnHost",
    "device_capsule",
    "emulated",
    "entry",
    "of_interface",
    "through",
]

KINDS: dict[str, dict[str, Any]] = {
    "cpu": {},
    "gpu": {"device": "gpu", "managed": None},
    "synced": {"device": "gpu", "managed": "gt4py"},
    "managed": {"device": "gpu", "managed": "cuda"},
}
"""The keywords that choose each type of storage."""

LEGACY_STREAM = 1
_NEWEST = {"max_version": (1, 3)}


def access() -> TableAccess:
    return TableAccess(testing.device_table())


@contextmanager
def emulated() -> Iterator[None]:
    """The emulated device; everything that is pending at the end is run."""
    with testing.emulated_device():
        yield
        testing.synchronize()


@dataclass(frozen=True)
class Foreign:
    """Elements at an address. `stream` is None in memory of the host, `owner` what keeps the memory alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    stream: int | None
    owner: Any = None

    @property
    def _hull(self) -> tuple[int, int]:
        """Lowest and highest byte from `address` on."""
        reach = [s * (n - 1) for s, n in zip(self.strides, self.shape, strict=True)]
        return sum(min(0, r) for r in reach), sum(max(0, r) for r in reach) + self.dtype.itemsize

    def _copied(self) -> tuple[np.ndarray, np.ndarray]:
        """A copy of the hull's bytes, and the elements in it."""
        low, high = self._hull
        image = np.empty(high - low, np.uint8)
        self._move(image.ctypes.data, self.address + low, image.nbytes)
        return image, np.ndarray(self.shape, self.dtype, image, -low, self.strides)

    def _move(self, target: int, source: int, length_bytes: int) -> None:
        if self.stream is None:
            ctypes.memmove(target, source, length_bytes)
        else:
            access().copy(target, source, length_bytes, self.stream)

    def read(self) -> np.ndarray:
        """A copy of the elements; on the device behind the work on `stream`."""
        return np.empty(self.shape, self.dtype) if 0 in self.shape else self._copied()[1].copy()

    def write(self, values: Any) -> None:
        """Writes the elements and nothing between them; done at return."""
        if 0 in self.shape:
            return
        image, elements = self._copied()
        elements[...] = values
        self._move(self.address + self._hull[0], image.ctypes.data, image.nbytes)

    def fill_late(self, value: int) -> None:
        """Device memory of one-byte elements: leaves the fill pending on `stream`."""
        device = access()
        for index in np.ndindex(*self.shape):
            offset = sum(i * s for i, s in zip(index, self.strides, strict=True))
            device.slow_fill(self.address + offset, value, 1, 1, self.stream)


def of_interface(described: dict[str, Any], owner: Any, *, on_device: bool) -> Foreign:
    """The elements that an array interface of a side describes."""
    dtype = np.dtype(described["typestr"])
    shape = described["shape"]
    strides = described.get("strides") or np.empty(shape, dtype).strides
    stream = (described.get("stream") or LEGACY_STREAM) if on_device else None
    return Foreign(described["data"][0], shape, strides, dtype, stream, owner)


def device_capsule(storage: Any, stream: int = LEGACY_STREAM) -> Foreign:
    """The elements of a DLPack export to the device; its capsule is the owner, and its death ends the export."""
    capsule = storage.__dlpack__(stream=stream, **_NEWEST)
    info = Exported(capsule, Memory()).info()
    assert info.device[0] in (2, 13), info
    stated = info.strides if info.extents else []  # A scalar needs none.
    assert isinstance(stated, list), info
    strides = tuple(storage.dtype.itemsize * stride for stride in stated)
    address = info.data + info.byte_offset
    return Foreign(address, tuple(info.extents), strides, storage.dtype, stream, capsule)


def entry(storage: Any, side: str | None) -> dict[str, Any]:
    """An entry of the data interface: None for the host, "gpu" for the device."""
    return storage.__gt_data_interface__[side]


def through(storage: Any, side: str | None, use: Callable[[Foreign], Any], *, writes: bool) -> Any:
    """Uses one side as a stencil does: acquire, use, touch if written, release; each if there is such a hook."""
    described = entry(storage, side)
    _call(described, "acquire")
    result = use(of_interface(described, storage, on_device=side is not None))
    if writes:
        _call(described, "touch")
    _call(described, "release")
    return result


def _call(described: dict[str, Any], hook: str) -> None:
    if described.get(hook) is not None:
        described[hook]()


class OnHost:
    """Asks for the host's side: by default a storage with two sides exports the device's."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._storage.__dlpack__(**{**keywords, "dl_device": (1, 0)})
