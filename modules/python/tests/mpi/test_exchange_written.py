"""send="written" and send="marked": the halos are those of sending everything, bit for bit, and what is sent is what was written."""

from __future__ import annotations

import gc
import itertools

import gridbuf
import gridbuf.mpi
import gridbuf.storage
import gridbuf.testing
import numpy as np
import pytest
from on_ranks import on_ranks
from serial import part_of, whole_field, with_halos

ENGINES = ("mpi4py", "ghex")
HALO = ((2, 1), (1, 2), (0, 0))
SHAPE = (12, 10, 3)


def decomposed(periodic: str = "IJ", **ranks: int) -> gridbuf.mpi.Decomposition:
    return gridbuf.mpi.Decomposition(
        {"I": SHAPE[0], "J": SHAPE[1]}, ranks=ranks or {"I": 2}, periodic=periodic
    )


class Beside:
    """A field and its twin: what happens to the one happens to the other, whose exchange sends everything."""

    def __init__(self, grid, engine, send, *, count=1, dtype="float64", **keywords) -> None:
        wholes = [whole_field(SHAPE, dtype, seed) for seed in range(count)]
        self.fields = [part_of(grid, whole, "IJK", HALO, **keywords) for whole in wholes]
        self.twins = [part_of(grid, whole, "IJK", HALO) for whole in wholes]
        self.exchange = gridbuf.mpi.HaloExchange(grid, *self.fields, engine=engine, send=send)
        self.all = gridbuf.mpi.HaloExchange(grid, *self.twins, engine="mpi4py")

    def sent(self) -> tuple[int, int]:
        """Exchanges the fields and their twins, which must be equal then; bytes that were sent, and those of sending all."""
        before = self.exchange.statistics
        self.exchange(*self.fields)
        self.all(*self.twins)
        self.check()
        after = self.exchange.statistics
        return after.sent_bytes - before.sent_bytes, after.whole_bytes - before.whole_bytes

    def check(self) -> None:
        for field, twin in zip(self.fields, self.twins, strict=True):
            np.testing.assert_array_equal(values(field), twin.to_numpy())

    def write(self, key, value, number=0) -> None:
        for fields in (self.fields, self.twins):
            fields[number][key] = value


def values(field) -> np.ndarray:
    """A copy on the host, through which nobody can write the field."""
    return gridbuf.storage.storage(field, device=None).to_numpy()


@on_ranks(4, engine=ENGINES)
def test_what_was_not_written_is_not_sent(engine) -> None:
    grid = decomposed()
    pair = Beside(grid, engine, "written")
    sent, whole = pair.sent()
    assert sent == whole > 0, "the first time everything is sent"
    for _ in range(3):
        assert pair.sent()[0] == 0
    assert pair.exchange.statistics.whole_bytes == 4 * whole
    # The inner points are nobody's halo.
    pair.write(np.s_[4:-4, 4:-4], 7.0)
    assert pair.sent()[0] == 0
    pair.write(np.s_[...], 8.0 + grid.rank)
    assert pair.sent() == (whole, whole)


@on_ranks(4)
def test_messages_hold_the_boxes_that_were_written() -> None:
    """One point of the last domain row along I: it goes to the neighbour at +1 of I, and to nobody else."""
    grid = decomposed()
    pair = Beside(grid, "mpi4py", "written")
    pair.sent()
    before = pair.exchange.statistics
    if grid.rank == 1:
        pair.write(np.s_[-2, 4, 1:3], 5.0)
    sent, _ = pair.sent()
    assert sent == (2 * 8 if grid.rank == 1 else 0)
    after = pair.exchange.statistics
    assert after.messages - before.messages == 8
    assert after.empty_messages - before.empty_messages == (7 if grid.rank == 1 else 8)


@on_ranks(4)
def test_ghex_exchanges_the_fields_that_some_rank_wrote() -> None:
    grid = decomposed()
    pair = Beside(grid, "ghex", "written", count=3)
    _, whole = pair.sent()
    if grid.rank == 2:
        pair.write(np.s_[2, 2, 0], 5.0, number=1)
    sent, _ = pair.sent()
    assert sent == whole // 3 > 0
    assert pair.sent()[0] == 0


