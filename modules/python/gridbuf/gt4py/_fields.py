"""Fields of `gt4py.next` and gridbuf's arrays over one memory.

Importing this module gives fields `__gt_data_interface__`, which GT4Py does not define. So `gridbuf.as_buffer`, `copyto`,
`storage` and every other function of gridbuf takes a field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from .. import _core
from .._dims import Dim
from ..storage import Storage
from ._library import common, constructors, definitions, nd_array_field


def as_field(array: object, domain: Any = None, *, origin: Mapping[Any, int] | None = None) -> Any:
    """Return a field of `gt4py.next` over the memory of an array, without a copy.

    Parameters
    ----------
    array : object
        An ndarray, a Buffer, a storage, or any array that `gridbuf.as_numpy` or `as_cupy` takes.
    domain : DomainLike or sequence of Dimension, optional
        The domain of the field; or its dimensions, whose extents are those of `array`. Default: the
        names and kinds of the dimensions of `array`.
    origin : mapping of Dimension to int, optional
        Only with dimensions: the index in `array` of the point 0 of a dimension. Default: that of
        the storage's `lower` where it is known, else the lower halo of a storage, the aligned index
        of a Buffer, else 0.

    Returns
    -------
    gt4py.next.Field
        It keeps the memory alive.

    Raises
    ------
    TypeError
        `array` does not export memory.
    ValueError
        The extents of `array` are not those of `domain`, or `origin` does not fit. Without
        `domain`: `array` has no names, or has data dimensions.
    DeviceUnavailableError
        The memory is a device's, and there is no CUDA device or no CuPy.

    Notes
    -----
    The memory of a software-managed storage is that of the host. `gt4py.next` does not tell the
    storage about writes: call `set_host_modified` after a stencil. Rules: docs/spec.md 12.95.

    Examples
    --------
    >>> import gridbuf
    >>> from gt4py import next as gtx
    >>> Cell = gtx.Dimension("Cell")
    >>> array = gridbuf.zeros((5,))
    >>> field = gridbuf.gt4py.as_field(array, [Cell], origin={Cell: 2})
    >>> array[2] = 7
    >>> field.domain.ranges[0], float(field[Cell(0)].as_scalar())
    (UnitRange(-2, 3), 7.0)
    """
    if domain is None:
        domain = _dimensions_of(array)
    if origin is None and _are_dimensions(domain):
        origin = dict(zip(domain, _origin_of(array, len(domain))))
    memory = _memory_of(array)
    found = resolve_domain(domain, memory, origin)
    constructor = constructors.FieldConstructor(given(memory))
    return constructor.empty(found, dtype=definitions.dtype(memory.dtype))


def _dimensions_of(array: object) -> list[Any]:
    """The dimensions of GT4Py with the names and kinds of an array."""
    names = _core.get_dims(array)
    dims = [Dim(name) for name in names or ()]
    data = [dim.value for dim in dims if dim.kind == "data"]
    if data or names is None:
        found = f"has the data dimension {data[0]!r}" if data else "has no names"
        raise ValueError(f"the array {found}; pass the dimensions of the field as domain")
    return [common.Dimension(dim.value, common.DimensionKind(dim.kind)) for dim in dims]


def _memory_of(array: object) -> Any:
    """The ndarray over the memory; CuPy's if the host does not read it."""
    try:
        return _core.as_numpy(array)
    except _core.GTNoSuchBufferError:
        return _core.as_cupy(array)


def _origin_of(array: object, ndim: int) -> tuple[int, ...]:
    if isinstance(array, Storage):
        both = zip(array.lower, array.halo)
        return tuple(halo[0] if start is None else -start for start, halo in both)
    return array.aligned_index if isinstance(array, _core.Buffer) else (0,) * ndim


def _are_dimensions(domain: object) -> bool:
    return isinstance(domain, Sequence) and all(isinstance(d, common.Dimension) for d in domain)


def resolve_domain(domain: Any, array: Any, origin: Mapping[Any, int] | None) -> Any:
    """The domain of an array, from a domain or from dimensions and an origin.

    Raises:
      ValueError: the extents differ, or the origin does not fit.
    """
    shape = tuple(array.shape)
    if _are_dimensions(domain):
        starts = dict(origin or {})
        if unknown := sorted(dim.value for dim in starts.keys() - {*domain}):
            raise ValueError(
                f"origin names {', '.join(unknown)}, but the dimensions are {', '.join(d.value for d in domain)}"
            )
        if len(domain) != len(shape):
            raise ValueError(
                f"domain has {len(domain)} dimensions ({', '.join(d.value for d in domain)}), "
                f"but the array has shape {shape}"
            )
        offsets = [starts.get(dim, 0) for dim in domain]
        return common.domain(
            [(d, (-offset, n - offset)) for d, n, offset in zip(domain, shape, offsets)]
        )
    if origin:
        raise ValueError("origin is only for dimensions; a domain has its own start indices")
    found = common.domain(domain)
    if found.shape != shape:
        raise ValueError(f"domain {found} has shape {found.shape}, but the array has {shape}")
    return found


def given(array: Any) -> Any:
    """An allocator that gives the memory of one array: the public way to a field over it.

    It is not hashable, so GT4Py does not keep it. GT4Py reads only `ndarray` of the result.
    """
    is_on_host = hasattr(array, "__array_interface__")
    return SimpleNamespace(
        __gt_device_type__=getattr(definitions.DeviceType, "CPU" if is_on_host else "CUDA"),
        __gt_allocate__=lambda *_, **options: SimpleNamespace(ndarray=array),
    )


def _dims(field: Any) -> tuple[str, ...]:
    """`__gt_dims__` of a field: GT4Py's names and kinds."""
    return tuple(map(Dim, field.domain.dims))


def _data_interface(field: Any) -> dict[str | None, dict[str, Any]]:
    """`__gt_data_interface__` of a field: that of its memory, and the points below 0 as the lower halo."""
    is_on_host = hasattr(field.ndarray, "__array_interface__")
    entry = dict(
        field.ndarray.__array_interface__ if is_on_host else field.ndarray.__cuda_array_interface__
    )
    entry["halo"] = tuple(
        (-r.start if r.start < 0 <= r.stop else 0, 0) for r in field.domain.ranges
    )
    return {None if is_on_host else "gpu": entry}


def _starts(field: Any) -> tuple[int, ...]:
    """The index of the first point of each dimension, by which gridbuf pairs points."""
    return tuple(r.start for r in field.domain.ranges)


nd_array_field.NdArrayField._gridbuf_starts = property(_starts)
if not hasattr(nd_array_field.NdArrayField, "__gt_data_interface__"):
    nd_array_field.NdArrayField.__gt_data_interface__ = property(_data_interface)
    nd_array_field.NdArrayField.__gt_dims__ = property(_dims)
