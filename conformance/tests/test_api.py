"""The public functions, used as a reader of the README would."""

from __future__ import annotations

import array
import ctypes
import json
import mmap
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

import hostile_producers
import pytest

import gridbuf_conformance as gc
from gridbuf_conformance.plan import Plan
from gridbuf_conformance_mutants import mirrors
from gridbuf_conformance_mutants.agreement import DLPackStartsOneItemTooFar
from gridbuf_conformance_mutants.array_interface import AddressOfATemporary
from gridbuf_conformance_mutants.array_struct import TemporaryInAStruct
from gridbuf_conformance_mutants.device import DeviceReference
from gridbuf_conformance_mutants.elements import ELEMENTS
from gridbuf_conformance_mutants.memory import Block
from gridbuf_conformance_mutants.mirrors import MirrorReference
from gridbuf_conformance_mutants.reference import (
    ExportsArrayInterface,
    ExportsBuffer,
    ExportsDLPack,
    Memory,
    Reference,
    freed_copy,
)

PUBLIC = {
    "__version__",
    "CannotLoad",
    "Capabilities",
    "ExitCode",
    "Outcome",
    "Plan",
    "Producer",
    "Report",
    "Unsupported",
    "check",
    "check_consumer",
    "check_producer",
}


def test_the_public_names_are_those_that_work():
    assert set(gc.__all__) == PUBLIC
    assert all(hasattr(gc, name) for name in PUBLIC)


# -- one object ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "obj",
    [
        b"some bytes",
        bytearray(b"some bytes"),
        array.array("d", range(5)),
        memoryview(bytes(24)).cast("d", [3]),
        memoryview(bytearray(24))[::-2],
        mmap.mmap(-1, 4096),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_objects_of_the_standard_library_conform(obj):
    report = gc.check(obj)
    assert report.exit_code == 0 and report.failed == ()
    assert report.outcomes["PB-03"] == "PASS"
    assert report.outcomes["GT-20"] == "UNSUPPORTED", (
        "nothing was asked, so nothing can be compared"
    )


def test_an_object_is_left_as_it_was():
    obj = bytearray(range(64))
    gc.check(obj)
    assert obj == bytearray(range(64))
    obj.append(1)  # no export is left behind, or this would be refused


def test_a_departure_is_found_without_a_plan():
    report = gc.check((ctypes.c_double * 3)())
    assert report.exit_code == 1 and "PB-06" in report.failed
    (entry,) = (entry for entry in report.data["rules"] if entry["id"] == "PB-06")
    assert entry["failures"][0]["plan"] is None and entry["failures"][0]["replay"] == ""


class Describes:
    """An object that shows nothing but the description it is given."""

    def __init__(self, **description):
        self.__array_interface__ = {"version": 3, **description}


def test_an_address_that_is_not_mapped_is_never_followed():
    report = gc.check(Describes(shape=(4,), typestr="<f8", data=(4096, False)), rules="AI-*,XA-*")
    assert report.exit_code == 1


@pytest.mark.parametrize(
    "description",
    [
        {"shape": (-1,), "typestr": "<f8", "data": (4096, False)},
        {"shape": (2**62, 8), "typestr": "<f8", "data": (4096, False)},
        {"shape": [4], "typestr": 8, "data": "here"},
        {"shape": (4,), "typestr": "<f8", "strides": (2**62,), "data": (2**63, False)},
        {},
    ],
)
def test_nonsense_is_judged_not_followed(description):
    report = gc.check(Describes(**description))
    assert report.exit_code == 1 and "ERROR" not in report.data["summary"]


@pytest.mark.parametrize("obj", [None, object(), {}, 3.5])
def test_an_object_without_interfaces_is_a_usage_error(obj):
    with pytest.raises(ValueError, match="no buffer and none of __array_interface__, .*; pass an"):
        gc.check(obj, rules="AI-*")


_HUGE = 10**5000
_NUMBERS = array.array("d", range(6))
_DESCRIBED = {
    "version": 3,
    "shape": (6,),
    "typestr": "<f8",
    "data": (_NUMBERS.buffer_info()[0], False),
}


def _exits(*_: object, **__: object) -> None:
    sys.exit(1)


class _ExitsAnywhere:
    """Its attributes, and what it says of its class, raise SystemExit."""

    __getattribute__ = _exits


class _ExitingTuple(tuple):
    __getitem__ = __len__ = __iter__ = _exits


class _ExitingKey(str):
    __repr__ = __str__ = _exits
    __hash__ = str.__hash__


class _ExitingText(Exception):
    __str__ = _exits


def _raises(_: object) -> None:
    raise _ExitingText


class _ExitingType(type):
    def __getattribute__(cls, name: str) -> object:
        return (
            _exits() if name in ("__qualname__", "__module__") else super().__getattribute__(name)
        )


def _object(metaclass: type = type, **attributes: object) -> object:
    kept = {"__array_interface__": _DESCRIBED, **attributes}
    return metaclass("Object", (), kept)()


@pytest.mark.parametrize(
    "obj",
    [
        _object(metaclass=_ExitingType),
        _object(__array_interface__=property(_exits)),
        _object(__array_interface__=property(_raises)),
        _object(__array_interface__={**_DESCRIBED, "shape": _ExitingTuple((6,))}),
        _object(__array_interface__={**_DESCRIBED, _ExitingKey("x"): 1}),
        _object(__gt_dims__=_ExitingTuple("I")),
        _object(__gt_data_interface__={_ExitingKey("gpu"): {}}),
        _object(__gt_data_interface__={None: {**_DESCRIBED, "acquire": _exits}}),
        _object(__dlpack__=_exits, __dlpack_device__=lambda _: _ExitingTuple((1, 0))),
        _object(__array_struct__=property(_exits), __dlpack_c_exchange_api__=property(_exits)),
    ],
)
def test_an_object_that_calls_sys_exit_is_judged(obj):
    report = gc.check(obj)
    assert set(report.outcomes.values()) & {"PASS", "FAIL"}
    assert "ERROR" not in report.outcomes.values()


def test_an_object_whose_every_attribute_exits_is_judged():
    assert "ERROR" not in gc.check(_ExitsAnywhere()).outcomes.values()


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("AI-27", {"version": _HUGE}),
        ("AI-03", {"shape": (_HUGE,)}),
        ("AI-21", {"strides": (-_HUGE,)}),
        ("AI-14", {"data": (_HUGE, False)}),
        ("AI-18", {"data": bytearray(48), "offset": _HUGE}),
        ("AI-11", {"descr": [("a", "<f8", _HUGE)]}),
    ],
)
def test_a_number_too_long_to_write_fails_its_rule(rule, changes):
    report = gc.check(_object(__array_interface__={**_DESCRIBED, **changes}), rules="AI")
    assert (report.outcomes[rule], "ERROR" in report.outcomes.values()) == ("FAIL", False), report


