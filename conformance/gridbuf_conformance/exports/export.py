"""Exports: the plan of one case for a consumer, its interface, its variant; all interfaces.

An `Export` is a `Plan` with one key more. The keys of a plan say what memory is exported (shape,
element type, read-only, the content) and, by `views`, the order of its elements: reversed axes have
negative strides, broadcast ones stride 0. The key `export` says through which interface, and with
which variant.

A variant is one property: a NULL where a pointer may be, an unknown type code, a keyword that an
old producer does not take. It names the rules that its exports are about (the first of them fails
if the consumer dies) and what the texts allow a consumer to make of it:

- "right": the export is legal, and a consumer that takes the plain form of the same array must take
  this one, with the same result;
- "right-or-error": the export is legal and unusual; the right result, or a clean error;
- "error": the export is not to be taken; a clean error.

A variant does not fit every plan: strides can be NULL only where they are row-major. `adapt` turns
any plan into the nearest one that fits, so that plans are drawn and never thrown away; `misfit`
says why a plan does not.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from ..abi.libraries import python_api
from ..info import ExportInfo
from ..interfaces import modules
from ..plan import UNTOUCHED_FROM_BYTES, Plan
from ..plan.producer import Capabilities
from . import plans
from .memory import Block

_SPARE_REFERENCES = 64
_api = python_api()
_api.Py_IncRef.argtypes = _api.Py_DecRef.argtypes = [ctypes.py_object]
PLAIN = "plain"
_PLACED: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {"odd-address": {"shift_bytes": 1}, "field": {"gap_bytes": 4}}
)
"""By variant of any interface, how its memory is made, if not as the plan says."""
EXPECTATIONS = ("right", "right-or-error", "error")


def _unchanged(plan: Plan) -> Plan:
    return plan


def fits(plan: Plan) -> str:
    """No misfit, whatever the plan."""
    return ""


def _unbent(*arguments: Any) -> None:
    return None


def _always_there() -> str:
    return ""


def _same_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape


@dataclass(frozen=True)
class Variant:
    """One property of an export.

    `rules`: the ids whose consumer checks use such exports; a crash fails the first.
    `about`: the property in half a sentence. `adapt` and `misfit` as the module says; `misfit`
    returns an empty string for plans that fit. `control` turns a plan into the one whose plain
    export a consumer must have taken before a refusal of this one counts ("right" only).
    `described` turns the shape of the array into the described shape, if they differ;
    `is_retyped` says that the elements are said to be of another type of the same size.
    `is_robust`: no text demands that a consumer takes or refuses the export; on it, the first rule
    has the level ROBUST. `may_be_refused`: no text says that a consumer must take it: a clean
    refusal is an advisory, a wrong result a failure. `compared`: the plain export is made in any
    case, for checks that compare the two. `threads`: so many threads call the consumer with the
    exporter at the same time; 0 for plain calls, of which there are `calls`. All results are kept
    until the last call has returned.
    `bend` edits what the interface hands out; its arguments are those that the interface passes.

    Raises ValueError for an expectation that there is not, and for no rules.
    """

    name: str
    rules: tuple[str, ...]
    expects: str
    about: str
    adapt: Callable[[Plan], Plan] = _unchanged
    misfit: Callable[[Plan], str] = fits
    control: Callable[[Plan], Plan] = _unchanged
    described: Callable[[tuple[int, ...]], tuple[int, ...]] = _same_shape
    is_retyped: bool = False
    compared: bool = False
    is_robust: bool = False
    may_be_refused: bool = False
    threads: int = 0
    calls: int = 1
    bend: Callable[..., None] = _unbent

    def __post_init__(self) -> None:
        if self.expects not in EXPECTATIONS:
            known = ", ".join(EXPECTATIONS)
            raise ValueError(f"expects is {self.expects!r}, must be one of {known}; pick one")
        if not self.rules:
            raise ValueError(f"variant {self.name!r} names no rule; say what it is about")


_Kind = TypeVar("_Kind", bound=Variant)


def variants_of(kind: type[_Kind], seen: tuple[str, ...], **defaults: Any) -> Callable[..., _Kind]:
    """The function that makes an interface's variants.

    `seen` are the rules that are judged on each consumer that takes an export; `defaults` are for
    the variant.
    """

    def make(
        name: str,
        rule: str,
        expects: str,
        about: str,
        *bend: Callable[..., None],
        also: tuple[str, ...] = (),
        **more: Any,
    ) -> _Kind:
        rules = (rule, *also, *(() if expects == "error" else seen))
        bent = {"bend": bend[0]} if bend else {}
        return kind(name, rules, expects, about, **{**defaults, **bent, **more})

    return make


def strided(make: Callable[..., _Kind], rule: str, **more: Any) -> tuple[_Kind, ...]:
    """The variants of strides that every interface to host memory has."""
    adapted = (
        ("negative-stride", "the last axis runs backwards", plans.reversed_axis),
        ("zero-stride", "every element of the first axis is the same one", plans.broadcast),
        ("gaps", "every second element of the last axis", plans.stepped),
        ("field", "a field of records of 12 bytes: strides are not multiples of 8", plans.field),
    )
    return tuple(
        make(name, rule, "right-or-error", about, adapt=adapt, **more)
        for name, about, adapt in adapted
    )


class ObservedExport:
    """One exporter in front of one consumer, and all that is seen of it.

    Interfaces derive from it. `exporter` is the object that the consumer gets. The suite drops its
    own references by `forget` when the consumer has returned; what happens to the memory after
    that is the consumer's doing.

    The exporter has spare references until `close`, so that a consumer that releases too many does
    not free it, and `references` can count them.
    """

    def __init__(self, export: Export, block: Block) -> None:
        self.export = export
        self.variant = export.variant
        self.block = block
        self.reads = 0

    def make(self, kind: Callable[[Any], Any]) -> None:
        """Makes the object that the consumer gets; called once, with a function of this object."""
        self.exporter = self._watched = kind(self)
        for _ in range(_SPARE_REFERENCES):
            _api.Py_IncRef(self._watched)
        self._count_before = sys.getrefcount(self._watched)

    @property
    def references(self) -> int:
        """How many references the consumer has to the exporter; negative if it released others'."""
        forgotten = self.exporter is None
        return sys.getrefcount(self._watched) - self._count_before + forgotten

    def info(self) -> ExportInfo:
        """The observations so far, without addresses: counters, keywords, states."""
        return ExportInfo()

    def life_info(self) -> ExportInfo:
        """The same, and whether the memory and the exporter were given back."""
        return replace(self.info(), free=self.is_free(), references=self.references)

    def was_asked(self) -> bool:
        """Whether the consumer has used the interface at all: one that takes anything, and wraps
        what it does not know, has not."""
        return self.reads > 0

    def is_free(self) -> bool:
        """Whether the consumer has released the memory: it must not be used any more."""
        return self.references <= 0

    def forget(self) -> None:
        """Drops the suite's own references to the exporter and to what it handed out."""
        self.exporter = None

    def close(self) -> None:
        """The consumer has let go of everything (`is_free`): nothing is kept for it any longer."""
        for _ in range(_SPARE_REFERENCES):
            _api.Py_DecRef(self._watched)
        self._watched = None


