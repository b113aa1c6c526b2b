"""Every check fails for its own defect only: a correct observation with one changed value.

`SPOILED` holds for each rule one defect: the plan, and what the measurer would have seen instead.
The rule must then fail (or advise), and on the unspoiled observation it must not.
"""

from __future__ import annotations

from typing import Any

import pytest
from observations import PLANS, fresh_observation, judge, place, remove

from gridbuf_conformance.info.values import describe
from gridbuf_conformance.outcomes import Outcome
from gridbuf_conformance.rules import CHECKS, catalogue

REMOVED = object()
VALUE_ERROR = {"type": "ValueError", "mro": ["ValueError", "Exception"], "text": ""}
TYPE_ERROR = {"type": "TypeError", "mro": ["TypeError", "Exception"], "text": ""}
MOVED = {"refused": None, "mapped": False, "same_address": False}
FOREIGN = {"t": "other", "type": "BytesExporter", "callable": False}
NO_AS = ("root.struct", REMOVED)


def source(length: int) -> dict[str, Any]:
    """The info on a writable buffer of plain bytes, far from everything."""
    view = {"buf": 2**40, "len": length, "readonly": 0}
    return {"SIMPLE": {"view": view}}


def capsule_of(name: str, **changes: Any) -> dict[str, Any]:
    """The main capsule of another observation, with some fields changed."""
    return {**fresh_observation(name)["root"]["main"], **changes}


def fields(**changes: Any) -> list[tuple[str, Any]]:
    return [(f"root.ai.fields.{key}", describe(value)) for key, value in changes.items()]


def main(**changes: Any) -> list[tuple[str, Any]]:
    return [(f"root.main.{key}", value) for key, value in changes.items()]


def granted(name: str, **changes: Any) -> list[tuple[str, Any]]:
    return [(f"root.pb.{name}.view.{key}", value) for key, value in changes.items()]


def lost(survivor: str) -> dict[str, Any]:
    loss = [{"dropped": "object", "survivor": survivor}]
    return {"order": ["object", survivor], "lost": loss, "changed": []}


FORMATTED = ("ND|FORMAT", "RECORDS_RO", "RECORDS", "FULL_RO", "FULL")


def formats(text: str | None, **changes: Any) -> list[tuple[str, Any]]:
    return [entry for n in FORMATTED for entry in granted(n, format=text, **changes)]


def only_array_interface(info: dict[str, Any]) -> None:
    for name in ("struct", "main", "dlpack"):
        info.pop(name, None)
    info["pb"] = {}


def plain_request_granted(observation: dict[str, Any]) -> None:
    requests = observation["root"]["pb"]
    requests["ND"] = {"view": {**requests["STRIDES"]["view"], "strides": None}}


def fortran_request_granted(observation: dict[str, Any]) -> None:
    requests = observation["root"]["pb"]
    requests["F_CONTIGUOUS"] = requests["C_CONTIGUOUS"]


def offset_not_needed(observation: dict[str, Any]) -> None:
    root = observation["root"]
    address = root["ai"]["fields"]["data"]["items"][0]["value"]
    root["main"].update(data=address, byte_offset=16)


def swapped_bytes_exported(observation: dict[str, Any]) -> None:
    root = observation["root"]
    content = root["walk"]["AI"]
    for name in ("ai", "struct"):
        del root[name]
    root.update(pb={}, main=capsule_of("int32"), walk={"DL": content})


def stream_is_taken(observation: dict[str, Any]) -> None:
    calls = observation["root"]["dlpack"]
    calls["stream=1"] = calls["stream=None"]


def copy_is_the_original(observation: dict[str, Any]) -> None:
    observation["root"]["dlpack"]["copy=True"] = observation["root"]["main"]


def array_method_copies(observation: dict[str, Any]) -> None:
    root = observation["root"]
    observation["array_attribute"] = elsewhere = root.pop("ai")
    elsewhere["fields"]["data"]["items"][0]["value"] += 2**30
    del root["struct"]
    root["pb"] = {}
    observation["gt4py"]["__gt_dims__"] = describe(("I", "J"))


