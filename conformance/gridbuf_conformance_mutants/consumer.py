"""What makes a consumer of the zoo: a callable with the exact rules that its defect must break.

Consumers run through the worker like any other consumer: the suite is given `package.module:Name`
and calls what it finds there. Nothing in the suite knows them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from gridbuf_conformance.exports import PLAIN, Export, Interface, interfaces
from gridbuf_conformance.exports.drawing import adapted
from gridbuf_conformance.plan import Plan

_PLANS: tuple[Plan, ...] = (
    Plan(shape=(3,)),
    Plan(shape=(), dtype="int32", fill=1),
    Plan(shape=(2, 3), dtype="float32", fill=2),
    Plan(shape=(0,), fill=3),
    Plan(shape=(3, 4), dtype="int32", fill=4, views=(("transpose", (1, 0)),)),
    Plan(shape=(4,), fill=5, views=(("reverse", 0),)),
    Plan(shape=(1, 3), dtype="uint8", fill=6, views=(("broadcast", 0, 2),)),
    Plan(shape=(6,), dtype="int16", fill=7, views=(("slice", 0, 1, None, 2),)),
    Plan(shape=(3,), dtype="complex64", fill=8),
    Plan(shape=(2, 2), fill=9, readonly=True),
)
_VARIED: tuple[Plan, ...] = (_PLANS[2],)


class ConsumerMutant(Protocol):
    """A consumer with what it breaks, what it is advised, and the interfaces that show it."""

    breaks: frozenset[str]
    advises: frozenset[str]
    interfaces: tuple[str, ...]

    def __call__(self, exporter: Any) -> Any: ...


Kind = TypeVar("Kind")


def wrong(
    *breaks: str, advises: Iterable[str] = (), weakens: Iterable[str] = ()
) -> Callable[[type[Kind]], Kind]:
    """Turns a class of consumers into the mutant of its name; its docstring describes the defect.

    `breaks` is what `report.failed` must be, `advises` the ids whose outcome must be ADVISORY,
    `weakens` those whose outcome must be FRAGILE.
    """

    def as_consumer(kind: type[Kind]) -> Kind:
        consumer: Any = kind()
        consumer.breaks, consumer.advises = frozenset(breaks), frozenset(advises)
        consumer.weakens = frozenset(weakens)
        consumer.__name__ = consumer.__qualname__ = kind.__name__
        return consumer

    return as_consumer


def consumers_of(module_name: str) -> list[Any]:
    """The mutants that a module defines, in its order."""
    members = vars(sys.modules[module_name]).values()
    return [value for value in members if hasattr(value, "breaks") and callable(value)]


def exports_for(names: Iterable[str]) -> list[Export]:
    """The exports of the kill matrix: the arrays above plainly, and each variant once."""
    return [export for name in names for export in _exports_of(interfaces()[name])]


def _exports_of(interface: Interface) -> list[Export]:
    can = interface.capabilities
    exports = []
    for variant in interface.variants.values():
        for plan in _PLANS if variant.name == PLAIN else _VARIED:
            fits = plan.readonly in (can.readonly or (plan.readonly,))
            if fits and (can.dtypes is None or plan.dtype in can.dtypes):
                exports.append(adapted(plan, interface, variant))
    return list(dict.fromkeys(exports))