@dataclass(frozen=True)
class Interface:
    """One way to export memory.

    `groups` are the catalogue's groups whose rules its exports are about. `capabilities` bound the
    plans that are drawn for it (element types that the interface has a word for, byte orders …).
    `make` puts an exporter in front of a consumer. `base` names the interface that a consumer has
    to take before this one is asked of it, because the texts then ask it to take this one as well:
    "dlpack" is that of "dlpack-legacy". With None, whether it is taken is found out, and a refusal
    of its simplest export is not a failure, unless the consumer is documented to take it: then
    `taken_rule` fails. `plain_rules`: the rules of plain exports with "complex" or "swapped"
    numbers, "records" or "strides". `unavailable` says why this machine cannot export through it at
    all; empty where it can.
    """

    name: str
    about: str
    groups: tuple[str, ...]
    capabilities: Capabilities
    make: Callable[[Export, Block], ObservedExport]
    listed: tuple[Variant, ...]
    taken_rule: str
    position: int
    base: str | None = None
    plain_rules: Mapping[str, str] = field(default_factory=dict)
    unavailable: Callable[[], str] = _always_there
    variants: Mapping[str, Variant] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {variant.name: variant for variant in self.listed}
        if PLAIN not in by_name or len(by_name) != len(self.listed):
            raise ValueError(f"interface {self.name!r} needs one plain variant, and no name twice")
        object.__setattr__(self, "variants", MappingProxyType(by_name))

    def memory_of(self, export: Export) -> dict[str, int]:
        """How the block of an export is to be made, beyond its plan: arguments of `Block`."""
        return dict(_PLACED.get(export.variant.name, {}))

    def written(self, variant: str) -> str:
        """The value of the key `export`."""
        return self.name if variant == PLAIN else f"{self.name}:{variant}"


