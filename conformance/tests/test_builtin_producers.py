"""What the suite says of the standard library, NumPy and gridbuf: the exact set of required rules
that each breaks.

Each id below was checked by hand against the published text and against the library, without the
suite; the line next to it says why it is a real departure. A set that changes means that the
library has changed, or that the suite is wrong: look before adjusting it.
"""

from __future__ import annotations

import sys

import pytest
from judged import NUMPY, NUMPY_VERSION, advice, checked, failure

from gridbuf_conformance import check
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.rules import catalogue

# A packed Structure of 13 bytes is exported with format "B", one byte, and a padded one without its
# padding; both are right from Python 3.12 on.
PACKED = {"PB-04", "PB-20"} if sys.version_info < (3, 12) else set()
CTYPES = PACKED | {
    "PB-06",  # format is filled without FORMAT: PyCData's getbuffer never looks at the flags
    "PB-08",  # shape is filled for SIMPLE, for the same reason
    "PB-09",  # strides stays NULL for STRIDES: never filled, though consumers may rely on it
    "PB-12",  # a 2-d array in C order grants F_CONTIGUOUS, for the same reason
}
PADDED = {
    "PB-20",  # big-endian and unaligned records: the format leaves out the padding at the end
}
NUMPY_ADVICE = {
    "DL-12",  # an empty array exports its address; the header wants NULL, the Python text does not
    "XA-06",  # structured arrays: `flags &= NPY_ARR_HAS_DESCR` clears "writable" in the struct
    "XA-14",  # what neither can export is ValueError by the buffer protocol, BufferError by DLPack
}
GRIDBUF_IN_DEVICE_MEMORY = {
    *(f"CAI-{n:02}" for n in (*range(1, 8), 9, 10, 11, 12, 14, 16, 17, 18, 22, 23, 26, 29, 30)),
    *("DL-18", "DP-18", "DP-24", *(f"DX-{n:02}" for n in range(1, 11)), "XA-16"),
    *("GT-01", "GT-02", "GT-03", "GT-04", "GT-12", "GT-13", "GT-14", "GT-20", "GT-24", "XA-10"),
}
"""What gridbuf's memory on a device must have been judged by, and must pass."""


@pytest.mark.parametrize("name", ["array", "bytes", "bytearray", "memoryview", "mmap"])
def test_the_standard_librarys_flat_types_break_nothing(name: str) -> None:
    report = checked(name)
    assert report.failed == (), report.to_json()
    assert advice(report) == set()
    assert report.exit_code == 0


def test_ctypes() -> None:
    report = checked("ctypes")
    assert set(report.failed) == CTYPES
    assert advice(report) == set()
    assert failure(report, "PB-12")["plan"]["shape"] == [2, 2]


def test_numpy() -> None:
    report = checked("numpy", NUMPY_VERSION)
    assert set(report.failed) == NUMPY | PADDED
    assert advice(report) == NUMPY_ADVICE
    assert report.exit_code == 1
    found = failure(report, "PB-01")
    assert "ValueError" in found["actual"]
    assert found["replay"].startswith("gridbuf-conformance replay numpy PB-01 ")


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("numpy.field", NUMPY | PADDED),
        ("numpy.memmap", NUMPY),
        ("numpy.references", NUMPY | {"AI-06", "AS-03"}),  # "StringDType()", kind "T"
    ],
)
def test_unusual_arrays_of_numpy(name: str, broken: set[str]) -> None:
    report = checked(name, NUMPY_VERSION)
    assert set(report.failed) == broken
    assert advice(report) <= NUMPY_ADVICE


def test_fields_of_records_reach_the_rule_on_uneven_strides() -> None:
    assert checked("numpy.field").outcomes["DP-26"] == "PASS"


@pytest.mark.parametrize(
    ("dtype", "actual"),
    [
        ("float64", "itemsize 8"),  # a union: "B"
        ("uint32", "itemsize 4"),  # two bit-fields: two integers
        ("str1", "itemsize 4"),  # wchar_t: "<u"
    ],
)
def test_what_only_ctypes_has(dtype: str, actual: str) -> None:
    report = check_plans("ctypes.special", [Plan(shape=(3,), dtype=dtype)], rules="PB-04")
    assert report.failed == ("PB-04",), report.to_json()
    assert failure(report, "PB-04")["actual"].startswith(actual)


def test_gridbuf_breaks_nothing_and_answers_its_range() -> None:
    report = checked("gridbuf")
    assert report.failed == (), report.to_json()
    answered = report.data["plans"]
    assert answered["observation"] >= 0.95 * sum(answered.values()), answered


