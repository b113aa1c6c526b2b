"""Round trips: a Buffer goes into another library and comes back, without a copy, with its metadata, in any drop order.

Each peer is one `Trip`: how it takes a Buffer, and where it says that the elements are. Coming back is always
`gridbuf.as_buffer`. Peers that are not installed are skipped by name; those that need a GPU say so.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib.util
import itertools
import mmap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gridbuf
import gridbuf.testing
import numpy as np
import pytest

HOW = "install the peers with `./bazelw --peers`"


@dataclass(frozen=True)
class Trip:
    """A library that takes a Buffer's memory and gives it back."""

    name: str
    module: str
    take: Callable[[gridbuf.Buffer], Any]
    dtype: str = "f4"
    layout: tuple[int, ...] = (1, 0, 2)  # whatever the peer can describe
    alignment_size: int = 64
    #: Whether what it gives back may be written (JAX's arrays may not, but say nothing of it: jax #40789).
    writable: bool = True
    #: Whether shape and strides survive; else the peer sees one run of bytes.
    shaped: bool = True


def with_torch(buffer: gridbuf.Buffer) -> Any:
    import torch

    return torch.from_dlpack(buffer)


def with_jax(buffer: gridbuf.Buffer) -> Any:
    import jax

    return jax.dlpack.from_dlpack(buffer, copy=False)


def with_arrow_tensor(buffer: gridbuf.Buffer) -> Any:
    import pyarrow

    return pyarrow.Tensor.from_numpy(buffer.to_numpy())


def with_arrow_buffer(buffer: gridbuf.Buffer) -> Any:
    import pyarrow

    return pyarrow.py_buffer(buffer)


def with_numba(buffer: gridbuf.Buffer) -> Any:
    import numba

    return numba.njit(lambda array: array)(buffer.to_numpy())


def with_xarray(buffer: gridbuf.Buffer) -> Any:
    import gridbuf.xarray  # noqa: F401  (registers the accessor)
    import xarray

    return xarray.DataArray(buffer.to_numpy(), dims=buffer.dims)


def with_mpi(buffer: gridbuf.Buffer) -> Any:
    from mpi4py import MPI

    return MPI.buffer.frombuffer(buffer)


def with_ctypes(buffer: gridbuf.Buffer) -> Any:
    return (ctypes.c_float * buffer.size).from_buffer(buffer)


TRIPS = [
    Trip("numpy.asarray", "numpy", np.asarray),
    Trip("numpy.from_dlpack", "numpy", np.from_dlpack),
    Trip("memoryview", "builtins", memoryview),
    Trip("torch", "torch", with_torch),
    # It takes dense memory on 64-byte boundaries without a copy, in any order of dimensions.
    Trip("jax", "jax", with_jax, alignment_size=1, writable=False),
    Trip("pyarrow.Tensor", "pyarrow", with_arrow_tensor),
    Trip(
        "pyarrow.Buffer",
        "pyarrow",
        with_arrow_buffer,
        layout=(0, 1, 2),
        alignment_size=1,
        shaped=False,
    ),
    Trip("numba", "numba", with_numba),
    Trip("xarray", "xarray", with_xarray),
    Trip("mpi4py", "mpi4py", with_mpi, layout=(0, 1, 2), alignment_size=1, shaped=False),
    Trip("ctypes", "ctypes", with_ctypes, layout=(0, 1, 2), alignment_size=1, shaped=False),
]


def trips(**wanted: bool) -> list[Any]:
    return [
        pytest.param(
            trip,
            id=trip.name,
            marks=pytest.mark.skipif(
                importlib.util.find_spec(trip.module) is None,
                reason=f"{trip.module} is not installed; {HOW}",
            ),
        )
        for trip in TRIPS
        if all(getattr(trip, key) == value for key, value in wanted.items())
    ]


def field(trip: Trip) -> gridbuf.Buffer:
    buffer = gridbuf.allocate(
        (3, 4, 5), trip.dtype, layout=trip.layout, alignment_size=trip.alignment_size
    )
    buffer.to_numpy()[...] = np.arange(60, dtype=trip.dtype).reshape(3, 4, 5)
    return buffer


def address(buffer: gridbuf.Buffer) -> int:
    return buffer.__array_interface__["data"][0]


