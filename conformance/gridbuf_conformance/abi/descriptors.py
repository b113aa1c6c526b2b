"""What each interface says of an array, in one form: address, shape, byte strides, element type.

The module `descriptor` of each interface turns raw info (see `measure`) into a `Descriptor`, or
raises `Rejected` with the id of the rule that the info breaks. Both sides use them: the measurer to
decide which addresses may be followed at all, the judge to compare interfaces. They are pure, and
all arithmetic is on Python's unbounded integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from ..info import Entries
from ..interfaces.dlpack_structs.structs import CPU, CUDA_MANAGED, HOST_READABLE
from .device import LEGACY_STREAM, DeviceSpace
from .elements import Element
from .memory import Memory

ADDRESS_LIMIT = 2**64
SIZE_LIMIT_BYTES = 2**63 - 1
"""The largest size that a consumer can hold in its signed 64-bit integers."""
_SAMPLE_LIMIT = 96


class Rejected(Exception):
    """Info that describes no array of whole bytes: `rule` is the broken id; None if no failure."""

    def __init__(self, rule: str | None, why: str) -> None:
        super().__init__(why)
        self.rule = rule


@dataclass(frozen=True)
class Descriptor:
    """An array as one interface describes it; strides in bytes, `element` None if not known.

    `readonly` is None where the interface cannot say; `is_copy` is True where it says that this
    export is a copy; `device` is DLPack's (type, id), for the CUDA array interface (2, 0) until a
    driver says more; `stream` is the stream that the interface names, None for no pending work;
    `is_raw` marks memory exported as plain bytes, `is_indirect` arrays of pointers: neither is
    compared or walked.
    """

    interface: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    element: Element | None
    readonly: bool | None
    is_copy: bool = False
    device: tuple[int, int] = (CPU, 0)
    is_indirect: bool = False
    is_raw: bool = False
    stream: int | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def element_count(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
        return self.element_count * self.itemsize

    @property
    def is_empty(self) -> bool:
        return self.nbytes == 0

    @property
    def is_host(self) -> bool:
        """Whether the interface says that the host can read this memory."""
        return self.device[0] in HOST_READABLE

    @property
    def is_managed(self) -> bool:
        """Whether the driver moves this memory between host and device."""
        return self.device[0] == CUDA_MANAGED

    @property
    def sides(self) -> frozenset[str]:
        """The sides that can reach this memory, as the interface says: "host", "device" or both."""
        if self.device[0] == CPU:
            return frozenset({"host"})
        return frozenset({"host", "device"} if self.is_host else {"device"})

    def space_in(self, memory: Memory) -> Memory | DeviceSpace:
        """Where the array's bytes are read and written.

        Bytes of device memory are read as a consumer would: behind the work on the stream that the
        interface names, and at once where it names none. What both sides reach is left to the
        driver if there is one.
        """
        if self.is_host and (not self.is_managed or memory.devices.access is None):
            return memory
        stream = self.stream if self.interface == "CAI" else LEGACY_STREAM
        return DeviceSpace(memory.devices.access, stream)

    @cached_property
    def hull(self) -> tuple[int, int] | None:
        """Lowest and highest byte offset from `address` of any element; None when empty."""
        if self.is_empty:
            return None
        reach = [stride * (extent - 1) for stride, extent in zip(self.strides, self.shape)]
        return sum(min(0, r) for r in reach), sum(max(0, r) for r in reach) + self.itemsize

    @property
    def span(self) -> tuple[int, int] | None:
        """The hull as absolute addresses."""
        return self.hull and (self.address + self.hull[0], self.address + self.hull[1])

    @property
    def meaningful_strides(self) -> tuple[int | None, ...]:
        """Strides with None where they carry no meaning: axes of extent ≤ 1, and empty arrays."""
        empty = 0 in self.shape
        return tuple(
            None if empty or extent <= 1 else stride
            for stride, extent in zip(self.strides, self.shape)
        )

    def offset_of(self, index: tuple[int, ...]) -> int:
        """Byte offset of an element from `address`."""
        return sum(i * stride for i, stride in zip(index, self.strides))

    def sample_offsets(self) -> list[int]:
        """Byte offsets of the elements that are read, in the order of `sample_indices`."""
        return [self.offset_of(index) for index in sample_indices(self.shape)]

    def is_contiguous(self, order: str) -> bool:
        """Whether the memory is contiguous in order "C" or "F"."""
        return is_contiguous(self.shape, self.strides, self.itemsize, order)


def compact_strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    """Byte strides of a contiguous array in order "C" or "F"."""
    axes = range(len(shape))
    strides, step = [0] * len(shape), itemsize
    for axis in axes if order == "F" else reversed(axes):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Byte strides of a C-contiguous array."""
    return compact_strides(shape, itemsize, "C")


def is_contiguous(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, order: str
) -> bool:
    """Whether the strides are those of a contiguous array, where they carry a meaning."""
    if 0 in shape:
        return True
    wanted = compact_strides(shape, itemsize, order)
    return all(
        extent <= 1 or stride == want for extent, stride, want in zip(shape, strides, wanted)
    )


def sample_indices(shape: tuple[int, ...], limit: int = _SAMPLE_LIMIT) -> list[tuple[int, ...]]:
    """The elements that are read of an array: all of a small one, a spread of a large one.

    First, last, and evenly spaced ones in row-major order, with a step coprime to most extents. The
    same shape always gives the same list.
    """
    count = prod(shape)
    if not count:
        return []  # `product` would lay out every range, and extents next to a 0 have no bound
    if count <= limit:
        return list(product(*map(range, shape)))
    step = (count - 1) // (limit - 1)
    flats = sorted({*range(0, count, step | 1), count - 1})
    return [_unravelled(flat, shape) for flat in flats]


def _unravelled(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for extent in reversed(shape):
        flat, position = divmod(flat, extent)
        index.append(position)
    return tuple(reversed(index))


def first_difference(expected: str, actual: str, array: Descriptor) -> tuple[str, str]:
    """The first sampled element that differs in two contents in hexadecimal, as both have it."""
    width = 2 * array.itemsize
    element = array.element or Element("raw", array.itemsize, "|")
    for number, index in zip(range(len(expected) // width), sample_indices(array.shape)):
        part = slice(number * width, (number + 1) * width)
        if expected[part] != actual[part]:
            wanted, given = (
                element.shown(bytes.fromhex(text[part])) for text in (expected, actual)
            )
            return f"{wanted} at element {list(index)}", given
    return f"{len(expected) // width} sampled elements", f"{len(actual) // width}"


def entries_of(value: Entries, ndim: int, rule: str) -> tuple[int, ...]:
    """The entries of a C array of extents or strides; raises `Rejected` if they cannot be read."""
    if ndim == 0:
        return ()
    if not isinstance(value, list):
        raise Rejected(rule, "an array of ndim entries is missing or not mapped")
    return tuple(value)