def test_an_object_whose_attribute_raises_is_judged():
    assert gc.check(RefusesAll(), rules="DP-*").exit_code == 0
    assert gc.check(Describes(shape="(3,)")).exit_code == 1


@pytest.mark.parametrize(("stride", "outcome"), [(1, "ADVISORY"), (-7, "ADVISORY"), (8, "PASS")])
def test_elements_that_overlap_in_part_are_an_advisory(stride, outcome):
    memory = bytearray(64)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + 24
    right = {"version": 3, "shape": (3,), "typestr": "<f8", "data": (address, False)}
    report = gc.check(Describes(**right, strides=(stride,)))
    assert report.outcomes["XA-03"] == ("UNSUPPORTED" if outcome == "PASS" else outcome)
    assert report.failed == ()


def _matrix(kind, **more):
    """A live array of 3 times 4 float64, the numbers 0 to 11."""
    block = Block(4096)
    (ctypes.c_double * 12).from_address(block.low)[:] = range(12)
    return kind(block, ELEMENTS["float64"], (3, 4), (32, 8), block.low, **more)


class _StridesOfTheDict(ExportsArrayInterface):
    def array_interface(self):
        return {**super().array_interface(), "strides": (4, 1)}


class _StridesOfTheBuffer(ExportsBuffer):
    def point_to_arrays(self, view, flags):
        super().point_to_arrays(view, flags)
        if view.strides:
            view.strides[0], view.strides[1] = 4, 1


