"""Exports: plans with an interface and a variant, the memory behind them, and what exporters say
and count.
"""

from __future__ import annotations

import ctypes
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gridbuf_conformance import exports
from gridbuf_conformance.interfaces.dlpack_structs.structs import Exported
from gridbuf_conformance.abi.gpu import has_gpu
from gridbuf_conformance.abi.maps import AddressMap
from gridbuf_conformance.abi.memory import Memory
from gridbuf_conformance.exports import Block, Export, interfaces
from gridbuf_conformance.exports.drawing import adapted, first_exports, listed
from gridbuf_conformance.exports.memory import OUTSIDE
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.rules import CONSUMER_CHECKS
from gridbuf_conformance.rules.catalogue import load

SCHEMA = json.loads(files("gridbuf_conformance.exports").joinpath("export.schema.json").read_text())
VARIED = [
    pytest.param(interface, variant, id=interface.written(variant.name))
    for interface in interfaces().values()
    for variant in interface.variants.values()
]
PLANS = (
    Plan(),
    Plan(shape=()),
    Plan(shape=(2, 3), dtype="int16", fill=1),
    Plan(shape=(0, 2), fill=2),
    Plan(shape=(1, 4), dtype="uint8", views=(("reverse", 1),), fill=3),
    Plan(shape=(1, 1, 1), dtype="complex128", layout=(2, 1, 0), fill=4),
    Plan(shape=(1, 3), dtype="float32", views=(("broadcast", 0, 5),), fill=5),
)


def block_of(plan: Plan, **more: Any) -> Block:
    return Block(plan, **more)


def bytes_in(block: Block, index: tuple[int, ...]) -> bytes:
    place = block.address + sum(i * stride for i, stride in zip(index, block.strides))
    return ctypes.string_at(place, block.itemsize)


# -- the plan ------------------------------------------------------------------------------------


def test_an_export_is_a_plan_with_one_key_more():
    export = Export(shape=(2, 3), export="dlpack:byte-offset")
    assert list(export) == [*Plan(), "export"] and len(export) == 13
    assert export["export"] == "dlpack:byte-offset" and export.plan == Plan(shape=(2, 3))
    assert (
        Export.from_json(export.to_json()) == export == Export.from_json(export.to_json(brief=True))
    )
    assert export.replaced(shape=(4,)).export == "dlpack:byte-offset"
    assert export != export.plan and hash(export) != hash(export.replaced(fill=1))
    with pytest.raises(KeyError, match="export"):
        Plan()["export"]


def test_an_export_of_an_older_version_is_refused_with_the_remedy():
    said = (
        r"plan key 'offer' \(value 'dlpack:lanes'\) is of an older version; rename it to 'export'"
    )
    with pytest.raises(ValueError, match=said):
        Export.from_json('{"offer":"dlpack:lanes"}')
    with pytest.raises(ValueError, match="unknown plan key 'offer'"):
        Plan.from_json('{"offer":"dlpack:lanes"}')


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"export": "carrier-pigeon"}, "interface must be one of dlpack"),
        ({"export": "dlpack:sideways"}, "variant must be one of plain"),
        ({"export": "dlpack:plain"}, "written without a colon"),
        ({"export": "dlpack:null-strides", "shape": (2, 3), "layout": (1, 0)}, "does not fit"),
        ({"export": "dlpack:byte-offset", "shape": (0,)}, "it has no elements"),
        ({"fill": None}, "exports have content"),
        ({"shape": (-1,)}, "shape"),
    ],
)
def test_what_is_no_export_is_refused_in_words(keys, words):
    with pytest.raises(ValueError, match=words):
        Export(**keys)


def test_the_schema_says_what_the_export_says():
    properties = SCHEMA["properties"]
    assert {key: item["default"] for key, item in properties.items()} == {
        key: Export().to_dict()[key] for key in properties
    }
    validator = Draft202012Validator(SCHEMA)
    for interface, variant in (parameter.values for parameter in VARIED):
        assert validator.is_valid({"export": interface.written(variant.name), "fill": 0})
    assert not validator.is_valid({"export": "No Such", "fill": 0})
    assert not validator.is_valid({"export": "dlpack", "fill": None})


# -- the variants --------------------------------------------------------------------------------


@pytest.mark.parametrize(("interface", "variant"), VARIED)
def test_a_variant_adapts_every_plan_and_names_rules_that_are_judged(interface, variant):
    assert set(variant.rules) <= CONSUMER_CHECKS.keys()
    known = interface.capabilities.dtypes
    for plan in PLANS:
        if known is None or plan.dtype in known:
            export = adapted(plan, interface, variant)
            assert export.variant is variant and adapted(export.plan, interface, variant) == export
            control = export.control
            assert control is None or control.variant.name == exports.PLAIN
            assert Block(export.plan, **interface.memory_of(export)).is_unchanged()


def test_every_consumer_check_is_asked_by_some_export():
    asked = {rule for _, variant in (p.values for p in VARIED) for rule in variant.rules}
    elsewhere = {"PB-28", "PB-29", "PB-30"} if sys.version_info < (3, 12) else set()
    elsewhere |= {"DP-19"} if has_gpu() else set()
    assert asked | elsewhere == CONSUMER_CHECKS.keys() <= load().keys()


