"""Allocators of fields for `gt4py.next`: GT4Py's, gridbuf's, and those of other projects.

An allocator has `__gt_device_type__` and `__gt_allocate__(domain, dtype, device_id, aligned_index)`, and GT4Py's constructors
take the `ndarray` of its result. Layout and alignment belong to the allocator, so there is a separate one for each plan. Domains
begin at different indices, positive and negative, because `aligned_index` has indices of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from gt4py import next as gtx
from gt4py._core import definitions
from gt4py.next import common, custom_layout_allocators
from gt4py.storage import allocators

from ..plan import ALIGNMENT_LIMIT_BYTES, Plan
from ..producer import Capabilities, Unsupported
from .base import INTEGERS, HostProducer
from .numpy import NumPyProducer, numpy_dtype, write_content

__all__ = ["AllocatorProducer", "GT4PyNextProducer", "GridbufNextProducer"]

LayoutMapper = Callable[[Sequence[gtx.Dimension]], Any]


class AllocatorProducer(HostProducer):
    """The arrays of an allocator of fields.

    A project that has one writes a subclass with a name, a version and `allocator`.
    """

    capabilities = Capabilities(
        dtypes=("float64", "float32", *INTEGERS, "bool"),
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
        starts = {gtx.Dimension(f"D{axis}"): (-1) ** axis * (axis + 2) for axis in range(plan.ndim)}
        domain = gtx.domain(
            {dim: (start, start + n) for (dim, start), n in zip(starts.items(), plan.shape)}
        )
        # In reverse order, because the indices have names. An empty domain has no element to align.
        asked = () if 0 in plan.shape else plan.aligned_index or ()
        index = [common.NamedIndex(d, starts[d] + i) for d, i in zip(starts, asked)][::-1] or None
        given = self.allocator(lambda dims: layout, alignment)
        dtype = definitions.dtype(numpy_dtype(plan))
        result = given.__gt_allocate__(domain, dtype, 0, index).ndarray
        write_content(result, plan)
        return result

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        return NumPyProducer().apply_view(obj, operation)


class GT4PyNextProducer(AllocatorProducer):
    """GT4Py's own allocator."""

    name = "gt4py.next"

    def version(self) -> str:
        return version("gt4py")

    def make(self, plan: Plan) -> np.ndarray | Unsupported:
        if 0 in plan.shape:
            return Unsupported("gt4py.next: extents must be positive")
        return super().make(plan)

    def allocator(self, layout_mapper: LayoutMapper, alignment_size: int) -> Any:
        return custom_layout_allocators.BaseFieldBufferAllocator(
            definitions.DeviceType.CPU, allocators.numpy_array_utils, layout_mapper, alignment_size
        )


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
