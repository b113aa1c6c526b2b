"""Objects that are unusual and legal break nothing: a false failure is the worst defect of a judge.

`ODDITIES` lists what arrays may look like (no dimensions, no elements behind NULL, strides that
carry no meaning, strides of zero and below, other byte orders, padded records, read-only pages, odd
addresses, offsets …); each is exported through each interface by the zoo's strict parts, alone and
all at once, and judged as a live object. The same is done with what the standard library has, with
a device, and with gridbuf, whose exports are C++.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from gridbuf_conformance import check
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.render.report import Report
from gridbuf_conformance_mutants import capsules
from gridbuf_conformance_mutants.device import DeviceReference
from gridbuf_conformance_mutants.dlpack import StandardOf2022
from gridbuf_conformance_mutants.elements import ELEMENTS, Element
from gridbuf_conformance_mutants.memory import Block
from gridbuf_conformance_mutants.packed import PLANS as PACKED_PLANS
from gridbuf_conformance_mutants.reference import (
    Array,
    BufferInDict,
    Exports,
    ExportsArrayInterface,
    ExportsBuffer,
    ExportsDLPack,
    Memory,
    Reference,
)


class _PaddedRecord(Element):
    """A byte, seven bytes of padding and a double, as C lays them out."""

    def descr(self, swapped: bool) -> list[tuple[Any, ...]]:
        return [("a", "|i1"), ("", "|V7"), ("b", ">f8" if swapped else "<f8")]


_PADDED = _PaddedRecord("V", 16, "T{{b:a:7x{}d:b:}}", None, (("a", "i1", 1), ("b", "f8", 1)))


class Oddity(NamedTuple):
    """One way to be unusual: shape, byte strides, and where the first element is in its block."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start_bytes: int = 512
    element: Element = ELEMENTS["float64"]
    swapped: bool = False
    readonly: bool = False
    at_null: bool = False


ODDITIES = {
    "no dimensions": Oddity((), ()),
    "empty at NULL": Oddity((0,), (8,), at_null=True),
    "empty in two dimensions at NULL": Oddity((3, 0), (0, 8), at_null=True),
    "empty at an address": Oddity((0, 3), (24, 8)),
    "empty with strides of no meaning": Oddity((2, 0, 2), (-(2**40), 7, 2**40)),
    "extent 1 with a stride of no meaning": Oddity((1, 3), (2**40, 8)),
    "extent 1 with a negative stride": Oddity((3, 1), (8, -8000)),
    "extent 1 with an odd stride": Oddity((1,), (3,)),
    "stride 0": Oddity((3, 2), (0, 8)),
    "stride 0 everywhere": Oddity((3, 4), (0, 0)),
    "a negative stride": Oddity((4,), (-8,)),
    "two negative strides": Oddity((2, 3), (-24, -8)),
    "overlapping windows": Oddity((4, 3), (8, 8)),
    "column-major": Oddity((2, 3), (8, 16)),
    "every second element": Oddity((3,), (16,)),
    "strides no multiple of the item": Oddity((3,), (13,)),
    "an odd address": Oddity((3,), (8,), start_bytes=513),
    "the other byte order": Oddity((3,), (8,), swapped=True),
    "the other byte order of 2 bytes": Oddity((3,), (2,), element=ELEMENTS["int16"], swapped=True),
    "a record with padding": Oddity((3,), (16,), element=_PADDED),
    "a record of 13 bytes": Oddity((3,), (13,), element=ELEMENTS["struct"]),
    "read-only": Oddity((3,), (8,), readonly=True),
    "read-only, backwards": Oddity((3,), (-8,), readonly=True),
    "complex": Oddity((2,), (16,), element=ELEMENTS["complex128"]),
    "bool": Oddity((5,), (1,), element=ELEMENTS["bool"]),
    "half precision": Oddity((5,), (2,), element=ELEMENTS["float16"]),
    "64 dimensions": Oddity((1,) * 64, (8,) * 64),
}


class _OffsetDLPack(Exports.DLPack):
    """DLPack with data at the block's start and the rest in byte_offset."""

    def describe_tensor(self, export: capsules.Export) -> None:
        super().describe_tensor(export)
        if not self.is_empty:
            tensor = export.managed.tensor
            tensor.data, tensor.byte_offset = self.block.low, self.address - self.block.low


class _NullStridesDLPack(Exports.DLPack):
    """DLPack before 1.2: strides may be NULL for row-major memory."""

    def describe_tensor(self, export: capsules.Export) -> None:
        super().describe_tensor(export)
        if self.is_contiguous("C"):
            export.managed.tensor.strides = None


class _OwnBuffer(ExportsArrayInterface, Memory, ExportsBuffer):
    """The array interface over the object's own buffer."""

    def array_interface(self) -> dict[str, Any]:
        described = super().array_interface()
        return {**described, "data": None} if self.is_contiguous("C") else described


