"""The exports of host memory next to DLPack: the exporters' data, and the consumer's calls."""

from __future__ import annotations

import ctypes
import gc
import mmap
from functools import cache
from typing import Any

import pytest

from gridbuf_conformance.interfaces.buffer_protocol import pybuffer
from gridbuf_conformance.interfaces.array_struct.struct import ArrayStruct, read_array_struct
from gridbuf_conformance.abi.capsule import capsule_pointer
from gridbuf_conformance.abi.descriptors import Descriptor
from gridbuf_conformance.interfaces.descriptors import descriptors_of
from gridbuf_conformance.interfaces.array_struct.descriptor import of_array_struct
from gridbuf_conformance.abi.device import Devices
from gridbuf_conformance.abi.memory import Memory
from gridbuf_conformance.engine import consumer_run
from gridbuf_conformance.engine.judge import judge_export
from gridbuf_conformance.exports import Block, Export, Interface, Variant, export_of, interfaces
from gridbuf_conformance.plugins.cuda.exports import (
    PENDING_BYTE,
    ObservedCudaInterface,
    unavailable,
)
from gridbuf_conformance.exports.drawing import adapted, listed
from gridbuf_conformance.info import ConsumerObservation, ConsumptionInfo, ErrorInfo
from gridbuf_conformance.measure.observation import light_info
from gridbuf_conformance.plan import Plan

HOST = ("array-interface", "array-struct", "buffer", "data-interface")
VARIANTS = [
    pytest.param(interfaces()[name], variant, id=f"{name}:{variant.name}")
    for name in HOST
    for variant in interfaces()[name].variants.values()
]


@cache
def listed_plans(name: str) -> list[Plan]:
    """The plans of the exports that every consumer of an interface gets."""
    return list(dict.fromkeys(export.plan for export in listed(interfaces()[name])))


def put(written: str, **keys: Any) -> Any:
    """The exporter of an export, with the record of calls on it."""
    export = export_of(Plan(**keys), written)
    block = Block(export.plan, **export.interface.memory_of(export))
    return export.interface.make(export, block)


def described(exporter: Any) -> Descriptor:
    """What the one interface of an exporter says, as the suite reads it elsewhere."""
    if hasattr(exporter, "__array_struct__"):
        return of_array_struct(read_array_struct(exporter.__array_struct__, Memory()))
    info, _ = light_info(exporter, Memory())
    (array,) = descriptors_of(info).values()
    return array


@pytest.mark.parametrize(("interface", "variant"), VARIANTS)
def test_every_array_becomes_an_export_of_every_variant(
    interface: Interface, variant: Variant
) -> None:
    for plan in listed_plans(interface.name):
        export = adapted(plan, interface, variant)
        assert not variant.misfit(export.plan)
        assert Export.from_json(export.to_json()) == export
        if export.control is not None:
            assert export.control.interface.name in (interface.name, interface.base)


@pytest.mark.parametrize("name", ["array-interface", "array-struct", "buffer"])
@pytest.mark.parametrize(
    "keys",
    [
        {"shape": (2, 3)},
        {"shape": (4,), "dtype": "int16", "byteorder": "swapped"},
        {"shape": (3, 4), "views": (("transpose", (1, 0)), ("reverse", 0))},
        {"shape": (3,), "readonly": True},
        {"shape": (2,), "dtype": "struct"},
    ],
    ids=["plain", "swapped", "strided", "read-only", "record"],
)
def test_the_plain_export_says_what_the_block_is(name: str, keys: dict[str, Any]) -> None:
    subject = put(name, **keys)
    array = described(subject.exporter)
    block = subject.block
    assert (array.address, array.shape, array.strides) == (
        block.address,
        block.shape,
        block.strides,
    )
    assert array.itemsize == block.itemsize
    assert array.readonly is keys.get("readonly", False)


