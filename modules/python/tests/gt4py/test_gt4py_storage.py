"""`gridbuf.gt4py.cartesian` has the signatures of the installed `gt4py.storage`, and the properties that GT4Py's own tests ask of it.

Those tests are not copied here. What they check of an allocation: extents, dtype, elements, that rows of the domain are aligned, that
every element can be written and nothing behind the last, that 0-d arrays exist, which requests are refused and with which error.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import gridbuf
import gridbuf.storage
import numpy as np
import pytest
from gridbuf.gt4py import cartesian
from hypothesis import given
from hypothesis import strategies as st

storage = pytest.importorskip(
    "gt4py.storage", reason="gt4py is not installed; install the peers with `./bazelw --peers`"
)

NAMES = ("empty", "zeros", "ones", "full", "from_array")
HOST = (
    "debug",
    "numpy",
    "gt:cpu_kfirst",
    "gt:cpu_ifirst",
    "dace:cpu",
    "dace:cpu_kfirst",
    "dace:cpu_KJI",
)
DTYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


def made_by(module: Any, name: str, shape: tuple[int, ...], dtype: Any, **keywords: Any) -> Any:
    """The same request to any of the five functions."""
    if name == "full":
        return module.full(shape, 7, dtype, **keywords)
    if name == "from_array":
        element = np.dtype(dtype)
        return module.from_array(
            np.full((*shape, *element.shape), 7, element.base), dtype, **keywords
        )
    return getattr(module, name)(shape, dtype, **keywords)


VALUES = {"zeros": 0, "ones": 1, "full": 7, "from_array": 7}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A shape of one to six dimensions, an aligned index inside it, and names or none."""
    ndim = draw(st.integers(1, 6))
    shape = tuple(draw(st.integers(1, 12)) for _ in range(ndim))
    aligned_index = tuple(draw(st.integers(0, extent - 1)) for extent in shape)
    names = ["I", "J", "K", *(str(number) for number in range(max(0, ndim - 3)))]
    dimensions = draw(st.none() | st.sampled_from(list(itertools.combinations(names, ndim))))
    return {
        "shape": shape,
        "dtype": draw(st.sampled_from(DTYPES)),
        "aligned_index": draw(st.just(aligned_index) | st.none()),
        "dimensions": dimensions,
        "backend": draw(st.sampled_from(HOST)),
    }


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_those_of_the_installed_gt4py(name: str) -> None:
    """Names, kinds, order and defaults of the parameters."""
    ours, theirs = (inspect.signature(getattr(module, name)) for module in (cartesian, storage))

    def facts(signature: inspect.Signature) -> list[tuple[str, object, object]]:
        return [(p.name, p.kind, p.default) for p in signature.parameters.values()]

    assert facts(ours) == facts(theirs)


def test_every_public_name_is_there() -> None:
    assert [name for name in storage.__all__ if not hasattr(cartesian, name)] == []
    assert cartesian.from_name is storage.from_name
    with pytest.raises(AttributeError, match="no_such_name"):
        cartesian.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match="__wrapped__"):
        cartesian.__wrapped__  # noqa: B018  (imports nothing)


@pytest.mark.parametrize("backend", HOST)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_an_array_is_what_gt4py_s_is(name: str, backend: str, data: st.DataObject) -> None:
    """Type, shape, dtype, elements, and strides in the order of GT4Py's; those of gridbuf may be padded."""
    request = data.draw(requests()) | {"backend": backend}
    ours, theirs = (made_by(module, name, **request) for module in (cartesian, storage))
    assert type(ours) is type(theirs) is np.ndarray
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert ours.flags.writeable
    if name in VALUES:
        assert (ours == VALUES[name]).all() and (theirs == VALUES[name]).all()
    by_stride = [
        sorted(
            (d for d in range(array.ndim) if array.shape[d] > 1), key=lambda d: -array.strides[d]
        )
        for array in (ours, theirs)
    ]
    assert by_stride[0] == by_stride[1]


