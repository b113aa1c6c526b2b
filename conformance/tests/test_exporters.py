"""Every exporter that consumers are tested with is judged as a producer, on drawn plans and with
each legal variant.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gridbuf_conformance import Unsupported, check_producer
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.exports import (
    PLAIN,
    Block,
    Interface,
    ObservedExport,
    Variant,
    export_of,
    interfaces,
)
from gridbuf_conformance.exports.drawing import adapted
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plan.dtypes import DTYPES
from gridbuf_conformance.render.report import Report

_HERE = [interface for interface in interfaces().values() if not interface.unavailable()]
_OF_THE_NOTES = {"DL-19", "DP-06"}
"""Memory that grows with the exports: the suite notes each of them until the consumer has been
seen.
"""
_EXPECTED = {
    "dlpack-legacy": {"DP-14": "ADVISORY"},  # the keywords of the 2022 standard
    "dlpack:empty-pointer": {"DL-12": "ADVISORY"},  # legal, and not what DLPack recommends
    "dlpack-legacy:empty-pointer": {"DL-12": "ADVISORY"},
    "exchange": {"DX-13": "ADVISORY"},  # its import refuses all tensors, and takes none over
    "dlpack:copied": {"DL-05": "FAIL"},  # every export claims to be the copy that one consumer gets
}


class _Exporters:
    """The exporters of one interface. A plan releases the blocks of the plans before it, but for
    those that differ only in shape and content: these are asked while the others are held.
    """

    def __init__(self, interface: Interface, variant: Variant) -> None:
        self.name = interface.written(variant.name)
        self.capabilities = replace(interface.capabilities, max_nbytes=4096)
        self._interface = interface
        self._kind: Plan | None = None
        self._made: list[ObservedExport] = []

    def produce(self, plan: Plan) -> Any:
        if plan.fill is None:
            return Unsupported("exports have content")
        kind = plan.replaced(
            shape=(1,) * plan.ndim, fill=0, views=(), aligned_index=None, halo=None
        )
        if kind != self._kind:
            self.put_away()
            self._kind = kind
        return self._exporter(plan.replaced(views=()))

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        """The export of a plan with one more view operation; like a copy, in a separate block."""
        (plan,) = (one.block.plan for one in self._made if one.exporter is obj)
        return self._exporter(plan.replaced(views=(*plan.views, operation)))

    def _exporter(self, plan: Plan) -> Any:
        export = export_of(plan, self.name)
        block = Block(plan, **self._interface.memory_of(export))
        self._made.append(self._interface.make(export, block))
        return self._made[-1].exporter

    def put_away(self) -> None:
        for observed in self._made:
            observed.forget()
        gc.collect()  # no capsule outlives its tensor
        for observed in self._made:
            observed.close()
        self._made.clear()


@pytest.fixture(autouse=True)
def _few_objects_to_collect() -> None:
    """The leak tests collect often. What stays frozen is unfrozen at the end of the session
    (`pytest_main`).
    """
    gc.collect()
    gc.freeze()


def _unexpected(report: Report, written: str) -> dict[str, Any]:
    """The failures and advisories that are not expected, with their reasons."""
    silent = ("PASS", "UNSUPPORTED", "UNTESTED", "BLOCKED")
    expected = {**_EXPECTED.get(written.partition(":")[0], {}), **_EXPECTED.get(written, {})}
    return {
        rule["id"]: (rule["outcome"], rule["failures"][0])
        for rule in report.data["rules"]
        if rule["outcome"] not in silent
        and expected.get(rule["id"]) != rule["outcome"]
        and rule["id"] not in _OF_THE_NOTES
    }


# Half a minute each.
_SLOW = ("exchange", "several")


@pytest.mark.parametrize(
    "interface",
    [
        pytest.param(
            interface,
            id=interface.name,
            marks=[pytest.mark.thorough] if interface.name in _SLOW else [],
        )
        for interface in _HERE
    ],
)
def test_the_plain_exporter_of_an_interface_passes(interface: Interface) -> None:
    producer = _Exporters(interface, interface.variants[PLAIN])
    report = check_producer(producer, profile="smoke", isolate=False)
    producer.put_away()
    assert not _unexpected(report, interface.name)
    assert report.data["plans"]["observation"] > 50


@pytest.mark.parametrize("interface", _HERE, ids=lambda interface: interface.name)
def test_every_element_type_passes(interface: Interface) -> None:
    """Padded records, too: their padding is a part of `descr`."""
    producer = _Exporters(interface, interface.variants[PLAIN])
    can = interface.capabilities
    plans = [
        Plan(dtype=name, shape=(3,), byteorder=order)
        for name in can.dtypes or DTYPES
        for order in can.byteorders or ("native", "swapped")
        if order == "native" or DTYPES[name].has_byteorder
    ]
    report = check_plans(producer, plans, isolate=False)
    producer.put_away()
    assert not _unexpected(report, interface.name)
    assert report.data["plans"] == {"observation": len(plans)}


_LEGAL = [
    pytest.param(interface, variant, id=interface.written(variant.name))
    for interface in _HERE
    for variant in interface.listed
    if variant.expects == "right" and not variant.threads
]


@pytest.mark.parametrize(("interface", "variant"), _LEGAL)
def test_every_legal_variant_passes(interface: Interface, variant: Variant) -> None:
    producer = _Exporters(interface, variant)
    plans = [adapted(Plan(shape=shape), interface, variant).plan for shape in ((1,), (2, 3))]
    report = check_plans(producer, [plan.replaced(views=()) for plan in plans], isolate=False)
    producer.put_away()
    assert not _unexpected(report, interface.written(variant.name))
