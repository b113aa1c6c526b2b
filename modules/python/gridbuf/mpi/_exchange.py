"""Halos filled from the neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..storage import Storage
from . import _depths, _fields, _ghex
from ._depths import Depth
from ._failures import together
from ._fields import Spec
from ._packed import PackedEngine
from ._regions import Depths, box_points, full_depths, neighbours

if TYPE_CHECKING:
    from ._decomposition import Decomposition

Engine = Literal["ghex", "mpi4py"]
_MOST_ENGINES = 64  # of one exchange; each has buffers for its messages


class _Offer(NamedTuple):
    """The request of a rank for an exchange; all ranks get all requests."""

    specs: tuple[Spec, ...]
    engine: str | None
    corners: bool
    without_ghex: str | None
    agrees: bool  # a field belongs to a decomposition


class _Made(NamedTuple):
    """An engine, and what one exchange of it sends to other ranks."""

    engine: PackedEngine | _ghex.GhexEngine
    messages: int
    sent_bytes: int


class HaloExchange(AbstractContextManager["HaloExchange"]):
    """Fill the halos of fields from the neighbours of a decomposition, as often as you call it.

    Making one and calling it are collective, in the same order on all ranks. If a field belongs to
    a decomposition (`Decomposition.adopt`), the ranks agree before each exchange on what is not
    valid yet, and send only that; else they send whole halos.
    Rules: docs/spec.md 9.52 to 9.61 and 9.81.

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
        Bytes that an exchange of whole halos sends to other ranks, without padding of messages.
    traffic : tuple of int
        The messages that all exchanges have sent to other ranks, and their bytes.

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
        self._grid, self._corners = grid, corners
        self._specs = offers[grid.rank].specs
        full = full_depths(self._specs)
        found = neighbours(grid, self._specs, full, corners=corners)
        self.neighbour_ranks: tuple[int, ...] = tuple(sorted({n.rank for n in found}))
        self.sent_bytes: int = self._sent(full)[1]
        self.traffic = (0, 0)
        self._orders = [spec.layout for spec in first.specs]
        self._pinned = not all(map(_fields.is_on_host, fields))
        self._alone = self._check_ghex(offers)
        # One for each depth that was exchanged, made on all ranks in the same order.
        self._engines: dict[tuple[Depths, ...], _Made] = {}
        self._agreement = _depths.Agreement(grid, self._specs)
        self._agrees = any(offer.agrees for offer in offers)
        self._steps: dict[tuple[int, ...], _Made | None] = {}
        self._made(tuple(full))
        self._pending: PendingExchange | None = None
        self._closed = False

    def _check_ghex(self, offers: Sequence[_Offer]) -> list[bool] | None:
        """Which fields GHEX sends alone; None if mpi4py sends."""
        first, specs = offers[0], self._specs
        with_ghex = not any(offer.without_ghex for offer in offers) and all(
            spec.layout == other.layout
            for offer in offers
            for spec, other in zip(first.specs, offer.specs, strict=True)
        )
        if first.engine == "ghex" and not with_ghex:
            raise ValueError(
                "engine='ghex' cannot serve: ranks have different layouts of a field; engine=None takes mpi4py instead"
            )
        if not with_ghex:
            return None
        return [any(1 in o.specs[n].shape for o in offers) for n in range(len(specs))]

    def _made_for(self, agreed: tuple[int, ...]) -> _Made | None:
        """What exchanges what the ranks have agreed on; None if all points are valid."""
        if agreed not in self._steps:
            made = self._step(self._agreement.depths(agreed))
            if len(self._steps) == _MOST_ENGINES:
                self._steps.clear()
            self._steps[agreed] = made
        return self._steps[agreed]

    def _step(self, depths: tuple[Depths, ...]) -> _Made | None:
        if all(first == last for ends in depths for end in ends for first, last in end):
            return None
        if self._alone is not None:  # GHEX sends all points up to a depth
            depths = tuple(
                tuple(((0, lower[1]), (0, upper[1])) for lower, upper in ends) for ends in depths
            )
        return self._made(depths)

    def _made(self, depths: tuple[Depths, ...]) -> _Made:
        """What exchanges from and to these depths."""
        made = self._engines.get(depths)
        if made is None:
            if len(self._engines) == _MOST_ENGINES:  # at the same time on all ranks
                self._close_engines()
            grid, specs = self._grid, self._specs
            engine: PackedEngine | _ghex.GhexEngine
            if self._alone is not None:
                widths = [tuple((lo[1], up[1]) for lo, up in ends) for ends in depths]
                engine = _ghex.GhexEngine(grid, specs, widths, self._alone)
            else:
                found = neighbours(grid, specs, depths, corners=self._corners)
                engine = PackedEngine(grid, specs, self._orders, found, pinned=self._pinned)
            made = self._engines[depths] = _Made(engine, *self._sent(depths))
        return made

    def _sent(self, depths: Sequence[Depths]) -> tuple[int, int]:
        """Messages to other ranks, and their bytes."""
        found = neighbours(self._grid, self._specs, depths, corners=self._corners)
        sends = [n.sends for n in found if n.rank != self._grid.rank and n.sends]
        return len(sends), sum(
            box_points(piece.box) * self._specs[piece.field].dtype.itemsize
            for pieces in sends
            for piece in pieces
        )

    @property
    def engine(self) -> str:
        """What sends: "ghex" or "mpi4py"."""
        return "mpi4py" if self._alone is None else "ghex"

    def __call__(self, *fields: Storage, depth: Depth = None) -> None:
        """Fills the halos of the fields: those of the constructor, or fields with the same properties. Collective.

        Takes what `start` takes.

        Raises:
          TypeError, ValueError: a field is not what the exchange was made for; no halo has changed.
          HaloExchangeError: a neighbour failed; halos on its side are undefined with GHEX and as they were with mpi4py.
        """
        self.start(*fields, depth=depth).wait()

    def start(self, *fields: Storage, depth: Depth = None) -> PendingExchange:
        """Send, and return at once; `wait` of the result fills the halos. Collective.

        Parameters
        ----------
        *fields : Storage
            The fields of the constructor, or fields with the same parameters.
        depth : int or sequence, optional
            How many points next to the domain are to be valid: a number for all fields, at most
            their halos, or for each field pairs (lower, upper) per dimension. Ranks that differ get
            the most. Default: the whole halos. Only of fields of a decomposition.

        Returns
        -------
        PendingExchange
            Call its `wait`.

        Raises
        ------
        TypeError
            A field is not a storage.
        ValueError
            A field is not what the exchange was made for, or the depth is not one.
        HaloExchangeError
            The arguments of another rank are refused. Of fields of a decomposition nothing was
            sent.
        RuntimeError
            The exchange is closed, or another one is under way.

        Notes
        -----
        Until then, do not read or write the halos. You may read and write the domain. After an
        error there is nothing to wait for. Rules: docs/spec.md 9.54, 9.81.
        """
        self._refuse_if_unusable()

        def checked() -> Sequence[Storage]:
            self._check(fields)
            if depth is not None and not self._agrees:
                raise ValueError(
                    f"depth is {depth!r}, but must be left out of an exchange that was made for fields of no decomposition: "
                    "its ranks do not agree on depths; pass the fields to Decomposition.adopt first"
                )
            return fields

        if self._agrees:
            agreed, found = self._agreement.agreed(checked, depth)
            made = self._made_for(agreed)
            finish = made.engine.start(lambda: fields) if made is not None else None
        else:
            made = self._made(tuple(full_depths(self._specs)))
            finish = made.engine.start(checked)
            agreed, found = self._agreement.nothing, self._agreement.found(fields)
        if made is not None:
            self.traffic = self.traffic[0] + made.messages, self.traffic[1] + made.sent_bytes
            expected = self._agreement.expected(agreed, found, self._corners)
            for field, pairs in zip(fields, expected, strict=True):
                field._expect_halo(pairs)
        self._pending = PendingExchange(self, fields, finish)
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
            self._close_engines()

    def _close_engines(self) -> None:
        for made in self._engines.values():
            made.engine.close()
        self._engines.clear()
        self._steps.clear()

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
    finish : callable or None
        What ends it; None if all points were valid.

    Notes
    -----
    Rules: docs/spec.md 9.54.
    """

    def __init__(
        self,
        exchange: HaloExchange,
        fields: Sequence[Storage],
        finish: Callable[[Sequence[Any]], None] | None,
    ) -> None:
        """Made by `HaloExchange.start`."""
        self._exchange = exchange
        self._fields = fields
        self._finish = finish
        self._is_over = False
        _under_way.add(self)

    def wait(self) -> None:
        """Wait until the halos are filled. A second call has no effect (docs/spec.md 9.54).

        Raises
        ------
        HaloExchangeError
            A neighbour failed.
        """
        if self._is_over:
            return
        self._is_over = True
        self._exchange._pending = None
        _under_way.discard(self)
        if self._finish is None:
            return
        expected = [field._expected_halo() for field in self._fields]
        self._finish(self._fields)
        for field, depth in zip(self._fields, expected, strict=True):
            field._halo_arrives(depth)


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
    return _Offer(specs, engine, corners, reason, any(f._halo_check >= 0 for f in fields))