@given(request=requests())
def test_rows_of_the_domain_are_aligned(request: dict[str, Any]) -> None:
    """Every element with the aligned index in the contiguous dimension, whatever the other indices."""
    array = cartesian.empty(**request)
    alignment_bytes = gridbuf.presets()[request["backend"]]["alignment_size"]
    index = request["aligned_index"] or (0,) * array.ndim
    contiguous = array.strides.index(array.itemsize)
    if array.shape[contiguous] == 1 or array.ndim == 1:
        contiguous = -1
    for corner in itertools.product(*({0, index[d], n - 1} for d, n in enumerate(array.shape))):
        if corner == index or (contiguous >= 0 and corner[contiguous] == index[contiguous]):
            one = array[tuple(slice(entry, entry + 1) for entry in corner)]
            assert one.ctypes.data % alignment_bytes == 0


@given(request=requests())
def test_every_element_can_be_written_and_nothing_behind(request: dict[str, Any]) -> None:
    array = cartesian.zeros(**request)
    last = tuple(extent - 1 for extent in array.shape)
    for index in (tuple(0 for _ in last), request["aligned_index"] or last, last):
        array[index] = 1
    array[...] = 1
    assert array.sum(dtype="f8") == math.prod(array.shape)
    for dim, extent in enumerate(array.shape):
        with pytest.raises(IndexError):
            array[(*last[:dim], extent, *last[dim + 1 :])] = 1


@pytest.mark.parametrize("backend", HOST)
@pytest.mark.parametrize("name", NAMES)
def test_without_dimensions(name: str, backend: str) -> None:
    array = made_by(cartesian, name, (), "f8", backend=backend, aligned_index=())
    assert array.shape == () and isinstance(array, np.ndarray)


@pytest.mark.parametrize("name", NAMES)
def test_a_sub_array_dtype_becomes_data_dimensions(name: str) -> None:
    """Outermost, after the dimensions that are there, as GT4Py lays them out."""
    request = {"backend": "gt:cpu_ifirst", "aligned_index": (1, 1, 1), "dimensions": "IJK"}
    ours, theirs = (
        made_by(module, name, (4, 5, 6), (np.float64, (2, 3)), **request)
        for module in (cartesian, storage)
    )
    assert ours.shape == theirs.shape == (4, 5, 6, 2, 3)
    assert ours.dtype == theirs.dtype == np.float64
    assert np.argsort(ours.strides).tolist() == np.argsort(theirs.strides).tolist()
    assert ours[1:, 1:, 1:].ctypes.data % 64 == 0


def test_a_sub_array_dtype_beside_a_data_dimension() -> None:
    """Its numbers go on after those that are there; GT4Py would use 0 twice."""
    array = cartesian.zeros(
        (4, 5, 2), (np.float64, (3,)), backend="gt:cpu_kfirst", dimensions=("I", "J", "0")
    )
    assert array.shape == (4, 5, 2, 3)
    assert array.strides == (40, 8, 480, 160)  # "0" outermost, then "1", I, J


def test_from_array_converts_to_float64_unless_told_otherwise() -> None:
    data = np.arange(6, dtype="i4").reshape(2, 3)
    assert cartesian.from_array(data, backend="numpy").dtype == np.float64
    assert cartesian.from_array(data, None, backend="numpy").dtype == np.int32
    assert cartesian.from_array(data + 0.7, "i2", backend="numpy").tolist() == data.tolist()
    made = cartesian.from_array(data, None, backend="numpy")
    assert not np.shares_memory(made, data)


class _Field:
    """As `gt4py.next` hands out: its memory is in `ndarray`."""

    def __init__(self, ndarray: np.ndarray[Any, Any]) -> None:
        self.ndarray = ndarray


def test_from_array_takes_arrays_of_any_kind() -> None:
    data = np.arange(6.0).reshape(2, 3)
    kinds: list[Any] = [
        data,
        data.tolist(),
        memoryview(data),
        _Field(data),
        gridbuf.as_buffer(data),
        gridbuf.storage.storage(data),
    ]
    for kind in kinds:
        made = cartesian.from_array(kind, backend="gt:cpu_ifirst")
        assert made.tolist() == data.tolist()
        assert made[:, 0:1].ctypes.data % 64 == 0


def test_from_array_wants_the_extents_of_a_sub_array_dtype() -> None:
    made = cartesian.from_array(np.ones((4, 5, 3)), (np.float64, (3,)), backend="numpy")
    assert made.shape == (4, 5, 3)
    with pytest.raises(ValueError, match=r"shape \(4, 5, 2\).* must be \(3,\)"):
        cartesian.from_array(np.ones((4, 5, 2)), (np.float64, (3,)), backend="numpy")


