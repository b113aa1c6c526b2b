"""Info on the memory itself: is it mapped, what do the elements hold, does a write show everywhere.

Host memory is looked at where it is, device memory through the driver (`Descriptor.space_in`);
without a driver there is not info on device memory.
"""

from __future__ import annotations

from itertools import permutations
from math import prod

from ..abi.descriptors import Descriptor, is_contiguous
from ..abi.device import DeviceSpace
from ..interfaces.dlpack_structs.structs import CPU
from ..abi.memory import Memory
from ..info import MappingInfo, PointerInfo, TensorInfo
from ..info.steps import Stage, enter

_PACKED_LIMIT_BYTES = 2**16


def mapping_info(found: dict[str, Descriptor], memory: Memory) -> dict[str, MappingInfo]:
    """For each interface's array: is the first element there, all of it readable, all writable.

    By the system's map for what the host can read, by the driver's word for the rest. Where an
    interface speaks of a device, `pointer` is the driver's answer for the first address. Empty
    arrays have no entry.
    """
    info: dict[str, MappingInfo] = {}
    on_devices = any(array.device[0] != CPU for array in found.values())
    for name, array in found.items():
        known = memory.map.known if array.is_host else memory.devices.access is not None
        if array.span is None or array.is_indirect or not known:
            continue
        space = memory if array.is_host else array.space_in(memory)
        low, high = array.span
        info[name] = MappingInfo(
            first=space.readable(array.address, array.address + array.itemsize),
            read=space.readable(low, high),
            write=space.writable(low, high),
            pointer=_pointer(array, memory) if on_devices else None,
        )
    return info


def _pointer(array: Descriptor, memory: Memory) -> PointerInfo | None:
    pointer = DeviceSpace(memory.devices.access, None).info(array.address)
    if pointer is None:
        return None
    return PointerInfo(
        pointer.device_type,
        pointer.device_id,
        pointer.device_accessible,
    )


def walk(array: Descriptor, memory: Memory) -> str | None:
    """The bytes of the sampled elements in hex; None if they must not or cannot be read."""
    if array.is_indirect:
        return None
    enter(Stage.WALK, f"{array.interface}")
    raw = array.space_in(memory).elements(
        array.address, array.hull, array.sample_offsets(), array.itemsize
    )
    return None if raw is None else raw.hex()


def packed_content(tensor: TensorInfo | None, memory: Memory) -> str | None:
    """The bytes of a tensor's elements of less than a byte, in hexadecimal.

    None for a tensor of whole bytes, for one that is not row-major or not in host memory, and where
    its memory cannot be read.
    """
    if tensor is None:
        return None
    _, bits, lanes = tensor.dtype
    shape = tensor.shape if tensor.ndim else []
    is_narrow = bits > 0 and lanes > 0 and bits * lanes % 8 and tensor.device[0] == CPU
    if not is_narrow or not isinstance(shape, list) or any(extent < 0 for extent in shape):
        return None
    strides = tensor.strides if shape else []
    if isinstance(strides, str):
        return None
    if strides is not None and not is_contiguous(tuple(shape), tuple(strides), 1, "C"):
        return None
    enter(Stage.WALK, "DL packed")
    count_bytes = (prod(shape) * bits * lanes + 7) // 8
    if count_bytes > _PACKED_LIMIT_BYTES:
        return None
    raw = memory.read(tensor.data + tensor.byte_offset, count_bytes)
    return None if raw is None else raw.hex()


def poke_info(found: dict[str, Descriptor], memory: Memory) -> dict[str, bool]:
    """{"AI>PB": seen}: does a byte written through one interface show through the other?

    Only where both claim to be writable, are mapped writable, and name different addresses: at the
    same address it is the same memory. The byte is put back. Pointers to objects are never changed.
    """
    claims = {
        name: array
        for name, array in found.items()
        if array.readonly is False
        and not array.is_copy
        and not array.is_empty
        and not (array.element and array.element.kind == "object")
    }
    info = {}
    for one, other in permutations(claims, 2):
        source, target = claims[one], claims[other]
        if source.address == target.address or not source.sides & target.sides:
            continue
        enter(Stage.POKE, f"{one}>{other}")
        seen = _shows(source, target, memory)
        if seen is not None:
            info[f"{one}>{other}"] = seen
    return info


def _shows(source: Descriptor, target: Descriptor, memory: Memory) -> bool | None:
    there, here = source.space_in(memory), target.space_in(memory)
    before, seen_before = there.read(source.address, 1), here.read(target.address, 1)
    if before is None or seen_before is None:
        return None
    if not there.write(source.address, bytes([before[0] ^ 1])):
        return None
    after = here.read(target.address, 1)
    there.write(source.address, before)
    return after == bytes([seen_before[0] ^ 1])