@pytest.mark.parametrize(
    "kinds",
    [
        (_StridesOfTheDict, ExportsDLPack, Memory),
        (_StridesOfTheDict, Memory, ExportsBuffer),
        (ExportsArrayInterface, Memory, _StridesOfTheBuffer),
        (ExportsDLPack, Memory, _StridesOfTheBuffer),
    ],
)
def test_strides_of_a_live_object_that_count_elements_are_found(kinds):
    report = gc.check(_matrix(type("Array", kinds, {})))
    assert report.failed == ("XA-03",), report
    (found,) = next(e for e in report.data["rules"] if e["id"] == "XA-03")["failures"]
    assert "(32, 8)" in found["expected"] and "which count elements" in found["actual"]


def test_a_live_object_that_is_read_only_and_granted_to_writers_is_an_advisory():
    class Array(ExportsDLPack, Memory, ExportsBuffer):
        def describe(self, view, flags):
            super().describe(view, flags)
            view.readonly = self.readonly and not flags & 1

        def refuse_unmet(self, flags):
            super().refuse_unmet(flags & ~1)

    assert gc.check(_matrix(Array)).outcomes["XA-06"] == "PASS"
    report = gc.check(_matrix(Array, readonly=True))
    assert report.failed == () and report.outcomes["XA-06"] == "ADVISORY"


class _BufferOfATemporary(Memory, ExportsBuffer):
    def describe(self, view, flags):
        super().describe(view, flags)
        view.buf = freed_copy(self)


class _TensorOfATemporary(ExportsDLPack, Memory):
    def describe_tensor(self, export):
        super().describe_tensor(export)
        export.managed.tensor.data = freed_copy(self)


class _Temporaries(Reference):
    def __init__(self, kind):
        self.array_type = kind


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (AddressOfATemporary.array_type, "AI-28"),
        (TemporaryInAStruct.array_type, "AS-07"),
        (_BufferOfATemporary, "XA-11"),
        (_TensorOfATemporary, "XA-11"),
    ],
)
@pytest.mark.parametrize("elements", [1, 40, 5000])
def test_the_address_of_a_temporary_is_found_in_a_live_object(kind, rule, elements):
    array = _Temporaries(kind).produce(Plan(shape=(elements,)))
    assert gc.check(array).outcomes[rule] == "FAIL"


@pytest.mark.parametrize("elements", [1, 40, 5000])
def test_the_address_of_a_temporary_of_numpy_is_found(elements):
    numpy = pytest.importorskip("numpy")

    class Temporary:
        @property
        def __array_interface__(self):
            return numpy.ones(elements).__array_interface__

    class Kept:
        def __init__(self):
            self.array = numpy.ones(elements)

        @property
        def __array_interface__(self):
            return self.array.__array_interface__

    outcomes = [gc.check(kind()).outcomes["AI-28"] for kind in (Temporary, Kept)]
    assert outcomes == ["FAIL", "PASS"]


class ReturnsNone:
    def produce(self, plan):
        return None


@pytest.mark.parametrize("rules", [None, "DL-*"])
def test_a_producer_of_nothing_does_not_conform(rules):
    report = gc.check_producer(ReturnsNone(), "smoke", isolate=False, rules=rules)
    assert report.exit_code == 1 and report.failed == ("GT-20",)
    assert "NoneType has no buffer and none of __array_interface__" in str(report)


class RefusesAll:
    """Its one interface raises, whatever the plan."""

    def produce(self, plan):
        return self

    def __dlpack__(self, **keywords):
        raise BufferError("not today")

    def __dlpack_device__(self):
        return (1, 0)


def test_a_producer_that_refuses_every_export_is_not_judged():
    report = gc.check_producer(RefusesAll(), "smoke", isolate=False, rules="GT-*")
    assert report.exit_code == gc.ExitCode.NOTHING_SELECTED
    assert "was not judged: it refused every export." in str(report)


@pytest.mark.parametrize("numpy_is_there", [True, False])
def test_rules_are_selected(numpy_is_there):
    obj = pytest.importorskip("numpy").zeros((3, 4)) if numpy_is_there else bytearray(8)
    report = gc.check(obj, rules="PB-03,PB-04")
    assert report.outcomes == {"PB-03": "PASS", "PB-04": "PASS"}


def test_unknown_rules_and_profiles_are_refused():
    with pytest.raises(ValueError, match="no rule matches"):
        gc.check(b"", rules="nothing")
    with pytest.raises(ValueError, match="profile"):
        gc.check(b"", profile="quick")


# -- a producer ------------------------------------------------------------------------


