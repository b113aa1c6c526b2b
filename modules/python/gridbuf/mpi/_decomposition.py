"""The parts of a grid, one for each rank."""

from __future__ import annotations

import itertools
import math
import operator
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from .._dims import pairs_of
from ..call._halos import HaloCheck, check_number
from ..storage import Storage
from ..storage import zeros as storage_zeros
from . import _fields
from ._depths import Depth, has_neighbour
from ._failures import together
from ._libraries import mpi_module

if TYPE_CHECKING:
    from ._exchange import HaloExchange

Halo = Sequence[SupportsIndex | Sequence[SupportsIndex]]
Shape = Sequence[SupportsIndex]
_WORD = 2**64


class Decomposition(AbstractContextManager["Decomposition"]):
    """A grid cut into boxes, one per rank of an MPI communicator (docs/spec.md 9.50).

    Making one is collective. A `with` block closes it at its end.

    Parameters
    ----------
    extents : mapping of str to int
        Points of the whole grid along each dimension that is cut, by its name, without halos.
    ranks : mapping of str to int, optional
        How many parts these dimensions have. Those that you do not name are chosen, as even as
        possible (`MPI_Dims_create`). The product must be the size of the communicator. Default: all
        are chosen.
    periodic : iterable of str, default ()
        Names of the dimensions whose last point has the first one as its neighbour.
    sizes : mapping of str to sequence of int, optional
        Points of each part of a dimension. Default: the parts differ by one point at most, the
        larger ones first.
    comm : mpi4py.MPI.Intracomm, optional
        The communicator, which is duplicated. Default: `MPI.COMM_WORLD`.
    halo_check : {"raise", "exchange", "warn", "off"}, default "raise"
        What happens when a stencil reads a halo of one of its fields deeper than it is valid
        (`gridbuf.set_halo_check`). Its fields are those that it makes or adopts.
    shared : bool, default False
        Whether ranks of the same node read halos of fields on the host from each other's memory
        (`memory="shared"`) instead of through MPI. GHEX does not send then.

    Attributes
    ----------
    dims : tuple of str
        Names of the dimensions that are cut.
    extents, ranks, periodic, sizes : mapping by name
        The whole grid, in points and parts.
    coordinates, local_extents, starts : mapping by name
        Which part this rank has, its points, and its first point.
    comm : mpi4py.MPI.Intracomm
        The communicator, with the ranks in C order of `dims`.
    rank, size : int
        This rank, and the number of ranks.

    Raises
    ------
    ImportError
        There is no mpi4py.
    TypeError
        `comm` is not an intracommunicator.
    ValueError
        The extents, ranks or sizes do not fit, or differ between ranks.

    Examples
    --------
    >>> import gridbuf.mpi
    >>> grid = gridbuf.mpi.Decomposition({"I": 128, "J": 96}, periodic="I")
    """

    def __init__(
        self,
        extents: Mapping[str, SupportsIndex],
        *,
        ranks: Mapping[str, SupportsIndex] | None = None,
        periodic: Iterable[str] = (),
        sizes: Mapping[str, Sequence[SupportsIndex]] | None = None,
        comm: Any = None,
        halo_check: HaloCheck = "raise",
        shared: bool = False,
    ) -> None:
        MPI = mpi_module()  # noqa: N806 (its name)
        world = MPI.COMM_WORLD if comm is None else comm
        if not isinstance(world, MPI.Intracomm):
            raise TypeError(f"comm is {comm!r}, but must be an intracommunicator of mpi4py")

        def describe() -> tuple[Any, ...]:
            whole = _positive("extents", extents)
            if not whole:
                raise ValueError("extents is empty; name one dimension at least, as {'I': 128}")
            cut = _parts(whole, dict(ranks or {}), sizes or {}, world.Get_size(), MPI.Compute_dims)
            if not isinstance(shared, bool):
                raise TypeError(f"shared is {shared!r}, but must be a bool; pass True or False")
            return whole, _chosen(periodic, whole), cut, shared

        described = together(world, describe)
        for rank, other in enumerate(described):
            if other != described[0]:
                raise ValueError(
                    f"rank {rank} has the decomposition {other} and rank 0 {described[0]}; all ranks must ask for the same"
                )
        whole, periods, cut, _ = described[world.Get_rank()]
        self.dims: tuple[str, ...] = tuple(whole)
        self.extents: Mapping[str, int] = MappingProxyType(whole)
        self.periodic: Mapping[str, bool] = MappingProxyType(periods)
        self.sizes: Mapping[str, tuple[int, ...]] = MappingProxyType(cut)
        self.ranks: Mapping[str, int] = MappingProxyType({d: len(cut[d]) for d in whole})
        self.comm: Any = world.Dup()
        self._node: Any = self.comm.Split_type(MPI.COMM_TYPE_SHARED) if shared else None
        self.rank: int = world.Get_rank()
        self.size: int = world.Get_size()
        self.coordinates: Mapping[str, int] = MappingProxyType(self.coordinates_of(self.rank))
        self.local_extents: Mapping[str, int] = MappingProxyType(
            {d: cut[d][c] for d, c in self.coordinates.items()}
        )
        self.starts: Mapping[str, int] = MappingProxyType(
            {d: sum(cut[d][:c]) for d, c in self.coordinates.items()}
        )
        self._exchanges = 0
        self._number = next(_numbers)
        self._halo_check = check_number(self._number, halo_check)
        self._made_exchanges: dict[Any, HaloExchange] = {}
        _alive[self._number] = self

    def __repr__(self) -> str:
        cut = ", ".join(
            f"{d}: {n} in {self.ranks[d]}{', periodic' if self.periodic[d] else ''}"
            for d, n in self.extents.items()
        )
        return f"Decomposition({cut}; rank {self.rank} of {self.size} at {dict(self.coordinates)})"

    def coordinates_of(self, rank: int) -> dict[str, int]:
        """Return the position of a rank's part among the parts of each dimension.

        Parameters
        ----------
        rank : int
            A rank of `comm`.

        Returns
        -------
        dict of str to int
            The position by name.

        Raises
        ------
        ValueError
            There is no such rank.

        Notes
        -----
        Rules: docs/spec.md 9.50.
        """
        if not 0 <= rank < self.size:
            raise ValueError(f"rank is {rank}, but must be in [0, {self.size})")
        place = np.unravel_index(rank, tuple(self.ranks.values()))
        return dict(zip(self.dims, map(int, place), strict=True))

    def neighbour(self, offset: Mapping[str, int]) -> int | None:
        """Return the rank that is so many parts further along the named dimensions.

        Parameters
        ----------
        offset : mapping of str to int
            Numbers of parts, by name.

        Returns
        -------
        int or None
            The rank; None past an end that is not periodic.

        Raises
        ------
        ValueError
            A dimension is not cut.

        Notes
        -----
        Rules: docs/spec.md 9.51.
        """
        place = dict(self.coordinates)
        for dim, steps in offset.items():
            if dim not in place:
                raise ValueError(f"offset names {dim!r}, but only {self.dims} are decomposed")
            moved = place[dim] + steps
            if self.periodic[dim]:
                moved %= self.ranks[dim]
            if not 0 <= moved < self.ranks[dim]:
                return None
            place[dim] = moved
        return int(np.ravel_multi_index(tuple(place.values()), tuple(self.ranks.values())))

    def local_shape(
        self,
        shape: Sequence[SupportsIndex],
        *,
        dims: str | Sequence[str] | None = None,
        halo: Halo | None = None,
    ) -> tuple[int, ...]:
        """Return the shape of this rank's storage, with its halo (docs/spec.md 9.51).

        Parameters
        ----------
        shape : sequence of int
            Extents of the whole field in elements, without halo.
        dims : str or sequence of str, optional
            Names of the dimensions. Default: I, J, K, 0, 1, ...
        halo : sequence of int or of pair, optional
            Points around the domain, per dimension. Default: no halo.

        Returns
        -------
        tuple of int
            Extents in elements.

        Raises
        ------
        ValueError
            An extent is not that of the decomposition.
        """
        whole = tuple(operator.index(n) for n in shape)
        names = _fields.names_of(dims, len(whole))
        widths = pairs_of(halo, len(whole))
        for dim, extent in zip(names, whole, strict=True):
            if self.extents.get(dim, extent) != extent:
                raise ValueError(
                    f"dimension {dim!r}: shape has the extent {extent}, but the decomposition {self.extents[dim]}; pass the "
                    "shape of the whole field, without halo"
                )
        return tuple(
            lower + self.local_extents.get(dim, extent) + upper
            for dim, extent, (lower, upper) in zip(names, whole, widths, strict=True)
        )

    def zeros(self, shape: Shape, dtype: npt.DTypeLike = "float64", **keywords: Any) -> Storage:
        """Make this rank's part of a field, filled with zeros (docs/spec.md 9.81).

        Parameters
        ----------
        shape : sequence of int
            Extents of the whole field in elements, without halo.
        dtype : dtype_like, default "float64"
            The element type.
        **keywords
            As of `gridbuf.storage.zeros`: dims, halo, backend and more.

        Returns
        -------
        Storage
            It belongs to the decomposition (`adopt`).

        Raises
        ------
        ValueError
            An extent is not that of the decomposition, or the error of `gridbuf.storage.zeros`.
        """
        local = self.local_shape(shape, dims=keywords.get("dims"), halo=keywords.get("halo"))
        return self.adopt(storage_zeros(local, dtype, **keywords))

    def adopt(self, field: Storage) -> Storage:
        """Make a storage one of the decomposition's fields (docs/spec.md 9.81).

        Ends of its halo without a neighbour are the program's and always valid, as are those of
        dimensions that are not cut. Reading another end deeper than it is valid is what
        `halo_check` says.

        Parameters
        ----------
        field : Storage
            This rank's part of a field.

        Returns
        -------
        Storage
            The field.

        Raises
        ------
        TypeError
            It is not a storage.
        ValueError
            The extents are not those of the decomposition, or it is a view of a part.
        """
        spec = _fields.spec_of(field, 0)
        _fields.check_extents(self, spec)
        ends = [
            (axis, end)
            for axis, dim in enumerate(spec.dims)
            for end in (0, 1)
            if not has_neighbour(self, dim, end)
        ]
        field._close_halo(ends, self._halo_check)
        return field

    def exchange(self, *fields: Storage, depth: Depth = None) -> None:
        """Fill halos with the neighbours' values, in one exchange. Collective.

        The same as a `HaloExchange` for these fields, which is made once for fields with the same
        parameters.

        Parameters
        ----------
        *fields : Storage
            This rank's parts.
        depth : int or sequence, optional
            As of `HaloExchange.start`.

        Raises
        ------
        TypeError, ValueError, HaloExchangeError
            As of `HaloExchange`.

        Notes
        -----
        Rules: docs/spec.md 9.81.
        """
        from ._exchange import HaloExchange

        specs = tuple(_fields.spec_of(field, n) for n, field in enumerate(fields))
        key = specs, any(field._halo_check >= 0 for field in fields)
        if key not in self._made_exchanges:
            self._made_exchanges[key] = HaloExchange(self, *fields)
        self._made_exchanges[key](*fields, depth=depth)

    @property
    def traffic(self) -> tuple[int, int]:
        """Messages that `exchange` has sent to other ranks, and their bytes."""
        sent = [exchange.traffic for exchange in self._made_exchanges.values()]
        return sum(messages for messages, _ in sent), sum(volume for _, volume in sent)

    def slices(self, dims: str | Sequence[str], rank: int | None = None) -> tuple[slice, ...]:
        """Return where a rank's part is in an array of the whole grid.

        Parameters
        ----------
        dims : str or sequence of str
            Names of the dimensions of the array.
        rank : int, optional
            A rank of `comm`. Default: this rank.

        Returns
        -------
        tuple of slice
            The index of the part.

        Raises
        ------
        ValueError
            There is no such rank.

        Notes
        -----
        `field.domain_view[...] = whole[grid.slices(field.dims)]` gives a storage its part. Rules:
        docs/spec.md 9.51.
        """
        place = self.coordinates if rank is None else self.coordinates_of(rank)
        return tuple(
            slice(sum(self.sizes[d][: place[d]]), sum(self.sizes[d][: place[d] + 1]))
            if d in place
            else slice(None)
            for d in dims
        )

    def gather(self, field: Storage, *, root: int = 0) -> npt.NDArray[Any] | None:
        """Collect the whole field on one rank, without halos. Collective (docs/spec.md 9.51).

        Parameters
        ----------
        field : Storage
            This rank's part.
        root : int, default 0
            The rank that gets the field.

        Returns
        -------
        numpy.ndarray or None
            The field on `root`, None on the other ranks.

        Raises
        ------
        ValueError
            The extents are not those of the decomposition, or the parts differ in dims or dtype.
        HaloExchangeError
            A field on another rank was refused.
        """
        together(self.comm, lambda: _fields.check_extents(self, _fields.spec_of(field, 0)))
        part = np.ascontiguousarray(_fields.copied_domain(field))
        parts = self.comm.gather((field.dims, part), root=root)
        if parts is None:
            return None
        shape = [self.extents.get(d, n) for d, n in zip(field.dims, part.shape, strict=True)]
        whole = np.empty(shape, field.dtype)
        for rank, (dims, values) in enumerate(parts):
            if dims != field.dims or values.dtype != field.dtype:
                raise ValueError(
                    f"rank {rank} has a field over {dims} of {values.dtype}, but rank {root} one over {field.dims} of "
                    f"{field.dtype}"
                )
            whole[self.slices(dims, rank)] = values
        return whole

    def digest(self, *fields: Storage) -> tuple[str, ...]:
        """Return the digests of whole fields, which no decomposition changes. Collective.

        Parameters
        ----------
        *fields : Storage
            This rank's parts.

        Returns
        -------
        tuple of str
            For each field, on each rank, the `gridbuf.digest` of the whole field without halos.

        Raises
        ------
        ValueError
            The extents are not those of the decomposition, or the parts differ in dims or dtype.
        HaloExchangeError
            A field on another rank was refused.

        Notes
        -----
        One collective call for all fields. Indices count from 0 at the first point of the whole grid, also where a field knows
        others. Of a field without a dimension that is cut, the ranks with the first part of that dimension count. Rules:
        docs/spec.md 9.85.
        """

        def here() -> tuple[list[str], list[int]]:
            kinds, digests = [], []
            for number, field in enumerate(fields):
                _fields.check_extents(self, _fields.spec_of(field, number))
                first = tuple(part.start or 0 for part in self.slices(field.dims))
                is_copy = any(at and d not in field.dims for d, at in self.coordinates.items())
                digests.append(0 if is_copy else int(field._digest(first), 16))
                kinds.append(f"{sorted(field.dims)} of {field.dtype}")
            return kinds, digests

        everyone = together(self.comm, here)
        for rank, (kinds, _) in enumerate(everyone):
            if kinds != everyone[0][0]:
                raise ValueError(
                    f"rank {rank} has fields with the dims {kinds} and rank 0 {everyone[0][0]}; pass parts of the same fields"
                )
        wholes = []
        for parts in zip(*(digests for _, digests in everyone), strict=True):
            high = sum(part >> 64 for part in parts) % _WORD
            wholes.append(f"{high:016x}{sum(parts) % _WORD:016x}")
        return tuple(wholes)

    def close(self) -> None:
        """Give the communicator back to MPI, which has some thousands. Collective.

        Its exchanges cannot be used after this. The end of a `with` block does it, too
        (docs/spec.md 9.61).
        """
        for exchange in self._made_exchanges.values():
            exchange.close()
        if self._node is not None:
            self._node.Free()
        self.comm.Free()

    def __exit__(self, *error: object) -> None:
        # After an error other ranks may be elsewhere, and this one would wait for them here.
        if error[0] is None:
            self.close()

    def _next_exchange(self) -> int:
        """A number that all ranks agree on, because they make their exchanges in the same order."""
        self._exchanges += 1
        return self._exchanges - 1


