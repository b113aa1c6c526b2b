"""The halo from the domain: periodic, nearest, mirrored, or one value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._operands import is_storage

# The modes of numpy.pad by the names of conditions at a boundary.
_MODES: dict[str, Any] = {"periodic": "wrap"} | {m: m for m in ("edge", "reflect", "symmetric")}


def fill_halo(field: Any, how: str | object, dims: str | Sequence[str] | None = None) -> None:
    """Fill the halo of a storage from its domain, in place.

    The dimensions are filled one after the other, each over the whole extent of the others. So the corners are filled, too.
    Rules: docs/spec.md 9.78. Between processes, `gridbuf.mpi.HaloExchange` fills the halo.

    Parameters
    ----------
    field : Storage
        A storage with a halo, on the host, a device, or both. It is filled on the side that is current.
    how : {"periodic", "edge", "reflect", "symmetric"} or number
        "periodic": the other end of the domain. "edge": the nearest point of the domain. "reflect", "symmetric": the domain in
        a mirror at the last point, or behind it (as in `numpy.pad`). A number: that value.
    dims : str or sequence of str, optional
        Names of the dimensions to fill, also as one text of one-character names such as "IJ". Default: all.

    Raises
    ------
    TypeError
        `field` is not a storage.
    ValueError
        No such way or dimension; a domain without points; a storage that is read-only.

    Examples
    --------
    >>> import gridbuf.storage
    >>> field = gridbuf.storage.storage([0.0, 1.0, 2.0, 3.0, 0.0], halo=(1,))
    >>> gridbuf.storage.fill_halo(field, "periodic")
    >>> field.tolist()
    [3.0, 1.0, 2.0, 3.0, 1.0]
    """
    if not is_storage(field):
        raise TypeError(
            f"field is of type {type(field).__name__}, but must be a storage; use gridbuf.storage.as_storage(field, halo=...)"
        )
    if isinstance(how, str) and how not in _MODES:
        known = ", ".join(f'"{name}"' for name in _MODES)
        raise ValueError(
            f'how is {how!r}, but must be {known} or a number; what numpy.pad calls "wrap" is "periodic"'
        )
    is_name = isinstance(dims, str) and dims in field.dims
    names: Sequence[str] = field.dims if dims is None else [str(dims)] if is_name else [*dims]
    field = field._by_position()
    for name in names:
        if name not in field.dims:
            raise ValueError(
                f"dims has {name!r}, but the storage has {field.dims}; pass names of its dimensions, for example {field.dims[:1]}"
            )
        axis = field.dims.index(name)
        before = (slice(None),) * axis
        for targets, source in _runs(field.shape[axis], field.halo[axis], name, how):
            field[(*before, targets)] = how if source is None else field[(*before, source)]
    if field._halo_check < 0:  # one process has all of the field: these are the neighbours' values
        valid = zip(field.dims, field.halo, field.valid_halo, strict=True)
        field._halo_arrives([halo if dim in names else depth for dim, halo, depth in valid])


def _runs(
    extent: int, halo: tuple[int, int], name: str, how: Any
) -> Iterator[tuple[slice, slice | int | None]]:
    """The points of the halo, and where their values are: as few slices as possible. None: the value itself."""
    lower, upper = halo
    if not isinstance(how, str):
        yield from ((slice(0, lower), None), (slice(extent - upper, extent), None))
        return
    domain = np.arange(lower, extent - upper)
    if any(halo) and domain.size == 0:
        raise ValueError(
            f"dimension {name} has a halo of {halo} and no point of a domain to fill it from; pass a number as `how`"
        )
    points = np.pad(domain, halo, _MODES[how]) if any(halo) else domain
    for start, stop in ((0, lower), (extent - upper, extent)):
        while start < stop:
            first, *rest = points[start:stop].tolist()
            step = rest[0] - first if rest else 1
            size = 1
            while size <= len(rest) and rest[size - 1] == first + size * step:
                size += 1
            last = first + size * step
            source = slice(first, last if last >= 0 else None, step) if step else first
            yield slice(start, start + size), source
            start += size
