"""Defects of allocators (GT rules): the arrays describe themselves right, and ignore the plan."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import ClassVar

from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plan.producer import Capabilities, Unsupported

from .elements import ELEMENTS, Element
from .memory import Block
from .mutant import Mutant
from .reference import (
    BufferInDict,
    Exports,
    ExportsArrayInterface,
    ExportsBuffer,
    Memory,
    strides_of,
)


class _PlainArray(ExportsArrayInterface, Memory, ExportsBuffer):
    """The array interface next to the buffer protocol."""


class _Allocator(Mutant):
    """A wrong allocation of right arrays."""

    array_type = _PlainArray
    breaks = frozenset()


class _Substitutes(_Allocator):
    """Makes the array of another plan."""

    def other(self, plan: Plan) -> Plan:
        raise NotImplementedError(f"{type(self).__name__} must define other")

    def produce(self, plan: Plan) -> object:
        return super().produce(self.other(plan))


class NoneInPlaceOfAnArray(_Allocator):
    """`produce` returns None: a call whose result is not returned."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        super().produce(plan)
        return None


class ArrayWithoutInterface(_Allocator):
    """The arrays have elements, and no interface to export them."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        return SimpleNamespace(shape=plan.shape, data=super().produce(plan))

    def apply_view(self, array: object, operation: Sequence) -> Unsupported:
        return Unsupported("these arrays cannot be indexed")


class SinglePrecision(_Substitutes):
    """float32 where float64 was requested."""

    breaks = frozenset({"GT-20"})

    def other(self, plan: Plan) -> Plan:
        return plan.replaced(dtype="float32") if plan.dtype == "float64" else plan


class OneElementMore(_Substitutes):
    """The last axis is one element longer."""

    breaks = frozenset({"GT-20"})

    def other(self, plan: Plan) -> Plan:
        if not plan.ndim or plan.fill is None:
            return plan
        return plan.replaced(shape=(*plan.shape[:-1], plan.shape[-1] + 1), views=())


class NativeOrderOnly(_Substitutes):
    """Native byte order where swapped was requested."""

    breaks = frozenset({"GT-20"})

    def other(self, plan: Plan) -> Plan:
        return plan.replaced(byteorder="native")


class ReadOnlyNotGiven(_Substitutes):
    """Writable memory where read-only was requested."""

    breaks = frozenset({"GT-20"})

    def other(self, plan: Plan) -> Plan:
        return plan.replaced(readonly=False)


class OneElementMoreInABuffer(OneElementMore):
    """The last axis is one element longer, and `data` of the array interface is a buffer object."""

    array_type = BufferInDict


class ReadOnlyNotGivenInABuffer(ReadOnlyNotGiven):
    """Writable memory for read-only plans, and `data` of the array interface is a buffer object."""

    array_type = BufferInDict


class AlwaysRowMajor(_Substitutes):
    """Row-major for every requested layout."""

    breaks = frozenset({"GT-17"})

    def other(self, plan: Plan) -> Plan:
        return plan.replaced(layout=None)


class InverseLayout(_Substitutes):
    """The layout map is read as its inverse: seen with cyclic permutations only."""

    breaks = frozenset({"GT-17"})

    def other(self, plan: Plan) -> Plan:
        if plan.layout is None:
            return plan
        return plan.replaced(layout=tuple(plan.layout.index(axis) for axis in range(plan.ndim)))


class BaseIsAligned(_Substitutes):
    """The first element is aligned, not the requested element."""

    breaks = frozenset({"GT-16"})

    def other(self, plan: Plan) -> Plan:
        return plan.replaced(aligned_index=None, halo=None)


class AlignedToHalf(_Allocator):
    """Half the requested alignment."""

    breaks = frozenset({"GT-16"})

    def allocate(self, plan: Plan) -> Memory:
        array = super().allocate(plan)
        half = plan.alignment_size // 2
        # Half way between two multiples on every machine, and inside the block, which has one
        # alignment to spare.
        fits = array.address - array.block.low + half < plan.alignment_size
        array.address += half if fits else -half
        return array


class OffByOneItem(_Allocator):
    """The aligned element is the neighbour of the requested element."""

    breaks = frozenset({"GT-16"})

    def allocate(self, plan: Plan) -> Memory:
        array = super().allocate(plan)
        array.address += array.item_bytes * (plan.alignment_size > 1)
        return array


class RowsAreNotPadded(_Allocator):
    """Only one element is aligned, not others with its index in the contiguous dimension."""

    breaks = frozenset({"GT-22"})

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        return strides_of(plan.shape, layout, element.itemsize)


class PaddedTwice(_Allocator):
    """Rows are padded to twice the unit that the alignment needs."""

    breaks = frozenset({"GT-25"})

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        unit = plan.alignment_size // math.gcd(plan.alignment_size, element.itemsize)
        return strides_of(plan.shape, layout, element.itemsize, unit * (1 if unit == 1 else 2))


class EveryDimensionIsPadded(_Allocator):
    """Each extent is rounded up, not the contiguous one alone."""

    breaks = frozenset({"GT-25"})

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        unit = plan.alignment_size // math.gcd(plan.alignment_size, element.itemsize)
        padded = tuple(-(-extent // unit) * unit for extent in plan.shape)
        return strides_of(padded, layout, element.itemsize)


class StridesVary(_Allocator):
    """Every other request gets one alignment unit more between its rows."""

    breaks = frozenset({"GT-23"})
    requests: ClassVar = itertools.count()

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        strides = super().strides(plan, element)
        if next(self.requests) % 2 or plan.ndim < 2:
            return strides
        unit = plan.alignment_size * element.itemsize
        outermost = max(strides)
        return tuple(s + unit * (s == outermost > element.itemsize) for s in strides)


class OneBlockForAll(_Allocator):
    """Every result is in the same block."""

    breaks = frozenset({"GT-21", "XA-11"})
    shared: ClassVar[list[Block]] = []

    def block(self, length_bytes: int) -> Block:
        usable = [b for b in self.shared if b.high - b.low >= length_bytes]
        if not usable:
            usable = [Block(max(length_bytes, 2**22))]
            self.shared.extend(usable)
        usable[0].allow(writable=True)
        return usable[0]


class SizesWrapAt32Bits(_Allocator):
    """Byte counts are computed in 32 bits, strides are not."""

    breaks = frozenset({"GT-24"})

    def block(self, length_bytes: int) -> Block:
        return Block(length_bytes % 2**32)


class SizesAreSigned32Bits(_Allocator):
    """Byte counts are limited to 2^31 - 1."""

    breaks = frozenset({"GT-24"})

    def block(self, length_bytes: int) -> Block:
        return Block(min(length_bytes, 2**31 - 1))


class FourExtentsWrapAt32Bits(_Allocator):
    """Byte counts of arrays with four dimensions are computed in 32 bits."""

    breaks = frozenset({"GT-24"})
    plans = (
        Plan(shape=(2, 3, 2, 2), fill=1),
        Plan(shape=(3, 1024, 1024, 256), fill=None),
        Plan(shape=(2, 2048, 1024, 1024), dtype="int8", fill=None),
    )

    def allocate(self, plan: Plan) -> Memory:
        self._ndim = plan.ndim
        return super().allocate(plan)

    def block(self, length_bytes: int) -> Block:
        return Block(length_bytes % 2**32 if self._ndim == 4 else length_bytes)


class _RowMajor(_Allocator):
    """Arrays in C order: plans differ in few keys."""

    capabilities = Capabilities(dtypes=tuple(ELEMENTS), max_ndim=5, layouts="C")
    drawn = True


class ExtentsHave32Bits(_RowMajor):
    """`shape` of the array interface is computed from signed integers of 32 bits."""

    breaks = frozenset({"AI-03"})

    class array_type(Exports.ArrayInterface):
        """Extents of 32 bits, strides of 64."""

        def array_interface(self) -> dict:
            shape = tuple(ctypes.c_int32(extent).value for extent in self.shape)
            return {**super().array_interface(), "shape": shape, "strides": self.strides}


class StridesHave32Bits(_RowMajor):
    """Byte strides are computed in signed integers of 32 bits, sizes and extents are not."""

    breaks = frozenset({"AI-22"})
    advises = frozenset({"PB-18"})

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        return tuple(ctypes.c_int32(n).value for n in super().strides(plan, element))


class NegativeDataDimension(_Allocator):
    """Data dimensions are named "-1", "-2"."""

    breaks = frozenset({"GT-18"})

    def allocate(self, plan: Plan) -> Memory:
        array = super().allocate(plan)
        if plan.dims is not None:
            array.__gt_dims__ = tuple(f"-{d}" if d.isdigit() else d for d in plan.dims)
        return array


class ConvertedByCopy(_Allocator):
    """DLPack shares the memory, but the way to `numpy.asarray` is `__array__`, which copies."""

    breaks = frozenset({"GT-15"})

    class array_type(Exports.DLPack):
        """DLPack and `__array__`."""

        def __array__(self, dtype: object = None, copy: object = None) -> object:
            strides, address = self.strides, self.address
            return Exports.ArrayInterface(
                self.block, self.element, self.shape, strides, address
            ).copied()

    def allocate(self, plan: Plan) -> Memory:
        """Meant for stencils: it names its dimensions."""
        array = super().allocate(plan)
        names = ("I", "J", "K", *map(str, range(plan.ndim)))
        array.__gt_dims__ = names[: plan.ndim] if plan.dims is None else plan.dims
        return array


class NothingInRangeIsMade(_Allocator):
    """Every plan inside the declared capabilities is declined."""

    breaks = frozenset({"GT-20"})
    drawn = True

    def produce(self, plan: Plan) -> object:
        return Unsupported("not today")


class OriginIsTheStart(_Allocator):
    """A field whose domain starts at 1 in every dimension gives 1 for its origin, not -1."""

    breaks = frozenset()
    advises = frozenset({"GT-19"})

    class array_type(_PlainArray):
        """An array with a domain, as fields of `gt4py.next` have."""

        def __init__(self, *arguments: object, **keywords: object) -> None:
            super().__init__(*arguments, **keywords)
            self.domain = SimpleNamespace(ranges=[range(1, 1 + n) for n in self.shape])
            self.__gt_origin__ = (1,) * self.ndim
