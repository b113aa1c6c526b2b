"""Fields of `gt4py.next` and gridbuf's arrays over one memory, in both directions."""

from __future__ import annotations

from typing import Any

import gridbuf
import gridbuf.storage
import numpy as np
import pytest
from gridbuf import testing
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip(
    "gt4py.next.custom_layout_allocators",
    reason="gt4py is not installed; install the peers with `./bazelw --peers`",
)

import gridbuf.gt4py.next
from gt4py import next as gtx

Kind = gtx.DimensionKind
Cell, Edge, Vertex = gtx.Dimension("Cell"), gtx.Dimension("Edge"), gtx.Dimension("Vertex")
I, J = gtx.Dimension("I"), gtx.Dimension("J")  # noqa: E741 (GT4Py's name)
K = gtx.Dimension("K", kind=Kind.VERTICAL)
C2E = gtx.Dimension("C2E", kind=Kind.LOCAL)

DOMAINS = [
    {Cell: 6, K: 5},
    {Edge: (-2, 9), K: (0, 4)},
    {Vertex: (3, 9), K: (1, 4)},
    {Cell: (-1, 4), C2E: 3},
    {I: (-3, 5), J: (-1, 4), K: 3},
    {K: 5, I: 4},
    {Cell: 0},
    {},
]


# ---- A field over an array. ----


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("kind", ["ndarray", "Buffer", "storage", "view"])
def test_a_field_over_an_array(domain: dict[Any, Any], kind: str) -> None:
    wanted = gtx.domain(domain)
    array: Any = gridbuf.zeros(wanted.shape)
    if kind == "Buffer":
        array = gridbuf.allocate(wanted.shape)
        array.to_numpy()[...] = 0
    elif kind == "storage":
        array = gridbuf.storage.zeros(wanted.shape)
    elif kind == "view":
        array = np.zeros([2 * n for n in wanted.shape])[
            (..., *(slice(None, None, 2) for _ in domain))
        ]
    field = gridbuf.gt4py.as_field(array, domain)
    assert field.domain == wanted and isinstance(field, gtx.Field)
    memory = gridbuf.as_numpy(array)
    if memory.size:
        assert field.ndarray.ctypes.data == memory.ctypes.data
        assert field.ndarray.strides == memory.strides
    memory[...] = 3
    assert (field.ndarray == 3).all()


def test_origins() -> None:
    array = gridbuf.zeros((7, 5))
    dims = (Cell, K)
    assert gridbuf.gt4py.as_field(array, dims).domain == gtx.domain({Cell: 7, K: 5})
    field = gridbuf.gt4py.as_field(array, dims, origin={Cell: 2})
    assert field.domain == gtx.domain({Cell: (-2, 5), K: 5}) and field.__gt_origin__ == (2, 0)
    # A storage has a halo, whose lower side is the origin; a Buffer has an aligned index.
    storage = gridbuf.storage.zeros((7, 5), halo=((2, 1), (0, 0)))
    assert gridbuf.gt4py.as_field(storage, dims).domain == field.domain
    buffer = gridbuf.allocate((7, 5), aligned_index=(2, 0))
    assert gridbuf.gt4py.as_field(buffer, dims).domain == field.domain
    start = gridbuf.gt4py.as_field(storage, dims, origin={})
    assert start.domain == gtx.domain({Cell: 7, K: 5})


def test_what_does_not_fit() -> None:
    array = gridbuf.zeros((7, 5))
    with pytest.raises(ValueError, match=r"has shape \(5, 7\), but the array has \(7, 5\)"):
        gridbuf.gt4py.as_field(array, {Cell: 5, K: 7})
    with pytest.raises(ValueError, match=r"3 dimensions \(Cell, K, C2E\)"):
        gridbuf.gt4py.as_field(array, (Cell, K, C2E))
    with pytest.raises(ValueError, match="origin names Edge"):
        gridbuf.gt4py.as_field(array, (Cell, K), origin={Edge: 1})
    with pytest.raises(ValueError, match="start indices"):
        gridbuf.gt4py.as_field(array, {Cell: 7, K: 5}, origin={Cell: 1})
    with pytest.raises(TypeError):
        gridbuf.gt4py.as_field(object(), (Cell, K))


@pytest.mark.parametrize("managed", ["gt4py", "cuda"])
def test_storages_with_a_device(managed: Any) -> None:
    """By the emulated device: the field is over the host's side."""
    with testing.emulated_device():
        storage = gridbuf.storage.full((6, 4), 2.0, device="gpu", managed=managed, dims="IK")
        field = gridbuf.gt4py.as_field(storage, (Cell, K))
        assert (field.ndarray == 2.0).all()
        field.ndarray[...] = 5.0
        if managed == "gt4py":
            storage.set_host_modified()
        storage.synchronize()
        assert (storage.to_numpy() == 5.0).all()


