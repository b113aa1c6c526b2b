"""Which exports a consumer gets: the simplest of each variant, then drawn ones.

As for producers, every export is fixed before the consumer is called, and Hypothesis draws the
arrays; each is then adapted to a variant, so that every one is used. The first exports of an
interface find out whether it is taken at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ..plan import Plan
from .export import PLAIN, Export, Interface, Variant, export_of

_FIRST_DTYPES = ("float64", "float32", "uint8")
_LISTED_PLANS: tuple[dict[str, Any], ...] = (
    {},
    {"shape": (2, 3), "fill": 1},
    {"shape": (5,), "dtype": "int32", "fill": 2},
    {"shape": (2, 3), "dtype": "float32", "fill": 3, "readonly": True},
)
_LISTED_PLAIN: tuple[dict[str, Any], ...] = (
    {"shape": (), "fill": 4},
    {"shape": (0,), "fill": 5},
    {"shape": (3, 0), "dtype": "int16", "fill": 6},
    {"shape": (4,), "fill": 7, "views": (("reverse", 0),)},
    {"shape": (2, 3), "dtype": "float32", "fill": 8, "views": (("reverse", 1),)},
    {"shape": (1, 3), "fill": 9, "views": (("broadcast", 0, 4),)},
    {"shape": (3, 4), "dtype": "int32", "fill": 10, "views": (("transpose", (1, 0)),)},
    {"shape": (2, 3, 4), "dtype": "int16", "fill": 11, "layout": (1, 2, 0)},
    {"shape": (6, 5), "dtype": "uint8", "fill": 12, "views": (("slice", 0, 1, None, 2),)},
    {"shape": (4, 4), "fill": 13, "views": (("slice", 1, 1, 3, 1),)},
    {"shape": (1, 1, 1, 1, 1), "fill": 14},
)


def first_exports(interface: Interface) -> list[Export]:
    """The simplest exports of an interface: a consumer that takes none of them does not take it."""
    known = interface.capabilities.dtypes
    names = [name for name in _FIRST_DTYPES if known is None or name in known]
    shapes = ((3,), (2, 3))
    return [export_of(Plan(dtype=n, shape=s), interface.name) for s in shapes for n in names]


def listed(
    interface: Interface, rules: Collection[str] | None = None, *, threads: bool = True
) -> list[Export]:
    """Every element type plainly, the arrays where consumers go wrong, and each variant simply.

    With `rules`, only exports that say something of one of them; `threads` as in
    `profiles.Profile`.
    """
    can = interface.capabilities
    dtypes = [{"dtype": name, "shape": (3,), "fill": 20} for name in can.dtypes or ()]
    plain = [*_LISTED_PLANS, *_LISTED_PLAIN, *dtypes]
    exports = [_of(interface, interface.variants[PLAIN], keys) for keys in plain]
    for variant in interface.variants.values():
        if variant.name != PLAIN:
            exports += [_of(interface, variant, keys) for keys in _LISTED_PLANS]
    wanted = [
        export
        for export in exports
        if export is not None and _is_about(export.variant, rules, threads)
    ]
    return list(dict.fromkeys(wanted))


def _is_about(variant: Variant, rules: Collection[str] | None, threads: bool) -> bool:
    is_asked = threads or not variant.threads
    return is_asked and (rules is None or any(rule in rules for rule in variant.rules))


def _of(interface: Interface, variant: Variant, keys: dict[str, Any]) -> Export | None:
    """The export of a listed plan; None where the interface cannot describe it."""
    plan, can = Plan(**keys), interface.capabilities
    if can.dtypes is not None and plan.dtype not in can.dtypes:
        plan = plan.replaced(dtype=can.dtypes[0])
    if plan.readonly not in (can.readonly or (plan.readonly,)) or plan.ndim > can.max_ndim:
        return None
    return adapted(plan, interface, variant)


def adapted(plan: Plan, interface: Interface, variant: Variant) -> Export:
    """The export of a variant that is nearest to a plan."""
    return export_of(variant.adapt(plan), interface.written(variant.name))


def drawn(
    interfaces: Sequence[Interface], rules: Collection[str] | None = None, *, threads: bool = True
) -> Iterator[tuple[str, Any]]:
    """(kind, strategy of exports) for each kind of plan: "general", "boundary" and "rank".

    Half of the exports are plain: what arrays a consumer takes is a larger question than each
    variant. `rules` and `threads` as in `listed`.
    """
    from hypothesis import strategies as st

    from ..plan import strategies

    kinds = {
        "general": strategies.general_plans,
        "boundary": strategies.boundary_plans,
        "rank": strategies.rank_plans,
    }
    for kind, make in kinds.items():
        choices = []
        for interface in interfaces:
            plans = make(interface.capabilities)
            if plans is None:
                continue
            variants = [
                variant
                for variant in interface.variants.values()
                if _is_about(variant, rules, threads)
            ]
            if not variants:
                continue
            has_plain = variants[0].name == PLAIN
            chosen = st.sampled_from(
                variants[:1] * (len(variants) - 1 if has_plain else 0) + variants
            )
            choices.append(st.builds(adapted, plans, st.just(interface), chosen))
        if choices:
            yield kind, st.one_of(choices)