@cache
def interfaces() -> MappingProxyType[str, Interface]:
    """All interfaces by name, by their `position`."""
    listed = [interface for module in modules("exports") for interface in module.INTERFACES]
    found: dict[str, Interface] = {}
    for interface in sorted(listed, key=lambda interface: interface.position):
        if interface.name in found:
            raise ValueError(f"{interface.name!r} is defined twice; give one another name")
        found[interface.name] = interface
    return MappingProxyType(found)


def split(written: str) -> tuple[str, str]:
    """ "dlpack:byte-offset" as interface and variant; without a colon the variant is plain."""
    name, _, variant = written.partition(":")
    return name, variant or PLAIN


def interface_of(written: str) -> Interface:
    """The interface of the key `export`; raises ValueError naming the ones there are."""
    name, _ = split(written)
    found = interfaces().get(name)
    if found is None:
        known = ", ".join(interfaces())
        raise ValueError(f"export is {written!r}, its interface must be one of {known}; pick one")
    return found


def variant_of(written: str) -> Variant:
    """The variant of the key `export`; raises ValueError naming the interface's."""
    interface, (_, name) = interface_of(written), split(written)
    found = interface.variants.get(name)
    if found is None:
        known = ", ".join(interface.variants)
        raise ValueError(f"export is {written!r}, its variant must be one of {known}; pick one")
    return found


def variants_about(rule: str) -> list[tuple[Interface, Variant]]:
    """Every (interface, variant) whose exports say something of a rule."""
    return [
        (interface, variant)
        for interface in interfaces().values()
        for variant in interface.variants.values()
        if rule in variant.rules
    ]


@dataclass(frozen=True)
class Export(Plan):
    """A plan's array, exported through `export`: "INTERFACE" or "INTERFACE:VARIANT".

    Raises ValueError as a plan does, for an interface or a variant that there is not, and where the
    variant does not fit the array.
    """

    RENAMED: ClassVar[Mapping[str, str]] = MappingProxyType({"offer": "export"})

    export: str = "dlpack"

    @property
    def interface(self) -> Interface:
        return interface_of(self.export)

    @property
    def variant(self) -> Variant:
        return variant_of(self.export)

    @property
    def plan(self) -> Plan:
        """The array alone."""
        return Plan(**{key: self[key] for key in Plan.keys_of()})

    @cached_property
    def has_unusual_strides(self) -> bool:
        """Whether an axis of several elements is walked backwards, or not at all."""
        view = self.view_map
        if 0 in view.shape:
            return False
        return any(step <= 0 for extent, step in zip(view.shape, view.steps) if extent > 1)

    @property
    def kind(self) -> str:
        """The export's kind, and its array's unusual properties: one of them causes a crash."""
        view = self.view_map
        steps = [step for extent, step in zip(view.shape, view.steps) if extent > 1]
        marks = {
            "no elements": 0 in view.shape,
            "no dimensions": not view.shape,
            "negative strides": any(step < 0 for step in steps),
            "zero strides": any(step == 0 for step in steps),
            "read-only": self.readonly,
        }
        named = [mark for mark, holds in marks.items() if holds]
        return self.export + (f" with {' and '.join(named)}" if named else "")

    @property
    def control(self) -> Export | None:
        """The plain export that a consumer must take before its failure on this one counts.

        None for the plain export of a plain array of numbers through an interface without a base.
        """
        interface, variant = self.interface, self.variant
        if variant.name == PLAIN and interface.base is not None:
            return export_of(self.plan, interface.base)
        if variant.name == PLAIN:
            simpler = (plans.plain(self.plan), plans.numbers(self.plan))
            plan = next((one for one in simpler if one != self.plan), None)
            return None if plan is None else export_of(plan, interface.name)
        return export_of(variant.control(self.plan), interface.name)

    def validate(self) -> None:
        """Raises ValueError naming the value, its bound and what to do."""
        super().validate()
        variant = variant_of(self.export)
        if split(self.export)[1] == PLAIN and ":" in self.export:
            raise ValueError(f"export is {self.export!r}, the plain one is written without a colon")
        if self.fill is None or self.nbytes >= UNTOUCHED_FROM_BYTES:
            raise ValueError("plan key 'fill' is None, must be a seed: exports have content")
        misfit = variant.misfit(self.plan)
        if misfit:
            raise ValueError(f"export {self.export!r} does not fit this plan: {misfit}; change it")


def export_of(plan: Plan, written: str) -> Export:
    """A plan's array as an export; raises as the constructor."""
    return Export(**{key: plan[key] for key in Plan.keys_of()}, export=written)


def plan_of_dict(raw: str | Mapping[str, Any], *, side: str = "producer") -> Plan:
    """The plan or the export of a JSON object, by the side that it is for; raises ValueError."""
    return (Export if side == "consumer" else Plan).from_json(raw)
