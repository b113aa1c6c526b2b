"""Halos hold what the neighbours have, on every kind of decomposition, with both engines; the reference is the whole field."""

from __future__ import annotations

import gridbuf.mpi
import gridbuf.storage
import numpy as np
import pytest
from on_ranks import on_ranks
from serial import outside, part_of, whole_field, with_halos

ENGINES = ("mpi4py", "ghex")
IJK_HALO = ((2, 1), (1, 2), (0, 0))


def check(grid, dims, shape, halo, engine, dtype="float64", *, corners=True, **keywords) -> None:
    """One field through one exchange; elements, padding and domain are as the whole field says."""
    whole = whole_field(shape, dtype)
    field = part_of(grid, whole, dims, halo, **keywords)
    with gridbuf.mpi.HaloExchange(grid, field, engine=engine, corners=corners) as exchange:
        assert exchange.engine == engine
        exchange(field)
    np.testing.assert_array_equal(
        field.to_numpy(), with_halos(grid, whole, dims, halo, corners=corners)
    )


@on_ranks(4, engine=ENGINES)
def test_one_dimension_is_cut(engine) -> None:
    for periodic in ("", "I"):
        grid = gridbuf.mpi.Decomposition({"I": 21}, periodic=periodic)
        check(grid, "IJK", (21, 5, 4), ((2, 3), (1, 1), (0, 0)), engine)
        check(grid, "I", (21,), ((2, 1),), engine)
        check(grid, "KI", (4, 21), ((0, 0), (1, 2)), engine)


@on_ranks(4, engine=ENGINES)
def test_two_dimensions_are_cut_and_corners_filled(engine) -> None:
    for periodic in ("", "I", "J", "IJ"):
        grid = gridbuf.mpi.Decomposition({"I": 14, "J": 11}, ranks={"I": 2}, periodic=periodic)
        assert grid.ranks == {"I": 2, "J": 2}
        check(grid, "IJK", (14, 11, 4), IJK_HALO, engine)
        check(grid, "IJ", (14, 11), ((3, 2), (2, 3)), engine)
        check(grid, "JKI", (11, 4, 14), ((1, 1), (0, 0), (2, 2)), engine)


@on_ranks(4, engine=ENGINES)
def test_three_dimensions_are_cut(engine) -> None:
    extents = {"I": 8, "J": 7, "K": 6}
    grid = gridbuf.mpi.Decomposition(extents, ranks={"I": 2, "K": 1}, periodic="JK")
    check(grid, "IJK", (8, 7, 6), ((2, 1), (1, 2), (1, 1)), engine)


@on_ranks(4, engine=ENGINES)
def test_any_names_are_cut(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"lat": 9, "lon": 8}, periodic="lon")
    level = gridbuf.Dim("level", "vertical")
    check(grid, ("lat", "lon", level), (9, 8, 3), IJK_HALO, engine, backend="gt:cpu_ifirst")


@on_ranks(4, engine=ENGINES)
def test_parts_may_be_uneven(engine) -> None:
    sizes = {"I": (3, 8), "J": (6, 2)}
    grid = gridbuf.mpi.Decomposition({"I": 11, "J": 8}, sizes=sizes, periodic="IJ")
    check(grid, "IJK", (11, 8, 3), ((2, 2), (2, 1), (0, 0)), engine)


@on_ranks(4, engine=ENGINES)
def test_a_periodic_dimension_of_one_part_is_its_own_neighbour(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 12, "J": 5}, ranks={"J": 1}, periodic="IJ")
    check(grid, "IJK", (12, 5, 3), IJK_HALO, engine)


@on_ranks(4, engine=ENGINES)
def test_every_dtype_that_the_engine_has(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 9, "J": 8}, periodic="J")
    common = ("float64", "float32", "int32", "int64", "bool")
    for dtype in common if engine == "ghex" else (*common, "int8", "uint16", "complex128", "f2,i4"):
        check(grid, "IJK", (9, 8, 3), IJK_HALO, engine, dtype)


