"""The example's extensions, built with g++, and judged by the suite."""

import ctypes
import gc
import importlib
import os
import pathlib
import statistics
import subprocess
import sys
import sysconfig
import tarfile
import time
from types import ModuleType

import gridbuf
import gridbuf_conformance
import numpy as np
import pybind11
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = pathlib.Path(__file__).parent / "gridbuf.tar.gz"
EXAMPLE = ROOT / "examples/python_extension"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("extensions")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(made / "installed")
    sys.path.insert(0, str(made))
    return made


def build(folder: pathlib.Path, source: pathlib.Path, *flags: str) -> ModuleType:
    (prefix,) = (folder / "installed").iterdir()
    command = [
        *("g++", "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror"),
        *("-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"),
        *(f"-isystem{sysconfig.get_path('include')}", f"-I{prefix}/include", *flags),
        source,
        *(f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lgridbuf"),
        *("-o", folder / f"{source.stem}.so"),
    ]
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return importlib.import_module(source.stem)


@pytest.fixture(scope="module")
def arrays(folder: pathlib.Path) -> ModuleType:
    return build(folder, EXAMPLE / "arrays_pybind11.cc", f"-isystem{pybind11.get_include()}")


def test_memory_is_shared_and_owned(arrays) -> None:
    a = np.ones((4, 6))
    arrays.twice(a[::2, 1:])
    assert a.sum() == 24 + 10
    readonly = np.arange(3.0)
    readonly.flags.writeable = False
    assert arrays.sum(readonly) == 3.0
    filled = np.from_dlpack(arrays.filled(2, 3, 1.5))
    gc.collect()
    assert filled.dtype == np.float32
    assert (filled == 1.5).all()
    assert filled.shape == (2, 3)


def test_a_shared_argument_outlives_the_call(arrays) -> None:
    x = np.arange(5.0)
    before = sys.getrefcount(x)
    kept = arrays.kept(x[::-2])
    assert sys.getrefcount(x.base if x.base is not None else x) > before
    view = np.from_dlpack(kept)
    del kept
    assert np.shares_memory(view, x)
    assert view.tolist() == [4.0, 2.0, 0.0]
    del view
    assert sys.getrefcount(x) == before


def test_what_a_tensor_says_is_checked(arrays) -> None:
    """The argument's own check, of exporters that NumPy cannot be."""
    memory = np.arange(6.0)
    for change, kind, message in [
        ({"shape": [2, -1]}, BufferError, r"shape is \(2, -1\), but must be"),
        ({"ndim": 65}, BufferError, "ndim is 65, but must be from 0 to 64"),
        ({"ndim": 1}, TypeError, "the rank is 1, but must be 2"),
        ({"lanes": 2}, BufferError, "lanes"),
        ({"code": 77}, BufferError, "77"),
        ({"major": 2}, BufferError, "2"),
        ({"byte_offset": 4}, TypeError, "address is .*, but must be a multiple of 8; copy"),
        ({"data": None}, BufferError, "address|data"),
    ]:
        with pytest.raises(kind, match=message):
            arrays.twice(Described(memory, **change))
    arrays.twice(Described(memory, strides=None))
    assert memory.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    arrays.twice(Described(memory, shape=[0, 3], data=None))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((2, 2), np.complex64), "element type is complex64, but must be float64"),
        (np.ones((2, 2), np.float32), "element type is float32, but must be float64"),
        (np.ones(3), "rank is 1, but must be 2"),
        (np.broadcast_to(1.0, (2, 2)), "read-only, but must be writable"),
        (5, "incompatible function arguments"),
    ],
)
def test_refused(arrays, value: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        arrays.twice(value)


def test_the_opposite_byte_order_is_refused(arrays) -> None:
    with pytest.raises(BufferError, match="big-endian.*convert the array"):
        arrays.twice(np.ones((2, 2), ">f8"))


def test_arrays_of_numpy_that_do_not_fit_say_why(arrays) -> None:
    odd = np.frombuffer(bytearray(33), np.float64, offset=1).reshape(2, 2)
    with pytest.raises(TypeError, match=r"address is .*, but must be a multiple of 8; copy"):
        arrays.twice(odd)
    fields = np.zeros((2, 2), "f8,i4")["f0"]
    with pytest.raises((TypeError, BufferError), match="stride.*12.*copy"):
        arrays.twice(fields)
    with pytest.raises(BufferError, match="masked.*fill them first"):
        arrays.twice(np.ma.masked_equal([[1.0, 2.0]], 2.0))
    with pytest.raises(BufferError, match="dtype is datetime64"):
        arrays.twice(np.zeros((2, 2), "M8[s]"))


def test_other_classes_with_memory_of_the_host(arrays) -> None:
    class Subclass(np.ndarray):
        pass

    storages = pytest.importorskip("gridbuf.storage")
    a = np.ones((4, 6))
    for same in (a.view(Subclass), gridbuf.as_buffer(a), storages.storage(a, copy=False)):
        arrays.twice(same)
    assert (a == 8.0).all()
    a.flags.writeable = False
    assert arrays.sum(gridbuf.as_buffer(a)[0]) == 48.0
    with pytest.raises(TypeError, match="read-only, but must be writable"):
        arrays.twice(gridbuf.as_buffer(a))


class OnDevice:
    """An array of a device that is not there."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **_: object) -> object:
        capsule = np.ones((2, 2)).__dlpack__(max_version=(1, 0))
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # version, context, deleter, flags, data: 40 bytes
        ctypes.c_int32.from_address(pointer(capsule, b"dltensor_versioned") + 40).value = 2
        return capsule


class Described:
    """A tensor of host memory that says what it is told."""

    def __init__(self, memory: np.ndarray, **told: object) -> None:
        said = {
            "data": memory.ctypes.data,
            "shape": [2, 3],
            "strides": [3, 1],
            "byte_offset": 0,
            "code": 2,
            "lanes": 1,
            "major": 1,
            **told,
        }
        lists = {
            key: (ctypes.c_int64 * len(said[key]))(*said[key]) if said[key] else None
            for key in ("shape", "strides")
        }
        fields = [
            *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)),
            *(("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)),
            *(("flags", ctypes.c_uint64), ("data", ctypes.c_void_p)),
            *(("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)),
            *(("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8)),
            *(("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p)),
            *(("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)),
        ]
        kind = type("Tensor", (ctypes.Structure,), {"_fields_": fields})
        self.tensor = kind(
            **{key: said[key] for key in ("data", "byte_offset", "code", "lanes", "major")},
            **{key: ctypes.addressof(lists[key]) if lists[key] else None for key in lists},
            ndim=said.get("ndim", len(said["shape"])),
            device_type=1,
            bits=64,
        )
        self.kept = lists, memory

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: object) -> object:
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
        )
        return make(ctypes.addressof(self.tensor), b"dltensor_versioned", None)


class Fails:
    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: object) -> object:
        raise KeyError("reason")


class NoCapsule(Fails):
    def __dlpack__(self, **_: object) -> object:
        return 3


class Consumed(Fails):
    capsule = np.ones((2, 2)).__dlpack__()

    def __dlpack__(self, **_: object) -> object:
        return self.capsule


def test_other_exporters(arrays) -> None:
    with pytest.raises(gridbuf.DeviceUnavailableError):
        arrays.twice(OnDevice())
    with pytest.raises(KeyError, match="reason"):
        arrays.twice(Fails())
    with pytest.raises(TypeError, match="what __dlpack__ returned is .*, but must be a capsule"):
        arrays.twice(NoCapsule())
    arrays.twice(Consumed())
    for _ in range(2):
        with pytest.raises(BufferError, match="must be a capsule that was not consumed yet"):
            arrays.twice(Consumed())


def test_a_storage_of_both_sides_gives_that_of_the_function(arrays) -> None:
    storages = pytest.importorskip("gridbuf.storage")
    testing = importlib.import_module("gridbuf.testing")
    with testing.emulated_device():
        field = storages.ones((4, 6), device="gpu")
        field.host_to_device(force=True)
        field += 1.0  # on the device
        arrays.twice(field)
        assert field.sum() == 96.0
        field.host_to_device()
        assert np.asarray(field.sum()) == 96.0
        view = arrays.kept(field[1:, ::2])
        assert view.shape == (3, 3) and np.asarray(view)[0, 0] == 4.0
        only = storages.ones((4, 6), device="gpu", managed=None)
        with pytest.raises(
            TypeError, match="memory is a device's, but must be readable by the host"
        ):
            arrays.twice(only)
        on_device = arrays.kept(only)
        assert on_device.__dlpack_device__() == (2, 0) and on_device.shape == (4, 6)
        arrays.twice(storages.ones((4, 6), device="gpu", managed="cuda"))
        del field, view, only, on_device
        testing.synchronize()


def test_errors_of_gridbuf_are_pythons(arrays, containers) -> None:
    with pytest.raises(ValueError, match="shape"):
        arrays.filled(-1, 3, 1.0)
    with pytest.raises((ValueError, MemoryError)):
        arrays.filled(2**40, 2**40, 1.0)
    for status, kind in enumerate(
        (ValueError, TypeError, IndexError, MemoryError, BufferError, *[RuntimeError] * 4), 1
    ):
        for _ in range(2):
            with pytest.raises(kind, match="the text") as caught:
                containers.raises(status)
            assert type(caught.value) is kind
    with pytest.raises(RuntimeError, match="not of gridbuf"):
        containers.raises(0)
    assert containers.raises_in_a_thread() == 1  # which does not wait for Python's lock
    with pytest.raises(IndexError, match="the text"):
        containers.raises_without_lock(np.ones(1))


def test_returned_arrays_say_what_they_are(arrays) -> None:
    made = arrays.filled(2, 3, 1.5)
    assert type(made) is gridbuf.Buffer
    assert made.shape == (2, 3) and made.dtype == np.dtype(np.float32)
    array = np.asarray(made)
    array[0] = 2.0
    assert np.asarray(made)[0].tolist() == [2.0, 2.0, 2.0]
    del made
    gc.collect()
    assert array.tolist() == [[2.0] * 3, [1.5] * 3]


def test_tensors_whose_memory_has_their_values_are_taken(arrays, containers) -> None:
    tensors = pytest.importorskip("tensors")
    for kind, make in tensors.READABLE.items():
        tensor = make()
        if kind == "float16":  # which C++17 does not have
            continue
        found = np.from_dlpack(containers.any(tensor))
        np.testing.assert_array_equal(found, tensors.values(tensor), err_msg=kind)
    tensor = tensors.numbers(2, 3)
    arrays.twice(tensor.T)
    assert tensor.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]


FUNCTIONS = ("kept", "sum", "twice")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_tensors_whose_memory_does_not_have_their_values_are_refused(arrays, function) -> None:
    tensors = pytest.importorskip("tensors")
    for make in tensors.REFUSED.values():
        tensor = make()
        with tensors.unchanged(tensor), pytest.raises(tensors.REFUSALS):
            getattr(arrays, function)(tensor)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_tensors_within_functions_of_pytorch_are_refused(arrays, function) -> None:
    tensors = pytest.importorskip("tensors")
    refused = []

    def use(tensor):
        with pytest.raises(tensors.REFUSALS):
            getattr(arrays, function)(tensor)
        refused.append(tensor)
        return tensor

    for transform in tensors.WITHIN.values():
        transform(use)
    assert len(refused) == len(tensors.WITHIN)


def test_the_error_says_what_to_do_with_a_tensor(arrays) -> None:
    tensors = pytest.importorskip("tensors")
    with pytest.raises(BufferError, match="resolve_neg"):
        arrays.sum(tensors.REFUSED["imaginary parts of conjugated"]())
    with pytest.raises(BufferError, match="address of the tensor's storage is 0"):
        arrays.sum(tensors.REFUSED["far into fake"]())


@pytest.mark.parametrize("strided", [False, True])
def test_the_suite_finds_no_failure_in_returned_arrays(arrays, strided: bool) -> None:
    made = (
        arrays.kept(np.arange(24.0).reshape(4, 6)[::2, ::-3])
        if strided
        else arrays.filled(2, 3, 1.5)
    )
    report = gridbuf_conformance.check(made)
    assert report.failed == (), report
    assert report.exit_code == 0, report


@pytest.mark.thorough
@pytest.mark.parametrize("function", ["arrays_pybind11:kept", "containers:any"])
def test_the_suite_finds_no_failure(
    folder: pathlib.Path, arrays, containers, function: str
) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "gridbuf_conformance", "check", "--consumer"),
            *("--profile", "smoke", function),
        ],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conforms" in done.stdout


CONTAINERS = """\
#include <gridbuf_pybind11.h>
#include <pybind11/stl.h>

#include <complex>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

using gridbuf::view;
using line = view<double, 1>;
template <class... T>
using any_of = std::variant<std::monostate, gridbuf::array<T>...>;
using any_array = any_of<double, float, std::complex<double>, std::complex<float>, bool, std::int8_t,
                         std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                         std::uint32_t, std::uint64_t>;

static double first(const line& a) { return a(0); }
static double of_optional(std::optional<line> a) { return a ? first(*a) : -1; }
static double of_vector(std::vector<line> a) {
  double total = 0;
  for (const line& one : a) total += first(one);
  return total;
}
static double of_optional_vector(std::optional<std::vector<line>> a) {
  return a ? of_vector(*std::move(a)) : -1;
}
static double of_vector_of_optional(std::vector<std::optional<line>> a) {
  double total = 0;
  for (const auto& one : a) total += one ? first(*one) : -1;
  return total;
}
static double of_map(std::map<std::string, line> a) { return first(a.at("a")); }
static double of_tuple(std::tuple<line, int> a) { return first(std::get<0>(a)); }
static double of_vector_of_tuple(std::vector<std::tuple<line, int>> a) {
  return first(std::get<0>(a.at(0)));
}
static double of_pair(std::pair<line, line> a) { return first(a.first) + first(a.second); }
static double of_variant(std::variant<std::monostate, line, view<float, 2>> a) {
  return a.index() == 1 ? first(std::get<1>(a)) : a.index() == 2 ? std::get<2>(a)(0, 0) : -1;
}
static double of_const(std::optional<view<const float>>) { return 0; }
static any_array any(any_array a) { return a; }
static double of_overload(const gridbuf::view<double, 1>&) { return 1; }
static double of_other_overload(const gridbuf::view<const float, 2>&) { return 2; }
static gridbuf::array<double> made(double value) {
  gridbuf::options wanted;
  wanted.shape = {2};
  gridbuf::array<double> array(wanted);
  array.fill(value);
  return array;
}
static std::vector<gridbuf::array<double>> vector_of() {
  std::vector<gridbuf::array<double>> all;
  all.push_back(made(1)), all.push_back(made(2));
  return all;
}
static std::optional<gridbuf::array<double>> optional_of(bool some) {
  if (!some) return {};
  return made(3);
}
struct without_lock {
  PyThreadState* state = PyEval_SaveThread();
  ~without_lock() { PyEval_RestoreThread(state); }
};
static void raises_without_lock(const line&) {
  const without_lock released;
  throw gridbuf::error(GRIDBUF_INDEX, "the text");
}
static int raises_in_a_thread() {
  int caught = 0;
  std::thread([&] {
    try {
      throw gridbuf::error(GRIDBUF_VALUE, "of a thread");
    } catch (const gridbuf::error&) {
      ++caught;
    }
  }).join();
  return caught;
}
static void raises(int status) {
  if (status == 0) throw std::runtime_error("not of gridbuf");
  throw gridbuf::error(status, "the text");
}
static std::tuple<gridbuf::array<double>, int> tuple_of() { return {made(4), 5}; }

PYBIND11_MODULE(containers, module) {
  module.def("of_optional", &of_optional), module.def("of_vector", &of_vector);
  module.def("of_optional_vector", &of_optional_vector);
  module.def("of_vector_of_optional", &of_vector_of_optional);
  module.def("of_map", &of_map), module.def("of_tuple", &of_tuple);
  module.def("of_vector_of_tuple", &of_vector_of_tuple), module.def("of_pair", &of_pair);
  module.def("of_variant", &of_variant), module.def("any", &any);
  module.def("overloaded", &of_overload), module.def("overloaded", &of_other_overload);
  module.def("of_const", &of_const), module.def("vector_of", &vector_of);
  module.def("raises", &raises), module.def("raises_in_a_thread", &raises_in_a_thread);
  module.def("raises_without_lock", &raises_without_lock);
  module.def("optional_of", &optional_of), module.def("tuple_of", &tuple_of);
}
"""


@pytest.fixture(scope="module")
def containers(folder: pathlib.Path) -> ModuleType:
    source = folder / "containers.cc"
    source.write_text(CONTAINERS)
    return build(folder, source, f"-isystem{pybind11.get_include()}")


WRAPPED = {
    "of_optional": lambda a: a,
    "of_vector": lambda a: [np.ones(1), a],
    "of_optional_vector": lambda a: [np.ones(1), a],
    "of_vector_of_optional": lambda a: [None, a],
    "of_map": lambda a: {"b": np.ones(1), "a": a},
    "of_tuple": lambda a: (a, 1),
    "of_vector_of_tuple": lambda a: [(a, 1)],
    "of_pair": lambda a: (np.ones(1), a),
    "of_variant": lambda a: a,
}


def test_temporary_arrays_live_during_the_call(containers) -> None:
    assert containers.of_vector(np.full(1, float(i)) for i in range(4)) == 6.0
    assert containers.of_vector(gridbuf.as_buffer(np.full(1, float(i))) for i in range(4)) == 6.0


def readonly(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("function", WRAPPED)
def test_arguments_in_containers(containers, function: str) -> None:
    call, wrap = getattr(containers, function), WRAPPED[function]
    memory = np.array([5.0])
    before = sys.getrefcount(memory)
    assert call(wrap(memory)) in (4.0, 5.0, 6.0)
    for _ in range(3):
        for refused in (np.ones(2, "f4"), np.ones((2, 2)), readonly(np.ones(2)), 5, "text"):
            text = "float64|rank is 2, but|read-only, but"
            with pytest.raises(TypeError, match=text):
                call(wrap(refused))
        for raises in (OnDevice(), Fails(), NoCapsule()):
            with pytest.raises((TypeError, KeyError, gridbuf.DeviceUnavailableError)):
                call(wrap(raises))
        assert call(wrap(memory)) in (4.0, 5.0, 6.0)
    assert sys.getrefcount(memory) == before


def test_signatures_say_what_an_argument_takes(containers) -> None:
    line = 'typing.Annotated[gridbuf.array, "numpy.float64, ndim 1, writable"]'
    assert line in containers.of_vector.__doc__
    assert 'typing.Annotated[gridbuf.array, "numpy.float32"]' in containers.of_const.__doc__
    assert "gridbuf.Buffer" in containers.optional_of.__doc__
    assert containers.of_optional(None) == -1
    assert containers.any(np.ones(2, "i2")).dtype == np.int16
    assert containers.of_variant(np.full((1, 1), 7, "f4")) == 7


def test_the_first_overload_that_fits_is_called(containers) -> None:
    assert containers.overloaded(np.ones(2)) == 1
    assert containers.overloaded(np.ones((2, 2), "f4")) == 2
    with pytest.raises(TypeError, match="element type is int32, but must be float64"):
        containers.overloaded(np.ones(2, "i4"))


def test_results_in_containers(containers) -> None:
    assert [np.from_dlpack(a).tolist() for a in containers.vector_of()] == [[1.0] * 2, [2.0] * 2]
    assert containers.optional_of(False) is None
    assert np.from_dlpack(containers.optional_of(True)).tolist() == [3.0, 3.0]
    array, number = containers.tuple_of()
    assert (np.from_dlpack(array).tolist(), number) == ([4.0, 4.0], 5)


def build_of_nanobind(folder: pathlib.Path, source: pathlib.Path, *flags: str) -> ModuleType:
    nanobind = pytest.importorskip("nanobind", reason="NOT run: no nanobind; ./bazelw --peers")
    package = pathlib.Path(nanobind.source_dir()).parent
    includes = (nanobind.include_dir(), package / "ext/robin_map/include")
    combined = str(package / "src/nb_combined.cpp")
    return build(folder, source, *(f"-isystem{path}" for path in includes), *flags, combined)


def test_the_example_of_nanobind(folder: pathlib.Path) -> None:
    arrays = build_of_nanobind(folder, EXAMPLE / "arrays_nanobind.cc")
    a = np.ones((4, 6))
    arrays.twice(a[::2, 1:])
    assert a.sum() == 24 + 10
    for refused in (np.ones((2, 2), "f4"), np.ones(3), np.broadcast_to(1.0, (2, 2))):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            arrays.twice(refused)
    filled = arrays.filled(2, 3, 1.5)
    gc.collect()
    assert filled.tolist() == [[1.5] * 3] * 2


@pytest.mark.thorough
def test_a_call_costs_as_much_as_with_the_array_of_nanobind(folder: pathlib.Path) -> None:
    ours, theirs = folder / "ours.cc", folder / "theirs.cc"
    ours.write_text("""\
#include <gridbuf_pybind11.h>
PYBIND11_MODULE(ours, module) {
  module.def("call", [](const gridbuf::view<double, 2>& a) { return a(0, 0); });
}
""")
    theirs.write_text("""\
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
using array = nanobind::ndarray<double, nanobind::ndim<2>, nanobind::device::cpu>;
NB_MODULE(theirs, module) {
  module.def("call", [](const array& a) { return a.view()(0, 0); });
}
""")
    calls = {
        "theirs": build_of_nanobind(folder, theirs, "-O2", "-DNDEBUG").call,
        "ours": build(folder, ours, f"-isystem{pybind11.get_include()}", "-O2", "-DNDEBUG").call,
    }
    array, ratios = np.ones((4, 6)), []
    for _ in range(61):
        spent = {}
        for name, call in calls.items():
            start = time.process_time_ns()
            for _ in range(10_000):
                call(array)
            spent[name] = time.process_time_ns() - start
        ratios.append(spent["ours"] / spent["theirs"])
    ratio = statistics.median(ratios)
    print(f"{ratio:.2f} x the time of nanobind's ndarray")
    assert ratio <= 1.2