def elements(buffer: gridbuf.Buffer, trip: Trip) -> np.ndarray:
    """The values that came back, in the field's shape."""
    found = buffer.to_numpy()
    return found if trip.shaped else found.reshape(-1).view(trip.dtype).reshape(3, 4, 5)


@pytest.mark.parametrize("trip", trips())
def test_memory_and_values_come_back(trip: Trip) -> None:
    buffer = field(trip)
    back = gridbuf.as_buffer(trip.take(buffer))
    assert address(back) == address(buffer)
    assert (elements(back, trip) == np.arange(60).reshape(3, 4, 5)).all()


@pytest.mark.parametrize("trip", trips(shaped=True))
def test_metadata_comes_back(trip: Trip) -> None:
    buffer = field(trip)
    back = gridbuf.as_buffer(trip.take(buffer))
    assert back.shape == buffer.shape
    assert back.strides == buffer.strides
    assert back.dtype == buffer.dtype
    assert back.layout == buffer.layout
    assert not back.readonly
    assert back.device is None


@pytest.mark.parametrize("trip", trips(writable=True))
def test_writes_are_seen_on_both_sides(trip: Trip) -> None:
    buffer = field(trip)
    back = gridbuf.as_buffer(trip.take(buffer))
    elements(back, trip)[1, 2, 3] = -1.0
    assert buffer[1, 2, 3] == -1.0
    buffer.to_numpy()[2, 3, 4] = -2.0
    assert elements(back, trip)[2, 3, 4] == -2.0


@pytest.mark.parametrize("trip", trips())
@pytest.mark.parametrize("order", list(itertools.permutations(("buffer", "foreign", "back"))))
def test_memory_lives_in_every_drop_order(trip: Trip, order: tuple[str, ...]) -> None:
    expected = np.arange(60, dtype=trip.dtype).reshape(3, 4, 5)
    held: dict[str, Any] = {"buffer": field(trip)}
    held["foreign"] = trip.take(held["buffer"])
    held["back"] = gridbuf.as_buffer(held["foreign"])
    for name in order:
        for survivor, thing in held.items():
            view = gridbuf.as_buffer(thing) if survivor == "foreign" else thing
            shaped = survivor == "buffer" or trip.shaped
            found = view.to_numpy() if shaped else elements(view, trip)
            assert (found == expected).all(), (survivor, "after", order)
            del view, found, thing
        del held[name]
        gc.collect()


@pytest.mark.parametrize(
    "thing",
    [
        array.array("d", [1.0, 2.0, 3.0]),
        bytearray(np.array([1.0, 2.0, 3.0]).tobytes()),
        (ctypes.c_double * 3)(1.0, 2.0, 3.0),
        memoryview(np.array([1.0, 2.0, 3.0])),
        np.array([1.0, 2.0, 3.0]),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_standard_buffers_come_in_and_go_out(thing: Any) -> None:
    buffer = gridbuf.as_buffer(thing)
    values = np.frombuffer(buffer, "f8")
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert values.ctypes.data == np.frombuffer(thing, "f8").ctypes.data
    values[1] = 5.0
    assert np.frombuffer(thing, "f8")[1] == 5.0


def test_a_map_of_a_file_comes_in() -> None:
    with mmap.mmap(-1, 4096) as map_:
        buffer = gridbuf.as_buffer(map_)
        assert buffer.shape == (4096,)
        assert buffer.dtype == np.uint8
        with pytest.raises(BufferError):
            map_.close()  # refused while its memory is exported
        del buffer
        gc.collect()


@pytest.mark.skipif(
    importlib.util.find_spec("PIL") is None, reason=f"Pillow is not installed; {HOW}"
)
def test_pillow_shows_a_buffers_memory() -> None:
    from PIL import Image

    buffer = gridbuf.allocate((5, 7), "u1")
    buffer.to_numpy()[...] = np.arange(35).reshape(5, 7)
    image = Image.frombuffer("L", (7, 5), buffer, "raw", "L", 0, 1)
    buffer.to_numpy()[2, 3] = 99
    assert image.getpixel((3, 2)) == 99  # no copy on the way in
    del buffer
    gc.collect()
    # Pillow exports a copy of its pixels (`tobytes`), so nothing else can come back.
    back = gridbuf.as_buffer(image)
    assert back.shape == (5, 7)
    assert back.readonly
    assert back.to_numpy()[2, 3] == 99


@pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason=f"pyarrow is not installed; {HOW}"
)
def test_an_arrow_array_comes_in() -> None:
    import pyarrow

    numbers = pyarrow.array([1.0, 2.0, 3.0])
    buffer = gridbuf.as_buffer(numbers)
    assert buffer.readonly  # Arrow's arrays are immutable
    assert buffer.to_numpy().tolist() == [1.0, 2.0, 3.0]
    assert address(buffer) == numbers.buffers()[1].address


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason=f"mpi4py is not installed; {HOW}"
)
def test_mpi_sends_from_and_receives_into_buffers() -> None:
    from mpi4py import MPI

    source = gridbuf.full((4, 5), 3.0)
    target = gridbuf.zeros((4, 5))
    MPI.COMM_SELF.Sendrecv(source.base, dest=0, recvbuf=target.base, source=0)
    assert (target == 3.0).all()


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason=f"jax is not installed; {HOW}")
def test_jax_takes_what_it_refuses_of_numpy() -> None:
    """Every Buffer starts on a cache line, so JAX never has to copy it; an ndarray starts anywhere."""
    import jax

    for _ in range(20):
        buffer = field(Trip("jax", "jax", with_jax, alignment_size=1))
        taken = jax.dlpack.from_dlpack(buffer, copy=False)
        assert taken.unsafe_buffer_pointer() == address(buffer)


