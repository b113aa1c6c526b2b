"""CUDA array interface exports: an object with `__cuda_array_interface__` over memory of a device.

The block is made on the host, as for every export, and copied to device memory of the driver's; its
pages on the host stay closed, so that a consumer that takes the pointer for a host pointer dies.
Without a CUDA device there is nothing to export, and the rules are UNTESTED.

Written against the CUDA driver's documents; where it was developed there was no device to run it on
(its test is skipped there, and says so).
"""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any

from ...abi.device import CudaAccess, DeviceError
from ...info import ExportInfo
from ...plan.dtypes import DTYPES
from ...plan.producer import Capabilities
from ...exports import plans
from ...interfaces.array_interface.exports import explicit_strides, typestr_of, without
from ...exports.export import (
    PLAIN,
    Export,
    Interface,
    ObservedExport,
    Variant,
    fits,
    strided,
    variants_of,
)
from ...exports.memory import Block

PENDING_BYTE = 0x2A
"""What the elements hold when the work that is pending on the exported stream is done."""
_PENDING_MILLISECONDS = 200


@cache
def driver() -> CudaAccess | str:
    """The driver, or why there is none."""
    try:
        return CudaAccess()
    except DeviceError as error:
        return str(error)


def unavailable() -> str:
    """Why nothing can be exported on this machine, or nothing."""
    found = driver()
    return found if isinstance(found, str) else ""


class _DeviceBlock:
    """A block's bytes in device memory, with the members of a block that are looked at."""

    def __init__(self, block: Block, access: CudaAccess) -> None:
        self.plan, self.shape, self.strides = block.plan, block.shape, block.strides
        self.itemsize, self.is_empty, self.nbytes = block.itemsize, block.is_empty, block.nbytes
        self.is_row_major = block.is_row_major
        self._access = access
        self._length = block.high - block.low
        self.low = access.allocate(self._length)
        self.high = self.low + self._length
        self.address = self.low + block.address - block.low
        self._before = block.bytes()
        access.copy(self.low, block.low, self._length, 1)
        self._host = block
        self._finalizer = weakref.finalize(self, access.free, self.low)
        self._finalizer.atexit = False  # type: ignore[misc]  # a property with a setter

    def is_unchanged(self) -> bool:
        """Whether the device's bytes are unchanged since the export."""
        self._access.synchronize()
        self._access.copy(self._host.low, self.low, self._length, 1)
        return self._host.bytes() == self._before


class _Exporter:
    def __init__(self, observed: ObservedCudaInterface) -> None:
        self._answer = observed.answer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._answer()


class ObservedCudaInterface(ObservedExport):
    """An exporter with `__cuda_array_interface__`; raises DeviceError where there is no device."""

    def __init__(self, export: Export, block: Block) -> None:
        access = driver()
        if isinstance(access, str):
            raise DeviceError(access)
        host = Block(export.plan.replaced(readonly=False)) if export.readonly else block
        device_block: Any = _DeviceBlock(host, access)
        super().__init__(export, device_block)
        self.access = access
        self.stream: int | None = None
        self.make(_Exporter)

    def answer(self) -> dict[str, Any]:
        """A new dict, bent by the variant."""
        self.reads += 1
        block = self.block
        entries = {
            "version": 3,
            "shape": block.shape,
            "typestr": typestr_of(block.plan),
            "data": (0 if block.is_empty else block.address, self.export.readonly),
            "strides": None if block.is_row_major else block.strides,
            "stream": None,
        }
        self.variant.bend(entries, self)
        return entries

    def keep_pending(self) -> int:
        """A stream on which the elements are being written, slowly."""
        if self.stream is None:
            self.stream = self.access.create_stream()
        self.access.slow_fill(
            self.block.address,
            PENDING_BYTE,
            self.block.nbytes,
            _PENDING_MILLISECONDS,
            self.stream,
        )
        return self.stream

    def info(self) -> ExportInfo:
        return ExportInfo(reads=self.reads)

    def close(self) -> None:
        super().close()
        if self.stream is not None:
            self.access.synchronize()
            self.access.destroy_stream(self.stream)
            self.stream = None


# -- variants ------------------------------------------------------------------------------------


def _mask(entries: dict[str, Any], observed: ObservedCudaInterface) -> None:
    """The array as a mask of itself: every element that is not 0 is valid."""
    entries["mask"] = _Mask(entries)


class _Mask:
    def __init__(self, entries: dict[str, Any]) -> None:
        self.__cuda_array_interface__ = {**entries, "typestr": "|b1", "strides": None}


def _pending(entries: dict[str, Any], observed: ObservedCudaInterface) -> None:
    entries["stream"] = observed.keep_pending()


_SEEN = ("CAI-23",)


_variant = variants_of(
    Variant, _SEEN, adapt=plans.plain, misfit=plans.not_dense_misfit, control=plans.plain
)
_VARIANTS: tuple[Variant, ...] = (
    Variant(PLAIN, ("CAI-13", "CAI-26", *_SEEN), "right-or-error", "version 3", adapt=plans.solid),
    _variant("absent-strides", "CAI-10", "right", "the key strides is missing", without("strides")),
    *(
        _variant(f"absent-{key}", "CAI-02", "error", f"the key {key} is missing", without(key))
        for key in ("shape", "typestr", "data")
    ),
    _variant(
        "absent-version",
        "CAI-02",
        "right-or-error",
        "the key version is missing",
        without("version"),
    ),
    _variant(
        "explicit-strides", "CAI-10", "right", "contiguous strides, written out", explicit_strides
    ),
    *strided(_variant, "CAI-13", misfit=fits),
    _variant(
        "empty",
        "CAI-13",
        "right-or-error",
        "no elements, at pointer 0",
        adapt=plans.empty,
        misfit=plans.not_empty_misfit,
    ),
    _variant(
        "swapped",
        "CAI-26",
        "right-or-error",
        "numbers of the other byte order",
        adapt=plans.swapped,
        misfit=fits,
    ),
    _variant(
        "read-only",
        "CAI-08",
        "right-or-error",
        "the memory may not be written",
        adapt=plans.readonly,
        misfit=fits,
    ),
    _variant("mask", "CAI-15", "error", "a mask", _mask, adapt=plans.of_dtype("uint8")),
    _variant(
        "pending",
        "CAI-20",
        "right-or-error",
        "work is pending on the stream that is named",
        _pending,
        adapt=plans.of_dtype("uint8"),
    ),
)

INTERFACES = (
    Interface(
        "cuda-array-interface",
        "__cuda_array_interface__, version 3",
        ("CAI",),
        Capabilities(
            dtypes=tuple(
                name
                for name, info in DTYPES.items()
                if info.typestr is not None and info.kind in "fiucb"
            ),
            max_ndim=5,
            layouts="any",
            byteorders=("native", "swapped"),
            readonly=(False, True),
        ),
        ObservedCudaInterface,
        _VARIANTS,
        taken_rule="CAI-10",
        position=60,
        unavailable=unavailable,
    ),
)