INTERFACES: dict[str, type[Memory]] = {
    "the array interface": Exports.ArrayInterface,
    "the array interface of a buffer": BufferInDict,
    "the array interface of the own buffer": _OwnBuffer,
    "the array struct": Exports.ArrayStruct,
    "the buffer protocol": Exports.Buffer,
    "DLPack": Exports.DLPack,
    "DLPack with byte_offset": _OffsetDLPack,
    "DLPack without strides": _NullStridesDLPack,
    "all": Array,
}


def made(kind: type[Memory], odd: Oddity) -> Memory:
    """The array of an oddity, filled with bytes that are legal for all listed element types."""
    block = Block(4096)
    ctypes.memset(block.low, 1, block.high - block.low)
    block.allow(writable=not odd.readonly)
    address = 0 if odd.at_null else block.low + odd.start_bytes
    flags = {"swapped": odd.swapped, "readonly": odd.readonly}
    return kind(block, odd.element, odd.shape, odd.strides, address, **flags)


def assert_nothing_is_broken(report: Report) -> None:
    assert report.failed == (), report.to_json()
    assert "ERROR" not in report.outcomes.values(), report.to_json()


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("name", ODDITIES)
def test_an_odd_array_breaks_nothing(name: str, interface: str) -> None:
    report = check(made(INTERFACES[interface], ODDITIES[name]))
    assert_nothing_is_broken(report)
    assert "PASS" in report.outcomes.values()


class _Rows(array.array):  # type: ignore[type-arg]
    """Two rows over a buffer of one dimension, which is only memory."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (2, 2), "typestr": "<i4", "data": None}


def test_an_array_over_its_own_flat_buffer_breaks_nothing() -> None:
    assert_nothing_is_broken(check(_Rows("i", [1, 2, 3, 4])))


class _Backwards(array.array):  # type: ignore[type-arg]
    """The array interface reads the own buffer from its end, the buffer from its start."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        form = {"version": 3, "shape": (4,), "typestr": "<i4", "strides": (-4,)}
        return {**form, "data": None, "offset": 12}


def test_a_live_array_that_disagrees_with_its_own_buffer_is_found() -> None:
    assert set(check(_Backwards("i", [1, 2, 3, 4])).failed) == {"XA-01", "XA-03"}


class _DictForgetsThePadding(ExportsArrayInterface, ExportsDLPack, Memory):
    """The array interface of padded rows without strides, which is wrong, next to DLPack, which is
    right.
    """

    def array_interface(self) -> dict[str, Any]:
        return {**super().array_interface(), "strides": None}


class _RowsOf64Bytes(Reference):
    array_type = _DictForgetsThePadding

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        return (64, element.itemsize)[: plan.ndim]


def test_dlpack_is_not_blamed_for_a_wrong_dict() -> None:
    """Its stride in elements is the number that the dict implies in bytes."""
    live = check(made(_DictForgetsThePadding, Oddity((3, 1), (64, 8))))
    assert live.failed == () and live.outcomes["DL-09"] == "PASS"
    assert live.outcomes["XA-03"] == "ADVISORY"
    asked = check_plans(_RowsOf64Bytes(), [Plan(shape=(2, 1))], isolate=False)
    assert asked.failed == ("XA-08",), "the dict does not reach the plan's elements"


def test_a_read_only_array_of_the_2022_standard_is_advised_as_a_writable_one_is() -> None:
    """It refuses each export: a legacy capsule has no read-only bit, and `max_version` is not
    taken.
    """
    array = made(StandardOf2022.array_type, Oddity((3,), (8,), readonly=True))
    report = check(array)
    assert report.failed == () and report.outcomes["DP-14"] == "ADVISORY"
    (found,) = (rule for rule in report.data["rules"] if rule["id"] == "DP-14")
    assert found["failures"][0]["actual"] == "TypeError for max_version"
    assert "does not fail" in found["failures"][0]["note"]


STANDARD: dict[str, Callable[[], Any]] = {
    "array": lambda: array.array("d", [1, 2, 3]),
    "array without elements": lambda: array.array("i"),
    "array of one": lambda: array.array("h", [7]),
    "bytes": lambda: b"abc",
    "no bytes": lambda: b"",
    "bytearray": lambda: bytearray(b"abc"),
    "empty bytearray": bytearray,
    "memoryview": lambda: memoryview(bytearray(12)),
    "read-only memoryview": lambda: memoryview(bytearray(12)).toreadonly(),
    "memoryview of bytes": lambda: memoryview(b"abcd"),
    "reversed memoryview": lambda: memoryview(bytearray(5))[::-1],
    "memoryview with a step": lambda: memoryview(array.array("d", [1, 2, 3, 4]))[1::2],
    "empty memoryview": lambda: memoryview(bytearray(5))[2:2],
    "memoryview of no dimensions": lambda: memoryview(ctypes.c_double(1.5)),
    "memoryview of two dimensions": lambda: memoryview(bytes(12)).cast("B", (3, 4)),
    "memoryview of other elements": lambda: memoryview(bytearray(16)).cast("d"),
    "memoryview of other elements in dimensions": lambda: memoryview(bytes(24)).cast("i", (2, 3)),
}