@on_ranks(4, engine=ENGINES)
def test_every_door_of_gridbuf_is_recorded(engine) -> None:
    """Assignment, arithmetic, fill, copyto, out=, stencils, marks, views: each in one plane that a neighbour needs."""
    grid = decomposed()
    pair = Beside(grid, engine, "written")
    pair.sent()

    @gridbuf.stencil(backend=None, writes=("a",))
    def three(a: gridbuf.call.Field[np.float64]) -> None:
        a[...] = 3.0

    def data_interface(a) -> None:
        if "touch" not in a.__gt_data_interface__[None]:  # The twin, which nobody records.
            a[...] = 5.0
            return
        entry = a.__gt_data_interface__[None]
        np.copyto(a._own_memory(), 5.0)
        entry["touch"]()

    def marked(a) -> None:
        a._own_memory()[...] = 6.5
        a.set_host_modified()

    doors = {
        "setitem": lambda a: a.__setitem__(..., 1.0),
        "iadd": lambda a: a.__iadd__(2.0),
        "fill": lambda a: a.fill(9.0),
        "copyto": lambda a: gridbuf.copyto(a, 4.0),
        "numpy.copyto": lambda a: np.copyto(a, 4.5),
        "out": lambda a: np.add(a, 1.5, out=a),
        "where": lambda a: np.add(a, 1.5, out=a, where=np.asarray(a) > 0),
        "transposed": lambda a: a.T.__setitem__(..., 6.0),
        "stepped": lambda a: a[::2].__setitem__(..., 7.0),
        "advanced": lambda a: a.__setitem__(([2, 3], [2, 3], [0, 1]), -1.0),
        "stencil": three,
        "data interface": data_interface,
        "marked": marked,
    }
    for name, door in doors.items():
        for fields in (pair.fields, pair.twins):
            door(fields[0])
        sent, _ = pair.sent()
        assert sent > 0, name
        gc.collect()
        pair.sent()  # What the arrays that have ended may have written.
        assert pair.sent()[0] == 0, name


@on_ranks(4, engine=ENGINES)
def test_who_holds_an_array_may_write_it_at_any_time(engine) -> None:
    """An export counts while it lives, and once more; made before the exchange or after."""
    grid = decomposed()
    makers = (
        lambda a: a.to_numpy(),
        np.asarray,
        np.from_dlpack,
        lambda a: memoryview(a),
        lambda a: np.asarray(a.data)[1:],
        lambda a: gridbuf.as_buffer(a).to_numpy(),
        lambda a: gridbuf.storage.as_storage(a, dims="KJI").to_numpy(),
    )
    for make, early in itertools.product(makers, (False, True)):
        pair = Beside(grid, engine, "written")
        held = make(pair.fields[0]) if early else None
        pair.sent()
        held = held if early else make(pair.fields[0])
        for value in (1.0, 2.0):
            np.asarray(held)[...] = value
            pair.write(np.s_[-np.asarray(held).shape[0] :], value)
            assert pair.sent()[0] > 0
            np.asarray(held)[...] = value + 10
            np.asarray(pair.twins[0])[-np.asarray(held).shape[0] :] = value + 10
        del held
        gc.collect()
        assert pair.sent()[0] > 0, "what it wrote before it ended"
        pair.sent()
        assert pair.sent()[0] == 0


@on_ranks(4, engine=ENGINES)
def test_addresses_and_foreign_memory_count_for_ever(engine) -> None:
    grid = decomposed()
    for early in (False, True):
        pair = Beside(grid, engine, "written")
        if early:
            _ = pair.fields[0].__array_interface__
        _, whole = pair.sent()
        _ = pair.fields[0].__array_interface__
        for _ in range(3):
            assert pair.sent()[0] == whole
    pair = Beside(grid, engine, "written")
    array = values(pair.fields[0])
    pair.fields = [gridbuf.storage.as_storage(array, dims="IJK", halo=HALO)]
    for value in range(3):
        array[2:-1, 1:-2] = pair.twins[0].to_numpy()[2:-1, 1:-2] = value
        assert pair.sent()[0] == whole


