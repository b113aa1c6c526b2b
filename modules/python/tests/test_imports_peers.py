"""Arrays of other libraries come in without a copy, with their values, and keep their owner alive."""

from __future__ import annotations

import gc
import importlib.util
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import gridbuf
import gridbuf.storage as gs


def test_pytorch():
    torch = pytest.importorskip("torch")
    for tensor in (
        torch.arange(12.0).reshape(3, 4),
        torch.arange(12).reshape(3, 4).T[1:],
        torch.tensor(3.0),
        torch.empty(0, 3),
        torch.ones(2, 3, dtype=torch.complex64),
        torch.ones(3, dtype=torch.bool),
    ):
        found = gridbuf.as_numpy(tensor)
        np.testing.assert_array_equal(found, tensor.numpy())
        assert tensor.numel() == 0 or found.ctypes.data == tensor.data_ptr()
    half = gridbuf.as_buffer(torch.ones(3, dtype=torch.bfloat16))
    assert half.dtype.name == "bfloat16"


def test_pytorch_what_has_no_strides_is_an_error():
    torch = pytest.importorskip("torch")
    with pytest.raises((BufferError, RuntimeError)):
        gridbuf.as_buffer(torch.eye(3).to_sparse())


def test_pytorch_a_subclass_is_not_read_through_its_base_classs_table():
    torch = pytest.importorskip("torch")  # DX-11

    class Tagged(torch.Tensor):
        pass

    tagged = torch.arange(3.0).as_subclass(Tagged)
    assert gridbuf.as_numpy(tagged).tolist() == [0.0, 1.0, 2.0]


def test_pytorch_memory_lives_while_the_import_does():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(1000.0)
    buffer = gridbuf.as_buffer(tensor)
    del tensor
    gc.collect()
    np.testing.assert_array_equal(buffer.to_numpy(), np.arange(1000.0))


def test_pytorch_takes_strides_without_meaning():
    torch = pytest.importorskip("torch")
    for values in (np.zeros((1, 10, 20))[::-1], np.arange(16.0)[::-3][:1], np.zeros((0, 3))[::-1]):
        for array in (gridbuf.as_numpy(values), gridbuf.as_buffer(values).to_numpy()):
            assert tuple(torch.from_numpy(array).shape) == values.shape


def test_pytorch_ends_alike_for_negative_strides_of_numpy_and_of_gridbuf():
    """PyTorch 2.13 aborts, for any exporter (limits.md)."""
    torch = pytest.importorskip("torch")
    program = (
        "import gridbuf.storage as gs, numpy as np, torch; torch.from_dlpack({}((3, 4))[::-1])"
    )
    ends = [
        subprocess.run(
            [sys.executable, "-c", program.format(zeros)], capture_output=True, check=False
        ).returncode
        for zeros in ("np.zeros", "gs.zeros")
    ]
    assert ends[0] == ends[1]
    backwards = gs.storage(np.arange(6.0).reshape(3, 2))[::-1]
    for function in (torch.from_dlpack, torch.as_tensor, torch.tensor):
        assert function(backwards.copy()).tolist() == backwards.to_numpy().tolist()


def test_pytorch_copyto():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4, 3, dtype=torch.float32).T
    numbers = np.arange(12.0).reshape(3, 4)
    gridbuf.copyto(tensor, numbers)
    np.testing.assert_array_equal(tensor.numpy(), numbers)
    gridbuf.copyto(numbers, tensor[:, :1], where=torch.ones(4, dtype=torch.bool))
    np.testing.assert_array_equal(numbers, np.broadcast_to([[0.0], [4.0], [8.0]], (3, 4)))
    half = torch.zeros(3, dtype=torch.bfloat16)
    gridbuf.copyto(half, torch.tensor([1.5, 2.5, 3.5], dtype=torch.bfloat16))
    assert half.tolist() == [1.5, 2.5, 3.5]
    single = torch.zeros(3)
    gridbuf.copyto(single, half, casting="unsafe")  # A cast that ml_dtypes gives NumPy.
    assert single.tolist() == [1.5, 2.5, 3.5]


def test_jax():
    pytest.importorskip("jax")
    import jax.numpy as jnp

    values = jnp.arange(12.0).reshape(3, 4)
    found = gridbuf.as_numpy(values)
    np.testing.assert_array_equal(found, np.asarray(values))
    assert found.ctypes.data == values.unsafe_buffer_pointer()


def test_pyarrow():
    arrow = pytest.importorskip("pyarrow")
    values = np.arange(6, dtype=np.int64)
    assert gridbuf.as_numpy(arrow.array(values)).tolist() == values.tolist()
    tensor = arrow.Tensor.from_numpy(values.reshape(2, 3))
    assert gridbuf.as_numpy(tensor).tolist() == values.reshape(2, 3).tolist()
    assert gridbuf.as_numpy(arrow.py_buffer(b"abc")).tolist() == [97, 98, 99]