@pytest.mark.parametrize("interface", interfaces().values(), ids=lambda i: i.name)
def test_each_variant_is_listed_and_the_first_exports_are_plain(interface):
    assert {export.variant.name for export in listed(interface)} == set(interface.variants)
    assert all(export.variant.name == exports.PLAIN for export in first_exports(interface))
    assert len(set(listed(interface))) == len(listed(interface))


# -- the memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan",
    [
        *PLANS,
        Plan(shape=(3, 4), views=(("transpose", (1, 0)), ("slice", 0, None, None, -2)), fill=6),
    ],
)
def test_a_block_holds_the_plans_content_where_its_strides_lead(plan):
    block = block_of(plan)
    assert block.shape == plan.view_map.shape
    for index in ((0,) * len(block.shape), tuple(n - 1 for n in block.shape)):
        if 0 not in block.shape:
            assert bytes_in(block, index) == plan.viewed_element_bytes(index)
    assert block.holds(block.address) or block.is_empty


def test_a_block_is_aligned_and_off_it_by_its_shift():
    assert block_of(Plan(shape=(3,))).address % 64 == 0
    assert block_of(Plan(shape=(3,)), shift_bytes=1).address % 64 == 1


def test_a_block_is_between_inaccessible_pages():
    block = block_of(Plan(shape=(1000,)))
    known = AddressMap()
    assert known.covers(block.low, block.high, "w")
    assert not known.covers(block.low - 1, block.low)
    assert not known.covers(block.forbidden, block.forbidden + 1)
    assert ctypes.string_at(block.low, 1) == bytes([OUTSIDE])
    low = block.low
    del block
    assert not AddressMap().covers(low, low + 1)


def test_a_read_only_block_refuses_writing_and_a_write_beside_the_array_is_seen():
    readonly = block_of(Plan(readonly=True))
    assert not AddressMap().covers(readonly.low, readonly.high, "w")
    block = block_of(Plan(shape=(3,)))
    assert block.is_unchanged()
    ctypes.memset(block.address - 1, 0, 1)
    assert not block.is_unchanged()


# -- the exporter of DLPack ----------------------------------------------------------------------


def made(written: str, keywords: dict[str, Any] | None = None, **keys: Any) -> tuple[Any, dict]:
    """An exporter in front of the suite's reader: (the consumer's view, info on its capsule)."""
    export = Export(**keys, export=written)
    subject = export.interface.make(
        export, Block(export.plan, **export.interface.memory_of(export))
    )
    capsule = subject.exporter.__dlpack__(
        **({"max_version": (1, 3)} if keywords is None else keywords)
    )
    return subject, Exported(capsule, Memory()).info()


def test_the_plain_capsule_says_what_the_plan_asks():
    subject, info = made("dlpack", shape=(2, 3), dtype="int16", views=(("reverse", 1),))
    assert info.version == [1, 1] and info.name == "dltensor_versioned"
    assert info.shape == [2, 3] and info.strides == [3, -1] and info.dtype == [0, 16, 1]
    assert info.data == subject.block.address and info.byte_offset == 0
    assert info.deleter == "executable" and info.flags == 0
    assert made("dlpack", {}, shape=(2,))[1].name == "dltensor"
    assert made("dlpack", shape=(2,), readonly=True)[1].flags == 1


@pytest.mark.parametrize(
    ("variant", "keys", "expected"),
    [
        ("byte-offset", {"shape": (3,)}, {"byte_offset": 64}),
        ("null-strides", {"shape": (3,)}, {"strides": None}),
        ("null-strides-1-2", {"shape": (3,)}, {"strides": None, "version": [1, 2]}),
        ("null-deleter", {"shape": (3,)}, {"deleter": "NULL"}),
        ("later-minor", {"shape": (3,)}, {"version": [1, 99]}),
        ("major-2", {"shape": (3,)}, {"version": [2, 0]}),
        ("copied", {"shape": (3,)}, {"flags": 2}),
        (
            "lanes",
            {"shape": (3, 4), "dtype": "float32"},
            {"dtype": [2, 32, 4], "shape": [3], "strides": [1]},
        ),
        ("unknown-bits", {"shape": (3,), "dtype": "float32"}, {"dtype": [2, 24, 1]}),
        ("unknown-device", {"shape": (3,)}, {"device": [77, 0]}),
        ("empty-null", {"shape": (0,)}, {"data": 0}),
        ("used-capsule", {"shape": (3,)}, {"name": "used_dltensor_versioned"}),
        ("other-form", {"shape": (3,)}, {"name": "dltensor", "version": None}),
        ("fp4-bits-8", {"shape": (3,), "dtype": "uint8"}, {"dtype": [17, 8, 1]}),
    ],
)
def test_a_variant_changes_what_it_says_and_nothing_else(variant, keys, expected):
    _, info = made(f"dlpack:{variant}", **keys)
    _, plain = made("dlpack", **keys)
    assert {key: getattr(info, key) for key in expected} == expected, info
    kept = {"ndim", "shape", "strides", "dtype", "device", "flags", "deleter"} - expected.keys()
    if variant not in ("major-2", "used-capsule", "other-form", "lanes"):
        assert all(getattr(info, key) == getattr(plain, key) for key in kept), info