@on_ranks(4, engine=ENGINES)
def test_marked_trusts_those_who_hold_an_array(engine) -> None:
    grid = decomposed()
    pair = Beside(grid, engine, "marked")
    pair.sent()
    held = pair.fields[0].to_numpy()
    assert pair.sent()[0] == 0
    held[...] = 3.0
    pair.fields[0].set_host_modified()
    pair.write(np.s_[...], 3.0)
    assert pair.sent()[0] > 0
    assert pair.sent()[0] == 0
    array = values(pair.fields[0])
    pair.fields = [gridbuf.storage.as_storage(array, dims="IJK", halo=HALO)]
    assert pair.sent()[0] > 0
    assert pair.sent()[0] == 0


@on_ranks(4, engine=ENGINES)
def test_a_halo_that_its_owner_overwrote_is_filled_again(engine) -> None:
    """Nobody sent anything new, and the halo is what sending everything would make it; with mpi4py without asking anybody."""
    grid = decomposed()
    pair = Beside(grid, engine, "written")
    pair.sent()
    if grid.rank == 3:
        pair.write(np.s_[:2], -1.0)
        pair.write(np.s_[-1, 3], -2.0)
    sent, whole = pair.sent()
    assert sent == (0 if engine == "mpi4py" else whole)
    assert pair.sent()[0] == 0


@on_ranks(4, engine=ENGINES)
def test_fields_in_turn_at_one_place(engine) -> None:
    """u, v = v, u: each has its own "since"; one that comes new is sent whole, and more than four are sent whole again."""
    grid = decomposed()
    pair = Beside(grid, engine, "written", count=6)
    fields, twins = pair.fields, pair.twins
    exchange = gridbuf.mpi.HaloExchange(grid, fields[0], engine=engine, send="written")

    def sent(number: int) -> int:
        before = exchange.statistics.sent_bytes
        exchange(fields[number])
        if not np.array_equal(values(twins[number])[:1], values(fields[number])[:1]):
            pair.all(*twins)
        np.testing.assert_array_equal(values(fields[number]), values(twins[number]))
        return exchange.statistics.sent_bytes - before

    pair.all(*twins)
    whole = sent(0)
    assert whole == exchange.sent_bytes
    assert sent(1) == whole
    for _ in range(3):
        assert (sent(0), sent(1)) == (0, 0)
    assert [sent(n) for n in (2, 3)] == [whole, whole]
    assert [sent(n) for n in (0, 1, 2, 3)] == [0, 0, 0, 0]
    assert sent(4) == whole  # In the place of the one used longest ago …
    assert [sent(n) for n in (1, 2, 3, 4)] == [0, 0, 0, 0]
    assert sent(0) == whole  # … which was this one.
    # A view is another field: what it shows is elsewhere.
    again = fields[0][:]
    exchange(again)
    assert sent(0) == 0


@on_ranks(4, engine=ENGINES)
def test_ranks_may_pass_other_storages_than_their_neighbours(engine) -> None:
    """Rank 1 makes a new storage at each call, the others do not, and write nothing: its halo is filled all the same."""
    grid = decomposed()
    pair = Beside(grid, engine, "written", count=2)
    one, other = pair.fields
    exchange = gridbuf.mpi.HaloExchange(grid, one, engine=engine, send="written")
    expected = with_halos(grid, whole_field(SHAPE, "float64", 0), "IJK", HALO)
    for step in range(4):
        field = (
            part_of(grid, whole_field(SHAPE, "float64", 0), "IJK", HALO) if grid.rank == 1 else one
        )
        exchange(field)
        np.testing.assert_array_equal(values(field), expected, err_msg=str(step))
    # And one that takes turns where the others do not.
    exchange(other)
    for step in range(4):
        field = (one, other)[step % 2] if grid.rank == 2 else other
        whole = [whole_field(SHAPE, "float64", seed) for seed in range(2)]
        exchange(field)
        twin = part_of(grid, whole[1], "IJK", HALO)
        if field is one:
            twin.domain_view[...] = whole[0][grid.slices("IJK")]
        pair.all(twin, twin.copy())
        if grid.rank == 2 and field is one:
            np.testing.assert_array_equal(values(field), values(twin))