@on_ranks(4, engine=ENGINES)
def test_every_layout(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 9, "J": 8}, periodic="I")
    for preset in ("gt:cpu_kfirst", "gt:cpu_ifirst", "gtmc", "dace:cpu", "F"):
        check(grid, "IJK", (9, 8, 3), IJK_HALO, engine, backend=preset)
    for layout in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1)):
        check(grid, "IJK", (9, 8, 3), IJK_HALO, engine, layout=layout, alignment_size=64)


@on_ranks(4, engine=ENGINES)
def test_data_dimensions_travel_along(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 9, "J": 8}, periodic="J")
    check(grid, ("I", "J", "K", "0"), (9, 8, 3, 2), (*IJK_HALO, (0, 0)), engine)


@on_ranks(4, engine=ENGINES)
def test_extents_of_one_point(engine) -> None:
    """Their strides mean nothing, and may equal those of another dimension."""
    grid = gridbuf.mpi.Decomposition({"I": 4, "J": 2}, ranks={"I": 4}, periodic="I")
    check(grid, "IJK", (4, 2, 1), ((1, 1), (0, 0), (0, 0)), engine)
    check(grid, "IJ", (4, 2), ((1, 0), (0, 0)), engine)


@on_ranks(4, engine=ENGINES)
def test_the_halo_of_a_dimension_that_is_not_cut_is_left_alone(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 9}, periodic="I")
    check(grid, "IK", (9, 4), ((1, 1), (2, 1)), engine)


@on_ranks(4, engine=ENGINES)
def test_several_fields_at_once(engine) -> None:
    """Of different shapes, dtypes, halos, layouts and orders of dimensions, in one exchange."""
    grid = gridbuf.mpi.Decomposition({"I": 10, "J": 9}, periodic="I")
    kinds = [
        ("IJK", (10, 9, 3), IJK_HALO, "float64", {"backend": "gt:cpu_ifirst"}),
        ("IJ", (10, 9), ((1, 1), (3, 0)), "float32", {}),
        ("KJI", (3, 9, 10), ((0, 0), (1, 2), (2, 1)), "int32", {}),
        ("IJK", (10, 9, 3), IJK_HALO, "float64", {"backend": "gt:cpu_kfirst"}),
        ("IJK", (10, 9, 3), IJK_HALO, "float64", {"backend": "gt:cpu_kfirst"}),
    ]
    wholes = [whole_field(shape, dtype, seed) for seed, (_, shape, _, dtype, _) in enumerate(kinds)]
    fields = [
        part_of(grid, whole, dims, halo, **more)
        for whole, (dims, _, halo, _, more) in zip(wholes, kinds, strict=True)
    ]
    exchange = gridbuf.mpi.HaloExchange(grid, *fields, engine=engine)
    for _ in range(3):
        for field in fields:
            inner = field.domain_view.copy()
            field.fill(outside(field.dtype))
            field.domain_view[...] = inner
        exchange(*fields)
        for field, whole, (dims, _, halo, _, _) in zip(fields, wholes, kinds, strict=True):
            np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, dims, halo))


@on_ranks(4, engine=ENGINES)
def test_an_exchange_serves_all_fields_that_look_alike(engine) -> None:
    """Two storages in turns, as time stepping has them, and a halo that was set again to what it was."""
    grid = gridbuf.mpi.Decomposition({"I": 10, "J": 9}, periodic="IJ")
    whole = whole_field((10, 9, 3), "float64")
    exchange = None
    for step in range(4):
        field = part_of(grid, whole + step, "IJK", IJK_HALO)
        exchange = exchange or gridbuf.mpi.HaloExchange(grid, field, engine=engine)
        exchange(field)
        np.testing.assert_array_equal(
            field.to_numpy(), with_halos(grid, whole + step, "IJK", IJK_HALO)
        )


