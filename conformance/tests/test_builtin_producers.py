"""What the suite says of real libraries: the exact set of required rules that each breaks.

Each id below was checked by hand against the published text and against the library, without the suite; the
line beside it says why it is a real departure. A set that changes means that the library has changed, or
that the suite is wrong: look before adjusting it.
"""

from __future__ import annotations

from functools import cache

import pytest

from gridbuf_conformance import catalogue, check, producers
from gridbuf_conformance.engine import check_producer
from gridbuf_conformance.report import Report
from gridbuf_conformance.targets import CannotLoad

NUMPY_VERSION, TORCH_VERSION, GT4PY_VERSION = "2.4.6", "2.13.0", "1.1.12"
JAX_VERSION, PYARROW_VERSION, PILLOW_VERSION = "0.10.2", "26.0.1", "13.0.0"

CTYPES = {
    "PB-04",  # a packed Structure of 13 bytes is exported with format "B", one byte
    "PB-06",  # format is filled for requests without FORMAT: PyCData's getbuffer never looks at the flags
    "PB-08",  # shape is filled for SIMPLE, for the same reason
    "PB-09",  # strides stays NULL for STRIDES: it is never filled, though consumers may rely on it
    "PB-12",  # a 2-d array in C order grants F_CONTIGUOUS, for the same reason
}
NUMPY = {
    "PB-01",  # refusals are ValueError ("ndarray is not Fortran contiguous"), the text wants BufferError
}
NUMPY_ADVICE = {
    "DL-12",  # an empty array exports its real address; the header asks for NULL, the Python text does not
    "XA-06",  # structured arrays: `flags &= NPY_ARR_HAS_DESCR` clears "writable" in __array_struct__
    "XA-14",  # what neither can export is ValueError through the buffer protocol, BufferError through DLPack
}
TORCH = {
    "DL-05",  # copy=True copies to another address and leaves the flags 0
    "DL-29",  # resize_() reallocates the storage while a capsule lives: its data pointer is unmapped
    "DP-15",  # stream=1 on the CPU is refused by AssertionError
}
TORCH_ADVICE = {
    "DP-13",  # max_version=[1, 0] is taken: only max_version[0] is looked at
    "DP-23",  # dl_device=(8, 0) raises NotImplementedError from the dispatcher
}
GT4PY = {
    "GT-20",  # shapes whose wrapped size is negative end in an AssertionError instead of an answer
    "GT-24",  # extents are multiplied as numpy.int32: 1024^3 float64 is a view of 8 GiB over a few bytes
    *NUMPY,  # its arrays are NumPy's
}
JAX_ADVICE = {
    "DL-12",  # an empty array exports its real address
    "DP-13",  # max_version=(1, 0, 0) is taken: it is compared with (1, 0) as any tuple is
    "DP-23",  # dl_device="cpu" is unpacked: ValueError (too many values) instead of TypeError
    "DP-27",  # without max_version, an immutable array goes out in a legacy capsule, which cannot say so
}
PYARROW_ADVICE = {
    "DP-13",  # max_version=(1, 0, 0) is taken, for the same reason
    "DP-23",  # dl_device="cpu" is compared with the array's own device: BufferError instead of TypeError
}
PYARROW_TENSOR = {
    "PB-06",  # format is filled for requests without FORMAT: Tensor.__getbuffer__ never looks at the flags
    "PB-08",  # shape is filled for SIMPLE, for the same reason
    "PB-09",  # strides are filled for SIMPLE, for the same reason
    "PB-11",  # SIMPLE and ND succeed for tensors that are not C-contiguous, for the same reason
    "PB-12",  # a tensor in C order grants F_CONTIGUOUS, for the same reason
}
LIBRARIES: dict[str, tuple[str, set[str], set[str]]] = {
    "numpy.scalar": (
        NUMPY_VERSION,
        {
            "AI-33",  # the dict describes a temporary array that only the dict owns (NumPy 2.5 mended it)
            "PB-08",  # datetime64: shape is filled for SIMPLE: its getbuffer never looks at the flags
            "PB-09",  # datetime64: strides stays NULL for STRIDES
        },
        set(),
    ),
    "ml_dtypes": (
        "0.5.4",
        {
            "AI-07",  # float8_e5m2 says "<f1", which NumPy itself does not know
            "AS-03",  # and kind "f" with itemsize 1 in the struct
        },
        {"XA-14"},
    ),
    "pyarrow.buffer": (
        PYARROW_VERSION,
        {"PB-06", "PB-08", "PB-09"},  # Buffer.__getbuffer__ looks at WRITABLE alone
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
            "PB-13",  # a frame that was not copied lends read-only memory as writable
        },
        set(),
    ),
    "nanoarrow": (
        "0.9.0",
        {"PB-08", "PB-09"},  # CBufferView.__getbuffer__ fills shape and strides always
        {"DP-14", "DP-27"},
    ),
    "glm": ("2.8.3", {"PB-11"}, set()),  # matrices lie by column and are lent without strides
    "pygame": ("2.5.8-ce", {"PB-11"}, set()),  # SIMPLE is granted for memory in Fortran order
    "pygame.pixelarray": ("2.5.8-ce", {"PB-11"}, set()),  # the same, in code of its own
    "pygame.sound": ("2.5.8-ce", set(), set()),
    "tvm_ffi": (
        "0.1.15.post2",
        {
            "DP-12",  # max_version=(0, 1) calls a misspelt private method: AttributeError
            "DP-15",  # stream=1 on the CPU is taken
        },
        {"DL-12", "DP-13", "DP-23"},
    ),
    "vtk": (
        "9.7.2",
        {
            "PB-05",  # SIMPLE says itemsize 1 of doubles
            "PB-06",  # from ND up everything is filled
            "PB-09",
            "PB-12",  # F_CONTIGUOUS is granted in C order
        },
        set(),
    ),
    "vtk.soa": ("9.7.2", {"PB-34"}, set()),  # each view is another writable copy
    "pyqt6": ("6.11.0", {"PB-24"}, set()),  # QByteArray frees memory that is lent
    "pyside6": ("6.12.0", {"PB-24"}, set()),  # as does this one
    "usd": ("0.26.11", {"PB-01"}, set()),  # refusals are ValueError
    "ctranslate2": ("4.8.5", {"XA-18"}, set()),  # bfloat16: hasattr raises RuntimeError
    "onnxruntime": (
        "1.31.1",
        {
            "DP-15",  # stream=1 on the CPU is taken
            "GT-20",  # bool is exported as uint8
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
    "warp": ("1.19.0", {"XA-04"}, {"DP-14"}),  # bfloat16 is <u2 in the dict, bfloat in DLPack
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
            "DP-20",  # copy=True is RuntimeError
        },
        {"DL-12", "DP-13", "DP-23", "DP-27"},
    ),
    "tensorflow.string": ("2.21.0", {"DP-25"}, set()),  # a failed CHECK ends the process
    "array_api_strict": ("2.6.1", set(), {"DL-12"}),
    "awkward": ("2.14.0", set(), {"DL-12", "DP-14"}),
    "skia": ("144.1", set(), {"AI-19"}),
    "blosc2": ("4.14.1", set(), set()),
    "bitarray": ("3.12.3", set(), set()),
    "cffi": ("2.1.1", set(), set()),
    "mpi4py": ("4.1.2", set(), set()),
    "cramjam": ("2.14.0", set(), set()),
    "zstandard": ("0.25.0", set(), set()),
}
"""Each further library: the version that was verified by hand, the rules that it breaks, and what it is advised.

Those that third_party/python/peers.in names are judged wherever the peers are; the others where somebody has them.
"""


