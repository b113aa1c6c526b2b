"""What the suite says of the optional peers: the exact set of required rules that each breaks.

Each id below was checked by hand against the published text and against the library, without the
suite; the line next to it says why it is a real departure. A set that changes means that the
library has changed, or that the suite is wrong: look before adjusting it.
"""

from __future__ import annotations

import pytest
from judged import NUMPY, NUMPY_VERSION, advice, checked, failure
from judged import report as judged_report

from gridbuf_conformance import check, producers
from gridbuf_conformance.abi.gpu import has_gpu
from gridbuf_conformance.engine.producer_run import check_producer
from gridbuf_conformance.targets import CannotLoad

TORCH_VERSION, GT4PY_VERSION = "2.13.0", "1.1.12"
JAX_VERSION, PYARROW_VERSION, PILLOW_VERSION = "0.10.2", "26.0.1", "13.0.0"

TORCH = {
    "DL-05",  # copy=True copies to another address and leaves the flags 0
    "DL-29",  # resize_() reallocates the storage while a capsule lives: its data is unmapped
    "DX-13",  # the import of the exchange table does not look at the version
}
TORCH_ADVICE = {
    "DP-13",  # max_version=[1, 0] is taken: only max_version[0] is looked at
    "DP-23",  # dl_device=(8, 0) raises NotImplementedError from the dispatcher
}
GT4PY = {
    "GT-20",  # shapes whose wrapped size is negative end in an AssertionError instead of an answer
    "GT-24",  # extents are multiplied as numpy.int32: 1024^3 float64 is 8 GiB over a few bytes
    *NUMPY,  # its arrays are NumPy's
}
JAX_ADVICE = {
    "DL-12",  # an empty array exports its real address
    "DP-13",  # max_version=(1, 0, 0) is taken: it is compared with (1, 0) as any tuple is
    "DP-23",  # dl_device="cpu" is unpacked: ValueError (too many values) instead of TypeError
    "DP-27",  # without max_version, an immutable array goes out in a legacy capsule
}
PYARROW_ADVICE = {
    "DP-13",  # max_version=(1, 0, 0) is taken, for the same reason
    "DP-23",  # dl_device="cpu" is compared with the array's device: BufferError, not TypeError
}
PYARROW_TENSOR = {
    "PB-06",  # format is filled without FORMAT: Tensor.__getbuffer__ never looks at the flags
    "PB-08",  # shape is filled for SIMPLE, for the same reason
    "PB-09",  # strides are filled for SIMPLE, for the same reason
    "PB-11",  # SIMPLE and ND succeed for tensors that are not C-contiguous, for the same reason
    "PB-12",  # a tensor in C order grants F_CONTIGUOUS, for the same reason
    "PB-13",  # a tensor over read-only memory grants WRITABLE, with readonly 1
}
LIBRARIES: dict[str, tuple[str, set[str], set[str]]] = {
    "torch.negative": (TORCH_VERSION, {"XA-08"}, set()),  # the memory is exported as it is
    # a capsule with elements at NULL
    "torch.fake": (TORCH_VERSION, {"DL-27", "DP-25"}, {"DP-13", "DP-23"}),
    "torch.freed": (TORCH_VERSION, {"DL-27", "DP-25"}, {"DP-13", "DP-23"}),
    "torch.readonly": (TORCH_VERSION, {"DL-04"}, set()),  # it warns, and has no read-only tensors
    "torch.strided": (TORCH_VERSION, TORCH, TORCH_ADVICE),
    # the exchange table refuses with RuntimeError, __dlpack__ with BufferError
    "torch.meta": (TORCH_VERSION, set(), {"DX-12"}),
    # and hasattr(x, "__cuda_array_interface__") raises RuntimeError
    "torch.sparse": (TORCH_VERSION, set(), {"DX-12", "XA-18"}),
    # the exchange table exports conjugated elements as they are in memory; RuntimeError for nested
    # tensors
    "torch.opaque": (TORCH_VERSION, {"DX-06"}, {"DP-25", "DX-12"}),
    # sizes are multiplied as numpy.int32; hasattr(x, "__cuda_array_interface__") raises TypeError
    "gt4py.buffer": (GT4PY_VERSION, {"GT-20", "GT-24"}, {"DP-14", "XA-18"}),
    "pyarrow.nulls": (PYARROW_VERSION, set(), {"DP-25"}),  # ArrowTypeError
    "jax.keys": (JAX_VERSION, set(), set()),
    # RuntimeError and an error on tracers
    "jax.deleted": (JAX_VERSION, set(), {"DP-25"}),
    "jax.traced": (JAX_VERSION, set(), {"DP-25"}),
    "numpy.scalar": (
        NUMPY_VERSION,
        {
            "AI-28",  # the dict describes a temporary array that only it owns (fixed in NumPy 2.5)
            "PB-08",  # datetime64: shape is filled for SIMPLE: getbuffer never looks at the flags
            "PB-09",  # datetime64: strides stays NULL for STRIDES
        },
        set(),
    ),
    "ml_dtypes": (
        "0.5.4",
        {"AS-03"},  # float8_e5m2 has kind "f" with itemsize 1 in the struct
        {"AI-07", "XA-14"},  # and says "<f1", which NumPy itself does not know
    ),
    "pyarrow.buffer": (
        PYARROW_VERSION,
        {
            *("PB-06", "PB-08", "PB-09"),  # Buffer.__getbuffer__ looks at WRITABLE alone
            "PB-24",  # ResizableBuffer.resize() moves memory that it has exported
        },
        set(),
    ),
    "mlir": (
        f"jaxlib {JAX_VERSION}",
        {
            "PB-02",  # ndim stays 1 without STRIDES
            "PB-08",  # shape stays NULL for ND
            "PB-12",  # F_CONTIGUOUS is granted in C order
            "PB-13",  # WRITABLE is granted with readonly 1
        },
        set(),
    ),
    "pyzmq": (
        "27.3.0",
        {
            "PB-06",  # Frame.__getbuffer__ never looks at the flags: format is always filled
            "PB-08",  # as is shape
            "PB-09",  # and strides never is
            "PB-13",  # a frame that was not copied exports read-only memory as writable
        },
        set(),
    ),
    "nanoarrow": (
        "0.9.0",
        {"PB-08", "PB-09"},  # CBufferView.__getbuffer__ fills shape and strides always
        {"DP-14", "DP-27"},
    ),
    "nanoarrow.builder": ("0.9.0", set(), set()),
    "glm": (
        "2.8.3",
        {"PB-11"},  # also for requests with a shape
        set(),
    ),  # matrices are stored by column and exported without strides
    # The capsule of the array struct does not hold the surface; SIMPLE is granted for memory in
    # Fortran order, in both for the same reasons.
    "pygame": ("2.5.8-ce", {"AS-07"}, {"PB-11"}),
    "pygame.pixelarray": ("2.5.8-ce", {"AS-07"}, {"PB-11"}),
    "pygame.sound": ("2.5.8-ce", {"AS-07"}, set()),  # its capsule does not hold the sound
    "pygame.proxy": ("2.5.8-ce", {"PB-02"}, set()),  # SIMPLE reads strides that were not asked for
    "tvm_ffi": (
        "0.1.15.post2",
        {"DP-15", "DP-20"},  # stream=1 on the CPU is taken; copy=True without max_version shares
        {
            *("DL-12", "DP-13", "DP-23"),
            "DP-12",  # max_version=(0, 1) calls a misspelt private method: AttributeError
        },
    ),
    "vtk": (
        "9.7.2",
        {
            "PB-06",  # from ND up everything is filled
            "PB-09",
            "PB-12",  # F_CONTIGUOUS is granted in C order
        },
        set(),
    ),
    "vtk.readonly": ("9.7.2", {"PB-13"}, set()),  # read-only memory is exported as writable
    "vtk.soa": ("9.7.2", {"PB-34"}, set()),  # each view is another writable copy
    "pyqt6": ("6.11.0", {"PB-24"}, set()),  # QByteArray frees memory that it has exported
    "pyside6": ("6.12.0", {"PB-24"}, set()),  # as does this one
    "usd": ("0.26.11", {"PB-01"}, set()),  # refusals are ValueError
    "ctranslate2": ("4.8.5", set(), {"XA-18"}),  # bfloat16: hasattr raises RuntimeError
    "onnxruntime": (
        "1.31.1",
        {
            "DP-15",  # stream=1 on the CPU is taken
            "GT-20",  # bool is exported as uint8
            "XA-11",  # a capsule does not hold the NumPy array of the value
        },
        {"DL-12", "DP-14"},
    ),
    "av": ("19.0.2", {"DP-15"}, {"DP-14", "XA-02"}),  # stream=1 on the CPU is taken
    "iree": (
        "3.13.0",
        {
            "PB-06",  # MappedMemory always fills format
            "PB-08",  # and never shape
            "PB-09",  # nor strides
            "PB-13",  # WRITABLE is granted with readonly 1
        },
        set(),
    ),
    "cython": (
        "scikit-learn 1.9.1",
        {
            "PB-09",  # strides is filled for ND
            "PB-11",  # contiguity is never checked
            "PB-12",  # in neither order
        },
        set(),
    ),
    "warp": ("1.19.0", set(), {"DP-14"}),
    "warp.readonly": ("1.19.0", {"AI-25"}, set()),  # an array does not record that it is read-only
    # descr is a dict; the refusal of DLPack is a RuntimeError
    "warp.struct": ("1.19.0", {"AI-11"}, {"DP-14", "DP-25"}),
    "drjit": ("1.5.0", {"DP-15"}, {"DL-12", "DP-14"}),  # stream=1 on the CPU is taken
    "paddle": ("3.3.1", {"DP-02"}, {"DP-13", "DP-23", "GT-15"}),  # the device's number is None
    "mlx": (
        "0.32.4",
        {
            "PB-08",  # shape stays NULL for ND
            "PB-11",  # contiguity is never checked
            "PB-12",  # in neither order
            "PB-20",  # bfloat16 has the format "bfloat16"
            "DP-15",  # stream=1 on the CPU is taken
        },
        {"DL-12", "DP-13"},
    ),
    "tensorflow": (
        "2.21.0",
        {
            "PB-01",  # the requests go to NumPy, whose refusals are ValueError
        },
        {
            "DP-20",  # copy=True is RuntimeError
            *("DL-12", "DP-13", "DP-23", "DP-27"),
        },
    ),
    "tensorflow.string": ("2.21.0", {"DP-25"}, set()),  # a failed CHECK ends the process
    "array_api_strict": ("2.6.1", set(), {"DL-12"}),
    "array_api_strict.devices": ("2.6.1", set(), {"DL-12"}),
    "awkward": ("2.14.0", set(), {"DL-12", "DP-14"}),
    "skia": ("144.1", set(), {"AI-19"}),
    "blosc2": ("4.14.1", set(), set()),
    "bitarray": ("3.12.3", set(), set()),
    "cffi": ("2.1.1", set(), set()),
    "cffi.readonly": ("2.1.1", {"PB-13"}, set()),  # read-only memory is exported as writable
    "mpi4py": (
        "4.1.2",
        {"PB-24"},  # release() gives the owner's memory back under a view of the buffer
        set(),
    ),
    "cramjam": ("2.14.0", set(), set()),
    "zstandard": ("0.25.0", set(), set()),
}
"""Each further library: the version that was verified by hand, the rules that it breaks, and what
it is advised.

Those that third_party/python/peers.in names are judged wherever the peers are installed; the others
where they are installed.
"""