@on_ranks(4, engine=ENGINES)
def test_each_exchange_has_its_own_since(engine) -> None:
    grid = decomposed()
    pair = Beside(grid, engine, "written")
    second = gridbuf.mpi.HaloExchange(grid, *pair.fields, engine=engine, send="written")
    pair.sent()
    second(*pair.fields)
    pair.write(np.s_[2:4], 5.0)
    assert pair.sent()[0] > 0
    before = second.statistics.sent_bytes
    second(*pair.fields)
    assert second.statistics.sent_bytes > before
    # The second one has filled halos that the first one had filled: with GHEX those are somebody else's writing.
    assert pair.sent()[0] == 0 or engine == "ghex"
    before = second.statistics
    second(*pair.fields)
    assert second.statistics.sent_bytes == before.sent_bytes or engine == "ghex"


@on_ranks(4)
def test_what_another_exchange_fills_was_written() -> None:
    """The domain of a wider view holds halos of a narrower one: what arrives there is sent on."""
    for send in ("all", "written"):
        grid = gridbuf.mpi.Decomposition({"I": 16}, periodic="I")
        field = gridbuf.storage.zeros((4 + 4,), dims="I", halo=((2, 2),))
        field.domain_view[...] = 10 * grid.rank + np.arange(4)
        first = gridbuf.mpi.HaloExchange(grid, field, engine="mpi4py", send=send)
        wide = gridbuf.mpi.Decomposition({"I": 24}, periodic="I")
        view = field[:]
        view.halo = ((1, 1),)
        onward = gridbuf.mpi.HaloExchange(wide, view, engine="mpi4py", send="written")
        onward(view)
        first(field)
        expected = values(field)
        onward(view)
        # The outermost points come from the wide domain's ends: what `first` has just filled there.
        left, right = (grid.rank - 1) % 4, (grid.rank + 1) % 4
        expected[0] = 10 * ((left + 1) % 4) + 0
        expected[-1] = 10 * ((right - 1) % 4) + 3
        np.testing.assert_array_equal(values(field), expected)


@on_ranks(4, engine=ENGINES)
def test_a_write_between_start_and_wait_belongs_to_the_next_exchange(engine) -> None:
    grid = decomposed()
    pair = Beside(grid, engine, "written")
    pair.sent()
    pair.write(np.s_[2:-1, 1:-2], 1.0 + grid.rank)
    pending, everything = pair.exchange.start(*pair.fields), pair.all.start(*pair.twins)
    pair.write(np.s_[2:-1, 1:-2], 100.0 + grid.rank)
    pending.wait()
    everything.wait()
    pair.check()
    sent, whole = pair.sent()
    assert sent == whole > 0


@on_ranks(4, engine=ENGINES)
def test_a_failed_exchange_forgets_nothing(engine) -> None:
    """Each rank fails in turn, after all have written: what did not arrive is sent the next time, and nothing else."""
    grid = decomposed()
    pair = Beside(grid, engine, "written")
    pair.sent()
    for failing in range(4):
        pair.write(np.s_[2:-1, 1:-2], 10.0 * failing + grid.rank)
        if grid.rank == failing:
            with pytest.raises(ValueError, match="dtype must be float64"):
                pair.exchange(pair.fields[0].astype("f4"))
        else:
            with pytest.raises(gridbuf.mpi.HaloExchangeError, match="failed"):
                pair.exchange(*pair.fields)
        # Halos that were filled on some ranks are filled again by nobody, and are right.
        pair.sent()
        assert pair.sent()[0] == 0


@on_ranks(4)
def test_a_receiver_that_fails_has_missed_nothing() -> None:
    """Its messages came and will not come again; the next exchange sends none, and fills its halo."""
    grid = decomposed()
    pair = Beside(grid, "mpi4py", "written")
    pair.sent()
    pair.write(np.s_[2:-1, 1:-2], 5.0 + grid.rank)
    if grid.rank == 1:
        with pytest.raises(TypeError, match="is a NoneType"):
            pair.exchange(None)
    else:
        with pytest.raises(gridbuf.mpi.HaloExchangeError):
            pair.exchange(*pair.fields)
    sent, whole = pair.sent()
    assert sent == (whole if grid.rank == 1 else 0)