_numbers = itertools.count()
_alive: weakref.WeakValueDictionary[int, Decomposition] = weakref.WeakValueDictionary()


def by_number(number: int) -> Decomposition:
    """The decomposition that a field belongs to.

    Raises:
      RuntimeError: it is gone.
    """
    found = _alive.get(number)
    if found is None:
        raise RuntimeError("the decomposition of this field is gone; keep it, or adopt the field")
    return found


def _positive(name: str, values: Mapping[str, SupportsIndex]) -> dict[str, int]:
    """A mapping of names of dimensions to integers of 1 at least."""
    _fields.names_of(tuple(values), len(values))
    numbers = {d: operator.index(n) for d, n in values.items()}
    for dim, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name}[{dim!r}] is {number}, but must be at least 1")
    return numbers


def _chosen(periodic: Iterable[str], extents: Mapping[str, int]) -> dict[str, bool]:
    is_name = isinstance(periodic, str) and periodic in extents
    names = (periodic,) if is_name else tuple(periodic)
    for name in names:
        if name not in extents:
            raise ValueError(f"periodic names {name!r}, but the decomposition has {tuple(extents)}")
    return {dim: dim in names for dim in extents}


def _parts(
    extents: Mapping[str, int],
    ranks: dict[str, SupportsIndex],
    sizes: Mapping[str, Sequence[SupportsIndex]],
    count: int,
    compute_dims: Any,
) -> dict[str, tuple[int, ...]]:
    """The points of each part, by dimension."""
    fixed = _positive("ranks", ranks)
    given = {dim: tuple(operator.index(n) for n in parts) for dim, parts in sizes.items()}
    for name, mapping in (("ranks", fixed), ("sizes", given)):
        for dim in mapping:
            if dim not in extents:
                raise ValueError(
                    f"{name} names {dim!r}, but the decomposition has {tuple(extents)}"
                )
    for dim, parts in given.items():
        if min(parts, default=0) < 1 or sum(parts) != extents[dim]:
            raise ValueError(
                f"sizes[{dim!r}] is {parts}, with the sum {sum(parts)}, but must be parts of at least 1 point with the sum "
                f"{extents[dim]}"
            )
        if fixed.setdefault(dim, len(parts)) != len(parts):
            raise ValueError(
                f"sizes[{dim!r}] has {len(parts)} parts, but ranks[{dim!r}] is {fixed[dim]}"
            )
    number = math.prod(fixed.values())
    if count % number or (len(fixed) == len(extents) and count != number):
        raise ValueError(
            f"ranks asks for {fixed}, {number} parts, but the communicator has {count} ranks; start as many, or leave a "
            "dimension out of ranks"
        )
    chosen = dict(
        zip(extents, compute_dims(count, [fixed.get(dim, 0) for dim in extents]), strict=True)
    )
    for dim, parts_wanted in chosen.items():
        if parts_wanted > extents[dim]:
            raise ValueError(
                f"dimension {dim!r} has {extents[dim]} points for {parts_wanted} ranks; each needs at least 1"
            )
    return {dim: given.get(dim) or _even(extents[dim], chosen[dim]) for dim in extents}


def _even(extent: int, count: int) -> tuple[int, ...]:
    """Parts that differ by one at most, the larger ones first."""
    least, more = divmod(extent, count)
    return (least + 1,) * more + (least,) * (count - more)