def test_axes_of_gtscript_are_names() -> None:
    from gt4py.cartesian import gtscript

    array = cartesian.empty((4, 5), backend="gt:cpu_ifirst", dimensions=gtscript.IJ)
    assert array.strides == (8, 64)


@pytest.mark.parametrize(
    ("backend", "dimensions", "strides"),
    [
        ("gt:cpu_kfirst", "KJI", (8, 24, 96)),
        ("gt:cpu_kfirst", "JKI", (24, 8, 96)),
        ("dace:cpu_KJI", "KIJ", (96, 8, 24)),
    ],
)
def test_the_layout_follows_the_names(
    backend: str, dimensions: str, strides: tuple[int, ...]
) -> None:
    """GT4Py's ignores their order, so that an array that is transposed afterwards is not what the backend wants."""
    extents = {"I": 5, "J": 4, "K": 3}
    shape = tuple(extents[name] for name in dimensions)
    array = cartesian.zeros(shape, backend=backend, dimensions=dimensions)
    usual = cartesian.zeros((5, 4, 3), backend=backend)
    turned = array.transpose([dimensions.index(name) for name in "IJK"])
    assert turned.strides == usual.strides
    theirs = storage.zeros(shape, backend=backend, dimensions=dimensions)
    assert theirs.transpose([dimensions.index(n) for n in "IJK"]).strides != usual.strides


DATA_DIMENSIONS = [("5",), ("5", "5"), ("9", "2"), ("1", "0"), ("3", "3", "3")]


@pytest.mark.parametrize("backend", HOST[1:])
@pytest.mark.parametrize("data", DATA_DIMENSIONS, ids="x".join)
def test_data_dimensions_follow_their_position(backend: str, data: tuple[str, ...]) -> None:
    """NDSL names each data dimension by its extent, so the names are in no order, and two can be equal."""
    dimensions = ("I", "J", "K", *data)
    shape = (6, 5, 4, *(int(name) + 1 for name in data))
    ours, theirs = (
        module.zeros(
            shape,
            backend=backend,
            dimensions=dimensions,
            aligned_index=(1, 1, 0, *(0 for _ in data)),
        )
        for module in (cartesian, storage)
    )
    assert storage.from_name(backend)["is_optimal_layout"](ours, dimensions)
    order, wanted = (np.argsort(array.strides).tolist() for array in (ours, theirs))
    assert order == wanted
    ours[...] = 1
    assert ours.sum() == math.prod(shape)


def test_an_aligned_index_beyond_the_extent_is_taken_as_gt4py_takes_it() -> None:
    """Models pass one index for all their fields, those with an extent of 1 included."""
    for module in (cartesian, storage):
        array = module.zeros((1, 1, 80), backend="gt:cpu_ifirst", aligned_index=(3, 3, 0))
        assert array.shape == (1, 1, 80)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (TypeError, {"shape": "(10,10)"}, "shape"),
    (TypeError, {"shape": None}, "shape"),
    (TypeError, {"shape": (2.5, 3, 4)}, "shape"),
    (ValueError, {"shape": (10, 10, 0)}, "shape"),
    (ValueError, {"shape": (10, -1, 3)}, "shape"),
    (TypeError, {"aligned_index": ("1", "1", "1")}, "aligned_index"),
    (ValueError, {"aligned_index": (1, 1, 1, 1)}, "aligned_index"),
    (ValueError, {"aligned_index": (-1, 0, 0)}, "aligned_index"),
    (ValueError, {"dimensions": ()}, "non-matching|imensions"),
    (ValueError, {"dimensions": ("J",)}, "non-matching"),
    (ValueError, {"dimensions": ("I", "J", "L")}, "imension"),
    (RuntimeError, {"backend": "no_such_backend", "dtype": (np.float64, (3,))}, "no_such_backend"),
]


@pytest.mark.parametrize(("error", "wrong", "words"), REFUSED, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("module", [cartesian, storage], ids=["gridbuf", "gt4py"])
def test_what_gt4py_refuses_is_refused_alike(
    module: Any, error: Any, wrong: dict[str, Any], words: str
) -> None:
    request = {"shape": (10, 10, 10), "dtype": "f8", "backend": "gt:cpu_kfirst"} | wrong
    with pytest.raises(error, match=words if module is cartesian else None):
        module.empty(**request)


def test_an_unknown_backend_is_both_libraries_error() -> None:
    with pytest.raises(cartesian.UnknownBackendError, match="gt:cpu_ifirst") as caught:
        cartesian.zeros((2, 2), backend="gt:cpu")
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, RuntimeError)