def one_item_too_far(observation: dict[str, Any]) -> None:
    only_array_interface(observation["root"])
    place(observation, "root.ai.fields.data.items.0.value", lambda address: address + 8)


def row_major(observation: dict[str, Any]) -> None:
    only_array_interface(observation["root"])
    place(observation, "root.ai.fields.strides", describe((32, 8)))


def odd_padding(observation: dict[str, Any]) -> None:
    only_array_interface(observation["root"])
    place(observation, "root.ai.fields.strides", describe((8, 72)))


def cuda(**changes: Any) -> list[tuple[str, Any]]:
    return [(f"root.cai.fields.{key}", describe(value)) for key, value in changes.items()]


def entry(key: str, **changes: Any) -> list[tuple[str, Any]]:
    path = f"root.gt_data.entries.{key}.fields"
    return [(f"{path}.{name}", describe(value)) for name, value in changes.items()]


def stream_object(pair: tuple[int, int], **live: bool) -> list[tuple[str, Any]]:
    """The info on a stream that returns this pair."""
    value = describe(pair)
    return [("root.cuda_stream", {"is_method": True, "pair": value, "again": value, **live})]


def exchange(path: str, value: Any) -> list[tuple[str, Any]]:
    return [(f"root.exchange.{path}", value)]


def names_taken_twice() -> dict[str, Any]:
    """What is seen of a named array that overwrites other names of its data."""
    shown = {"wanted": describe(("J", "I")), "shown": [describe(("J", "I"))]}
    return {"dims": describe(("I", "J")), "data_has_names": True, "renamed": shown}


def rows_of_twice_the_length(observation: dict[str, Any]) -> None:
    for info in (observation["root"], observation["second"]):
        only_array_interface(info)
        info["ai"]["fields"]["strides"] = describe((8, 128))


def mirrors_without_hooks(observation: dict[str, Any]) -> None:
    root = observation["root"]
    del root["gt_data"]
    root["cai"]["fields"]["data"]["items"][0]["value"] += 2**30
    root["standing"] = {"None>gpu": False, "gpu>None": None}


def on_rocm(*changes: tuple[str, Any]) -> list[tuple[str, Any]]:
    """The object says that it is a ROCm array."""
    return [("root.device.integers", [10, 0]), *changes]


def host_array_with_the_attribute(observation: dict[str, Any]) -> None:
    place(observation, "root.probes.__cuda_array_interface__", {"present": True})
    place(observation, "root.cai", {"value": describe(None)})


def content_of_the_other_order(observation: dict[str, Any]) -> None:
    root = observation["root"]
    content = bytes.fromhex(root["walk"]["CAI"])
    flipped = b"".join(content[i : i + 8][::-1] for i in range(0, len(content), 8))
    root["walk"]["CAI"] = flipped.hex()


def far_mirror(observation: dict[str, Any]) -> None:
    place(observation, "root.cai.fields.data.items.0.value", lambda address: address + 2**30)
    place(observation, "root.walk.CAI", lambda content: "ff" + content[2:])


ACCEPTED: dict[str, Any] = {"capsule": True, "name": "dltensor_versioned"}


def same_memory_twice(observation: dict[str, Any]) -> None:
    observation["second"].update({name: observation["root"][name] for name in ("ai", "pb", "main")})


def hidden_copy(observation: dict[str, Any]) -> None:
    root = observation["root"]
    for request in root["pb"].values():
        if "view" in request:
            request["view"]["buf"] += 2**30
    root["poke"] = {"AI>PB": False}


def view_with_the_strides_of_the_base(observation: dict[str, Any]) -> None:
    only_array_interface(observation["view"])
    place(observation, "view.ai.fields.strides", describe(None))