GRIDBUF_IN_DEVICE_MEMORY = {
    *(f"CAI-{n:02}" for n in (*range(1, 8), 9, 10, 11, 12, 14, 16, 17, 18, 22, 23, 26, 29, 30)),
    *("DL-18", "DP-18", "DP-24", *(f"DX-{n:02}" for n in range(1, 11)), "XA-16"),
    *("GT-01", "GT-02", "GT-03", "GT-04", "GT-12", "GT-13", "GT-14", "GT-20", "GT-24", "XA-10"),
}
"""What gridbuf's memory on a device must have been judged by, and must pass."""


@cache
def _report(name: str) -> Report:
    return check_producer(name, profile="smoke")


def _checked(name: str, version: str | None = None) -> Report:
    entry = producers.find(name)
    if not entry.is_installed:
        pytest.skip(f"{entry.needs} is not installed; {entry.install}")
    report = _report(name)
    found = report.data["target"]["version"].partition("+")[0]
    if version not in (None, found):
        pytest.skip(f"{name} {found} is installed, this set was verified on {version}")
    assert "ERROR" not in report.outcomes.values()
    return report


def _advice(report: Report) -> set[str]:
    return {id_ for id_, outcome in report.outcomes.items() if outcome == "ADVISORY"}


def _failure(report: Report, rule: str) -> dict:
    entry = next(entry for entry in report.data["rules"] if entry["id"] == rule)
    return entry["failures"][0]


@pytest.mark.parametrize("name", ["array", "bytes", "bytearray", "memoryview", "mmap"])
def test_the_standard_librarys_flat_types_break_nothing(name: str) -> None:
    report = _checked(name)
    assert report.failed == (), report.to_json()
    assert _advice(report) == set()
    assert report.exit_code == 0