@on_ranks(4, engine=ENGINES)
def test_the_domain_may_be_written_between_start_and_wait(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 10, "J": 9}, periodic="IJ")
    whole = whole_field((10, 9, 3), "float64")
    field = part_of(grid, whole, "IJK", IJK_HALO)
    exchange = gridbuf.mpi.HaloExchange(grid, field, engine=engine)
    pending = exchange.start(field)
    field.domain_view[...] = -1.0
    with pytest.raises(RuntimeError, match="wait"):
        exchange.start(field)
    pending.wait()
    pending.wait()
    field.domain_view[...] = whole[grid.slices("IJK")]
    np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "IJK", IJK_HALO))
    exchange(field)


@on_ranks(4, engine=ENGINES)
def test_two_exchanges_may_be_under_way(engine) -> None:
    """Their messages do not meet, in whatever order they are waited for."""
    grid = gridbuf.mpi.Decomposition({"I": 10, "J": 9}, periodic="IJ")
    wholes = [whole_field((10, 9, 3), "float64", seed) for seed in range(2)]
    fields = [part_of(grid, whole, "IJK", IJK_HALO) for whole in wholes]
    exchanges = [gridbuf.mpi.HaloExchange(grid, field, engine=engine) for field in fields]
    pending = [exchange.start(field) for exchange, field in zip(exchanges, fields, strict=True)]
    for one in reversed(pending):
        one.wait()
    for whole, field in zip(wholes, fields, strict=True):
        np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "IJK", IJK_HALO))


@on_ranks(4)
def test_ranks_may_start_exchanges_in_different_orders_with_mpi4py() -> None:
    """Messages carry the number of their exchange."""
    grid = gridbuf.mpi.Decomposition({"I": 10, "J": 9}, periodic="IJ")
    wholes = [whole_field((10, 9, 3), "float64", seed) for seed in range(3)]
    fields = [part_of(grid, whole, "IJK", IJK_HALO) for whole in wholes]
    made = [gridbuf.mpi.HaloExchange(grid, field, engine="mpi4py") for field in fields]
    order = [(n + grid.rank) % 3 for n in range(3)]
    for pending in [made[n].start(fields[n]) for n in order]:
        pending.wait()
    for whole, field in zip(wholes, fields, strict=True):
        np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "IJK", IJK_HALO))


@on_ranks(4, engine=ENGINES)
def test_what_is_under_way_outlives_those_who_forget_it(engine) -> None:
    """MPI writes to its memory until it has come; then others may be closed, and are refused afterwards."""
    import gc

    grid = gridbuf.mpi.Decomposition({"I": 40, "J": 9}, periodic="IJ")
    whole = whole_field((40, 9, 30), "float64")
    for _ in range(3):
        field = part_of(grid, whole, "IJK", IJK_HALO)
        forgotten = gridbuf.mpi.HaloExchange(grid, field, engine=engine)
        forgotten.start(field)
        with pytest.raises(RuntimeError, match="wait"):
            forgotten.close()
        del forgotten, field
        gc.collect()
    field = part_of(grid, whole, "IJK", IJK_HALO)
    exchange = gridbuf.mpi.HaloExchange(grid, field, engine=engine)
    exchange(field)
    np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "IJK", IJK_HALO))
    exchange.close()
    exchange.close()
    with pytest.raises(RuntimeError, match="closed"):
        exchange(field)


@on_ranks(4, engine=ENGINES)
def test_exchanges_are_given_back(engine) -> None:
    for _ in range(40):
        with gridbuf.mpi.Decomposition({"I": 8}, periodic="I") as grid:
            field = part_of(grid, whole_field((8,), "f8"), "I", ((1, 1),))
            with gridbuf.mpi.HaloExchange(grid, field, engine=engine) as exchange:
                exchange(field)
            del exchange


