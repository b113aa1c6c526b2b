"""VTK's data arrays: tuples of numbers, by default adjacent (AOS), or a block a component (SOA)."""

from __future__ import annotations

from typing import Any

import numpy as np
from vtkmodules.util import numpy_support
from vtkmodules.vtkCommonCore import vtkSOADataArrayTemplate, vtkVersion

from ...plan import Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import INTEGERS, HostProducer, row_major
from .numpy import numpy_dtype
from .standard import MmapProducer

_DTYPES = ("float64", "float32", *INTEGERS)


class AosProducer(HostProducer):
    """`vtkDoubleArray` and the like, by `numpy_to_vtk` of a copy: one dimension, or tuples."""

    name = "vtk"
    no_views = "its arrays have no views"
    capabilities = row_major(_DTYPES, min_ndim=1, max_ndim=2, max_extent=2**12)

    def version(self) -> str:
        return vtkVersion.GetVTKVersion()

    def make(self, plan: Plan) -> Any:
        if plan.ndim == 2 and plan.shape[1] < 2:
            return Unsupported("vtk: arrays with one component have one dimension")
        return numpy_support.numpy_to_vtk(_content(plan), deep=True)


class ReadOnlyProducer(AosProducer):
    """`numpy_to_vtk` of read-only pages, which does not record it."""

    name = "vtk.readonly"
    capabilities = row_major(_DTYPES, min_ndim=1, max_ndim=1, max_extent=2**12, readonly=(True,))

    def make(self, plan: Plan) -> Any:
        pages = MmapProducer().make(plan)
        if isinstance(pages, Unsupported):
            return pages
        return numpy_support.numpy_to_vtk(np.frombuffer(pages, numpy_dtype(plan)))


class SoaProducer(AosProducer):
    """`vtkSOADataArrayTemplate`, filled value by value."""

    name = "vtk.soa"
    capabilities = Capabilities(
        dtypes=("float64", "float32", "int32"),
        min_ndim=2,
        max_ndim=2,
        max_nbytes=2**14,
        byteorders=("native",),
        readonly=(False,),
    )

    def make(self, plan: Plan) -> Any:
        tuples, components = plan.shape
        if not tuples or components < 2:
            return Unsupported("vtk: an array of structures needs a tuple and two components")
        result = vtkSOADataArrayTemplate[plan.dtype]()
        result.SetNumberOfComponents(components)
        result.SetNumberOfTuples(tuples)
        for index, value in np.ndenumerate(_content(plan)):
            result.SetComponent(*index, value)
        return result


def _content(plan: Plan) -> np.ndarray:
    return np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