def test_a_shape_too_large_to_count_is_refused() -> None:
    with pytest.raises(ValueError, match="2147483648"):
        cartesian.zeros((2**31, 2**31, 2**31), backend="gt:cpu_kfirst")


def test_a_layout_registered_with_gt4py() -> None:
    """Its alignment is in elements, as GT4Py's functions use it; its map is asked in the usual order of names."""

    def ranks(dimensions: tuple[str, ...]) -> tuple[int, ...]:
        assert dimensions in (("I", "J", "K"), ("I", "K"))
        return (1, 2, 0)[: len(dimensions)] if len(dimensions) == 3 else (1, 0)

    info = {
        "alignment": 4,
        "device": "cpu",
        "layout_map": ranks,
        "is_optimal_layout": lambda field, dimensions: True,
    }
    cartesian.register("my_backend", info)
    try:
        ours = cartesian.zeros((6, 5, 7), "f4", backend="my_backend", aligned_index=(0, 2, 0))
        theirs = storage.zeros((6, 5, 7), "f4", backend="my_backend", aligned_index=(0, 2, 0))
        assert ours.strides == theirs.strides == (32, 4, 192)
        assert ours[:, 2:].ctypes.data % 16 == 0
        turned = cartesian.zeros((7, 6), backend="my_backend", dimensions="KI")
        assert turned.strides == (64, 8)  # I contiguous, padded to 4 elements
    finally:
        cartesian.register("my_backend", None)
    with pytest.raises(RuntimeError, match="my_backend"):
        cartesian.zeros((6, 5, 7), backend="my_backend")


ODD: list[Any] = [
    *(None, -1, 0, 1.5, True, float("nan"), "x", b"x", [], (), {}, object(), [None], [2, "3"]),
    *((2, 3), (2**70,), (2**63, 2), np.array(3), np.array([2, 3]), type, len),
]


@pytest.mark.parametrize("name", ["zeros", "full", "from_array"])
@pytest.mark.parametrize("keyword", ["dtype", "aligned_index", "dimensions", "backend"])
def test_odd_arguments_are_exceptions(name: str, keyword: str) -> None:
    """Of the classes that both libraries use, whatever is passed wherever."""
    made = 0
    for first, value in itertools.product(ODD, ODD):
        arguments = (first, 1.0) if name == "full" else (first,)
        try:
            getattr(cartesian, name)(*arguments, **{"backend": "gt:cpu_ifirst"} | {keyword: value})
            made += 1
        except (TypeError, ValueError, MemoryError):
            pass
    assert keyword == "backend" or made  # some of it is fine


def test_a_gpu_backend_without_cupy_says_so() -> None:
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(gridbuf.DeviceUnavailableError, match="cupy"):
            cartesian.zeros((2, 2, 2), backend="gt:gpu")
    else:
        pytest.skip("NOT tested: CuPy is installed")


def test_gt4py_s_import_is_not_needed() -> None:
    """The five functions work where GT4Py is not installed, and import nothing of it."""
    import subprocess
    import sys

    program = (
        "import sys; from gridbuf.gt4py import cartesian as s; "
        "assert s.zeros((2, 3), backend='gt:cpu_ifirst').shape == (2, 3); "
        "assert not [n for n in sys.modules if n.split('.')[0] == 'gt4py']"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


Allocate = Callable[..., Any]


@pytest.mark.parametrize("allocate", [cartesian.zeros, storage.zeros], ids=["gridbuf", "gt4py"])
def test_a_model_switches_with_one_import(allocate: Allocate) -> None:
    """The words of a program that was written for GT4Py."""
    field = allocate(
        shape=(12, 12, 5),
        dtype=np.float32,
        backend="gt:cpu_kfirst",
        aligned_index=(3, 3, 0),
        dimensions=("I", "J", "K"),
    )
    field[3:-3, 3:-3, :] += np.float32(1)
    assert field.sum() == 6 * 6 * 5