def test_pillow():
    image = pytest.importorskip("PIL.Image")
    picture = image.new("RGB", (4, 3), (1, 2, 3))
    # Pillow's interface makes bytes for each reading of it: a snapshot, which is read-only.
    found = gridbuf.as_numpy(picture)
    assert found.shape == (3, 4, 3)
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, np.asarray(picture))


def test_numba_compiled_code_takes_an_import():
    numba = pytest.importorskip("numba")
    total = numba.njit(lambda values: values.sum())
    assert total(gridbuf.as_numpy(memoryview(np.arange(4.0)))) == 6.0


def test_xarray():
    xarray = pytest.importorskip("xarray")
    import gridbuf.xarray  # noqa: F401

    values = np.arange(6.0).reshape(2, 3)
    field = xarray.DataArray(values, dims=("K", "I"))
    assert field.__gt_dims__ == ("K", "I")
    entry = field.__gt_data_interface__[None]
    assert entry["dims"] == ("K", "I")
    buffer = gridbuf.as_buffer(field)
    assert buffer.dims == ("K", "I")
    assert np.shares_memory(buffer.to_numpy(), values)
    assert gridbuf.get_dims(field) == ("K", "I")
    # Not kept from before.
    other = np.ones((2, 3))
    field.data = other
    assert np.shares_memory(gridbuf.as_numpy(field), other)


def test_xarray_other_names_are_taken_and_dims_renames():
    xarray = pytest.importorskip("xarray")
    import gridbuf.xarray  # noqa: F401

    field = xarray.DataArray(np.zeros((2, 3)), dims=("lat", "lon"))
    assert field.__gt_data_interface__[None]["dims"] == ("lat", "lon")
    assert gridbuf.as_buffer(field).dims == ("lat", "lon")
    with pytest.raises(ValueError, match="pass dims="):
        gridbuf.as_buffer(field.rename(lat="along track"))
    assert gridbuf.as_buffer(field, dims="IJ").dims == ("I", "J")
    assert gridbuf.from_array(field, dims="IJ").shape == (2, 3)
    assert gridbuf.as_numpy(field).shape == (2, 3)


class Field(np.ndarray):
    """An array with a data interface."""

    own_dims: Any = None

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        entry = dict(self.__array_interface__) | {"halo": ((0, 0), (1, 1))}
        return {None: entry if self.own_dims is None else entry | {"dims": self.own_dims}}


def test_xarray_gt_11_names_of_the_data_must_agree():
    xarray = pytest.importorskip("xarray")
    from gridbuf.xarray import data_interface

    data = np.zeros((2, 3)).view(Field)

    class Array:
        """As a DataArray, whose constructor would take the subclass away."""

        dims = ("I", "J")

    array = Array()
    array.data = data  # type: ignore[attr-defined]
    assert data_interface(array)[None]["dims"] == ("I", "J")
    assert data_interface(array)[None]["halo"] == ((0, 0), (1, 1))
    data.own_dims = ["I", "J"]
    assert data_interface(array)[None]["dims"] == ("I", "J")
    data.own_dims = ["J", "I"]
    with pytest.raises(ValueError, match="^GT-11: "):
        data_interface(array)
    assert xarray.DataArray.__gt_dims__ is not None


def test_xarray_data_without_an_interface_has_none():
    xarray = pytest.importorskip("xarray")
    from gridbuf.xarray import data_interface

    class Array:
        data, dims = object(), ()

    with pytest.raises(AttributeError, match="load or compute"):
        data_interface(Array())
    assert hasattr(xarray.DataArray([1.0]), "__gt_data_interface__")


def test_xarray_users_override_it():
    xarray = pytest.importorskip("xarray")
    import gridbuf.xarray

    own = {None: np.arange(2.0).__array_interface__}
    with pytest.warns(match="overriding"):
        xarray.register_dataarray_accessor("__gt_data_interface__")(lambda _: own)
    try:
        assert xarray.DataArray([5.0]).__gt_data_interface__ is own
    finally:
        xarray.DataArray.__gt_data_interface__ = property(gridbuf.xarray.data_interface)


def test_nothing_of_a_peer_is_left_when_an_import_goes():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(3.0)
    storage = weakref.ref(tensor.untyped_storage())
    buffer = gridbuf.as_buffer(tensor)
    del tensor, buffer
    gc.collect()
    assert storage() is None


# ---- Every kind of tensor, by every way in. ----


def _call(tensor: Any, function: Any, **options: Any) -> Any:
    """A stencil over a field of the tensor's type and dimensions."""
    found = str(tensor.dtype).partition(".")[2]
    dtype = np.dtype(found if hasattr(np, found) or found == "bool" else "f8")
    axes = gridbuf.Axes[tuple("IJK"[: tensor.ndim])]

    def run(field, *, origin, domain):
        return function(field)

    run.__annotations__ = {"field": gridbuf.Field[dtype, axes]}
    return gridbuf.stencil(run, **options)(tensor)


