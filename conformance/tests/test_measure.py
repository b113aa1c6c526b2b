"""Measuring objects with false descriptions, exceptions and invalid addresses: noted, never an
exception or a crash.
"""

from __future__ import annotations

import array
import ctypes
import functools
import json
import mmap
import os
import resource
import signal
import threading

import pytest
from observations import observe

from gridbuf_conformance.abi.descriptors import Descriptor
from gridbuf_conformance.abi.device import Devices
from gridbuf_conformance.interfaces.dlpack_structs.structs import Exported
from gridbuf_conformance.abi.elements import Element
from gridbuf_conformance.abi.memory import Memory
from gridbuf_conformance.engine.judge import judge
from gridbuf_conformance.info import Observation, from_json, to_json
from gridbuf_conformance.info.values import attempt, describe, error_info
from gridbuf_conformance.measure import resizing
from gridbuf_conformance.measure.content import poke_info
from gridbuf_conformance.measure.held import Held
from gridbuf_conformance.outcomes import Outcome
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plan.producer import Unsupported
from gridbuf_conformance.plan.profiles import PROFILES
from gridbuf_conformance.plan.strategies import huge_plans
from gridbuf_conformance.rules import CHECKS
from gridbuf_conformance.rules.scope import Scope
from gridbuf_conformance_mutants import buffer_protocol, mirrors
from gridbuf_conformance_mutants.device import DEVICE
from gridbuf_conformance_mutants.mirrors import MirrorReference
from gridbuf_conformance_mutants.reference import Reference

STORAGE = Scope(storage=True)


class Describing:
    """An object that says whatever it is told to say about 64 bytes of memory."""

    def __init__(self, **changes: object) -> None:
        self.memory = (ctypes.c_double * 8)(*range(8))
        self.said = {
            "shape": (8,),
            "typestr": "<f8",
            "data": (ctypes.addressof(self.memory), False),
            "version": 3,
        }
        self.said.update(changes)

    @property
    def __array_interface__(self) -> dict:
        return dict(self.said)


def failed(obj: object, plan: Plan | None = None, outcome: Outcome = Outcome.FAIL) -> set[str]:
    written = json.dumps(to_json(observe(obj, plan)))
    observation = from_json(Observation, json.loads(written))
    verdicts = judge(observation, plan, CHECKS, STORAGE)
    assert not [v for v in verdicts.values() if v.outcome is Outcome.ERROR]
    return {rule for rule, verdict in verdicts.items() if verdict.outcome is outcome}


def test_truthful_object_breaks_nothing() -> None:
    assert failed(Describing()) == set()
    assert failed(Describing(shape=(2, 4), strides=(8, 16), descr=[("", "<f8")])) == set()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"data": (8, False)}, "XA-10"),
        ({"data": (2**63, False)}, "XA-10"),
        ({"data": (2**70, False)}, "XA-10"),
        ({"data": (-8, False)}, "AI-14"),
        ({"data": (0, False)}, "AI-20"),
        ({"strides": (2**40,)}, "AI-22"),
        ({"strides": (-(2**62),)}, "AI-22"),
        ({"shape": (2**45,)}, "AI-22"),
        ({"shape": (2**62, 8)}, "AI-05"),
        ({"shape": None}, "AI-24"),
        ({"shape": [8]}, "AI-03"),
        ({"typestr": b"<f8"}, "AI-06"),
        ({"data": object()}, "AI-16"),
        ({"data": bytearray(8)}, "AI-16"),
        ({"data": None}, "AI-17"),
    ],
)
def test_addresses_that_metadata_or_map_reject_are_not_followed(changes: dict, rule: str) -> None:
    assert failed(Describing(**changes)) == {rule}


def test_data_that_each_dict_copies_is_owned_by_the_dict() -> None:
    class Copies(Describing):
        @property
        def __array_interface__(self) -> dict:
            return {"version": 3, "shape": (64,), "typestr": "|u1", "data": bytes(range(64))}

    assert "AI-28" not in failed(Copies())


def test_a_mask_that_is_not_an_array_is_not_followed() -> None:
    assert failed(Describing(mask=7)) == set()
    assert "AI-26" in failed(Describing(mask=7), outcome=Outcome.ADVISORY)


@pytest.mark.parametrize("extents", [(0,), (0, 2**40), (3, 0, 5)])
def test_empty_arrays_may_point_anywhere(extents: tuple[int, ...]) -> None:
    assert failed(Describing(shape=extents, data=(0, False))) == set()


def test_addresses_in_forbidden_pages_are_not_read() -> None:
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), mmap.PAGESIZE, 0)
    try:
        assert failed(Describing(data=(start, False))) == {"XA-10"}
    finally:
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), mmap.PAGESIZE, 3)


