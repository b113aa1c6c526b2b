"""Parts of a grid: neighbours, shapes, refusals."""

from __future__ import annotations

import subprocess
import sys

import gridbuf.mpi
import gridbuf.storage
import numpy as np
import pytest
from on_ranks import environment, launcher, on_ranks
from serial import part_of, whole_field


@on_ranks(4)
def test_parts_differ_by_one_point_at_most_and_cover_the_grid() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 13, "J": 7}, ranks={"I": 4, "J": 1})
    assert grid.sizes == {"I": (4, 3, 3, 3), "J": (7,)}
    assert grid.starts == {"I": (0, 4, 7, 10)[grid.rank], "J": 0}
    assert grid.local_extents == {"I": (4, 3, 3, 3)[grid.rank], "J": 7}
    covered = sum(s.stop - s.start for r in range(4) for s in grid.slices("I", r))
    assert covered == 13


@on_ranks(4)
def test_ranks_lie_in_c_order_of_the_dimensions() -> None:
    grid = gridbuf.mpi.Decomposition({"J": 8, "I": 8}, ranks={"I": 2, "J": 2})
    assert grid.dims == ("J", "I")
    assert grid.coordinates == {"J": grid.rank // 2, "I": grid.rank % 2}
    assert [grid.coordinates_of(rank)["I"] for rank in range(4)] == [0, 1, 0, 1]


@on_ranks(4)
def test_what_is_not_said_is_as_even_as_possible() -> None:
    assert gridbuf.mpi.Decomposition({"I": 9, "J": 9}).ranks == {"I": 2, "J": 2}
    assert gridbuf.mpi.Decomposition({"I": 9, "J": 9}, ranks={"J": 4}).ranks == {"I": 1, "J": 4}
    by_sizes = gridbuf.mpi.Decomposition({"I": 9, "J": 9}, sizes={"I": (2, 3, 3, 1)})
    assert by_sizes.ranks == {"I": 4, "J": 1} and by_sizes.sizes["I"] == (2, 3, 3, 1)


@on_ranks(4)
def test_neighbours_end_at_a_border_unless_it_is_periodic() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 8, "J": 8}, ranks={"I": 4, "J": 1}, periodic="J")
    assert grid.neighbour({"I": 1}) == (grid.rank + 1 if grid.rank < 3 else None)
    assert grid.neighbour({"I": -1}) == (grid.rank - 1 if grid.rank else None)
    assert grid.neighbour({"J": -1}) == grid.rank
    assert grid.neighbour({}) == grid.rank
    with pytest.raises(ValueError, match="'K'"):
        grid.neighbour({"K": 1})


@on_ranks(4)
def test_local_shape_knows_dims_by_name_and_the_halo() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 13, "J": 8}, ranks={"I": 4, "J": 1})
    points = (4, 3, 3, 3)[grid.rank]
    halo = ((0, 0), (1, 1), (2, 1))
    assert grid.local_shape((5, 8, 13), dims="KJI", halo=halo) == (5, 10, points + 3)
    assert grid.local_shape((13,)) == (points,)
    with pytest.raises(ValueError, match="dimension 'J'.* 9.* 8"):
        grid.local_shape((13, 9), dims="IJ")
    for wrong in ((1,), (-1, 0), ((1, 2, 3), 0)):
        with pytest.raises(ValueError, match="halo"):
            grid.local_shape((13, 8), dims="IJ", halo=wrong)


@on_ranks(4)
def test_gather_puts_the_parts_together_without_halos() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 10, "J": 9}, periodic="IJ")
    for dims, shape, halo in (
        ("IJK", (10, 9, 3), ((2, 1), (1, 2), (0, 0))),
        ("KJI", (3, 9, 10), ((1, 1), (0, 2), (2, 1))),
        ("I", (10,), ((1, 1),)),
    ):
        whole = whole_field(shape, "float32")
        gathered = grid.gather(part_of(grid, whole, dims, halo), root=2)
        if grid.rank == 2:
            inner = tuple(
                slice(None) if d in "IJ" else slice(lo, n - up)
                for d, n, (lo, up) in zip(dims, shape, halo, strict=True)
            )
            expected = whole if dims != "KJI" else gathered
            assert gathered is not None and gathered.dtype == whole.dtype
            np.testing.assert_array_equal(gathered, expected)
            assert len(inner) == gathered.ndim
        else:
            assert gathered is None


@on_ranks(4)
def test_gather_refuses_together() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 10})
    shape = grid.local_shape((10,))
    field = gridbuf.storage.zeros(shape if grid.rank != 1 else (shape[0] + 1,))
    with pytest.raises(
        ValueError if grid.rank == 1 else gridbuf.mpi.HaloExchangeError,
        match="field 0, dimension 'I': the extent must be 3 on rank 1",
    ):
        grid.gather(field)