class TestArrayInterface:
    def test_the_object_owns_the_memory(self) -> None:
        subject = put("array-interface")
        held = subject.exporter
        subject.forget()
        assert not subject.is_free()
        del held
        gc.collect()
        assert subject.is_free()

    def test_a_exported_buffer_counts_as_long_as_it_is_held(self) -> None:
        subject = put("array-interface:data-object", shape=(2,))
        entries = subject.exporter.__array_interface__
        view = memoryview(entries["data"])
        assert view.nbytes == 16
        subject.forget()
        del entries
        gc.collect()
        assert not subject.is_free()
        view.release()
        del view
        gc.collect()
        assert subject.is_free()
        assert subject.info().exported[0].releases == [1]

    def test_a_small_buffer_is_one_byte_too_small(self) -> None:
        subject = put("array-interface:data-object-too-small", shape=(2,))
        assert memoryview(subject.exporter.__array_interface__["data"]).nbytes == 15

    def test_errors_are_raised_by_the_property(self) -> None:
        with pytest.raises(OSError, match="on purpose"):
            put("array-interface:raises-os-error").exporter.__array_interface__  # noqa: B018

    def test_an_odd_address_is_odd(self) -> None:
        address, _ = put("array-interface:odd-address").exporter.__array_interface__["data"]
        assert address % 2


class TestArrayStruct:
    def test_the_capsule_is_the_release(self) -> None:
        subject = put("array-struct")
        capsule = subject.exporter.__array_struct__
        subject.forget()
        gc.collect()
        assert not subject.is_free()
        del capsule
        gc.collect()
        assert subject.is_free()
        assert subject.info().destroyed == [1]

    @pytest.mark.parametrize("field", ["shape", "strides", "data"])
    def test_one_pointer_is_null(self, field: str) -> None:
        capsule = put(f"array-struct:null-{field}", shape=(2, 3)).exporter.__array_struct__
        struct = ArrayStruct.from_address(capsule_pointer(capsule))
        null = {name for name in ("shape", "strides", "data") if not getattr(struct, name)}
        assert null == {field} and struct.nd == 2


class TestBuffer:
    def test_requests_are_answered_as_the_documents_say(self) -> None:
        subject = put("buffer", shape=(2, 3), layout=(1, 0))
        for name in ("SIMPLE", "ND", "C_CONTIGUOUS"):
            with pytest.raises(pybuffer.RefusedRequest) as refused:
                pybuffer.request(subject.exporter, pybuffer.REQUESTS[name])
            assert isinstance(refused.value.error, BufferError)
            assert refused.value.obj_is_null
        del refused  # its frames hold the exporter
        held = pybuffer.request(subject.exporter, pybuffer.REQUESTS["F_CONTIGUOUS"])
        assert not subject.is_free()
        held.release()
        assert subject.is_free()
        assert subject.info().requests[-1] == "F_CONTIGUOUS"

    @pytest.mark.parametrize("variant", ["buffer", "buffer:null-strides"])
    def test_strides_are_null_below_strides_and_in_one_variant_always(self, variant: str) -> None:
        subject = put(variant, shape=(2, 3))
        for name, is_null in (("ND", True), ("STRIDES", ":" in variant)):
            held = pybuffer.request(subject.exporter, pybuffer.REQUESTS[name])
            assert (not held.view.strides) is is_null and held.view.shape
            held.release()

    def test_a_release_keeps_the_exception_that_is_on_its_way(self) -> None:
        subject = put("buffer:dims-65")
        with pytest.raises(ValueError, match="dimensions"):
            memoryview(subject.exporter)
        assert subject.info().releases == [1]

    def test_changed_metadata_is_seen(self) -> None:
        subject = put("buffer", shape=(2, 3))
        held = pybuffer.request(subject.exporter, pybuffer.REQUESTS["FULL_RO"])
        held.view.strides[0] += 1
        held.release()
        assert not subject.info().metadata_unchanged

    def test_memory_that_is_taken_back_is_closed_by_the_last_release(self) -> None:
        subject = put("buffer:taken-back")
        first, second = memoryview(subject.exporter), memoryview(subject.exporter)
        place = (subject.block.address, subject.block.address + 8)
        first.release()
        assert Memory().readable(*place)
        second.release()
        assert not Memory().readable(*place)
        assert subject.block.is_unchanged()
        assert Memory().readable(*place)

    def test_suboffsets_lead_to_the_rows(self) -> None:
        subject = put("buffer:suboffsets", shape=(2, 3), fill=7)
        view = memoryview(subject.exporter)
        assert view.suboffsets == (16, -1)
        assert view.tobytes() == subject.export.content()
        with pytest.raises(pybuffer.RefusedRequest):
            pybuffer.request(subject.exporter, pybuffer.REQUESTS["STRIDES"])

    def test_an_empty_buffer_is_at_an_inaccessible_address(self) -> None:
        subject = put("buffer:empty", shape=(0,))
        held = pybuffer.request(subject.exporter, pybuffer.REQUESTS["FULL_RO"])
        assert not Memory().readable(held.view.buf, held.view.buf + 1)
        held.release()