def test_65_dimensions_are_said_of_the_same_elements():
    _, info = made("dlpack:65-dimensions", shape=(2, 3))
    assert info.ndim == 65 and info.shape[-2:] == [2, 3] and set(info.shape[:-2]) == {1}


def test_a_producer_of_2022_knows_stream_alone_and_one_of_today_four_keywords():
    with pytest.raises(TypeError, match="max_version"):
        made("dlpack-legacy", {"max_version": (1, 0)})
    assert made("dlpack-legacy", {"stream": None})[1].name == "dltensor"
    with pytest.raises(BufferError, match="stream is 1"):
        made("dlpack", {"stream": 1})
    copied = made("dlpack", {"copy": True, "max_version": (1, 0)}, readonly=True)[1]
    assert copied.flags == 2, "it is a copy, and can be written to"
    with pytest.raises(TypeError, match="tuple of two ints"):
        made("dlpack", {"max_version": [1, 0]})
    with pytest.raises(BufferError, match="dl_device"):
        made("dlpack", {"dl_device": (2, 0)})
    with pytest.raises(BufferError, match="legacy capsule cannot say read-only"):
        made("dlpack", {}, readonly=True)


def test_who_deletes_a_tensor_is_counted():
    subject, _ = made("dlpack", shape=(3,))
    (tensor,) = subject.info().handed_out
    assert tensor.armed and not subject.is_free()
    subject.forget()  # it was not used: the capsule's destructor does
    (tensor,) = subject.info().handed_out
    assert (tensor.deleter_calls, tensor.destructor_calls) == (0, 1) and subject.is_free()


def test_a_tensor_that_was_taken_is_left_alone_by_its_capsule():
    subject, _ = made("dlpack", shape=(3,))
    exported = Exported(subject.handed_out[0].held, Memory())
    exported.mark_used()
    assert not subject.info().handed_out[0].armed
    assert exported.delete_on_foreign_thread()
    del exported
    subject.forget()
    (tensor,) = subject.info().handed_out
    assert (tensor.deleter_calls, tensor.destructor_calls) == (1, 0)


@pytest.mark.parametrize("is_foreign", [False, True], ids=["with-the-gil", "on-another-thread"])
def test_a_deleter_in_python_drops_the_last_references(is_foreign):
    subject, _ = made("dlpack:python-deleter", shape=(3,))
    (tensor,) = subject.handed_out
    exported = Exported(tensor.held, Memory())
    exported.mark_used()
    subject.forget()
    assert subject.references == 1 and tensor.finalized == 0 and not subject.is_free()
    assert exported.delete_on_foreign_thread() if is_foreign else exported.delete()
    del exported
    assert subject.references == 0 and tensor.finalized == 1
    (counts,) = subject.info().handed_out
    assert (counts.deleter_calls, counts.destructor_calls) == (1, 0)
    subject.close()
    assert tensor.finalized == 1


def test_an_unused_capsule_with_a_deleter_in_python_goes_when_the_suite_forgets_it():
    subject, _ = made("dlpack:python-deleter", shape=(3,))
    (tensor,) = subject.handed_out
    subject.forget()
    (counts,) = subject.info().handed_out
    assert (counts.deleter_calls, counts.destructor_calls) == (0, 1) and subject.references == 0
    subject.close()
    assert tensor.finalized == 1


@pytest.mark.parametrize(("variant", "tensors"), [("shared-capsule", 1), ("threads", 8)])
def test_threads_get_their_capsules_at_the_same_time(variant, tensors):
    export = adapted(Plan(), interfaces()["dlpack"], interfaces()["dlpack"].variants[variant])
    subject = export.interface.make(export, Block(export.plan))
    arrived, before = [], []

    def ask(number):
        arrived.append(number)
        capsule = subject.exporter.__dlpack__(max_version=(1, 0))
        before.append(len(arrived))
        return id(capsule)

    with ThreadPoolExecutor(export.variant.threads) as pool:
        ids = list(pool.map(ask, range(export.variant.threads)))
    assert len(set(ids)) == len(subject.handed_out) == tensors
    assert set(before) == {export.variant.threads}, "no thread has a capsule before all have asked"
    assert len(subject.info().calls) == export.variant.threads


def test_a_thread_that_comes_alone_gets_its_capsule_nevertheless():
    _, info = made("dlpack:shared-capsule", shape=(3,))
    assert info.name == "dltensor_versioned"


def test_written_metadata_is_seen():
    subject, info = made("dlpack", shape=(3,))
    assert subject.info().handed_out[0].metadata_unchanged
    subject.handed_out[0]._arrays[1][0] = 8
    assert not subject.info().handed_out[0].metadata_unchanged