def test_ctypes() -> None:
    report = _checked("ctypes")
    assert set(report.failed) == CTYPES
    assert _advice(report) == set()
    assert _failure(report, "PB-12")["plan"]["shape"] == [2, 2]


def test_numpy() -> None:
    report = _checked("numpy", NUMPY_VERSION)
    assert set(report.failed) == NUMPY
    assert _advice(report) == NUMPY_ADVICE
    assert report.exit_code == 1
    failure = _failure(report, "PB-01")
    assert "ValueError" in failure["actual"]
    assert failure["replay"].startswith("gridbuf-conformance replay numpy PB-01 ")


def test_torch() -> None:
    report = _checked("torch", TORCH_VERSION)
    assert set(report.failed) == TORCH
    assert _advice(report) == TORCH_ADVICE


def test_gt4py_wraps_at_32_bits_and_nobody_touches_the_memory() -> None:
    report = _checked("gt4py", GT4PY_VERSION)
    assert set(report.failed) == GT4PY
    assert report.outcomes["GT-24"] == "FAIL", "found by looking, not by a crash"
    assert "not all mapped" in _failure(report, "GT-24")["actual"]
    assert "crash" not in report.data["plans"]
    plan = _failure(report, "GT-24")["plan"]
    assert plan["fill"] is None


def test_gridbuf_breaks_nothing_and_answers_its_range() -> None:
    report = _checked("gridbuf")
    assert report.failed == (), report.to_json()
    answered = report.data["plans"]
    assert answered["observation"] >= 0.95 * sum(answered.values()), answered


NOT_OFFERED = {
    "AI-16": "its dicts name addresses, never a buffer object",
    "AI-17": "its dicts name addresses, never None",
    "AI-18": "its dicts have no offset",
    "AI-26": "it has no masks",
    "AI-30": "its memory cannot be resized",
    "CAI-15": "it has no masks",
    "CAI-19": "it always names the stream",
    "DL-25": "it has no elements of less than a byte",
    "DL-29": "its memory cannot be resized",
    "DL-30": "its elements have one lane",
    "DP-17": "it does not run on ROCm",
    "DP-26": "its strides are multiples of the item size",
    "GT-08": "it has entries",
    "GT-11": "it is no named array: gridbuf.xarray is one",
    "GT-27": "its origin is the aligned index: a storage has a halo",
    "PB-28": "its buffers are a C type's, not a method's",
    "PB-29": "its buffers are a C type's, not a method's",
    "PB-30": "its buffers are a C type's, not a method's",
}
"""The required rules that say nothing of gridbuf, because it has nothing that they are about."""


def test_every_required_rule_reaches_gridbuf_in_some_memory() -> None:
    reached: set[str] = set()
    for name in ("gridbuf", "gridbuf.device", "gridbuf.pinned", "gridbuf.managed"):
        reached |= {entry["id"] for entry in _checked(name).data["rules"] if entry["plans"]}
    required = {r.id for r in catalogue.select() if r.level == "MUST" and not r.untestable}
    assert required - reached <= NOT_OFFERED.keys()


_ON_DEVICE = GRIDBUF_IN_DEVICE_MEMORY - {"CAI-29"}  # smoke draws no plan of 0 dimensions here
STORAGES = {
    "gridbuf.storage": {*_ON_DEVICE, "GT-05", "GT-09", "XA-17", "PB-13", "AI-25"},
    "gridbuf.storage.cpu": {
        *("AI-25", "AS-05", "PB-13", "DP-20", "GT-05", "XA-01", "XA-09"),
        *("GT-25", "GT-26", "GT-27", "GT-28"),
    },
    "gridbuf.storage.gpu": {*_ON_DEVICE, "GT-05", "GT-25", "GT-26", "GT-27"},
    "gridbuf.storage.synced": {*_ON_DEVICE, "GT-05", "GT-09", "XA-17", "PB-13"},
    "gridbuf.storage.managed": {*_ON_DEVICE, "GT-05", "GT-09", "XA-01", "PB-13"},
}
"""Each producer of storages, and what it must have been judged by and must pass."""


