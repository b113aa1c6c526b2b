"""Fields on a device: only halo boxes cross the bus, and the current sides are as on the host. On the emulated device."""

from __future__ import annotations

import gridbuf
import gridbuf.mpi
import gridbuf.storage
import gridbuf.testing
import numpy as np
import pytest
from on_ranks import on_ranks
from serial import outside, part_of, whole_field, with_halos

HALO = ((2, 1), (1, 2), (0, 0))
SHAPE = (20, 18, 6)
KINDS = ({"managed": "gt4py"}, {"managed": None}, {"managed": "cuda"})


def moved(work) -> tuple[int, int]:
    """Bytes from the device and to it while `work` runs."""
    before = gridbuf.testing.statistics()
    work()
    after = gridbuf.testing.statistics()
    return tuple(
        after[f"{way}_bytes"] - before[f"{way}_bytes"]
        for way in ("device_to_host", "host_to_device")
    )


def values_of(field) -> np.ndarray:
    """All elements, halos included, copied to the host."""
    if field.to_numpy.__self__ is field and isinstance(field, gridbuf.storage.GPUStorage):
        values = np.empty(field.shape, field.dtype)
        gridbuf.copyto(values, gridbuf.as_buffer(field))
        return values
    return field.to_numpy().copy()


def on_device(grid, whole, dims, halo, **kind):
    """A field whose device buffer alone is current."""
    host = part_of(grid, whole, dims, halo)
    field = gridbuf.storage.storage(host.to_numpy(), dims=dims, halo=halo, device="gpu", **kind)
    if kind["managed"] == "gt4py":
        field[...] = field + 0
        field.host_to_device()
        field.set_device_modified()
    return field


def received_bytes(grid, field) -> int:
    """Of one exchange: all halo points that a neighbour fills."""
    filled = with_halos(grid, np.zeros(SHAPE), "IJK", HALO) == 0
    inner = np.prod(field.domain_view.shape)
    return int(filled.sum() - inner) * field.itemsize


@on_ranks(4)
def test_every_kind_of_storage_gets_its_halos() -> None:
    with gridbuf.testing.emulated_device():
        for periodic in ("", "IJ"):
            grid = gridbuf.mpi.Decomposition({"I": 20, "J": 18}, ranks={"I": 2}, periodic=periodic)
            whole = whole_field(SHAPE, "float64")
            for kind in KINDS:
                field = on_device(grid, whole, "IJK", HALO, **kind)
                exchange = gridbuf.mpi.HaloExchange(grid, field)
                if kind["managed"] != "cuda":
                    assert exchange.engine == "mpi4py"
                exchange(field)
                np.testing.assert_array_equal(
                    values_of(field), with_halos(grid, whole, "IJK", HALO)
                )


@on_ranks(4)
def test_only_the_boxes_of_the_halo_cross_the_bus() -> None:
    with gridbuf.testing.emulated_device():
        grid = gridbuf.mpi.Decomposition({"I": 20, "J": 18}, ranks={"I": 2}, periodic="IJ")
        whole = whole_field(SHAPE, "float64")
        for kind in KINDS[:2]:
            field = on_device(grid, whole, "IJK", HALO, **kind)
            exchange = gridbuf.mpi.HaloExchange(grid, field)
            down, up = moved(lambda exchange=exchange, field=field: exchange(field))
            assert 0 < down <= exchange.sent_bytes
            if kind["managed"] is None:
                assert up == exchange.sent_bytes  # As many come as go.
            else:
                assert up == 0  # They go up when the device asks:
                _, up = moved(field.host_to_device)
                assert 0 < up <= received_bytes(grid, field)
                assert field.sync_state.state & field.sync_state.SYNC_HOST_DIRTY == 0


@on_ranks(4)
def test_a_second_exchange_of_a_clean_field_brings_nothing_down() -> None:
    """What the sync state knows to be equal on both sides is read on the host."""
    with gridbuf.testing.emulated_device():
        grid = gridbuf.mpi.Decomposition({"I": 20, "J": 18}, ranks={"I": 2}, periodic="IJ")
        whole = whole_field(SHAPE, "float64")
        field = on_device(grid, whole, "IJK", HALO, managed="gt4py")
        exchange = gridbuf.mpi.HaloExchange(grid, field)
        exchange(field)
        field.synchronize()
        down, _ = moved(lambda: exchange(field))
        assert down == 0
        np.testing.assert_array_equal(values_of(field), with_halos(grid, whole, "IJK", HALO))


@on_ranks(4)
def test_work_that_is_pending_on_the_device_is_waited_for() -> None:
    with gridbuf.testing.emulated_device():
        grid = gridbuf.mpi.Decomposition({"I": 20, "J": 18}, ranks={"I": 2}, periodic="IJ")
        whole = whole_field(SHAPE, "float64")
        for kind in KINDS:
            field = on_device(grid, whole, "IJK", HALO, **kind)
            exchange = gridbuf.mpi.HaloExchange(grid, field)
            field.domain_view[...] = (
                field.domain_view + 100.0
            )  # A kernel, which runs as late as it may.
            exchange(field)
            expected = with_halos(grid, whole + 100.0, "IJK", HALO)
            np.testing.assert_array_equal(values_of(field), expected)


@on_ranks(4)
def test_fields_of_the_host_and_of_a_device_travel_together() -> None:
    with gridbuf.testing.emulated_device():
        grid = gridbuf.mpi.Decomposition({"I": 20, "J": 18}, ranks={"I": 2}, periodic="J")
        whole = whole_field(SHAPE, "float64")
        fields = [on_device(grid, whole, "IJK", HALO, **kind) for kind in KINDS]
        fields.append(part_of(grid, whole, "IJK", HALO, backend="gt:cpu_ifirst"))
        gridbuf.mpi.HaloExchange(grid, *fields)(*fields)
        for field in fields:
            np.testing.assert_array_equal(values_of(field), with_halos(grid, whole, "IJK", HALO))


@on_ranks(4)
def test_a_copy_that_fails_leaves_no_rank_waiting() -> None:
    """The device of rank 1 fails while its boxes are packed; the next exchange works."""
    with gridbuf.testing.emulated_device():
        grid = gridbuf.mpi.Decomposition({"I": 20, "J": 18}, ranks={"I": 2}, periodic="IJ")
        whole = whole_field(SHAPE, "float64")
        field = on_device(grid, whole, "IJK", HALO, managed="gt4py")
        exchange = gridbuf.mpi.HaloExchange(grid, field)
        if grid.rank == 1:
            with (
                gridbuf.testing.failing("copy", call=3),
                pytest.raises(Exception, match="injected"),
            ):
                exchange(field)
        else:
            with pytest.raises(gridbuf.mpi.HaloExchangeError, match=r"rank \[1\]"):
                exchange(field)
        exchange(field)
        np.testing.assert_array_equal(values_of(field), with_halos(grid, whole, "IJK", HALO))
        assert (values_of(field) != outside("f8")).all()
