"""The rules of the two suites agree: the Python suite finds in each wrong C++ producer what the C++ suite finds in it.

suite_test compares the verdicts of the C++ suite with the same table, `wrong_producers.cc`.
"""

from __future__ import annotations

import ctypes
import json
import pathlib

import pytest

from gridbuf_conformance.abi.dlpack import Managed, VersionedManaged, callable_deleter
from gridbuf_conformance.abi.memory import Memory
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.producer import Unsupported
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance_mutants.capsules import Export, new_capsule

HERE = pathlib.Path(__file__).parent
DOCUMENT = json.loads((HERE.parent / "vectors" / "dlpack_plans.json").read_text())
RULES = ",".join(rule["id"] for rule in DOCUMENT["rules"])
ASKED = """
    shape_1 shape_2 shape_0d shape_0 shape_2x3 shape_5x7x3 readonly_2x3 float32_2x3 bool_3 longdouble_3 swapped_int16
    layout_1x2x0_of_2x3x4 aligned_64 aligned_100_at_1x2_float64
""".split()
"""At least one plan for each defect of the table, and one of each kind: all plans take Python minutes."""
PLANS = {
    Plan.from_json(case["plan"]): case["name"]
    for case in DOCUMENT["cases"]
    if case["name"] in ASKED
}

LIBRARY = ctypes.CDLL(str(HERE / "shared_producers.so"))
LIBRARY.gridbuf_producers.restype = ctypes.c_char_p
PRODUCERS = json.loads(LIBRARY.gridbuf_producers())

DIFFERENT: dict[str, set[str]] = {
    # Without a plan with views the defect does not occur.
    "StrideWithoutItsSign": set(),
    # The second product that the Python suite makes meanwhile has the same shape.
    "ShapesInOneStaticPlace": set(),
    # The Python suite compares the addresses and the element types of two interfaces. Here is one.
    "OffsetThatIsInDataAlready": {"GT-16", "XA-08"},
    "LanesThatDoNotCount": {"GT-20"},
    # `Array` calls the deleter once and exports many times, so the leak is not counted.
    "DeleterThatFreesNothing": set(),
    # Judged at the end of a run that draws its plans.
    "PromiseThatIsNeverKept": set(),
}
"""What the Python suite finds where it does not find the same, and why."""

KINDS = (Managed, VersionedManaged)
DECLINED, THROWN = -1, -2
MEMORY = Memory()


class Owner:
    """A tensor of a C++ producer; its deleter runs when the last export of it is gone."""

    def __init__(self, address: int, kind: int) -> None:
        self.struct, self.is_versioned = KINDS[kind], bool(kind)
        self.managed = self.struct.from_address(address)
        self.deleter = callable_deleter(self.managed, MEMORY)

    def __del__(self) -> None:
        if self.deleter:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.deleter)(ctypes.addressof(self.managed))


def made(producer: int, plan: Plan) -> Array | Unsupported | None:
    """What a C++ producer makes of a plan; raises what it throws."""
    address, text = ctypes.c_void_p(), ctypes.c_char_p()
    kind = LIBRARY.gridbuf_make(
        producer, PLANS[plan].encode(), ctypes.byref(address), ctypes.byref(text)
    )
    reason = (text.value or b"").decode()
    if kind == THROWN:
        raise RuntimeError(reason)
    if kind == DECLINED:
        return Unsupported(reason)
    return Array(Owner(address.value, kind)) if address.value else None


class Array:
    """A C++ tensor as an object: each export is a copy of its struct, over the same memory."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def __dlpack_device__(self) -> tuple[int, int]:
        tensor = self._owner.managed.tensor
        return tensor.device_type, tensor.device_id

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        wants_legacy = max_version is None or max_version[0] < 1
        if stream is not None or copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("the library exports its own memory, as it is")
        if wants_legacy and self._owner.is_versioned:
            raise BufferError("the library makes versioned tensors only")
        managed = self._owner.struct.from_buffer_copy(self._owner.managed)
        export = Export(managed, self._owner)
        if self._owner.deleter:
            return export.capsule()
        export.publish()
        managed.deleter = self._owner.managed.deleter
        return new_capsule(export.address, export.name)


class Producer:
    """A producer of the shared library."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name

    def produce(self, plan: Plan) -> Array | Unsupported | None:
        return made(self.number, plan)


def _plans(declares: dict[str, bool]) -> list[Plan]:
    """The plans that the C++ suite sends to a producer with these capabilities."""
    return [
        plan
        for plan in PLANS
        if (declares["layout"] or plan.layout is None)
        and (declares["alignment_size"] or plan.alignment_size == 1)
    ]


def _outcomes(number: int) -> dict[str, str]:
    wrong = PRODUCERS[number]
    producer = Producer(number, wrong["name"])
    plans = _plans(wrong["declares"])
    return check_plans(producer, plans, rules=RULES, isolate=False, storage=True).outcomes


@pytest.mark.parametrize("number", range(len(PRODUCERS)), ids=[p["name"] for p in PRODUCERS])
def test_the_python_suite_finds_what_the_cpp_suite_finds(number: int) -> None:
    wrong, outcomes = PRODUCERS[number], _outcomes(number)
    breaks = DIFFERENT.get(wrong["name"], set(wrong["breaks"]))
    assert {id_ for id_, found in outcomes.items() if found == "FAIL"} == breaks
    assert {id_ for id_, found in outcomes.items() if found == "ADVISORY"} == set(wrong["advises"])


def test_each_difference_is_one() -> None:
    known = {producer["name"]: set(producer["breaks"]) for producer in PRODUCERS}
    for name, breaks in DIFFERENT.items():
        assert known[name] != breaks
