"""Turning any plan into the nearest one that has a property: what variants adapt plans by.

Each function takes a plan and returns one; shapes, element types and seeds are kept where the
property allows it. `misfits` are the other direction: why a plan does not have the property.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..plan import Plan


def simple(plan: Plan, **changes: Any) -> Plan:
    """The plan without views, layout, alignment, names and halo, and with other keys changed."""
    bare: dict[str, Any] = {"views": (), "layout": None, "alignment_size": 1, "aligned_index": None}
    return plan.replaced(**{**bare, "dims": None, "halo": None, **changes})


def filled(plan: Plan) -> Plan:
    """At least one element, in row-major order."""
    return simple(plan, shape=tuple(max(extent, 1) for extent in plan.shape))


def plain(plan: Plan) -> Plan:
    """The array that every consumer takes if it takes any: row-major, native, writable."""
    shape = filled(plan).shape if plan.ndim else (1,)
    return simple(plan, shape=shape, byteorder="native", readonly=False)


def solid(plan: Plan) -> Plan:
    """The plan, unless it has no dimension or no element."""
    return plan if plan.view_map.shape and 0 not in plan.view_map.shape else plain(plan)


def numbers(plan: Plan) -> Plan:
    """`plain`, of an element type that every library has."""
    return plain(plan).replaced(dtype="float64")


def dense(plan: Plan) -> Plan:
    """Row-major without gaps, whatever the shape."""
    return simple(plan)


def of_dtype(dtype: str) -> Callable[[Plan], Plan]:
    """An adapter: `plain`, and this element type."""
    return lambda plan: plain(plan).replaced(dtype=dtype)


def of_ndim(ndim: int) -> Callable[[Plan], Plan]:
    """An adapter: `plain`, and exactly so many dimensions, the new ones of extent 1."""

    def adapt(plan: Plan) -> Plan:
        shape = plain(plan).shape[:ndim]
        return plain(plan).replaced(shape=(*shape, *(1,) * (ndim - len(shape))))

    return adapt


def widened(ndim: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """A change of shape: leading axes of extent 1 up to so many dimensions."""
    return lambda shape: (*(1,) * (ndim - len(shape)), *shape)


def reversed_axis(plan: Plan) -> Plan:
    """The last axis that can be is stored backwards: a negative stride."""
    plan = plain(plan)
    shape = (*plan.shape[:-1], max(plan.shape[-1], 2))
    return plan.replaced(shape=shape, views=(("reverse", len(shape) - 1),))


def broadcast(plan: Plan) -> Plan:
    """A new first axis along which every element is the same: stride 0."""
    plan = plain(plan)
    return plan.replaced(views=(("newaxis", 0), ("broadcast", 0, 3)))


def stepped(plan: Plan) -> Plan:
    """Every second element of the last axis: gaps between elements."""
    plan = plain(plan)
    shape = (*plan.shape[:-1], max(plan.shape[-1], 3))
    return plan.replaced(shape=shape, views=(("slice", len(shape) - 1, None, None, 2),))


def field(plan: Plan) -> Plan:
    """Numbers of 8 bytes, at least two in a row: gaps of 4 bytes make records of 12."""
    plan = numbers(plan)
    return plan.replaced(shape=(*plan.shape[:-1], max(plan.shape[-1], 2)))


def empty(plan: Plan) -> Plan:
    """No elements: the first extent is 0."""
    return plain(plan).replaced(shape=(0, *plain(plan).shape[1:]))


def zero_dim(plan: Plan) -> Plan:
    """No dimensions: one element."""
    return plain(plan).replaced(shape=())


def readonly(plan: Plan) -> Plan:
    """Memory that may not be written."""
    return plain(plan).replaced(readonly=True)


def swapped(plan: Plan) -> Plan:
    """Numbers of the other byte order; a type without one becomes float64."""
    dtype = plan.dtype if plan.dtype_info.has_byteorder else "float64"
    return plain(plan).replaced(dtype=dtype, byteorder="swapped")


def empty_misfit(plan: Plan) -> str:
    """Why a plan has no elements, or nothing."""
    return "it has no elements" if 0 in plan.view_map.shape else ""


def not_empty_misfit(plan: Plan) -> str:
    """Why a plan has elements, or nothing."""
    return "" if 0 in plan.view_map.shape else "it has elements"


def not_dense_misfit(plan: Plan) -> str:
    """Why a plan is not row-major without gaps, or nothing."""
    if plan.views or plan.layout not in (None, tuple(range(plan.ndim))):
        return "its elements are not in row-major order"
    return ""