# Rule → (plan, [(path, the value that replaces it)], or a function that spoils the observation).
SPOILED: dict[str, tuple[str, Any]] = {
    "AI-01": ("matrix", [("root.ai", {"value": {**FOREIGN, "callable": True}})]),
    "AI-02": ("matrix", [("root.ai.fields.version", REMOVED)]),
    "AI-03": ("matrix", fields(shape=[3, 4])),
    "AI-05": ("matrix", fields(shape=(2**62, 8), strides=None)),
    "AI-06": ("matrix", fields(typestr="f8")),
    "AI-07": ("matrix", fields(typestr="<i3")),
    "AI-08": ("matrix", fields(typestr="|f8")),
    "AI-09": ("matrix", fields(typestr=">f8")),
    "AI-10": (
        "booleans",
        [("root.ai.fields.data", FOREIGN), ("root.ai.data_buffer", source(8))],
    ),
    "AI-11": ("matrix", fields(typestr="|V8", descr=[("x", "<f4"), ("y", "|i1")])),
    "AI-12": ("matrix", fields(typestr="|V8", descr=[("x", "<f4"), ("x", "<f4")])),
    "AI-13": ("matrix", fields(descr=[("", "<f4")])),
    "AI-14": ("matrix", fields(data=("0x7f", False))),
    "AI-15": ("reversed", [("view.ai.fields.data.items.0.value", lambda address: address - 40)]),
    "AI-16": (
        "matrix",
        [("root.ai.fields.data", FOREIGN), ("root.ai.data_buffer", source(8))],
    ),
    "AI-17": ("matrix", [*fields(data=None), *granted("SIMPLE", len=8)]),
    "AI-18": ("matrix", fields(data=None, offset=-64)),
    "AI-19": ("matrix", [("root.ai.fields.data", REMOVED)]),
    "AI-20": ("matrix", fields(data=(0, False))),
    "AI-21": ("matrix", fields(strides=[32, 8])),
    "AI-22": ("matrix", [("root.mapping.AI.read", False)]),
    "AI-24": ("scalar", fields(shape=None)),
    "AI-25": ("matrix", [("root.mapping.AI.write", False)]),
    "AI-26": (
        "matrix",
        [("root.ai.fields.mask", FOREIGN), ("root.ai.mask_interface", {"fields": {}})],
    ),
    "AI-27": ("matrix", fields(version="3")),
    "AI-28": ("matrix", [("life.dict_drop", lost("AI"))]),
    "AI-30": ("int64", [("life.resizes", {"resize": {"AI": MOVED}})]),
    "AI-33": (
        "matrix",
        [("repeated.0.ai.fields.data.items.0.value", lambda address: address + 64)],
    ),
    "AS-01": ("matrix", [("root.struct", {"capsule": True, "name": "numpy"})]),
    "AS-02": ("matrix", [("root.struct.two", 3)]),
    "AS-03": ("matrix", [("root.struct.typekind", "d")]),
    "AS-04": ("matrix", [("root.struct.strides", None)]),
    "AS-05": ("matrix", [("root.struct.flags", lambda flags: flags | 0x2)]),
    "AS-06": (
        "matrix",
        [
            ("root.struct.flags", lambda flags: flags | 0x800),
            ("root.struct.has_descr_pointer", False),
        ],
    ),
    "AS-07": ("matrix", [("life.drops.0", lost("AS"))]),
    "AS-08": ("matrix", [("root.struct.flags", 0x600), ("root.struct.strides", [8, 24])]),
    "PB-01": ("matrix", [("root.pb.F_CONTIGUOUS.error", VALUE_ERROR)]),
    "PB-02": ("matrix", granted("STRIDES", ndim=1)),
    "PB-03": ("matrix", granted("FULL_RO", len=24)),
    "PB-04": ("matrix", formats("f")),
    "PB-05": ("matrix", granted("ND", itemsize=1)),
    "PB-06": ("matrix", granted("ND", format="d")),
    "PB-07": ("matrix", formats(None)),
    "PB-08": ("matrix", granted("SIMPLE", shape=[3, 4])),
    "PB-09": ("matrix", granted("STRIDES", strides=None)),
    "PB-10": ("matrix", granted("FULL_RO", suboffsets=[-1, -1])),
    "PB-11": ("fortran", plain_request_granted),
    "PB-12": ("matrix", fortran_request_granted),
    "PB-13": ("matrix", granted("WRITABLE", readonly=1)),
    "PB-14": ("matrix", granted("ND", readonly=1)),
    "PB-15": ("scalar", granted("FULL_RO", shape=[])),
    "PB-16": ("matrix", granted("FULL_RO", ndim=65)),
    "PB-17": ("matrix", granted("FULL_RO", shape=[3, -4])),
    "PB-18": ("matrix", [("root.mapping.PB.read", False)]),
    "PB-19": ("reversed", [("view.pb.FULL_RO.view.buf", lambda address: address - 40)]),
    "PB-20": ("matrix", formats("d}")),
    "PB-21": ("int32", formats("l")),
    "PB-22": ("complex", formats("dd")),
    "PB-23": ("matrix", granted("FULL_RO", obj=None)),
    "PB-24": ("matrix", [("life.buffer.references", [2, 10])]),
    "PB-25": ("matrix", [("life.buffer.two_views.0.unchanged", False)]),
    "PB-27": ("matrix", [("root.python.after_release", {})]),
    "PB-28": (
        "matrix",
        [("root.python.methods.FULL_RO", {"value": {"t": "bytes"}, "is_memoryview": False})],
    ),
    "PB-30": (
        "matrix",
        [("root.python.methods.WRITABLE", {"is_memoryview": True, "readonly": True})],
    ),
    "PB-33": (
        "matrix",
        [
            *[(f"root.{name}", REMOVED) for name in ("ai", "struct", "main", "dlpack")],
            ("root.pb", {}),
            ("root.python.memoryview", {"error": VALUE_ERROR}),
        ],
    ),
    "PB-34": ("matrix", [("life.buffer.two_views.0.same_address", False)]),
    "DL-01": (
        "matrix",
        [("root.main", {"capsule": True, "name": "dltensor_versioned", "unmapped": True})],
    ),
    "DL-02": ("matrix", main(version=[0, 8])),
    "DL-03": ("matrix", main(flags=8)),
    "DL-04": ("matrix", [("root.mapping.DL.write", False)]),
    "DL-05": ("matrix", [("root.dlpack.copy=True.flags", 0)]),
    "DL-06": ("matrix", main(flags=4)),
    "DL-07": ("matrix", main(shape=None)),
    "DL-08": ("matrix", main(version=[1, 2], strides=None)),
    "DL-09": ("matrix", [*main(strides=[32, 8]), ("root.walk.DL", REMOVED)]),
    "DL-10": ("matrix", offset_not_needed),
    "DL-12": ("empty", main(data=4096)),
    "DL-13": ("scalar", main(data=0)),
    "DL-14": ("matrix", main(strides=[2**62, 1])),
    "DL-15": ("matrix", main(dtype=[200, 64, 1])),
    "DL-16": ("swapped", swapped_bytes_exported),
    "DL-17": ("matrix", main(device=[77, 0])),
    "DL-19": ("matrix", main(deleter="not executable")),
    "DL-20": ("matrix", [("life.capsule.references_without_gil", [6, 5])]),
    "DL-21": (
        "matrix",
        [("life.drops.0.changed", ["DL"]), ("life.drops.0.order", ["object", "DL"])],
    ),
    "DL-24": ("matrix", main(byte_offset=2**64 - 40)),
    "DL-27": ("matrix", main(data=0)),
    "DL-29": ("int64", [("life.resizes", {"resize_": {"DL": MOVED}})]),
    "DL-30": ("matrix", main(dtype=[2, 64, 2])),
    "DP-01": ("matrix", [("root.probes.__dlpack_device__.present", False)]),
    "DP-02": ("matrix", [("root.device", {"first": describe("cpu"), "second": describe("cpu")})]),
    "DP-03": ("matrix", [("root.main", {"capsule": True, "name": "dlpack"})]),
    "DP-04": ("matrix", main(device=[2, 0])),
    "DP-06": ("matrix", [("life.capsule.references", [2, 10])]),
    "DP-07": ("matrix", [("life.capsule.destructor_called_deleter", True)]),
    "DP-10": ("matrix", [("life.capsule.name_after", "\x01\x02")]),
    "DP-11": ("matrix", [("root.dlpack.legacy.name", "dltensor_versioned")]),
    "DP-12": ("matrix", [("root.dlpack.max_version=(0,8).name", "dltensor_versioned")]),
    "DP-13": ("matrix", [("root.dlpack.max_version=[1,0]", capsule_of("matrix"))]),
    "DP-14": ("matrix", [("root.dlpack.copy=None", {"error": TYPE_ERROR})]),
    "DP-15": ("matrix", stream_is_taken),
    "DP-20": ("matrix", copy_is_the_original),
    "DP-21": ("matrix", [("root.dlpack.copy=False.data", 2**40)]),
    "DP-22": ("matrix", main(data=2**40, byte_offset=0, flags=2)),
    "DP-23": ("matrix", [("root.dlpack.dl_device=(8,0)", capsule_of("matrix"))]),
    "DP-25": ("record", [("root.main", capsule_of("matrix", ndim=1, shape=[4], strides=[1]))]),
    "DP-26": ("matrix", fields(strides=(36, 12))),
    "DP-27": (
        "readonly",
        [("root.dlpack.legacy", fresh_observation("int64")["root"]["dlpack"]["legacy"])],
    ),
    "GT-15": ("matrix", array_method_copies),
    "GT-16": ("aligned", one_item_too_far),
    "GT-17": ("fortran", row_major),
    "GT-18": ("aligned", [("gt4py.__gt_dims__", describe(("I", "-1")))]),
    "GT-19": (
        "matrix",
        [("domain_starts", [describe(-1)]), ("gt4py.__gt_origin__", describe((-1,)))],
    ),
    "GT-20": ("matrix", [("gt4py", {})]),
    "GT-21": ("matrix", same_memory_twice),
    "GT-22": ("aligned", odd_padding),
    "GT-23": ("matrix", [("second.ai.fields.strides", describe((40, 8)))]),
    "GT-24": ("matrix", [("root.mapping.PB.read", False)]),
    "XA-01": ("matrix", [("root.struct.data", lambda address: address + 8)]),
    "XA-02": ("matrix", [NO_AS, *fields(shape=(4, 3), strides=None)]),
    "XA-03": ("matrix", [NO_AS, *fields(strides=(8, 24))]),
    "XA-04": ("matrix", [NO_AS, *fields(typestr="<i8")]),
    "XA-05": ("matrix", [NO_AS, *fields(typestr="<f4")]),
    "XA-06": ("matrix", [NO_AS, ("root.ai.fields.data.items.1", describe(True))]),
    "XA-07": ("swapped", [("root.main", capsule_of("int32"))]),
    "XA-08": ("matrix", [("root.walk.AI", lambda content: "ff" + content[2:])]),
    "XA-09": ("matrix", hidden_copy),
    "XA-10": ("matrix", [("root.mapping.AI.first", False)]),
    "XA-11": ("matrix", [("life.drops.0", lost("DL"))]),
    "XA-12": ("reversed", view_with_the_strides_of_the_base),
    "XA-13": ("matrix", [("repeated.1.main.shape", [4, 3])]),
    "XA-14": ("swapped", [("root.main.error", VALUE_ERROR)]),
    "CAI-01": ("device", [("root.cai", {"value": describe([])})]),
    "CAI-02": ("device", [("root.cai.fields.version", REMOVED)]),
    "CAI-03": ("device", cuda(shape=[3, 4])),
    "CAI-04": ("device", cuda(typestr="f8")),
    "CAI-05": ("device", cuda(data=(None, False))),
    "CAI-06": ("device empty", cuda(data=(4096, False))),
    "CAI-07": ("device", [("root.mapping.CAI.pointer.device", False)]),
    "CAI-08": ("device readonly", [("root.cai.fields.data.items.1", describe(False))]),
    "CAI-09": ("device", cuda(version=4)),
    "CAI-10": ("device fortran", cuda(strides=None)),
    "CAI-11": ("device", cuda(strides=[32, 8])),
    "CAI-12": ("device", [("root.mapping.CAI.read", False)]),
    "CAI-14": ("device", cuda(descr=[("a",)])),
    "CAI-15": ("device", cuda(mask=3)),
    "CAI-16": ("device", cuda(stream=0)),
    "CAI-17": ("device", [("root.stream", {"live": False, "error": "stream_query"})]),
    "CAI-18": ("device", [("pending.seen.CAI", False)]),
    "CAI-19": ("device", [*cuda(stream=None), ("root.late.CAI", True)]),
    "CAI-21": ("device", [*cuda(version=2), ("root.late.CAI", True)]),
    "CAI-22": ("device", [("root.stream.live_after", False)]),
    "CAI-23": ("device", [("life.cai_references.1", lambda count: count + 8)]),
    "CAI-24": ("matrix", host_array_with_the_attribute),
    "CAI-25": ("device", [("root.mapping.CAI.pointer.id", 1)]),
    "CAI-26": ("device", content_of_the_other_order),
    "CAI-27": ("device", cuda(version=1, strides=(32, 8))),
    "CAI-28": ("device", on_rocm(*cuda(stream=1))),
    "CAI-29": ("device scalar", cuda(strides=(8,))),
    "CAI-30": ("device", [("repeated.0.cai.fields.data.items.0.value", lambda a: a + 8)]),
    "DL-25": ("packed", [("root.packed", lambda content: content[1] + content[0] + content[2:])]),
    "DL-26": ("matrix", main(dtype=[17, 8, 1])),
    "DL-18": ("managed", [("root.mapping.DL.pointer.type", 3)]),
    "DP-16": ("device", [("root.dlpack.stream=0", ACCEPTED)]),
    "DP-17": ("device", on_rocm(("root.dlpack.stream=0", ACCEPTED))),
    "DP-18": ("device", [("pending.seen.DL", False)]),
    "DP-24": ("device", [("pending.seen.DL dl_device", False)]),
    "CS-01": ("device", stream_object((1, 2))),
    "CS-02": ("device", stream_object((0, -1))),
    "CS-03": ("device", stream_object((0, 4096), live=True, live_after=False)),
    "DX-01": ("matrix", exchange("name", "c_dlpack_exchange_api")),
    "DX-02": ("matrix", exchange("again.same_address", False)),
    "DX-03": ("matrix", exchange("chain", "endless")),
    "DX-04": ("matrix", exchange("entries.current_work_stream", "NULL")),
    "DX-05": ("matrix", exchange("stream.result", -1)),
    "DX-06": ("matrix", exchange("export.strides", [32, 8])),
    "DX-07": ("matrix", exchange("bare.data", lambda address: address + 8)),
    "DX-08": ("matrix", exchange("imported.calls", 2)),
    "DX-09": ("device", [("pending.seen.DX stream", False)]),
    "DX-10": ("matrix", exchange("allocation_refused.reported", [])),
    "DX-12": ("record", exchange("export.error", VALUE_ERROR)),
    "DX-13": ("matrix", exchange("later_major.result", 0)),
    "GT-01": ("device", [("root.gt_data.keys.0", describe("cpu"))]),
    "GT-02": ("device", [("root.gt_data.entries.gpu.fields.data", REMOVED)]),
    "GT-03": ("device", [("root.gt_data.entries.gpu.hooks.acquire.error", TYPE_ERROR)]),
    "GT-04": ("device", entry("gpu", dims=("I",))),
    "GT-05": ("device", entry("gpu", halo=((3, 1), (0, 0)))),
    "GT-08": ("pinned", mirrors_without_hooks),
    "GT-09": ("pinned", [("root.gt_data.entries.gpu.walk", lambda content: "ff" + content[2:])]),
    "GT-11": ("pinned", [("naming", names_taken_twice())]),
    "GT-12": ("pinned", entry("gpu", dims=("J", "I")) + entry("None", dims=("J", "I"))),
    "GT-13": ("aligned", [("gt4py.__gt_dims__", describe(("I", "I")))]),
    "GT-14": ("matrix", [("gt4py.__gt_origin__", describe((0.0, 0.0)))]),
    "GT-25": ("aligned", rows_of_twice_the_length),
    "GT-26": (
        "pinned",
        [
            *entry("gpu", dims=("J", "I")),
            *entry("None", dims=("J", "I")),
            ("gt4py.__gt_dims__", describe(None)),
        ],
    ),
    "GT-27": ("halo", [("gt4py.__gt_origin__", describe((1, 0)))]),
    "GT-28": ("turned", [("view.gt_data.entries.gpu.fields.dims", describe(("I", "J")))]),
    "PB-29": (
        "matrix",
        [("root.python.release", {"raised": [], "in_flight": "SystemError"})],
    ),
    "XA-16": ("device", exchange("stream.value", 4096)),
    "XA-17": ("pinned", far_mirror),
    "XA-18": ("matrix", [("root.probes.__array_interface__", {"error": TYPE_ERROR})]),
}
ASKED = {"GT-20": PLANS["matrix"].replaced(dtype="float32")}
"""Rules whose defect is in the request, not in the observation."""