def test_memory_of_a_device_is_cupy_s() -> None:
    with testing.emulated_device():
        storage = gridbuf.storage.zeros((6, 4), device="gpu", managed=None, dims="IK")
        with pytest.raises(gridbuf.DeviceUnavailableError, match="CuPy arrays need a CUDA device"):
            gridbuf.gt4py.as_field(storage, (Cell, K))


# ---- An array over a field. ----


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_a_buffer_over_a_field(domain: dict[Any, Any]) -> None:
    field = gridbuf.gt4py.next.full(domain, 3.0)
    buffer = gridbuf.as_buffer(field)
    assert buffer.shape == field.shape
    buffer.to_numpy()[...] = 4
    assert (field.ndarray == 4).all()
    assert np.shares_memory(buffer.to_numpy(), field.ndarray) or not field.ndarray.size


@pytest.mark.parametrize(
    "dims",
    [(I, J, K), (K, I), (Cell, K), (Cell, C2E), (Edge, K, C2E), (Vertex, Cell, Edge), ()],
)
def test_names_and_kinds_of_dimensions(dims: tuple[Any, ...]) -> None:
    field = gtx.zeros({dim: 3 for dim in dims})
    assert gridbuf.get_dims(field) == tuple(dim.value for dim in dims)
    for array in (gridbuf.as_buffer(field), gridbuf.storage.as_storage(field)):
        assert array.dims == tuple(dim.value for dim in dims)
        assert [gridbuf.Dim(name).kind for name in array.dims] == [dim.kind for dim in dims]
        again = gridbuf.gt4py.as_field(array)
        assert again.domain == field.domain and np.shares_memory(again.ndarray, field.ndarray)


def test_points_below_zero_are_the_lower_halo() -> None:
    field = gtx.zeros({Cell: (-2, 5), K: 4})
    storage = gridbuf.storage.as_storage(field)
    assert storage.halo == ((2, 0), (0, 0))
    storage.domain_view[...] = 1
    assert field.ndarray.sum() == 5 * 4 and field.ndarray[:2].sum() == 0
    # The way back.
    again = gridbuf.gt4py.as_field(storage, (Cell, K))
    assert again.domain == field.domain and np.shares_memory(again.ndarray, field.ndarray)
    # There is no halo for a start above 0.
    assert gridbuf.storage.as_storage(gtx.zeros({Cell: (2, 5)})).halo == ((0, 0),)


@given(
    start=st.integers(-4, 0),
    extent=st.integers(5, 9),
    levels=st.integers(2, 5),
    dtype=st.sampled_from(["float32", "float64", "int32", "bool"]),
)
def test_there_and_back(start: int, extent: int, levels: int, dtype: str) -> None:
    field = gridbuf.gt4py.next.ones({Cell: (start, start + extent), K: levels}, dtype=dtype)
    back = gridbuf.gt4py.as_field(gridbuf.storage.as_storage(field), (Cell, K))
    assert back.domain == field.domain and back.dtype == field.dtype
    assert back.ndarray.ctypes.data == field.ndarray.ctypes.data
    assert back.ndarray.strides == field.ndarray.strides


def test_gridbuf_s_functions_take_fields() -> None:
    field = gtx.as_field([Cell, K], np.arange(12.0).reshape(3, 4))
    target = gridbuf.zeros((3, 4))
    gridbuf.copyto(target, field)
    assert (target == field.ndarray).all()
    gridbuf.copyto(field, 7.0)
    assert (field.ndarray == 7).all() and (gridbuf.as_numpy(field) == 7).all()


# ---- Whose memory it is. ----


def test_owns() -> None:
    array = gridbuf.zeros((4, 5))
    buffer = gridbuf.allocate((4, 5))
    for own in (array, array[1:], array.T[::2], buffer, buffer[1], buffer.T, buffer.to_numpy()):
        assert gridbuf.owns(own)
    assert gridbuf.owns(memoryview(array)) and gridbuf.owns(np.asarray(memoryview(buffer)))
    assert gridbuf.owns(gridbuf.gt4py.next.zeros({Cell: 3}))
    assert gridbuf.owns(gridbuf.gt4py.as_field(array, (Cell, K)))
    assert gridbuf.owns(gridbuf.as_buffer(array))
    plain = np.zeros((4, 5))
    for other in (plain, array.copy(), gridbuf.as_buffer(plain), gtx.zeros({Cell: 3}), [1], None):
        assert not gridbuf.owns(other)