@on_ranks(4)
def test_decompositions_are_given_back() -> None:
    """More of them than MPI has communicators for."""
    for _ in range(2100):
        gridbuf.mpi.Decomposition({"I": 8}, periodic="I").close()


@on_ranks(4)
def test_without_corners_only_faces_are_filled() -> None:
    for periodic in ("", "IJ"):
        grid = gridbuf.mpi.Decomposition({"I": 14, "J": 11}, ranks={"I": 2}, periodic=periodic)
        check(grid, "IJK", (14, 11, 4), IJK_HALO, "mpi4py", corners=False)


@on_ranks(4)
def test_a_field_without_a_cut_dimension_has_copies_along_it() -> None:
    """A field over J alone, in a decomposition of I and J: the ranks along I hold the same, and exchange along J."""
    grid = gridbuf.mpi.Decomposition({"I": 8, "J": 9}, ranks={"I": 2}, periodic="J")
    check(grid, "J", (9,), ((1, 2),), "mpi4py")
    check(grid, "KJ", (3, 9), ((0, 0), (2, 2)), "mpi4py")


@on_ranks(4)
def test_where_there_is_nothing_to_send_nothing_is_sent() -> None:
    """No halo at one end, no neighbour, no dimension that is cut: both sides know it."""
    grid = gridbuf.mpi.Decomposition({"I": 8})
    column = gridbuf.storage.zeros((3,), dims="K", halo=((1, 1),))
    exchange = gridbuf.mpi.HaloExchange(grid, column, engine="mpi4py")
    assert exchange.neighbour_ranks == () and exchange.sent_bytes == 0
    exchange(column)
    shape = grid.local_shape((8, 3), halo=((1, 0), (0, 0)))
    lower = gridbuf.storage.zeros(shape, dims="IJ", halo=((1, 0), (0, 0)))
    one_way = gridbuf.mpi.HaloExchange(grid, lower, engine="mpi4py")
    assert one_way.sent_bytes == (0 if grid.rank == 3 else 3 * 8)


@on_ranks(4)
def test_ranks_may_have_different_layouts_with_mpi4py() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 10, "J": 9}, periodic="IJ")
    layout = ((0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1))[grid.rank]
    check(grid, "IJK", (10, 9, 3), IJK_HALO, "mpi4py", layout=layout)
    field = part_of(grid, whole_field((10, 9, 3), "f8"), "IJK", IJK_HALO, layout=layout)
    assert gridbuf.mpi.HaloExchange(grid, field).engine == "mpi4py"


@on_ranks(4)
def test_views_and_wrapped_arrays_take_part() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 10}, periodic="I")
    whole = whole_field((10, 6), "float64")
    halo = ((1, 2), (0, 0))
    values = np.full(grid.local_shape((10, 6), halo=halo), outside("f8"))
    wrapped = gridbuf.storage.as_storage(values, dims="IJ", halo=halo)
    wrapped.domain_view[...] = whole[grid.slices("IJ")]
    turned = wrapped.T[::2]
    exchange = gridbuf.mpi.HaloExchange(grid, turned, engine="mpi4py")
    exchange(turned)
    expected = with_halos(grid, whole, "IJ", halo)
    np.testing.assert_array_equal(values[:, ::2], expected[:, ::2])
    assert (values[:1, 1::2] == outside("f8")).all()


@on_ranks(4)
def test_padding_is_never_touched() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 15, "J": 9}, periodic="IJ")
    whole = whole_field((15, 9, 3), "float64")
    field = part_of(grid, whole, "IJK", IJK_HALO, backend="gt:cpu_ifirst")
    shape, strides = field.shape, field.strides
    memory = np.lib.stride_tricks.as_strided(
        field.to_numpy(), (strides[1] // 8, *shape[1:]), strides
    )
    assert memory.shape[0] > shape[0]
    memory[shape[0] :] = 7.0
    gridbuf.mpi.HaloExchange(grid, field)(field)
    assert (memory[shape[0] :] == 7.0).all()