def test_writable_claim_on_read_only_pages_fails() -> None:
    pages = mmap.mmap(-1, mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), mmap.PAGESIZE, 1)
    try:
        assert failed(Describing(data=(start, False))) == {"AI-25"}
        assert failed(Describing(data=(start, True))) == set()
    finally:
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), mmap.PAGESIZE, 3)


class Raising:
    """Every interface raises something else, some of it unpleasant."""

    class _Unprintable(RuntimeError):
        def __str__(self) -> str:
            raise ValueError("no text")

    @property
    def __array_interface__(self) -> dict:
        raise TypeError("not today")

    @property
    def __array_struct__(self) -> object:
        raise self._Unprintable

    def __dlpack__(self, **keywords: object) -> object:
        raise SystemExit(3)

    def __dlpack_device__(self) -> tuple[int, int]:
        raise KeyError((1, 0))


def test_raising_getters_are_info() -> None:
    assert "DP-02" in failed(Raising())
    assert "XA-18" in failed(Raising(), outcome=Outcome.ADVISORY)


def test_interface_dict_that_cannot_be_iterated() -> None:
    class Hostile(dict):
        def items(self) -> object:
            raise RuntimeError("no items")

    class Holder:
        __array_interface__ = Hostile(shape=(1,), typestr="<f8", version=3)

    assert "AI-01" in failed(Holder())


@pytest.mark.parametrize("value", [0, 7, "capsule", None, object(), (1, 0)])
def test_dlpack_that_returns_no_capsule(value: object) -> None:
    class Wrong:
        def __dlpack__(self, **keywords: object) -> object:
            return value

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert failed(Wrong()) == {"DP-03"}


def test_foreign_capsules_are_not_read() -> None:
    import datetime

    class Wrong:
        __array_struct__ = datetime.datetime_CAPI

        def __dlpack__(self, **keywords: object) -> object:
            return datetime.datetime_CAPI

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert failed(Wrong()) == {"DP-03", "AS-01"}