def test_torch() -> None:
    report = checked("torch", TORCH_VERSION)
    assert set(report.failed) == TORCH
    assert advice(report) == TORCH_ADVICE


def test_gt4py_wraps_at_32_bits_and_the_memory_is_not_touched() -> None:
    report = checked("gt4py", GT4PY_VERSION)
    assert set(report.failed) == GT4PY
    assert report.outcomes["GT-24"] == "FAIL", "found by looking, not by a crash"
    assert "not all mapped" in failure(report, "GT-24")["actual"]
    assert "crash" not in report.data["plans"]
    plan = failure(report, "GT-24")["plan"]
    assert plan["fill"] is None


def test_the_field_allocator_of_gt4py_wraps_at_32_bits() -> None:
    report = checked("gt4py.next", GT4PY_VERSION)
    assert set(report.failed) == GT4PY
    assert "not all mapped" in failure(report, "GT-24")["actual"]


def test_the_field_allocator_of_gridbuf_breaks_nothing_but_numpys_rules() -> None:
    assert set(checked("gridbuf.next").failed) == NUMPY


def test_fields_over_any_dimensions_break_nothing() -> None:
    """Names are the plan's: Cell and Edge stay Cell and Edge."""
    report = checked("gridbuf.next.fields")
    assert report.failed == (), report.to_json()
    assert advice(report) == set()
    passed = {id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"}
    assert {"GT-01", "GT-02", "GT-05", "GT-13", "GT-14", "GT-18", "GT-19", "GT-21"} <= passed


def test_a_live_field_of_gt4py_breaks_nothing() -> None:
    gtx = pytest.importorskip("gt4py.next", reason="gt4py is not installed")
    pytest.importorskip("gridbuf.gt4py.next", reason="gridbuf is not installed")  # the interfaces
    level = gtx.Dimension("K", gtx.DimensionKind.VERTICAL)
    report = check(gtx.zeros({gtx.Dimension("Cell"): 6, level: 4}))
    assert report.failed == () and advice(report) == set(), report.to_json()
    assert report.outcomes["GT-13"] == report.outcomes["GT-18"] == "PASS"


def test_named_arrays_over_storages_break_nothing() -> None:
    report = checked("gridbuf.xarray")
    assert report.failed == (), report.to_json()
    passed = {id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"}
    assert {
        "GT-01",
        "GT-02",
        "GT-04",
        "GT-05",
        "GT-11",
        "GT-13",
        "GT-18",
        "GT-26",
        "GT-28",
    } <= passed


def test_the_exchange_table_of_torch_is_judged() -> None:
    outcomes = checked("torch").outcomes
    if outcomes["DX-01"] == "UNSUPPORTED":
        pytest.skip("this torch has no exchange table")
    assert {f"DX-{n:02}" for n in range(1, 11)} <= {r for r, o in outcomes.items() if o == "PASS"}


def test_jax() -> None:
    report = checked("jax", JAX_VERSION)
    assert report.failed == (), report.to_json()
    assert advice(report) == JAX_ADVICE


def test_pyarrow() -> None:
    report = checked("pyarrow", PYARROW_VERSION)
    assert report.failed == (), report.to_json()
    assert advice(report) == PYARROW_ADVICE | {"DP-27"}
    report = checked("pyarrow.tensor", PYARROW_VERSION)
    assert set(report.failed) == PYARROW_TENSOR
    assert advice(report) == PYARROW_ADVICE | {"DP-12"}  # ArrowNotImplementedError


def test_pillow_and_xarray() -> None:
    for name, version in (("pillow", PILLOW_VERSION), ("xarray", None)):
        report = checked(name, version)
        assert report.failed == (), report.to_json()
        assert advice(report) == set()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough) if name == "jax.keys" else name
        for name in LIBRARIES
    ],
)
def test_library(name: str) -> None:
    version, broken, advised = LIBRARIES[name]
    report = checked(name, version)
    assert set(report.failed) == broken, report.to_json()
    assert advice(report) == advised


