"""Observations of a right object, to be spoiled in one place by tests of the judge.

The object is the zoo's reference array, which has every interface and breaks no rule (for plans of
another device the one on the zoo's device); each observation goes through JSON, as it does on the
way from the worker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache, partial
from typing import Any

from gridbuf_conformance.abi.device import Devices
from gridbuf_conformance.engine.judge import judge as judge_observation
from gridbuf_conformance.info import Observation, from_json, to_json
from gridbuf_conformance import measure
from gridbuf_conformance.outcomes import Verdict
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.rules.catalogue import GROUPS
from gridbuf_conformance.rules.scope import Scope
from gridbuf_conformance_mutants.device import DeviceReference
from gridbuf_conformance_mutants.packed import PackedReference
from gridbuf_conformance_mutants.reference import Reference

PLANS = {
    "matrix": Plan(shape=(3, 4)),
    "fortran": Plan(shape=(3, 4), layout=(1, 0)),
    "aligned": Plan(shape=(3, 5), layout=(1, 0), alignment_size=64, dims=("I", "J")),
    "scalar": Plan(shape=()),
    "empty": Plan(shape=(0, 3)),
    "readonly": Plan(shape=(4,), readonly=True),
    "swapped": Plan(shape=(2, 3), dtype="int32", byteorder="swapped"),
    "int32": Plan(shape=(2, 3), dtype="int32"),
    "int64": Plan(shape=(4,), dtype="int64"),
    "complex": Plan(shape=(4,), dtype="complex128"),
    "record": Plan(shape=(4,), dtype="struct"),
    "booleans": Plan(shape=(64,), dtype="bool"),
    "reversed": Plan(shape=(6,), views=(("reverse", 0),)),
    "device": Plan(shape=(3, 4), dims=("I", "J"), device="gpu"),
    "device fortran": Plan(shape=(3, 4), layout=(1, 0), device="gpu"),
    "device empty": Plan(shape=(0, 3), device="gpu"),
    "device scalar": Plan(shape=(), device="gpu"),
    "device readonly": Plan(shape=(4,), readonly=True, device="gpu"),
    "device record": Plan(shape=(4,), dtype="struct", device="gpu"),
    "pinned": Plan(shape=(3, 4), dims=("I", "J"), device="pinned"),
    "turned": Plan(shape=(3, 4), dims=("I", "J"), views=(("transpose", (1, 0)),), device="pinned"),
    "halo": Plan(shape=(4, 5), dims=("J", "I"), halo=((1, 1), (0, 2))),
    "packed": Plan(shape=(5,), dtype="uint4"),
    "managed": Plan(shape=(3, 4), device="managed"),
}

observe = partial(measure.observe, groups=frozenset(GROUPS))


@cache
def _observed(name: str) -> str:
    plan = PLANS[name]
    reference = _reference(plan)
    devices = Devices(getattr(reference, "device_table", None))
    observation = observe(
        reference.produce(plan),
        plan,
        again=lambda: reference.produce(plan),
        apply_view=reference.apply_view,
        devices=devices,
        on_stream=getattr(reference, "on_stream", None),
    )
    return json.dumps(to_json(observation))


def _reference(plan: Plan) -> Reference:
    if plan.dtype_info.packed_bits is not None:
        return PackedReference()
    return Reference() if plan.device is None else DeviceReference()


def fresh_observation(name: str) -> dict[str, Any]:
    """The observation of the reference array for one of `PLANS`; yours to change."""
    return json.loads(_observed(name))


def judge(
    observation: dict[str, Any], plan: Plan | None, rules: Iterable[str]
) -> dict[str, Verdict]:
    """The judge's verdicts on an observation that was changed."""
    return judge_observation(
        from_json(Observation, to_json(observation)), plan, rules, Scope(storage=True)
    )


def place(info: dict[str, Any], path: str, value: Any) -> None:
    """Puts `value` at a dotted path; `*` means every entry, a name that is missing is added.

    A callable is applied to the old value.
    """
    head, _, rest = path.partition(".")
    keys = list(info) if head == "*" else [int(head) if isinstance(info, list) else head]
    if isinstance(info, list) and head == "*":
        keys = range(len(info))
    for key in keys:
        if rest:
            place(info[key], rest, value)
        elif callable(value):
            info[key] = value(info[key])
        else:
            info[key] = to_json(value)


def remove(info: dict[str, Any], path: str) -> None:
    """Removes the value at a dotted path."""
    head, _, last = path.rpartition(".")
    for key in head.split(".") if head else ():
        info = info[key]
    del info[last]
