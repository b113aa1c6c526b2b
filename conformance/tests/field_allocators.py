"""Producers of field allocators for `gt4py.next`: a right one, and some that are wrong in one way
each.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import gridbuf.gt4py.next as gb_next
import numpy as np
from gt4py.next import common

from gridbuf_conformance.plugins.libraries.gt4py_next import GridbufNextProducer


@dataclasses.dataclass(frozen=True)
class Allocator:
    """An allocator of gridbuf, with its parameters in reach of the wrong ones."""

    layout_mapper: Any
    alignment_size: int

    def __gt_allocate__(
        self, domain: Any, dtype: Any, device_id: int = 0, aligned_index: Any = None
    ) -> Any:
        own = gb_next.FieldAllocator(
            layout_mapper=self.layout_mapper, byte_alignment=self.alignment_size
        )
        return own.__gt_allocate__(domain, dtype, device_id, aligned_index)


class IgnoresTheAlignedIndex(Allocator):
    """Aligns the first element of the domain."""

    def __gt_allocate__(self, domain, dtype, device_id=0, aligned_index=None):
        return super().__gt_allocate__(domain, dtype, device_id)


class CountsFromZero(Allocator):
    """Takes the aligned index for indices of the array."""

    def __gt_allocate__(self, domain, dtype, device_id=0, aligned_index=None):
        if aligned_index:
            starts = {dim: points.start for dim, points in zip(domain.dims, domain.ranges)}
            extents = dict(zip(domain.dims, domain.shape))
            aligned_index = [
                common.NamedIndex(dim, starts[dim] + index % extents[dim])
                for dim, index in ((named.dim, named.value) for named in aligned_index)
            ]
        return super().__gt_allocate__(domain, dtype, device_id, aligned_index)


class InvertsTheLayout(Allocator):
    """Takes ranks for positions."""

    def __gt_allocate__(self, domain, dtype, device_id=0, aligned_index=None):
        def inverse(dims):
            return tuple(int(i) for i in np.argsort(self.layout_mapper(dims)))

        other = Allocator(inverse, self.alignment_size)
        return other.__gt_allocate__(domain, dtype, device_id, aligned_index)


class ReusesMemory(Allocator):
    """Hands the same memory out for the same request."""

    def __gt_allocate__(self, domain, dtype, device_id=0, aligned_index=None):
        layout = tuple(self.layout_mapper(domain.dims))
        return _kept(domain, dtype, layout, self.alignment_size, tuple(aligned_index or ()))


@functools.cache
def _kept(domain, dtype, layout, alignment_size, aligned_index):
    return Allocator(lambda dims: layout, alignment_size).__gt_allocate__(
        domain, dtype, 0, aligned_index
    )


class SinglePrecision(Allocator):
    """Makes float32 of float64."""

    def __gt_allocate__(self, domain, dtype, device_id=0, aligned_index=None):
        if dtype.scalar_type is np.float64:
            dtype = dataclasses.replace(dtype, scalar_type=np.float32)
        return super().__gt_allocate__(domain, dtype, device_id, aligned_index)


class ReadOnly(Allocator):
    """Protects the memory."""

    def __gt_allocate__(self, domain, dtype, device_id=0, aligned_index=None):
        result = super().__gt_allocate__(domain, dtype, device_id, aligned_index)
        result.ndarray.flags.writeable = False
        return result


def _producer(kind: type[Allocator]) -> type[GridbufNextProducer]:
    class Producer(GridbufNextProducer):
        name = kind.__name__

        def allocator(self, layout_mapper: Any, alignment_size: int) -> Any:
            return kind(layout_mapper, alignment_size)

    return Producer


Right = _producer(Allocator)
AlignsTheStart = _producer(IgnoresTheAlignedIndex)
AlignsARelativeIndex = _producer(CountsFromZero)
HasTheInverseLayout = _producer(InvertsTheLayout)
MakesSinglePrecision = _producer(SinglePrecision)
ProtectsMemory = _producer(ReadOnly)
SharesMemory = _producer(ReusesMemory)