class Producer(gc.Producer):
    """A producer in a test module: the worker finds it by module, or by the module's file."""

    name = "mine"
    capabilities = gc.Capabilities(
        dtypes=("uint8",), min_ndim=1, max_ndim=1, max_nbytes=2**16, readonly=(False,)
    )

    def produce(self, plan: gc.Plan):
        if plan["readonly"]:
            return gc.Unsupported("bytearrays are writable")
        return bytearray(plan.content())


def test_a_producer_class_is_judged_in_a_worker():
    report = gc.check_producer(Producer, profile="smoke")
    assert report.exit_code == 0, str(report)
    assert report.data["target"]["name"] == "mine"
    assert report.outcomes["GT-20"] == "PASS"


def test_a_producer_object_is_judged_without_isolation():
    report = gc.check_producer(Producer(), "smoke", isolate=False)
    assert report.exit_code == 0
    with pytest.raises(gc.CannotLoad, match="pass the class Producer, or isolate=False"):
        gc.check_producer(Producer())


def test_a_built_in_producer_is_judged_by_name():
    report = gc.check_producer("array", "smoke")
    assert report.exit_code == 0 and report.data["target"]["name"] == "array"
    assert report.data["target"]["version"] == sys.version.split()[0]


def test_the_same_inputs_give_the_same_json():
    first, second = (gc.check_producer("memoryview", "smoke") for _ in range(2))
    assert json.loads(first.to_json()) | {"timing": 0} == json.loads(second.to_json()) | {
        "timing": 0
    }
    assert first.to_json().partition('"timing"')[0] == second.to_json().partition('"timing"')[0]


@lru_cache
def report_of_raising() -> gc.Report:
    return gc.check_producer(hostile_producers.Raises, "smoke")


def test_the_report_says_itself():
    report = report_of_raising()
    assert "GT-20" in str(report) and "RuntimeError: no luck" in str(report)
    assert repr(report) == f"<Report of good: 1 FAIL, {report.data['summary']['BLOCKED']} BLOCKED>"


def test_a_report_has_exactly_its_published_keys():
    report = report_of_raising()
    assert list(report.data) == [
        "schema",
        "suite",
        "target",
        "profile",
        "seed",
        "spec",
        "summary",
        "plans",
        "rules",
        "notes",
        "timing",
    ]
    assert list(report.data["target"]) == ["name", "version", "side", "python", "platform"]
    keys = {"id", "level", "outcome", "plans", "failing", "failures", "note"}
    assert all(set(rule) == keys for rule in report.data["rules"])
    (found,) = (rule["failures"] for rule in report.data["rules"] if rule["id"] == "GT-20")
    assert list(found[0]) == [
        "plan",
        "outcome",
        "expected",
        "actual",
        "note",
        "drawing",
        "replay",
    ]
    assert gc.Plan.from_json(found[0]["plan"]) == gc.Plan()


