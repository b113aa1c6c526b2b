"""The field operators of `next_layouts`, structured and unstructured. GT4Py reads them at import."""

# mypy: ignore-errors
# Annotations are GT4Py's language here.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gt4py import next as gtx
from gt4py.next import neighbor_sum

I, J = gtx.Dimension("I"), gtx.Dimension("J")  # noqa: E741 (GT4Py's name)
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Edge, Vertex = gtx.Dimension("Edge"), gtx.Dimension("Vertex")
E2VDim = gtx.Dimension("E2V", kind=gtx.DimensionKind.LOCAL)
E2V = gtx.FieldOffset("E2V", source=Vertex, target=(Edge, E2VDim))
LEVELS = 80


@gtx.field_operator
def laplacian(phi: gtx.Field[[I, J, K], gtx.float64]) -> gtx.Field[[I, J, K], gtx.float64]:
    return 4.0 * phi - phi(I + 1) - phi(I - 1) - phi(J + 1) - phi(J - 1)


@gtx.field_operator
def edge_sum(phi: gtx.Field[[Vertex, K], gtx.float64]) -> gtx.Field[[Edge, K], gtx.float64]:
    return neighbor_sum(phi(E2V), axis=E2VDim)


class Operators:
    """Calls of the operators, compiled by one backend."""

    names = ("structured", "unstructured")

    def __init__(self, backend: Any, extent: int) -> None:
        self._backend, self._extent = backend, extent
        self._vertices, self._edges = extent**2 * 5 // 4, extent**2 * 15 // 4
        random = np.random.default_rng(1)
        self._structured = random.random((extent + 2, extent + 2, LEVELS))
        self._unstructured = random.random((self._vertices, LEVELS))
        numbers = np.arange(self._edges)
        ends = [numbers % self._vertices, (5 * numbers + 1) % self._vertices]
        self._table = np.stack(ends, axis=1).astype(np.int32)

    def call(self, name: str, allocator: Any) -> tuple[Callable[[], Any], np.ndarray]:
        """A call on new fields of the allocator, and the array that it writes."""
        return getattr(self, f"_{name}_call")(allocator)

    def _structured_call(self, allocator: Any) -> tuple[Callable[[], Any], np.ndarray]:
        n = self._extent
        domain = gtx.domain({I: (-1, n + 1), J: (-1, n + 1), K: LEVELS})
        phi = gtx.as_field(domain, self._structured, allocator=allocator)
        out = gtx.zeros({I: n, J: n, K: LEVELS}, allocator=allocator)
        operator = laplacian.with_backend(self._backend)
        return lambda: operator(phi, out=out, offset_provider={}), out.ndarray

    def _unstructured_call(self, allocator: Any) -> tuple[Callable[[], Any], np.ndarray]:
        phi = gtx.as_field([Vertex, K], self._unstructured, allocator=allocator)
        out = gtx.zeros({Edge: self._edges, K: LEVELS}, allocator=allocator)
        edges = gtx.as_connectivity([Edge, E2VDim], Vertex, self._table, allocator=allocator)
        operator = edge_sum.with_backend(self._backend)
        return lambda: operator(phi, out=out, offset_provider={"E2V": edges}), out.ndarray