def _shape(tensor: Any) -> tuple[int, ...]:
    import tensors

    return tensors.shape(tensor)


def _assigned(tensor: Any) -> Any:
    target = gs.zeros(_shape(tensor), dtype=complex)
    target[...] = tensor
    return target


def _copied(tensor: Any) -> Any:
    target = np.zeros(_shape(tensor), complex)
    gridbuf.copyto(target, tensor)
    return target


def _zeros(tensor: Any) -> Any:
    return gs.zeros(_shape(tensor), dtype="f8")


def _kinds(table: str) -> list[str]:
    """The names of one table of tensors.py; nothing without PyTorch."""
    if importlib.util.find_spec("torch") is None:
        return []
    import tensors

    return list(getattr(tensors, table))


READS: dict[str, Any] = {
    "as_buffer": lambda tensor: gridbuf.as_buffer(tensor).to_numpy(),
    "as_numpy": gridbuf.as_numpy,
    "from_array": gridbuf.from_array,
    "storage": gs.storage,
    "as_storage": gs.as_storage,
    "assignment": _assigned,
    "copyto": _copied,
    "arithmetic": lambda tensor: _zeros(tensor) + tensor,
    "arithmetic from the left": lambda tensor: tensor + _zeros(tensor),
    "ufunc": lambda tensor: np.add(_zeros(tensor), tensor),
    "function": lambda tensor: np.where(_zeros(tensor) == 0, tensor, _zeros(tensor)),
    "full": lambda tensor: gs.full(_shape(tensor), tensor, dtype=complex),
    "stencil": lambda tensor: _call(tensor, np.array, writes=()),
}
WRITES: dict[str, Any] = {
    "copyto": lambda tensor: gridbuf.copyto(tensor, np.full(_shape(tensor), 7)),
    "out": lambda tensor: np.add(_zeros(tensor), 7, out=tensor),
    "as_storage": lambda tensor: gs.as_storage(tensor).fill(7),
    "as_numpy": lambda tensor: gridbuf.as_numpy(tensor).fill(7),
    "stencil": lambda tensor: _call(tensor, lambda field: field.fill(7)),
}


def _array(found: Any) -> Any:
    return found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)


@pytest.mark.parametrize("way", READS)
def test_tensors_whose_memory_has_their_values_come_in(way):
    tensors = pytest.importorskip("tensors")
    for name, make in tensors.READABLE.items():
        tensor = make()
        if way == "stencil" and tensor.ndim == 0:
            continue
        found = _array(READS[way](tensor))
        np.testing.assert_array_equal(found, tensors.values(tensor), err_msg=name)


def test_tensors_of_types_that_numpy_does_not_have_come_in():
    tensors = pytest.importorskip("tensors")
    for name, make in tensors.NARROW.items():
        found = gridbuf.as_numpy(make()).astype(float)
        np.testing.assert_array_equal(found, make().float().numpy(), err_msg=name)


@pytest.mark.parametrize("way", READS)
@pytest.mark.parametrize("kind", _kinds("REFUSED"))
def test_tensors_whose_memory_does_not_have_their_values_are_refused(kind, way):
    import tensors

    tensor = tensors.REFUSED[kind]()
    with tensors.unchanged(tensor), pytest.raises(tensors.REFUSALS):
        READS[way](tensor)


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("kind", _kinds("REFUSED"))
def test_memory_of_a_refused_tensor_is_not_written(kind, way):
    import tensors

    tensor = tensors.REFUSED[kind]()
    with tensors.unchanged(tensor), pytest.raises(tensors.REFUSALS):
        WRITES[way](tensor)


@pytest.mark.parametrize("way", READS)
@pytest.mark.parametrize("transform", _kinds("WITHIN"))
def test_tensors_within_functions_of_pytorch_are_refused(transform, way):
    import tensors

    refused = []

    def use(tensor):
        with pytest.raises(tensors.REFUSALS):
            READS[way](tensor)
        refused.append(tensor)
        return tensor

    tensors.WITHIN[transform](use)
    assert refused


def test_the_error_says_what_to_do_with_a_lazy_tensor():
    tensors = pytest.importorskip("tensors")
    tensor = tensors.REFUSED["imaginary parts of conjugated"]()
    with pytest.raises(BufferError, match=r"^DP-25: is_neg\(\) of the tensor is True.*resolve_neg"):
        gridbuf.as_numpy(tensor)
    np.testing.assert_array_equal(gridbuf.as_numpy(tensor.resolve_neg()), tensors.values(tensor))
    with pytest.raises(BufferError, match="requires? grad"):
        gridbuf.as_buffer(tensors.REFUSED["a parameter"]())
    with pytest.raises(BufferError, match="^DL-27: "):
        gridbuf.as_buffer(tensors.REFUSED["far into fake"]())
