"""GT4Py's constructors of fields, with gridbuf's fills and copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from .._fields import given, resolve_domain
from .._library import constructors
from ._allocator import HOST, FieldAllocator, allocate


def empty(
    domain: Any,
    dtype: Any = np.float64,
    *,
    aligned_index: Sequence[Any] | None = None,
    allocator: Any = None,
    device: Any = None,
) -> Any:
    """Return a new field whose elements are undefined (docs/spec.md 12.92).

    Parameters
    ----------
    domain : DomainLike
        The domain, as in GT4Py.
    dtype : DTypeLike, default float64
        Element type.
    aligned_index : sequence of NamedIndex, optional
        The aligned element: indices of the domain, which is absolute. Dimensions that are not in
        the domain are ignored. Default: the start of the domain.
    allocator : FieldAllocator or backend, optional
        An allocator of gridbuf, or a backend with one. Default: `gridbuf.gt4py.next.allocator`.
    device : gt4py.next.Device, optional
        It must be of the type of the allocator, with `device_id` 0.

    Returns
    -------
    gt4py.next.Field
        The field.

    Raises
    ------
    TypeError
        `allocator` is not gridbuf's.
    ValueError
        `aligned_index` is outside the domain, `device` does not fit, or the size exceeds
        2**63 - 1 bytes.
    MemoryError
        There is not enough memory.
    DeviceUnavailableError
        There is no device, or no CuPy.

    Examples
    --------
    >>> import gridbuf
    >>> from gt4py import next as gtx
    >>> Cell = gtx.Dimension("Cell")
    >>> gridbuf.gt4py.next.empty({Cell: (2, 10)}, dtype="float32").shape
    (8,)
    """
    return _constructed(_core.empty, domain, dtype, aligned_index, allocator, device)


def zeros(
    domain: Any,
    dtype: Any = np.float64,
    *,
    aligned_index: Sequence[Any] | None = None,
    allocator: Any = None,
    device: Any = None,
) -> Any:
    """Return a new field of zeros (docs/spec.md 12.92).

    Parameters, Returns, Raises : as in `empty`
    """
    return _constructed(_core.zeros, domain, dtype, aligned_index, allocator, device)


def ones(
    domain: Any,
    dtype: Any = np.float64,
    *,
    aligned_index: Sequence[Any] | None = None,
    allocator: Any = None,
    device: Any = None,
) -> Any:
    """Return a new field of ones (docs/spec.md 12.92).

    Parameters, Returns, Raises : as in `empty`
    """
    return _constructed(_core.ones, domain, dtype, aligned_index, allocator, device)


def full(
    domain: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    aligned_index: Sequence[Any] | None = None,
    allocator: Any = None,
    device: Any = None,
) -> Any:
    """Return a new field of `fill_value` (docs/spec.md 12.92).

    Parameters
    ----------
    domain : as in `empty`
    fill_value : scalar
        The value of the elements.
    dtype : DTypeLike, optional
        Element type. Default: that of `fill_value`.
    aligned_index, allocator, device : as in `empty`

    Returns, Raises : as in `empty`
    """

    def make(shape: tuple[int, ...], element: npt.DTypeLike, **keywords: Any) -> Any:
        return _core.full(shape, fill_value, element, **keywords)

    element = type(fill_value) if dtype is None else dtype
    return _constructed(make, domain, element, aligned_index, allocator, device)


def as_field(
    domain: Any,
    data: Any,
    dtype: Any = None,
    *,
    origin: Mapping[Any, int] | None = None,
    aligned_index: Sequence[Any] | None = None,
    allocator: Any = None,
    device: Any = None,
) -> Any:
    """Return a new field with a copy of an array (docs/spec.md 12.92).

    Parameters
    ----------
    domain : DomainLike or sequence of Dimension
        The domain; or its dimensions, whose extents are those of `data`.
    data : array
        An array of any library, a storage, or a field.
    dtype : DTypeLike, optional
        Element type, to which `astype` converts. Default: that of `data`.
    origin : mapping of Dimension to int, optional
        Only with dimensions: the index in `data` of the point 0 of a dimension. Default: 0.
    aligned_index, allocator, device : as in `empty`

    Returns
    -------
    gt4py.next.Field
        The field. `gridbuf.gt4py.as_field` makes one without a copy.

    Raises
    ------
    TypeError : as in `empty`
    ValueError
        The extents of `data` are not those of `domain`, `origin` or `device` does not fit, or
        `aligned_index` is outside the domain.
    MemoryError, DeviceUnavailableError : as in `empty`

    Examples
    --------
    >>> import gridbuf, numpy
    >>> from gt4py import next as gtx
    >>> Cell = gtx.Dimension("Cell")
    >>> field = gridbuf.gt4py.next.as_field([Cell], numpy.arange(5.0), origin={Cell: 2})
    >>> float(field[Cell(0)].as_scalar())
    2.0
    """
    source = getattr(data, "ndarray", data)

    def make(shape: tuple[int, ...], element: npt.DTypeLike, **keywords: Any) -> Any:
        return _core.from_array(source, element, **keywords)

    found = resolve_domain(domain, source, origin)
    element = source.dtype if dtype is None else dtype
    return _constructed(make, found, element, aligned_index, allocator, device)


def as_connectivity(
    domain: Any,
    codomain: Any,
    data: Any,
    dtype: Any = None,
    *,
    origin: Mapping[Any, int] | None = None,
    aligned_index: Sequence[Any] | None = None,
    allocator: Any = None,
    device: Any = None,
    skip_value: Any = constructors.eve.NOTHING,
) -> Any:
    """Return a new connectivity with a copy of a table (docs/spec.md 12.92).

    Parameters
    ----------
    domain : as in `as_field`
    codomain : Dimension
        The dimension whose indices are in the table.
    data : array
        The table: an array of any library, or a storage.
    dtype, origin, aligned_index, allocator, device : as in `as_field`
    skip_value : int or None, optional
        The entry of the table that means "no neighbour". Default: -1 if the table has it, else None.

    Returns
    -------
    gt4py.next.Connectivity
        The connectivity.

    Raises : as in `as_field`

    Examples
    --------
    >>> import gridbuf, numpy
    >>> from gt4py import next as gtx
    >>> Edge, Vertex = gtx.Dimension("Edge"), gtx.Dimension("Vertex")
    >>> E2V = gtx.Dimension("E2V", kind=gtx.DimensionKind.LOCAL)
    >>> table = numpy.array([[0, 1], [1, 2], [2, 0]], dtype="int32")
    >>> edges = gridbuf.gt4py.next.as_connectivity([Edge, E2V], Vertex, table)
    >>> gridbuf.owns(edges.ndarray)
    True
    """
    field = as_field(
        domain,
        data,
        dtype,
        origin=origin,
        aligned_index=aligned_index,
        allocator=allocator,
        device=device,
    )
    # GT4Py's constructor makes the connectivity over the copy, and assigns the copy to itself.
    return constructors.as_connectivity(
        field.domain,
        codomain,
        field.ndarray,
        allocator=given(field.ndarray),
        skip_value=skip_value,
    )


def _constructed(
    function: Callable[..., Any],
    domain: Any,
    dtype: Any,
    aligned_index: Sequence[Any] | None,
    allocator: Any,
    device: Any,
) -> Any:
    """A field of GT4Py's own constructor, whose `empty` is one of gridbuf's functions, which gives memory with its elements."""
    own = HOST if allocator is None else _own(allocator)
    filler = SimpleNamespace(
        __gt_device_type__=own.device_type, __gt_allocate__=partial(allocate, own, function)
    )
    constructor = constructors.FieldConstructor(filler, aligned_index=aligned_index, device=device)
    return constructor.empty(domain, dtype=dtype)


def _own(allocator: Any) -> FieldAllocator:
    found = getattr(allocator, "__gt_allocator__", allocator)
    if not isinstance(found, FieldAllocator):
        raise TypeError(
            f"allocator is {allocator!r}, but must be a gridbuf.gt4py.next.FieldAllocator, or a backend with one: "
            "gridbuf.gt4py.next.with_allocator(backend)"
        )
    return found