def test_pyglms_arrays_break_what_they_touch() -> None:
    """F_CONTIGUOUS|WRITABLE exports memory past the array's: where the process dies of it varies,
    that it does not.
    """
    checked("glm", "2.8.3")
    target = "gridbuf_conformance.plugins.libraries.glm:ArrayProducer"
    report = check_producer(target, profile="smoke", rules="PB-*")
    assert {"PB-02", "PB-12", "PB-13"} & set(report.failed), report.to_json()


def test_every_library_has_its_verdict() -> None:
    """An unchecked producer would report failures that were never verified."""
    others = {
        "glm.array",
        "numpy",
        "torch",
        "jax",
        "pyarrow",
        "pyarrow.tensor",
        "pillow",
        "xarray",
        "gt4py",
        "gt4py.next",
    }
    others |= {"array", "bytes", "bytearray", "memoryview", "ctypes", "mmap", "cupy", "numba"}
    others |= {"ctypes.special", "numpy.field", "numpy.memmap", "numpy.references"}
    judged = LIBRARIES.keys() | others
    left = {name for name in producers.BUILT_IN if not name.startswith("gridbuf")} - judged
    assert left == set()


def test_producers_without_a_device_say_so() -> None:
    for name in ("cupy", "numba"):
        entry = producers.find(name)
        if entry.is_usable:
            assert "ERROR" not in judged_report(name).outcomes.values()
        elif entry.is_installed:
            with pytest.raises(CannotLoad, match="needs a CUDA device"):
                judged_report(name)
    if not has_gpu():
        pytest.skip("UNTESTED here: no CUDA device; CuPy and Numba are judged where there is one")