def spoil(observation: dict[str, Any], fault: Any) -> None:
    if callable(fault):
        fault(observation)
        return
    for path, value in fault:
        if value is REMOVED:
            remove(observation, path)
        else:
            place(observation, path, value)


def test_every_check_has_its_defect() -> None:
    assert SPOILED.keys() == CHECKS.keys()


@pytest.mark.parametrize("rule", SPOILED)
def test_defect_fails_its_rule(rule: str) -> None:
    name, fault = SPOILED[rule]
    observation = fresh_observation(name)
    spoil(observation, fault)
    verdict = judge(observation, ASKED.get(rule, PLANS[name]), [rule])[rule]
    level = catalogue.load()[rule].level
    assert verdict.outcome is (Outcome.FAIL if level == "MUST" else Outcome.ADVISORY), verdict
    assert verdict.expected
    assert verdict.actual


def test_lost_memory_is_told_by_the_element_that_changed() -> None:
    observation = fresh_observation("matrix")
    content = observation["root"]["walk"]["DL"]
    changed = content[:16] + "a5" * 8 + content[32:]
    loss = {"dropped": "object", "survivor": "DL", "before": content, "after": changed}
    place(observation, "life.drops.0", {"order": ["object", "DL"], "lost": [loss], "changed": []})
    verdict = judge(observation, PLANS["matrix"], ["XA-11"])["XA-11"]
    assert "at element [0, 1] after object was dropped" in verdict.actual, verdict