@on_ranks(4)
def test_what_is_refused_says_what_was_wanted() -> None:
    make = gridbuf.mpi.Decomposition
    for keywords, error, words in (
        ({"extents": {}}, ValueError, "extents is empty"),
        ({"extents": {"I": 0}}, ValueError, r"extents\['I'\] is 0"),
        ({"extents": {"X-": 4}}, ValueError, "X-"),
        ({"extents": {"I": 2.5}}, TypeError, "float"),
        ({"extents": {"I": 8}, "ranks": {"I": 3}}, ValueError, "3 parts.* 4 ranks"),
        ({"extents": {"I": 8}, "ranks": {"J": 2}}, ValueError, "ranks names 'J'"),
        ({"extents": {"I": 8, "J": 8}, "ranks": {"I": 3}}, ValueError, "4 ranks"),
        ({"extents": {"I": 3}}, ValueError, "'I' has 3 points for 4 ranks"),
        ({"extents": {"I": 8}, "periodic": "J"}, ValueError, "periodic names 'J'"),
        ({"extents": {"I": 8}, "sizes": {"I": (2, 2, 2, 3)}}, ValueError, "sum 9.*sum 8"),
        ({"extents": {"I": 8}, "sizes": {"I": (0, 2, 2, 4)}}, ValueError, "at least 1"),
        ({"extents": {"I": 8}, "sizes": {"J": (8,)}}, ValueError, "sizes names 'J'"),
        (
            {"extents": {"I": 8}, "sizes": {"I": (4, 4)}, "ranks": {"I": 4}},
            ValueError,
            r"2 parts, but ranks\['I'\] is 4",
        ),
        ({"extents": {"I": 8}, "comm": "world"}, TypeError, "intracommunicator"),
    ):
        with pytest.raises(error, match=words):
            make(**keywords)


@on_ranks(4)
def test_all_ranks_must_ask_for_the_same() -> None:
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
    with pytest.raises(ValueError, match="rank 2 has the decomposition"):
        gridbuf.mpi.Decomposition({"I": 8 if rank != 2 else 9})
    with pytest.raises(ValueError if rank == 3 else gridbuf.mpi.HaloExchangeError, match="is 0"):
        gridbuf.mpi.Decomposition({"I": 8 if rank != 3 else 0})


@on_ranks(4)
def test_a_part_of_the_ranks_may_have_a_grid_of_its_own() -> None:
    from mpi4py import MPI

    half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
    grid = gridbuf.mpi.Decomposition({"I": 6}, periodic="I", comm=half)
    assert grid.size == 2
    field = part_of(grid, whole_field((6,), "f8", MPI.COMM_WORLD.rank % 2), "I", ((1, 1),))
    gridbuf.mpi.HaloExchange(grid, field)(field)
    assert (
        field.to_numpy()[0]
        == whole_field((6,), "f8", MPI.COMM_WORLD.rank % 2)[grid.starts["I"] - 1]
    )


@on_ranks(4)
def test_the_repr_says_who_is_where() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 8, "J": 9}, ranks={"I": 2}, periodic="J")
    assert repr(grid) == (
        f"Decomposition(I: 8 in 2, J: 9 in 2, periodic; rank {grid.rank} of 4 at "
        f"{{'I': {grid.rank // 2}, 'J': {grid.rank % 2}}})"
    )


def test_one_process_is_a_decomposition_of_one_part() -> None:
    """Without mpiexec: a program for one process and one for many are the same program."""
    launcher(1)
    code = (
        "import numpy as np, gridbuf.mpi, gridbuf.storage\n"
        "grid = gridbuf.mpi.Decomposition({'I': 4}, periodic='I')\n"
        "u = gridbuf.storage.zeros(grid.local_shape((4,), halo=((1, 1),)), halo=((1, 1),))\n"
        "u.domain_view[...] = np.arange(4.0)\n"
        "gridbuf.mpi.HaloExchange(grid, u)(u)\n"
        "assert u.tolist() == [3, 0, 1, 2, 3, 0], u.tolist()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment(), timeout=60)


def test_importing_gridbuf_mpi_starts_no_mpi() -> None:
    code = "import sys, gridbuf.mpi; assert not any(m.startswith('mpi4py') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=environment(), timeout=60)


def test_without_mpi4py_the_message_says_what_to_install() -> None:
    code = (
        "import sys, gridbuf.mpi\n"
        "sys.modules['mpi4py.MPI'] = None\n"
        "try:\n"
        "    gridbuf.mpi.Decomposition({'I': 4})\n"
        "except ImportError as error:\n"
        '    assert "pip install mpi4py" in str(error), error\n'
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment(), timeout=60)


@on_ranks(4)
def test_no_decomposition_changes_a_digest() -> None:
    random = np.random.default_rng(1)
    for seed in range(25):
        dims = ("IJK", "JI", "KJI", "K", "JK")[seed % 5]
        extents = {"I": 9, "J": 7}
        shape = [extents.get(d, 5) for d in dims]
        whole = whole_field(shape, ("float64", "int32", "float32")[seed % 3], seed)
        cuts = [{"I": 4, "J": 1}, {"I": 1, "J": 4}, {"I": 2, "J": 2}]
        grid = gridbuf.mpi.Decomposition(extents, ranks=cuts[seed % 3])
        halo = [int(n) for n in random.integers(0, 3, len(dims))]
        part = part_of(
            grid, whole, dims, halo, layout=[int(n) for n in random.permutation(len(dims))]
        )
        expected = gridbuf.digest(whole, dims=dims)
        assert grid.digest(part) == (expected,)
        other = part_of(grid, whole + 1, dims, halo)
        assert grid.digest(part, other) == (expected, gridbuf.digest(whole + 1, dims=dims))
        grid.close()
    grid = gridbuf.mpi.Decomposition({"I": 8}, ranks={"I": 4})
    assert grid.digest() == ()
    wrong = gridbuf.storage.zeros((2,), "float32" if grid.rank == 1 else "float64")
    with pytest.raises(ValueError, match="rank 1 has fields with the dims|rank 0"):
        grid.digest(wrong)
