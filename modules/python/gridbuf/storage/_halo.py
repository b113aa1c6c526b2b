"""The halo from the domain: periodic, nearest, mirrored, or one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ._operands import is_storage

__all__ = ["fill_halo"]

# The point of a domain of n points whose value the point i outside gets.
_SOURCES: dict[str, Callable[[int, int], int]] = {
    "periodic": lambda i, n: i % n,
    "edge": lambda i, n: min(max(i, 0), n - 1),
    "reflect": lambda i, n: _folded(i, n - 1, 0),
    "symmetric": lambda i, n: _folded(i, n, 1),
}


def _folded(i: int, half: int, repeated: int) -> int:
    """The mirrored index: up to `half`, and back. `repeated`: the point at the edge occurs twice."""
    place = i % (2 * half) if half else 0
    return place if place < half + 1 - repeated else 2 * half - repeated - place


def fill_halo(field: Any, how: str | object, dims: str | Sequence[str] | None = None) -> None:
    """Fill the halo of a storage from its domain, in place.

    The dimensions are filled one after the other, each over the whole extent of the others. So the corners are filled, too.

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

    Notes
    -----
    Rules: docs/spec.md 9.78. Between processes, `gridbuf.mpi.HaloExchange` fills the halo.

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
    if isinstance(how, str) and how not in _SOURCES:
        known = ", ".join(f'"{name}"' for name in _SOURCES)
        raise ValueError(
            f'how is {how!r}, but must be {known} or a number; what numpy.pad calls "wrap" is "periodic"'
        )
    is_name = isinstance(dims, str) and dims in field.dims
    names: Sequence[str] = field.dims if dims is None else [str(dims)] if is_name else [*dims]
    for name in names:
        if name not in field.dims:
            raise ValueError(
                f"dims has {name!r}, but the storage has {field.dims}; pass names of its dimensions, for example {field.dims[:1]}"
            )
        axis = field.dims.index(name)
        before = (slice(None),) * axis
        for targets, source in _runs(field.shape[axis], field.halo[axis], name, how):
            field[(*before, targets)] = how if source is None else field[(*before, source)]


def _runs(
    extent: int, halo: tuple[int, int], name: str, how: Any
) -> Iterator[tuple[slice, slice | int | None]]:
    """The points of the halo, and where their values are: as few slices as possible. None: the value itself."""
    lower, upper = halo
    count = extent - lower - upper
    for start, stop in ((0, lower), (extent - upper, extent)):
        if start == stop:
            continue
        if not isinstance(how, str):
            yield slice(start, stop), None
            continue
        if count == 0:
            raise ValueError(
                f"dimension {name} has a halo of {halo} and no point of a domain to fill it from; pass a number as `how`"
            )
        sources = [lower + _SOURCES[how](i - lower, count) for i in range(start, stop)]
        while sources:
            step = sources[1] - sources[0] if len(sources) > 1 else 1
            size = 1
            while size < len(sources) and sources[size] == sources[0] + size * step:
                size += 1
            first, last = sources[0], sources[0] + size * step
            source = slice(first, last if last >= 0 else None, step) if step else first
            yield slice(start, start + size), source
            start, sources = start + size, sources[size:]