class TestDataInterface:
    def test_memory_is_stale_until_it_is_acquired(self) -> None:
        subject = put("data-interface", fill=5)
        entry = subject.exporter.__gt_data_interface__[None]
        address = entry["data"][0]
        assert ctypes.string_at(address, 8) == b"\x11" * 8
        entry["acquire"]()
        assert ctypes.string_at(address, 8) == subject.export.content()
        entry["release"]()
        assert subject.info().events == ["acquire", "release"]
        assert subject.block.is_unchanged()

    @pytest.mark.parametrize("key", ["shape", "typestr", "data", "strides"])
    def test_one_key_is_missing(self, key: str) -> None:
        entry = put(f"data-interface:absent-{key}").exporter.__gt_data_interface__[None]
        plain = put("data-interface").exporter.__gt_data_interface__[None]
        assert plain.keys() - entry.keys() == {key}

    def test_what_was_never_acquired_is_put_back(self) -> None:
        subject = put("data-interface", fill=5)
        subject.forget()
        assert subject.block.is_unchanged()


def test_a_block_is_between_inaccessible_pages() -> None:
    block = Block(Plan())
    memory = Memory()
    assert memory.readable(block.low, block.high)
    for outside in (block.low - 1, block.high):
        assert not memory.readable(outside, outside + 1)
    assert (block.high - block.low) % mmap.PAGESIZE == 0


class TestCudaArrayInterface:
    """The exports themselves: where there is no CUDA device, only that they say so."""

    def test_without_a_device_the_rules_are_untested(self) -> None:
        if not unavailable():
            pytest.skip("this machine has a CUDA device")
        report = consumer_run.check_consumer(
            "memoryview", profile="smoke", rules="CAI-*,PB-24", isolate=False
        )
        assert {o for id_, o in report.outcomes.items() if id_ != "PB-24"} == {"UNTESTED"}

    @pytest.mark.parametrize("key", ["shape", "typestr", "data", "version", "strides"])
    def test_one_key_is_missing(self, key: str) -> None:
        export = export_of(Plan(), f"cuda-array-interface:absent-{key}")
        subject = object.__new__(ObservedCudaInterface)  # without memory of a device
        subject.export, subject.block, subject.variant = export, Block(export.plan), export.variant
        subject.reads = 0
        keys = {"shape", "typestr", "data", "version", "strides", "stream"}
        assert subject.answer().keys() == keys - {key}

    @pytest.mark.parametrize("key", ["shape", "typestr", "data"])
    def test_a_missing_key_that_is_guessed_is_fragile(self, key: str) -> None:
        export = export_of(Plan(), f"cuda-array-interface:absent-{key}")
        refused = ConsumptionInfo(error=ErrorInfo("KeyError", text=key))
        for info, outcome in ((ConsumptionInfo(), "FRAGILE"), (refused, "PASS")):
            observation = ConsumerObservation(export.export, info)
            assert judge_export(observation, export, ["CAI-02"])["CAI-02"].outcome == outcome

    @pytest.mark.skipif(bool(unavailable()), reason=f"no CUDA device here: {unavailable()}")
    def test_the_plain_export_says_where_the_device_memory_is(self) -> None:
        subject = put("cuda-array-interface", shape=(2, 3), fill=4)
        entries = subject.exporter.__cuda_array_interface__
        access = Devices().access
        assert access is not None
        assert access.pointer_info(entries["data"][0]).device_type == 2
        found = ctypes.create_string_buffer(48)
        access.copy(ctypes.addressof(found), entries["data"][0], 48, 1)
        assert found.raw == subject.export.content()

    @pytest.mark.skipif(bool(unavailable()), reason=f"no CUDA device here: {unavailable()}")
    def test_pending_work_is_seen_by_who_waits(self) -> None:
        subject = put("cuda-array-interface:pending", shape=(64,), dtype="uint8")
        entries = subject.exporter.__cuda_array_interface__
        access = Devices().access
        assert access is not None
        found = ctypes.create_string_buffer(64)
        access.copy(ctypes.addressof(found), entries["data"][0], 64, entries["stream"])
        assert found.raw == bytes([PENDING_BYTE]) * 64
        subject.close()