def test_reports_are_saved_by_suffix(tmp_path):
    report = report_of_raising()
    for suffix in (".json", ".html", ".xml", ".jsonl"):
        report.save(tmp_path / f"report{suffix}")
    assert json.loads((tmp_path / "report.json").read_text()) == report.data
    assert "GT-20" in (tmp_path / "report.html").read_text()
    assert ElementTree.parse(tmp_path / "report.xml").getroot().tag.startswith("testsuite")
    lines = (tmp_path / "report.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == report.events
    with pytest.raises(ValueError, match="use one of .*html"):
        report.save(tmp_path / "report.pdf")


def test_an_unsupported_answer_needs_a_reason():
    with pytest.raises(ValueError, match="must be a sentence"):
        gc.Unsupported("")


@pytest.mark.parametrize(
    "bad",
    [
        {"dtypes": ("f8",)},
        {"dtypes": ()},
        {"layouts": "F"},
        {"min_ndim": 3, "max_ndim": 2},
        {"max_ndim": 65},
        {"alignment_bytes": (0, 8)},
        {"alignment_bytes": (64, 8)},
        {"byteorders": ("big",)},
        {"declares": {"strides"}},
        {"max_extent": 0},
    ],
)
def test_capabilities_refuse_what_no_plan_could_ask(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        gc.Capabilities(**bad)


# -- installations ---------------------------------------------------------------------


def test_neither_numpy_nor_gridbuf_is_needed_or_imported(tmp_path):
    """All of `check array` where neither process can import NumPy or gridbuf."""
    for name in ("numpy", "gridbuf"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('this test takes it away')\n")
    program = (
        "import sys\n"
        f"sys.path[:0] = {[str(tmp_path)] + [p for p in sys.path if p]!r}\n"
        "import gridbuf_conformance as gc\n"
        "assert gc.check_producer('array', 'smoke').exit_code == 0\n"
        "assert gc.check(bytearray(8)).exit_code == 0\n"
        "print('done')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "done", done.stderr


def test_the_worker_takes_the_callers_import_path(tmp_path):
    """What the caller can import the worker can, however the caller's path came about."""
    (tmp_path / "library_of_this_test.py").write_text(
        "class Producer:\n    name = 'found'\n    def produce(self, plan):\n        return b''\n"
    )
    program = (
        "import sys\n"
        f"sys.path = [{str(tmp_path)!r}] + {[p for p in sys.path if p]!r}\n"
        "import gridbuf_conformance as gc\n"
        "report = gc.check_producer('library_of_this_test:Producer', rules='GT-20')\n"
        "print(report.data['target']['name'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(tmp_path).anchor,
    )
    assert done.stdout.strip() == "found", done.stderr


# --- device memory ------------------------------------------------------------------------------


def test_a_live_object_in_device_memory_is_judged_through_a_table() -> None:
    producer = DeviceReference()
    array = producer.produce(Plan(shape=(3, 4), device="gpu"))
    report = gc.check(array, device_table=producer.device_table())
    assert report.failed == (), report.to_json()
    assert {"CAI-07", "CAI-12", "CAI-17", "DL-18", "XA-10"} <= {
        id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"
    }
    assert report.outcomes["DX-08"] == "UNTESTED", "a live object's library is asked for nothing"


def test_a_live_object_with_two_sides_is_judged_and_left_as_it_was() -> None:
    """An object with `__gt_data_interface__` without a plan: acquired and read, but not written or
    touched.
    """
    producer = MirrorReference()
    array = producer.produce(Plan(shape=(3, 4), device="gpu", halo=((1, 1), (1, 1)), fill=3))
    touched = []
    array.touched = touched.append
    report = gc.check(array, device_table=producer.device_table())
    assert report.failed == (), report.to_json()
    assert {"GT-03", "GT-05", "GT-09", "GT-12", "XA-17"} <= {
        id_ for id_, outcome in report.outcomes.items() if outcome == "PASS"
    }
    assert touched == []


def test_a_live_object_whose_mirror_is_stale_is_found() -> None:
    array = mirrors.AcquireDoesNothing().produce(Plan(shape=(3, 4), device="gpu", fill=3))
    report = gc.check(array, device_table=MirrorReference().device_table())
    assert set(report.failed) == {"GT-09", "XA-17"}


def test_without_a_driver_nothing_about_device_memory_passes() -> None:
    array = DeviceReference().produce(Plan(shape=(3, 4), device="gpu"))
    report = gc.check(array)
    if report.outcomes["CAI-12"] == "FAIL":
        pytest.skip("UNTESTED here: there is a CUDA driver, and it does not know the zoo's device")
    for rule in ("CAI-07", "CAI-12", "CAI-17", "CAI-18", "CAI-22", "CAI-26", "DL-18", "XA-10"):
        assert report.outcomes[rule] == "UNTESTED", rule
    assert report.failed == (), report.to_json()
    assert report.outcomes["CAI-16"] == "PASS"
    two_sides = MirrorReference().produce(Plan(shape=(3, 4), device="gpu"))
    assert gc.check(two_sides).outcomes["GT-09"] == "UNTESTED"


def test_a_capsule_that_is_no_table_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="must be a capsule"):
        gc.check(object(), device_table=3)


def test_a_rule_alone_that_is_blocked_is_not_conformance():
    array = DLPackStartsOneItemTooFar().produce(Plan(shape=(3,)))
    alone = gc.check(array, rules="XA-08")
    assert alone.outcomes == {"XA-08": "BLOCKED"}
    assert alone.exit_code == gc.ExitCode.NOTHING_SELECTED
    assert "XA-08 is blocked (XA-01 failed); select what blocks it, too." in str(alone)
    assert gc.check(array, rules="XA-08,XA-01").exit_code == gc.ExitCode.NOT_CONFORMANT
