"""The properties of a field that an exchange uses, and access to its memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..storage import CPUStorage, CUDAManagedGPUStorage, Storage

if TYPE_CHECKING:
    from ._decomposition import Decomposition

Box = tuple[slice, ...]
"""Indices of a box of a field, from 0 at the first point of its halo."""


class Spec(NamedTuple):
    """The properties that must not change between exchanges. Two ranks agree on them, except on the extents that are cut."""

    number: int
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    halo: tuple[tuple[int, int], ...]
    dtype: np.dtype[Any]
    layout: tuple[int, ...]

    @property
    def domain(self) -> tuple[int, ...]:
        """The extents without halo."""
        return tuple(n - lo - up for n, (lo, up) in zip(self.shape, self.halo, strict=True))


def names_of(dims: str | Sequence[str] | None, ndim: int) -> tuple[str, ...]:
    """The names that the layout of an array with these `dims` has, default ones for None; checked by the core."""
    names: tuple[str, ...] = _core.plan((1,) * ndim, dims=dims).dims
    return names


def spec_of(field: object, number: int) -> Spec:
    """The properties of the field at this position among the arguments of an exchange.

    Raises:
      TypeError: it is not a storage.
    """
    if not isinstance(field, Storage):
        raise TypeError(
            f"field {number} is a {type(field).__name__}, but must be a storage, which has dims and a halo; wrap it: "
            "gridbuf.storage.as_storage(array, dims=…, halo=…)"
        )
    return Spec(number, field.dims, field.shape, field.halo, field.dtype, field.layout)


def check_writable(field: Storage, number: int) -> None:
    """The field can be written, because its halo is.

    Raises:
      ValueError: the memory of the field is read-only.
    """
    if field._readonly:
        raise ValueError(
            f"field {number} is read-only, but its halo is to be written; pass a storage over memory that may be written, "
            "or a copy"
        )


def check_extents(grid: Decomposition, spec: Spec) -> None:
    """Each dimension that is cut has the points of this rank's part, and its halo.

    Raises:
      ValueError: naming field, dimension, wanted and found.
    """
    for dim, extent, (lower, upper) in zip(spec.dims, spec.shape, spec.halo, strict=True):
        if dim in grid.local_extents and extent != lower + grid.local_extents[dim] + upper:
            raise ValueError(
                f"field {spec.number}, dimension {dim!r}: the extent must be {lower + grid.local_extents[dim] + upper} on rank "
                f"{grid.rank} (halo {lower} + {grid.local_extents[dim]} points + halo {upper}), but is {extent}; "
                "Decomposition.local_shape returns it for any field"
            )


def check_widths(grid: Decomposition, spec: Spec) -> None:
    """No halo is wider than the part that fills it.

    Raises:
      ValueError: naming field, dimension, wanted and found. Equal on every rank, because it follows from what all ranks have.
    """
    for dim, (lower, upper) in zip(spec.dims, spec.halo, strict=True):
        if dim not in grid.sizes or (grid.ranks[dim] == 1 and not grid.periodic[dim]):
            continue
        least = min(grid.sizes[dim])
        if max(lower, upper) > least:
            raise ValueError(
                f"field {spec.number}, dimension {dim!r}: the halo must be at most {least}, the points of the smallest part, but "
                f"is {(lower, upper)}; use fewer ranks along {dim!r} or a narrower halo"
            )


def check_has_halo(grid: Decomposition, spec: Spec) -> None:
    """There is a halo to fill, if the field has a dimension of the decomposition.

    Raises:
      ValueError: naming field, dimensions, wanted and found. Equal on every rank, however many there are.
    """
    cut = {dim: pair for dim, pair in zip(spec.dims, spec.halo, strict=True) if dim in grid.sizes}
    if cut and not any(map(any, cut.values())):
        dims = ", ".join(map(repr, cut))
        raise ValueError(
            f"field {spec.number}, dimensions {dims}: the halo must have at least 1 point, which the exchange fills, but is "
            f"{tuple(cut.values())}; make the field with halo= and the extents of Decomposition.local_shape(shape, halo=…)"
        )


def check_field(wanted: Spec, found: Spec) -> None:
    """A field of a later exchange has the properties that the exchange was made for. Its layout may differ.

    Raises:
      ValueError: naming field, dimension, wanted and found.
    """
    for what, want, have in _differences(wanted, found):
        raise ValueError(
            f"field {wanted.number}{what} must be {want}, as when the exchange was made, but is {have}; make another "
            "HaloExchange for such fields"
        )


def check_ranks_agree(
    cut: Mapping[str, int], first: Sequence[Spec], other: Sequence[Spec], rank: int
) -> None:
    """Two ranks exchange the same fields: number, dims, dtypes, halos, and extents of dimensions that are not cut.

    Raises:
      ValueError: naming rank, field, dimension, wanted and found. Equal on every rank.
    """
    if len(first) != len(other):
        raise ValueError(f"rank {rank} exchanges {len(other)} fields, but rank 0 {len(first)}")
    for wanted, found in zip(first, other, strict=True):
        for what, want, have in _differences(wanted, found, cut):
            hint = "; the decomposition does not cut this dimension" if "extent" in what else ""
            raise ValueError(
                f"rank {rank}, field {wanted.number}{what} must be {want}, as on rank 0, but is {have}{hint}"
            )


def _differences(
    wanted: Spec, found: Spec, may_differ: Collection[str] = ()
) -> Iterator[tuple[str, Any, Any]]:
    """What differs between two fields, in words, wanted and found. Extents of the dimensions `may_differ` are not compared."""
    for what in ("dims", "dtype"):
        if getattr(wanted, what) != getattr(found, what):
            yield f": {what}", getattr(wanted, what), getattr(found, what)
    for axis, dim in enumerate(wanted.dims):
        if dim not in may_differ and wanted.shape[axis] != found.shape[axis]:
            yield f", dimension {dim!r}: the extent", wanted.shape[axis], found.shape[axis]
        if wanted.halo[axis] != found.halo[axis]:
            yield f", dimension {dim!r}: the halo", wanted.halo[axis], found.halo[axis]


def is_on_host(field: Storage) -> bool:
    """Whether the host can read and write the field's memory at any time, without a copy or a wait."""
    return isinstance(field, CPUStorage | CUDAManagedGPUStorage)


def copied_domain(field: Storage) -> npt.NDArray[Any]:
    """The points of the domain, copied to the host."""
    view = field.domain_view
    values = np.empty(view.shape, view.dtype)
    _core.copyto(values, view._own_memory())
    return values