@pytest.mark.parametrize("name", STORAGES)
def test_storages_break_nothing(name: str) -> None:
    report = _checked(name)
    assert report.failed == (), report.to_json()
    assert _advice(report) == set()
    passed = {id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"}
    assert passed >= STORAGES[name]
    assert report.data["plans"]["observation"] >= 0.9 * sum(report.data["plans"].values())


def test_named_arrays_over_storages_break_nothing() -> None:
    pytest.importorskip("xarray", reason="xarray is not installed")
    report = _checked("gridbuf.xarray")
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


@pytest.mark.parametrize("placement", [None, "gpu", "gt4py", "cuda"])
def test_a_live_storage_is_judged(placement: str | None) -> None:
    """A storage of the program's own, written on one side: it is read on both, and shows afterwards what it held."""
    storage = pytest.importorskip("gridbuf.storage", reason="gridbuf is not installed")
    import gridbuf.testing
    import numpy

    asked = {"device": None if placement is None else "gpu"}
    if placement is not None:
        asked["managed"] = None if placement == "gpu" else placement
    with gridbuf.testing.emulated_device():
        field = storage.full((4, 5, 6), 3, "i4", halo=(1, 1, 1), **asked)
        report = check(field, device_table=gridbuf.testing.device_table())
        assert report.failed == (), report.to_json()
        passed = {id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"}
        assert {"GT-01", "GT-02", "GT-03", "GT-04", "GT-05", "GT-12", "GT-13", "GT-14"} <= passed
        assert ("GT-09" in passed) == (placement in ("gt4py", "cuda"))
        if placement != "gpu":
            assert (numpy.asarray(field) == 3).all()


@pytest.mark.parametrize("name", ["gridbuf.device", "gridbuf.pinned", "gridbuf.managed"])
def test_gridbuf_breaks_nothing_in_memory_of_a_device(name: str) -> None:
    report = _checked(name)
    assert report.failed == (), report.to_json()
    passed = {id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"}
    assert passed >= GRIDBUF_IN_DEVICE_MEMORY
    if name != "gridbuf.device":
        assert {"AI-25", "AS-05", "PB-13", "XA-01", "XA-17", "GT-09"} <= passed
    else:
        assert {"CAI-25", "DP-16"} <= passed
    assert report.data["plans"]["observation"] >= 0.9 * sum(report.data["plans"].values())


def test_the_exchange_tables_of_gridbuf_and_torch_are_judged() -> None:
    for name in ("gridbuf", "torch"):
        outcomes = _checked(name).outcomes
        passed = {id_ for id_, outcome in outcomes.items() if outcome == "PASS"}
        if outcomes["DX-01"] == "UNSUPPORTED":
            pytest.skip(f"this {name} has no exchange table")
        assert {f"DX-{n:02}" for n in range(1, 11)} <= passed


def test_jax() -> None:
    report = _checked("jax", JAX_VERSION)
    assert report.failed == (), report.to_json()
    assert _advice(report) == JAX_ADVICE


def test_pyarrow() -> None:
    report = _checked("pyarrow", PYARROW_VERSION)
    assert report.failed == (), report.to_json()
    assert _advice(report) == PYARROW_ADVICE | {"DP-27"}
    report = _checked("pyarrow.tensor", PYARROW_VERSION)
    assert set(report.failed) == PYARROW_TENSOR
    assert _advice(report) == PYARROW_ADVICE


def test_pillow_and_xarray() -> None:
    for name, version in (("pillow", PILLOW_VERSION), ("xarray", None)):
        report = _checked(name, version)
        assert report.failed == (), report.to_json()
        assert _advice(report) == set()


@pytest.mark.parametrize("name", LIBRARIES)
def test_library(name: str) -> None:
    version, broken, advice = LIBRARIES[name]
    report = _checked(name, version)
    assert set(report.failed) == broken, report.to_json()
    assert _advice(report) == advice


def test_pyglms_arrays_break_what_they_touch() -> None:
    """F_CONTIGUOUS|WRITABLE lends memory past the array's: where the process dies of it varies, that it does not."""
    _checked("glm", "2.8.3")
    target = "gridbuf_conformance.producers.glm:ArrayProducer"
    report = check_producer(target, profile="smoke", rules="PB-*")
    assert {"PB-02", "PB-12", "PB-13"} & set(report.failed), report.to_json()


def test_every_library_has_its_verdict() -> None:
    """A producer that nobody looked at is one whose accusations nobody checked."""
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
    }
    others |= {"array", "bytes", "bytearray", "memoryview", "ctypes", "mmap", "cupy", "numba"}
    judged = LIBRARIES.keys() | others
    left = {name for name in producers.BUILT_IN if not name.startswith("gridbuf")} - judged
    assert left == set()


def test_producers_without_a_device_say_so() -> None:
    for name in ("cupy", "numba"):
        entry = producers.find(name)
        if entry.is_usable:
            assert "ERROR" not in _report(name).outcomes.values()
        elif entry.is_installed:
            with pytest.raises(CannotLoad, match="needs a CUDA device"):
                _report(name)
    if not producers.has_gpu():
        pytest.skip("UNTESTED here: no CUDA device; CuPy and Numba are judged where there is one")


def test_gridbufs_plain_arrays_are_judged_as_allocations() -> None:
    report = _checked("gridbuf.plain")
    assert {rule.partition("-")[0] for rule in report.outcomes} == {"GT"}
    assert report.failed == (), report.to_json()