@on_ranks(4)
def test_messages_that_cannot_be_applied_end_the_exchange() -> None:
    """Without memory for a copy nobody can know what it holds: that rank says so from then on, and nobody waits."""
    grid = decomposed()
    pair = Beside(grid, "mpi4py", "written")
    if grid.rank == 0:
        receiver = pair.exchange._engine._receivers[0]
        receiver.apply = lambda length_bytes: (_ for _ in ()).throw(MemoryError("no copy"))
        with pytest.raises(MemoryError, match="no copy"):
            pair.exchange(*pair.fields)
        with pytest.raises(RuntimeError, match="make another HaloExchange"):
            pair.exchange(*pair.fields)
    else:
        pair.exchange(*pair.fields)
        with pytest.raises(gridbuf.mpi.HaloExchangeError, match=r"rank \[0\] failed"):
            pair.exchange(*pair.fields)


@on_ranks(4)
def test_ranks_must_agree_on_what_is_sent() -> None:
    grid = decomposed()
    field = part_of(grid, whole_field(SHAPE, "f8"), "IJK", HALO)
    with pytest.raises(
        ValueError, match="rank 2 asks for .*send='written', but rank 0 .*send='all'"
    ):
        gridbuf.mpi.HaloExchange(grid, field, send="written" if grid.rank == 2 else "all")
    with pytest.raises(ValueError, match="send is 'changed', but must be 'all', 'written' or"):
        gridbuf.mpi.HaloExchange(grid, field, send="changed")


@on_ranks(4)
def test_nothing_is_recorded_when_nobody_asks_any_more() -> None:
    """The exchange keeps no field; closed, or forgotten, it leaves no record behind."""
    grid = decomposed()
    field = part_of(grid, whole_field(SHAPE, "f8"), "IJK", HALO)
    assert "touch" not in field.__gt_data_interface__[None]
    for engine, close in itertools.product(ENGINES, (True, False)):
        try:
            exchange = gridbuf.mpi.HaloExchange(grid, field, engine=engine, send="written")
        except (ImportError, gridbuf.mpi.HaloExchangeError):
            continue  # GHEX is not there.
        exchange(field)
        assert "touch" in field.__gt_data_interface__[None]
        if close:
            exchange.close()
        del exchange
        gc.collect()
        assert "touch" not in field.__gt_data_interface__[None], engine


@on_ranks(4)
def test_storages_of_every_kind_send_what_was_written() -> None:
    """On the emulated device; and where nothing was written nothing crosses the bus."""
    with gridbuf.testing.emulated_device():
        grid = decomposed()
        for keywords in ({"device": "gpu", "managed": kind} for kind in (None, "gt4py", "cuda")):
            pair = Beside(grid, "mpi4py", "written", **keywords)
            _, whole = pair.sent()
            assert pair.sent()[0] == 0
            gridbuf.testing.synchronize()
            before = gridbuf.testing.statistics()
            pair.exchange(*pair.fields)
            after = gridbuf.testing.statistics()
            for way in ("host_to_device_bytes", "device_to_host_bytes"):
                assert after[way] == before[way], (keywords, way)
            pair.write(np.s_[3:5], 4.0)
            assert 0 < pair.sent()[0] <= whole
            pair.fields[0].fill(6.0 + grid.rank)
            pair.twins[0].fill(6.0 + grid.rank)
            assert pair.sent()[0] == whole
            assert pair.sent()[0] == 0
            if keywords["managed"] == "gt4py":
                pair.fields[0].host_to_device()
                pair.write(np.s_[...], 7.0)
                assert pair.sent()[0] == whole
                pair.fields[0].device_to_host(force=True)
                pair.twins[0].fill(6.0 + grid.rank)
                assert pair.sent()[0] == whole, "one side was given up"
