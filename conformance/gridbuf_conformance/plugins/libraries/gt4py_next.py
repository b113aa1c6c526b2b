"""Allocators of fields for `gt4py.next`: GT4Py's, gridbuf's, and those of other projects.

An allocator has `__gt_device_type__` and `__gt_allocate__(domain, dtype, device_id,
aligned_index)`, and GT4Py's constructors take the `ndarray` of its result. Layout and alignment
belong to the allocator, so there is a separate one for each plan. Domains begin at different
indices, positive and negative, because `aligned_index` has indices of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gt4py import next as gtx
from gt4py._core import definitions
from gt4py.next import common, custom_layout_allocators
from gt4py.storage import allocators

from ...plan import ALIGNMENT_LIMIT_BYTES, Plan
from ...plan.plan import is_data_dimension
from ...producer import Capabilities, Unsupported
from ...producers.base import INTEGERS, HostProducer
from .numpy import NumPyProducer, numpy_dtype, write_content

LayoutMapper = Callable[[Sequence[gtx.Dimension]], Any]
_DTYPES = ("float64", "float32", *INTEGERS, "bool")


def _domain(dims: Sequence[gtx.Dimension], shape: Sequence[int]) -> Any:
    starts = [(-1) ** axis * (axis + 2) for axis in range(len(shape))]
    return gtx.domain({d: (start, start + n) for d, start, n in zip(dims, starts, shape)})


class AllocatorProducer(HostProducer):
    """The arrays of an allocator of fields.

    A project that has one writes a subclass with a name, a version and `allocator`.
    """

    capabilities = Capabilities(
        dtypes=_DTYPES,
        min_ndim=1,
        layouts="any",
        alignment_bytes=(1, ALIGNMENT_LIMIT_BYTES),
        byteorders=("native",),
        readonly=(False,),
        declares=frozenset({"layout", "alignment_size", "aligned_index"}),
    )

    def allocator(self, layout_mapper: LayoutMapper, alignment_size: int) -> Any:
        """Return an allocator of host memory with this layout, aligned to this number of bytes."""
        raise NotImplementedError(f"{type(self).__name__} must define allocator")

    def make(self, plan: Plan) -> np.ndarray | Unsupported:
        layout = tuple(range(plan.ndim)) if plan.layout is None else plan.layout
        alignment = math.lcm(plan.alignment_size, plan.itemsize)
        domain = _domain([gtx.Dimension(f"D{axis}") for axis in range(plan.ndim)], plan.shape)
        # In reverse order, because the indices have names. An empty domain has no element to align.
        asked = () if 0 in plan.shape else plan.aligned_index or ()
        places = zip(domain.dims, domain.ranges, asked)
        index = [common.NamedIndex(d, r.start + i) for d, r, i in places][::-1] or None
        given = self.allocator(lambda dims: layout, alignment)
        dtype = definitions.dtype(numpy_dtype(plan))
        result = given.__gt_allocate__(domain, dtype, 0, index)
        write_content(result.ndarray, plan)
        return self.exported(result)

    @staticmethod
    def exported(buffer: Any) -> Any:
        """What is judged of a TensorBuffer: by default the array that GT4Py's constructors take."""
        return buffer.ndarray

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        return NumPyProducer().apply_view(obj, operation)


class GT4PyNextProducer(AllocatorProducer):
    """GT4Py's own allocator."""

    name = "gt4py.next"

    def make(self, plan: Plan) -> np.ndarray | Unsupported:
        if 0 in plan.shape:
            return Unsupported("gt4py.next: extents must be positive")
        return super().make(plan)

    def allocator(self, layout_mapper: LayoutMapper, alignment_size: int) -> Any:
        return custom_layout_allocators.BaseFieldBufferAllocator(
            definitions.DeviceType.CPU, allocators.numpy_array_utils, layout_mapper, alignment_size
        )


class TensorBufferProducer(GT4PyNextProducer):
    """The TensorBuffer of the same allocator, which has the interfaces of its array."""

    name = "gt4py.buffer"
    no_views = "a TensorBuffer has no views"
    apply_view = HostProducer.apply_view

    @staticmethod
    def exported(buffer: Any) -> Any:
        return buffer


class GridbufNextProducer(AllocatorProducer):
    """`gridbuf.gt4py.next.FieldAllocator`."""

    name = "gridbuf.next"

    def version(self) -> str:
        import gridbuf

        return gridbuf.__version__

    def allocator(self, layout_mapper: LayoutMapper, alignment_size: int) -> Any:
        import gridbuf.gt4py.next

        return gridbuf.gt4py.next.FieldAllocator(
            layout_mapper=layout_mapper, byte_alignment=alignment_size
        )


class FieldProducer(HostProducer):
    """Fields over any dimensions, with the interfaces of GT4Py and `gridbuf.gt4py.next`."""

    name = "gridbuf.next.fields"
    version = GridbufNextProducer.version
    no_views = "the indices of a field are those of its domain"
    capabilities = Capabilities(dtypes=_DTYPES, min_ndim=1, readonly=(False,), dims=True)

    def make(self, plan: Plan) -> Any:
        import gridbuf.gt4py.next

        names = plan.dims or tuple(f"D{axis}" for axis in range(plan.ndim))
        if any(map(is_data_dimension, names)):
            return Unsupported(f"{self.name}: a field has no data dimensions")
        kinds = {"K": gtx.DimensionKind.VERTICAL, "E2V": gtx.DimensionKind.LOCAL}
        horizontal = gtx.DimensionKind.HORIZONTAL
        dims = [gtx.Dimension(name, kinds.get(name, horizontal)) for name in names]
        dtype = definitions.dtype(numpy_dtype(plan))
        result = gridbuf.gt4py.next.empty(_domain(dims, plan.shape), dtype)
        write_content(result.ndarray, plan)
        return result