@pytest.mark.parametrize(
    "obj",
    [
        b"",
        b"x",
        b"gridbuf",
        bytearray(),
        bytearray(16),
        array.array("d"),
        array.array("h", range(5)),
        memoryview(b"gridbuf")[::-2],
        memoryview(array.array("i", range(12))).cast("B").cast("i", (3, 4)),
        memoryview(bytearray(8)).cast("d", ()),
        mmap.mmap(-1, 4096),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_live_objects_of_the_standard_library_conform(obj: object) -> None:
    assert failed(obj) == set()


@pytest.mark.parametrize("obj", [None, 3, "text", [1.0], object(), object])
def test_what_is_no_array_breaks_nothing(obj: object) -> None:
    assert failed(obj) == set()


def test_live_objects_are_not_written_to() -> None:
    obj = bytearray(b"\x00\x01\x02")
    observation = observe(obj, None)
    assert obj == b"\x00\x01\x02"
    assert observation.root.poke is None
    assert observation.life is not None and observation.life.resizes == {}


def test_a_method_that_dies_without_an_export_is_not_a_resize() -> None:
    class Deadly(bytearray):
        def append(self, *_: object) -> None:
            os.kill(os.getpid(), signal.SIGSEGV)

    names = ["append", "clear", "hex"]
    methods = resizing._search(names, lambda: Deadly(b"abc"), Memory())
    assert [method.name for method in methods] == ["clear"]


def test_large_live_arrays_are_not_copied() -> None:
    calls: list[dict] = []

    class Large:
        """80 MiB by DLPack's word; the pages are never touched."""

        def __init__(self) -> None:
            self.array = Reference().produce(Plan(shape=(1,), dtype="uint8"))

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **keywords: object) -> object:
            calls.append(keywords)
            capsule = self.array.__dlpack__(**keywords)
            exported = Exported(capsule, Memory())
            exported.read().tensor.shape[0] = 80 * 2**20
            return capsule

    observe(Large(), None)
    assert calls
    assert not any(keywords.get("copy") for keywords in calls)


def test_nothing_is_counted_while_other_threads_allocate() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        plan = Plan(shape=(3,))
        info = observe(Reference().produce(plan), None)
    finally:
        done.set()
        thread.join()
    assert info.life.capsule.unconsumed_growth.rounds == []
    assert judge(info, None, ["DP-06"], STORAGE)["DP-06"].outcome is Outcome.PASS


def test_pointers_to_objects_are_not_poked() -> None:
    def array_of(kind: str, address: int) -> Descriptor:
        element = Element(kind, 8, "|")
        return Descriptor("AI", address, (1,), (8,), 8, element, False)

    cells = (ctypes.c_uint64 * 2)()
    first = ctypes.addressof(cells)
    for kind, poked in (("object", {}), ("float", {"AI>PB": False, "PB>AI": False})):
        found = {"AI": array_of(kind, first), "PB": array_of(kind, first + 8)}
        assert poke_info(found, Memory()) == poked
        assert list(cells) == [0, 0]


@pytest.mark.parametrize("mutant", [MirrorReference, mirrors.AcquireCopiesTheWrongWay])
def test_what_is_written_through_entries_is_put_back(mutant: type) -> None:
    """Also on a side that the object itself left with the other bytes."""
    plan = Plan(shape=(2, 3), dtype="int32", device="gpu", fill=5)
    producer = mutant()
    array = producer.produce(plan)
    info = observe(array, plan, devices=Devices(producer.device_table))
    passed_on = info.root.gt_data.passed_on
    assert passed_on == dict.fromkeys(("None>gpu", "gpu>None"), mutant is MirrorReference)
    assert ctypes.string_at(array.address, plan.nbytes) == plan.content()
    seen = ctypes.create_string_buffer(plan.nbytes)
    on_device = array.__cuda_array_interface__["data"][0]
    DEVICE.move(ctypes.addressof(seen), on_device, plan.nbytes)
    assert seen.raw == plan.content()


def test_huge_plans_are_measured_without_touching() -> None:
    plan = Plan(shape=(2**31,), dtype="uint8", fill=None)
    pages = mmap.mmap(-1, 2**31)
    observation = observe(pages, plan, again=lambda: Unsupported("one is enough"))
    assert observation.life is None
    assert observation.root.walk == {}
    assert judge(observation, plan, ["GT-24"], STORAGE)["GT-24"].outcome is Outcome.PASS
    pages.close()


def test_no_huge_plan_of_a_run_touches_memory() -> None:
    reference = Reference()
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for plan in huge_plans(Reference.capabilities, PROFILES["default"].huge, seed=0):
        made = reference.produce(plan)
        observation = observe(made, plan, again=functools.partial(reference.produce, plan))
        assert observation.root.mapping["AI"].read
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib
    assert grown_kib < 2**16


def test_large_view_of_a_small_block_fails_without_touching() -> None:
    plan = Plan(shape=(2**33,), dtype="uint8", fill=None)
    obj = Describing(shape=(2**33,), typestr="|u1")
    for scope, rule in ((STORAGE, "GT-24"), (Scope(), "AI-22")):
        verdicts = judge(observe(obj, plan), plan, CHECKS, scope)
        assert [r for r, v in verdicts.items() if v.outcome is Outcome.FAIL] == [rule]


class TestValues:
    @pytest.mark.parametrize(
        ("value", "tag"),
        [
            (1, "int"),
            (True, "bool"),
            (1.0, "float"),
            ("x", "str"),
            (b"x", "bytes"),
            (None, "none"),
            ((1,), "tuple"),
            ([1], "list"),
            ({}, "dict"),
            (object(), "other"),
            (type("Int", (int,), {})(3), "other"),
        ],
    )
    def test_types_are_kept_apart(self, value: object, tag: str) -> None:
        assert describe(value).t == tag

    def test_endless_structures_end(self) -> None:
        endless: list = []
        endless.append(endless)
        assert json.dumps(to_json(describe(endless)))

    def test_errors_lose_their_addresses(self) -> None:
        assert "0x7f" not in error_info(ValueError("at 0x7f12345678ab")).text

    def test_exits_are_info_and_interrupts_are_not(self) -> None:
        def exits() -> None:
            raise SystemExit(1)

        def interrupts() -> None:
            raise KeyboardInterrupt

        assert attempt(exits)[1].type == "SystemExit"
        with pytest.raises(KeyboardInterrupt):
            attempt(interrupts)


def test_an_object_grows_only_for_interfaces_that_it_has() -> None:
    grown: list[int] = []

    class Growing(bytearray):
        def extend(self, more: bytes) -> None:
            super().extend(more)  # raises while the memory is exported
            grown.append(len(more))

    resizing.resize_info(lambda: Growing(8), Memory())  # finds the methods
    grown.clear()
    found = resizing.resize_info(lambda: Growing(8), Memory())
    assert found["extend"].keys() == {"PB"}
    methods = len(found)
    assert sum(n > 1 for n in grown) <= 2 * methods + 3, "one growth for each method, and its calls"


def test_a_released_view_with_separate_memory_is_not_held() -> None:
    """VTK's arrays of structures copy for each view; the copy of an earlier one is free."""
    made = buffer_protocol.FreshCopyForEachRequest().produce(Plan())
    held = Held(made, Memory(Devices()), frozenset({"PB"}), touch=True, poke=True)
    assert "PB" in held.found and "PB" not in held._held_exports()
    held.release()
    right = Held(
        Reference().produce(Plan()), Memory(Devices()), frozenset({"PB"}), touch=True, poke=True
    )
    assert "PB" in right._held_exports()
    right.release()
