"""Halos filled from the neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..storage import Storage
from . import _fields, _ghex
from ._failures import together
from ._fields import Spec
from ._packed import PackedEngine
from ._regions import Neighbour, box_points, neighbours

if TYPE_CHECKING:
    from ._decomposition import Decomposition

Engine = Literal["ghex", "mpi4py"]


class _Offer(NamedTuple):
    """The request of a rank for an exchange; all ranks get all requests."""

    specs: tuple[Spec, ...]
    engine: str | None
    corners: bool
    without_ghex: str | None


class HaloExchange(AbstractContextManager["HaloExchange"]):
    """Fill the halos of fields from the neighbours of a decomposition, as often as you call it.

    Making one and calling it are collective, in the same order on all ranks.
    Rules: docs/spec.md 9.52 to 9.61.

    Parameters
    ----------
    grid : Decomposition
        Which rank has which part.
    *fields : Storage
        Storages of this rank's part, in the order of later calls. Only their dims, shape, halo and
        dtype are kept, and with GHEX the layout.
    engine : {"ghex", "mpi4py"}, optional
        What sends. Default: GHEX if every rank has it and it can take the fields, else mpi4py.
    corners : bool, default True
        Whether diagonal neighbours exchange, too. Without them (mpi4py only) corners of the halo
        keep their values.

    Attributes
    ----------
    engine : str
        "ghex" or "mpi4py".
    neighbour_ranks : tuple of int
        The ranks that this one exchanges with. It is one of them where a periodic dimension is
        whole.
    sent_bytes : int
        Bytes that one exchange sends to other ranks, without padding of messages.

    Raises
    ------
    TypeError
        A field is not a storage.
    ValueError
        Extents, halos or dtypes do not fit the decomposition, or differ between ranks. A field with
        dimensions of the decomposition has no halo along any of them. The message has the field,
        the dimension, the wanted and the found value.
    ImportError
        `engine` is "ghex", and there is no GHEX.
    HaloExchangeError
        Another rank raised one of these.

    Examples
    --------
    >>> exchange = gridbuf.mpi.HaloExchange(grid, u)
    >>> exchange(u)
    """

    def __init__(
        self,
        grid: Decomposition,
        *fields: Storage,
        engine: Engine | None = None,
        corners: bool = True,
    ) -> None:
        offers = together(grid.comm, lambda: _offer(grid, fields, engine, corners))
        first = offers[0]
        for rank, other in enumerate(offers):
            if other[1:3] != first[1:3]:
                raise ValueError(
                    f"rank {rank} asks for engine={other.engine!r}, corners={other.corners}, but rank 0 for "
                    f"engine={first.engine!r}, corners={first.corners}"
                )
            _fields.check_ranks_agree(grid.ranks, first.specs, other.specs, rank)
        self._grid = grid
        self._specs = offers[grid.rank].specs
        found = neighbours(grid, self._specs, corners=corners)
        self.neighbour_ranks: tuple[int, ...] = tuple(sorted({n.rank for n in found}))
        self.sent_bytes: int = sum(
            box_points(piece.box) * self._specs[piece.field].dtype.itemsize
            for n in found
            if n.rank != grid.rank
            for piece in n.sends
        )
        self._engine = self._make_engine(offers, found, fields)
        self._pending: PendingExchange | None = None
        self._closed = False

    def _make_engine(
        self, offers: Sequence[_Offer], found: list[Neighbour], fields: Sequence[Storage]
    ) -> PackedEngine | _ghex.GhexEngine:
        first, grid, specs = offers[0], self._grid, self._specs
        with_ghex = not any(offer.without_ghex for offer in offers) and all(
            spec.layout == other.layout
            for offer in offers
            for spec, other in zip(first.specs, offer.specs, strict=True)
        )
        if first.engine == "ghex" and not with_ghex:
            raise ValueError(
                "engine='ghex' cannot serve: ranks have different layouts of a field; engine=None takes mpi4py instead"
            )
        if with_ghex:
            alone = [any(1 in o.specs[n].shape for o in offers) for n in range(len(specs))]
            return _ghex.GhexEngine(grid, specs, alone)
        orders = [spec.layout for spec in first.specs]
        pinned = not all(map(_fields.is_on_host, fields))
        return PackedEngine(grid, specs, orders, found, pinned=pinned)

    @property
    def engine(self) -> str:
        """What sends: "ghex" or "mpi4py"."""
        return self._engine.name

    def __call__(self, *fields: Storage) -> None:
        """Fills the halos of the fields: those of the constructor, or fields with the same properties. Collective.

        Raises:
          TypeError, ValueError: a field is not what the exchange was made for; no halo has changed.
          HaloExchangeError: a neighbour failed; halos on its side are undefined with GHEX and as they were with mpi4py.
        """
        self.start(*fields).wait()

    def start(self, *fields: Storage) -> PendingExchange:
        """Send, and return at once; `wait` of the result fills the halos. Collective.

        Parameters
        ----------
        *fields : Storage
            The fields of the constructor, or fields with the same parameters.

        Returns
        -------
        PendingExchange
            Call its `wait`.

        Raises
        ------
        TypeError
            A field is not a storage.
        ValueError
            A field is not what the exchange was made for.
        RuntimeError
            The exchange is closed, or another one is under way.

        Notes
        -----
        Until then, do not read or write the halos. You may read and write the domain. After an
        error there is nothing to wait for. Rules: docs/spec.md 9.54.
        """
        self._refuse_if_unusable()

        def checked() -> Sequence[Storage]:
            self._check(fields)
            return fields

        self._pending = PendingExchange(self, fields, self._engine.start(checked))
        return self._pending

    def close(self) -> None:
        """Give MPI's resources back; the exchange cannot be used after this (docs/spec.md 9.61).

        The end of a `with` block does it, too.

        Raises
        ------
        RuntimeError
            An exchange is under way; wait for it first.
        """
        if not self._closed:
            self._refuse_if_unusable()
            self._closed = True
            self._engine.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"HaloExchange({len(self._specs)} fields, engine={self.engine!r}, with ranks {self.neighbour_ranks}, "
            f"{self.sent_bytes} bytes sent)"
        )

    def _refuse_if_unusable(self) -> None:
        if self._closed:
            raise RuntimeError("this HaloExchange is closed; make another one")
        if self._pending is not None:
            raise RuntimeError(
                "this HaloExchange has started and its wait() was not called yet; wait for it, or make another HaloExchange"
            )

    def _check(self, fields: Sequence[Storage]) -> None:
        if len(fields) != len(self._specs):
            raise ValueError(
                f"the exchange was made for {len(self._specs)} fields and is called with {len(fields)}"
            )
        for number, (wanted, field) in enumerate(zip(self._specs, fields, strict=True)):
            _fields.check_field(wanted, _fields.spec_of(field, number))
            _fields.check_writable(field, number)


_under_way: set[PendingExchange] = set()
"""Exchanges without a `wait`: MPI writes to their memory, so they are kept."""


class PendingExchange:
    """An exchange under way; `HaloExchange.start` returns it, and `wait` ends it.

    Parameters
    ----------
    exchange : HaloExchange
        The exchange.
    fields : sequence of Storage
        Its fields.
    finish : callable
        What ends it.

    Notes
    -----
    Rules: docs/spec.md 9.54.
    """

    def __init__(
        self,
        exchange: HaloExchange,
        fields: Sequence[Storage],
        finish: Callable[[Sequence[Any]], None],
    ) -> None:
        """Made by `HaloExchange.start`."""
        self._exchange = exchange
        self._fields = fields
        self._finish: Callable[[Sequence[Any]], None] | None = finish
        _under_way.add(self)

    def wait(self) -> None:
        """Wait until the halos are filled. A second call has no effect (docs/spec.md 9.54).

        Raises
        ------
        HaloExchangeError
            A neighbour failed.
        """
        if self._finish is None:
            return
        finish, self._finish = self._finish, None
        self._exchange._pending = None
        _under_way.discard(self)
        finish(self._fields)


def _offer(
    grid: Decomposition,
    fields: Sequence[Storage],
    engine: str | None,
    corners: bool,
) -> _Offer:
    if engine not in (None, "ghex", "mpi4py"):
        raise ValueError(f"engine is {engine!r}, but must be 'ghex', 'mpi4py' or None")
    if not fields:
        raise ValueError("there is no field; name those whose halos are to be filled")
    specs = tuple(_fields.spec_of(field, number) for number, field in enumerate(fields))
    for spec, field in zip(specs, fields, strict=True):
        _fields.check_writable(field, spec.number)
        _fields.check_extents(grid, spec)
        _fields.check_widths(grid, spec)
        _fields.check_has_halo(grid, spec)
    reason = (
        "engine='mpi4py'" if engine == "mpi4py" else _ghex.why_not(grid, specs, fields, corners)
    )
    if engine == "ghex" and reason is not None:
        kind = ImportError if reason.startswith(_ghex.NOT_INSTALLED) else ValueError
        raise kind(f"engine='ghex' cannot serve: {reason}; engine=None takes mpi4py instead")
    return _Offer(specs, engine, corners, reason)
