"""`fill_halo` is `numpy.pad` of the domain, on every side."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import KINDS, emulated

WAYS = {"periodic": "wrap", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}


@pytest.fixture(autouse=True, scope="module")
def _device() -> Iterator[None]:
    with emulated():
        yield


def filled(shape: tuple[int, ...], halo: Any, how: Any, kind: str, dims: Any = None) -> Any:
    """The storage afterwards, and what NumPy makes of its domain."""
    values = np.random.default_rng(1).random(shape)
    field = gs.storage(values, dims="IJK"[: len(shape)], halo=halo, **KINDS[kind])
    if kind == "synced":
        field.host_to_device(force=True)
        field += 1.0  # on the device
        values = values + 1.0
    domain = values[tuple(slice(low, n - high) for n, (low, high) in zip(shape, halo))]
    gs.fill_halo(field, how, dims)
    return np.asarray(gs.storage(field, device=None)), domain, values


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("how", [*WAYS, 7.5])
def test_the_whole_halo_is_numpys_pad(how: Any, kind: str) -> None:
    options = {"mode": WAYS[how]} if how in WAYS else {"constant_values": how}
    for count, low, high in itertools.product((1, 2, 3, 6), (0, 1, 3), (0, 2, 7)):
        halo = ((low, high), (1, 2), (0, 0))
        found, domain, _ = filled((low + count + high, 7, 2), halo, how, kind)
        np.testing.assert_array_equal(found, np.pad(domain, halo, **options))


@pytest.mark.parametrize("dims", ["I", ("J",), ["J", "I"], ()])
def test_other_dimensions_keep_their_halo(dims: Any) -> None:
    halo = ((1, 1), (2, 2))
    found, _, values = filled((6, 8), halo, "edge", "cpu", dims)
    expected = values.copy()
    if "I" in dims:
        expected[0], expected[-1] = expected[1], expected[-2]
    if "J" in dims:
        expected[:, :2], expected[:, -2:] = expected[:, 2:3], expected[:, -3:-2]
    np.testing.assert_array_equal(found, expected)


def test_a_view_and_every_type() -> None:
    for dtype in ("?", "i1", "f2", "c16", "M8[s]", "U3", [("a", "i4"), ("b", "f8")]):
        field = gs.zeros((4, 5), dtype=dtype, halo=(1, 1))
        values = np.arange(6).reshape(2, 3).astype("i8")
        field.domain_view[...] = values.astype(dtype)
        gs.fill_halo(field[:, 1:4], "periodic", "I")
        assert field[0, 2] == field[2, 2] and field[3, 3] == field[1, 3]


def test_what_cannot_be_filled() -> None:
    field = gs.zeros((4, 4), halo=(1, 1))
    with pytest.raises(ValueError, match=r"how is 'wrap', but must be \"periodic\", \"edge\""):
        gs.fill_halo(field, "wrap")
    with pytest.raises(ValueError, match=r"dims has 'K', but the storage has \('I', 'J'\)"):
        gs.fill_halo(field, "edge", ("I", "K"))
    with pytest.raises(TypeError, match="field is of type ndarray, but must be a storage"):
        gs.fill_halo(np.zeros((4, 4)), "edge")
    with pytest.raises(ValueError, match="no point of a domain to fill it from"):
        gs.fill_halo(gs.zeros((2, 4), halo=(1, 1)), "edge")
    gs.fill_halo(gs.zeros((2, 4), halo=(1, 1)), 1.0)
    gs.fill_halo(field, "periodic", "IJ")
    with pytest.raises(ValueError, match="dims has 'K'"):
        gs.fill_halo(field, "periodic", "IK")
    memory = np.zeros((4, 4))
    memory.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        gs.fill_halo(gs.as_storage(memory, halo=(1, 1)), "edge")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_domain_is_assigned(kind: str) -> None:
    field = gs.zeros((4, 4), halo=(1, 1), **KINDS[kind])
    field.domain_view += 1.0
    field.domain_view *= np.float64(3.0)
    assert float(field.sum()) == 12.0
    field.domain_view = 2.0
    assert float(field.sum()) == 8.0
    field.domain_view = gs.ones((2,), dims="J", **KINDS[kind]) * 5
    assert float(field.sum()) == 20.0
    with pytest.raises(ValueError):
        field.domain_view = np.zeros((3, 3)) if kind != "gpu" else gs.zeros((3, 3), **KINDS[kind])
