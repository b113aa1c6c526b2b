"""`gt4py.next` on gridbuf's memory: an allocator for GT4Py's constructors, and constructors of gridbuf.

>>> import gridbuf
>>> from gt4py import next as gtx
>>> Cell, K = gtx.Dimension("Cell"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
>>> field = gtx.zeros({Cell: 100, K: 80}, allocator=gridbuf.gt4py.next.allocator)
>>> gridbuf.owns(field)
True

Pass `allocator` where GT4Py takes one. Backends carry an allocator: `with_allocator` exchanges it. `use` exchanges the default
of GT4Py's constructors. GT4Py's constructors fill and copy with NumPy, so the allocator learns of neither. Those of this
module fill and copy with gridbuf.

The layout follows the kinds of the dimensions, as in GT4Py: horizontal dimensions are contiguous, then vertical, then local ones.
`vertical_contiguous_layout_mapper` is faster for some backends.
"""

from ._allocator import (
    HOST,
    FieldAllocator,
    use,
    vertical_contiguous_layout_mapper,
    with_allocator,
)
from ._constructors import as_connectivity, as_field, empty, full, ones, zeros
from ._workspace import dace_backend, workspace

__all__ = [
    "FieldAllocator",
    "allocator",
    "as_connectivity",
    "as_field",
    "dace_backend",
    "empty",
    "full",
    "ones",
    "use",
    "vertical_contiguous_layout_mapper",
    "with_allocator",
    "workspace",
    "zeros",
]


def __dir__() -> list[str]:
    return __all__


allocator = HOST
"""The allocator of host memory, in the layout of GT4Py's."""