@pytest.mark.parametrize("name", STANDARD)
def test_what_python_has_breaks_nothing(name: str) -> None:
    assert_nothing_is_broken(check(STANDARD[name]()))


ODD_PLANS = (
    Plan(shape=()),
    Plan(shape=(0,)),
    Plan(shape=(3, 0, 2), dtype="int16"),
    Plan(shape=(1, 1), views=(("reverse", 0), ("slice", 1, 0, None, -3))),
    Plan(shape=(1, 3), views=(("broadcast", 0, 4),)),
    Plan(shape=(4, 5), views=(("reverse", 0), ("reverse", 1))),
    Plan(shape=(6,), views=(("slice", 0, 4, None, -2),)),
    Plan(shape=(3, 4), views=(("slice", 1, 1, 3, 1), ("empty", 0))),
    Plan(shape=(4, 4), views=(("slice", 0, 1, 4, 2), ("transpose", (1, 0)), ("newaxis", 1))),
    Plan(shape=(5,), readonly=True, views=(("reverse", 0),)),
    Plan(shape=(2, 3), dtype="int32", byteorder="swapped", readonly=True),
    Plan(shape=(3, 2), dtype="struct", layout=(1, 0)),
    Plan(shape=(3, 5), alignment_size=7, aligned_index=(2, 3)),
    Plan(shape=(4, 3), halo=((4, 0), (0, 3))),
    Plan(shape=(2, 3, 4), layout=(1, 2, 0), dims=("10", "K", "2"), alignment_size=24),
    Plan(
        shape=(3, 4), dims=("étage", "Cell"), halo=((1, 0), (0, 2)), views=(("transpose", (1, 0)),)
    ),
)


@pytest.mark.parametrize("isolate", [True, False])
def test_reference_breaks_nothing_on_odd_plans(isolate: bool) -> None:
    name = "gridbuf_conformance_mutants.reference:Reference"
    report = check_plans(name, ODD_PLANS, isolate=isolate)
    assert_nothing_is_broken(report)
    assert report.data["plans"] == {"observation": len(ODD_PLANS)}


@pytest.mark.parametrize("device", ["gpu", "pinned", "managed"])
def test_reference_breaks_nothing_on_odd_plans_for_a_device(device: str) -> None:
    plans = [plan.replaced(device=device) for plan in ODD_PLANS]
    report = check_plans("gridbuf_conformance_mutants.device:DeviceReference", plans)
    assert_nothing_is_broken(report)
    assert report.data["plans"] == {"observation": len(plans)}


def test_mirrors_and_packed_elements_break_nothing() -> None:
    mirrors = [plan.replaced(device="gpu") for plan in ODD_PLANS]
    assert_nothing_is_broken(
        check_plans("gridbuf_conformance_mutants.mirrors:MirrorReference", mirrors)
    )
    packed = check_plans("gridbuf_conformance_mutants.packed:PackedReference", PACKED_PLANS)
    assert_nothing_is_broken(packed)
    assert packed.outcomes["DL-25"] == "PASS"


def test_a_live_array_on_a_device_breaks_nothing() -> None:
    reference = DeviceReference()
    for plan in ODD_PLANS:
        produced: Any = reference.produce(plan.replaced(device="gpu"))
        for operation in plan.views:
            produced = reference.apply_view(produced, operation)
        assert_nothing_is_broken(check(produced, device_table=reference.device_table()))


def _gridbuf_arrays() -> dict[str, Callable[[Any, Any], Any]]:
    return {
        "no dimensions": lambda gb, np: gb.allocate(()),
        "no elements": lambda gb, np: gb.allocate((3, 0)),
        "reversed": lambda gb, np: gb.allocate((4,))[::-1],
        "stride 0": lambda gb, np: gb.allocate((1, 3)).broadcast_to((4, 3)),
        "transposed, with a step": lambda gb, np: gb.allocate((4, 6), layout=(1, 0))[1::2, ::-3],
        "the other byte order": lambda gb, np: gb.allocate((3,), np.dtype(">f8")),
        "a padded record": lambda gb, np: gb.allocate(
            (3,), np.dtype([("a", "i1"), ("b", "f8")], align=True)
        ),
        "padded rows": lambda gb, np: gb.allocate((3, 5), alignment_size=24, aligned_index=(1, 2)),
        "bfloat16": lambda gb, np: gb.allocate(
            (3,), pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16
        ),
    }


@pytest.mark.parametrize("name", _gridbuf_arrays())
def test_gridbuf_breaks_nothing(name: str) -> None:
    """The reference whose exports are C++."""
    gridbuf = pytest.importorskip("gridbuf", reason="gridbuf is not installed")
    import numpy

    report = check(_gridbuf_arrays()[name](gridbuf, numpy))
    assert_nothing_is_broken(report)
    assert {"PB-03", "DL-01", "AI-03", "XA-18"} <= {
        id_ for id_, outcome in report.outcomes.items() if outcome != "UNTESTED"
    }