@pytest.mark.parametrize("name", PLANS)
def test_correct_object_does_not_fail(name: str) -> None:
    verdicts = judge(fresh_observation(name), PLANS[name], CHECKS)
    failed = {
        rule: verdict
        for rule, verdict in verdicts.items()
        if verdict.outcome not in (Outcome.PASS, Outcome.UNSUPPORTED)
    }
    assert failed == {}


@pytest.mark.parametrize("rule", SPOILED)
def test_no_check_raises_on_a_defect(rule: str) -> None:
    """Whatever is wrong, every other check still says something: none of them raises."""
    name, fault = SPOILED[rule]
    observation = fresh_observation(name)
    spoil(observation, fault)
    verdicts = judge(observation, ASKED.get(rule, PLANS[name]), CHECKS)
    assert {id_: v for id_, v in verdicts.items() if v.outcome is Outcome.ERROR} == {}


def test_verdicts_hold_no_addresses() -> None:
    for name, fault in SPOILED.values():
        observation = fresh_observation(name)
        spoil(observation, fault)
        base = (
            observation["root"].get("ai", {}).get("fields", {}).get("data", {}).get("items", [{}])
        )
        address = str(base[0].get("value", "none") if base else "none")
        for verdict in judge(observation, PLANS[name], CHECKS).values():
            assert address == "0" or address not in f"{verdict.expected} {verdict.actual}"