# ---- CUDA: metadata on the emulated device, the real thing where there is a GPU. ----


def gpu() -> Any:
    """CuPy on a real device, or a skip that names the untested part."""
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed: no round trip through a GPU was made here")
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no GPU ({error}): no round trip through CuPy was made here")
    return cupy


@pytest.mark.parametrize("memory", ["device", "managed", "pinned"])
def test_cupy_takes_and_gives_back_device_memory(memory: str) -> None:
    cupy = gpu()
    buffer = gridbuf.allocate((3, 4, 5), "f4", layout=(1, 0, 2), alignment_size=128, memory=memory)
    taken = cupy.asarray(buffer)
    assert taken.data.ptr == buffer.__cuda_array_interface__["data"][0]
    assert taken.strides == buffer.strides
    taken[...] = 7.0
    back = gridbuf.as_buffer(taken)
    assert back.strides == buffer.strides
    assert back.device == "gpu"
    assert (back.copy(memory="host").to_numpy() == 7.0).all()


def test_numba_takes_device_memory() -> None:
    gpu()
    if importlib.util.find_spec("numba.cuda") is None:
        pytest.skip("numba.cuda is not installed: no round trip through it was made here")
    from numba import cuda

    buffer = gridbuf.allocate((3, 4), "f4", memory="device")
    taken = cuda.as_cuda_array(buffer)
    assert taken.device_ctypes_pointer.value == buffer.__cuda_array_interface__["data"][0]
    assert gridbuf.as_buffer(taken).shape == (3, 4)


@pytest.mark.parametrize("memory", ["device", "managed", "pinned"])
def test_device_metadata_comes_back(memory: str) -> None:
    """The emulated device: what CuPy and Numba would read, read back by gridbuf itself."""
    with gridbuf.testing.emulated_device():
        buffer = gridbuf.allocate(
            (3, 4, 5), "f4", layout=(1, 0, 2), alignment_size=128, memory=memory
        )
        for back in (
            gridbuf.from_interface(buffer.__cuda_array_interface__, owner=buffer),
            gridbuf.as_buffer(Dlpack(buffer)),
        ):
            assert back.shape == buffer.shape
            assert back.strides == buffer.strides
            assert back.dtype == buffer.dtype
            assert back.memory == buffer.memory
            assert back.__cuda_array_interface__ == buffer.__cuda_array_interface__
        del back, buffer
        gc.collect()


class Dlpack:
    """An object that offers DLPack alone."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __dlpack__(self, **request: Any) -> Any:
        return self.owner.__dlpack__(**request)

    def __dlpack_device__(self) -> Any:
        return self.owner.__dlpack_device__()
