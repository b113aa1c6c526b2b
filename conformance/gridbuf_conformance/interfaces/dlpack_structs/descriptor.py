"""The descriptors of a DLPack capsule and of a bare `DLTensor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...abi import elements
from ...abi.descriptors import Descriptor, Rejected, c_strides, entries_of
from ...info import ArrayInfo, CapsuleInfo, TensorInfo
from .structs import FLAG_COPIED, FLAG_READONLY, NARROW_CODES


def of_dlpack(info: CapsuleInfo) -> Descriptor:
    """The descriptor of one capsule; raises `Rejected` naming the DL or DP rule that it breaks."""
    if not info.capsule or not info.is_tensor:
        raise Rejected("DL-01" if info.unmapped else "DP-03", "no DLPack struct to read")
    version = info.version
    if version is not None and version[0] != 1:
        raise Rejected("DL-02", "unknown major version")
    flags = info.flags
    return replace(
        of_tensor(info, version),
        readonly=None if flags is None else bool(flags & FLAG_READONLY),
        is_copy=bool(flags and flags & FLAG_COPIED),
    )


def of_tensor(info: TensorInfo, version: list[int] | None = None) -> Descriptor:
    """The descriptor of a bare `DLTensor`, without a read-only bit; `version` is its capsule's."""
    ndim = info.ndim
    if not 0 <= ndim <= 1024:
        raise Rejected("DL-07", "ndim out of range")
    shape = entries_of(info.shape, ndim, "DL-07")
    if any(extent < 0 for extent in shape):
        raise Rejected("DL-07", "negative extent")
    code, bits, lanes = info.dtype
    element = elements.of_dlpack(code, bits, lanes)
    if code in NARROW_CODES and bits > 0 and bits * lanes % 8:
        raise Rejected(None, "elements of less than a byte, or of a byte and a part")
    if element is None or lanes < 1 or bits < 1:
        raise Rejected("DL-15", "the type is unknown or has no whole number of bytes")
    strides = _dlpack_strides(info, version, shape, element.itemsize)
    if info.byte_offset >= 2**63:
        raise Rejected("DL-24", "byte_offset is negative")
    if not info.data and 0 not in shape:
        raise Rejected("DL-27" if ndim else "DL-13", "data is NULL")
    address = info.data + info.byte_offset
    device = (info.device[0], info.device[1])
    return Descriptor("DL", address, shape, strides, element.itemsize, element, None, device=device)


def _dlpack_strides(
    info: TensorInfo, version: list[int] | None, shape: tuple[int, ...], itemsize: int
) -> tuple[int, ...]:
    if not shape:
        return ()
    strides = info.strides
    if strides is None:
        if version is not None and tuple(version) >= (1, 2):
            raise Rejected("DL-08", "strides is NULL")
        return c_strides(shape, itemsize)
    return tuple(stride * itemsize for stride in entries_of(strides, len(shape), "DL-07"))


def readers(info: ArrayInfo) -> dict[str, Callable[[], Descriptor]]:
    """The interface, if the object has it, with the function that reads or rejects what it says."""
    capsule = info.main
    if capsule is None or capsule.error is not None:
        return {}
    return {"DL": lambda: of_dlpack(capsule)}