def test_the_exchange_table_of_gridbuf_is_judged() -> None:
    outcomes = checked("gridbuf").outcomes
    if outcomes["DX-01"] == "UNSUPPORTED":
        pytest.skip("this Python shows no exchange table")
    assert {f"DX-{n:02}" for n in range(1, 11)} <= {r for r, o in outcomes.items() if o == "PASS"}


NOT_EXPORTED = {
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
    "GT-11": "it is not a named array: gridbuf.xarray is one",
    "GT-27": "its origin is the aligned index: a storage has a halo",
    "PB-28": "its buffers are a C type's, not a method's",
    "PB-29": "its buffers are a C type's, not a method's",
    "PB-30": "its buffers are a C type's, not a method's",
}
"""The required rules that say nothing of gridbuf, because it has nothing that they are about."""


@pytest.mark.thorough
def test_every_required_rule_reaches_gridbuf_in_some_memory() -> None:
    reached: set[str] = set()
    for name in ("gridbuf", "gridbuf.device", "gridbuf.pinned", "gridbuf.managed"):
        reached |= {entry["id"] for entry in checked(name).data["rules"] if entry["plans"]}
    required = {r.id for r in catalogue.select() if r.level == "MUST" and not r.untestable}
    assert required - reached <= NOT_EXPORTED.keys()


_ON_DEVICE = GRIDBUF_IN_DEVICE_MEMORY - {"CAI-29"}  # smoke draws no plan of 0 dimensions here
STORAGES = {
    "gridbuf.storage": {*_ON_DEVICE, "GT-05", "GT-09", "XA-17", "PB-13", "AI-25"},
    "gridbuf.storage.cpu": {
        *("AI-25", "AS-05", "PB-13", "DP-20", "GT-05", "XA-01", "XA-09"),
        *("GT-25", "GT-26", "GT-27", "GT-28"),
    },
    "gridbuf.storage.gpu": {*_ON_DEVICE, "GT-05", "GT-25", "GT-26", "GT-27"},
    "gridbuf.storage.synced": {*_ON_DEVICE, "GT-05", "GT-09", "XA-17", "PB-13"},
    "gridbuf.storage.layouts": {*_ON_DEVICE, "GT-05", "GT-09", "GT-12", "XA-17", "PB-13"},
    "gridbuf.storage.managed": {*_ON_DEVICE, "GT-05", "GT-09", "XA-01", "PB-13"},
}
"""Each producer of storages, and what it must have been judged by and must pass."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough)
        if name in ("gridbuf.storage.synced", "gridbuf.storage.managed")
        else name
        for name in STORAGES
    ],
)
def test_storages_break_nothing(name: str) -> None:
    report = checked(name)
    assert report.failed == (), report.to_json()
    assert advice(report) == set()
    passed = {id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"}
    assert passed >= STORAGES[name]
    assert report.data["plans"]["observation"] >= 0.9 * sum(report.data["plans"].values())


@pytest.mark.parametrize("placement", [None, "gpu", "gt4py", "cuda"])
def test_a_live_storage_is_judged(placement: str | None) -> None:
    """A storage of the program's own, written on one side: it is read on both, and shows afterwards
    what it held.
    """
    import gridbuf.storage as storage
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


def test_storages_over_cells_and_levels_break_nothing() -> None:
    import gridbuf.storage

    level = gridbuf.Dim("level", "vertical")
    field = gridbuf.storage.zeros((6, 4), dims=("Cell", level), halo={"Cell": (0, 2)})
    report = check(field)
    assert report.failed == (), report.to_json()
    assert {report.outcomes[id_] for id_ in ("GT-04", "GT-05", "GT-12", "GT-18")} == {"PASS"}


@pytest.mark.parametrize("name", ["gridbuf.device", "gridbuf.pinned", "gridbuf.managed"])
def test_gridbuf_breaks_nothing_in_memory_of_a_device(name: str) -> None:
    report = checked(name)
    assert report.failed == (), report.to_json()
    passed = {id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"}
    assert passed >= GRIDBUF_IN_DEVICE_MEMORY
    if name != "gridbuf.device":
        assert {"AI-25", "AS-05", "PB-13", "XA-01", "XA-17", "GT-09"} <= passed
    else:
        assert {"CAI-25", "DP-16"} <= passed
    assert report.data["plans"]["observation"] >= 0.9 * sum(report.data["plans"].values())


def test_gridbufs_plain_arrays_are_judged_as_allocations() -> None:
    report = checked("gridbuf.plain")
    assert {rule.partition("-")[0] for rule in report.outcomes} == {"GT"}
    assert report.failed == (), report.to_json()
