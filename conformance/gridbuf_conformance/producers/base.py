"""What all built-in producers share: one place that declines plans, and a helper for views.

A built-in producer declares its `capabilities`. Plans are drawn from them, and plans outside of
them are declined by the same declaration, so that the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..plan import Plan
from ..plan.consumer import version_of
from ..producer import Capabilities, Producer, Unsupported, python_view
from . import BUILT_IN

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (64, 32, 16, 8))
TOUCHED_BYTES = 2**26
"""The most that is asked of a library that writes every byte it makes."""


class HostProducer(Producer):
    """Declines what its capabilities leave out, then calls `make(plan)` for the rest.

    `no_views` is the reason to decline every view, as half a sentence.
    """

    no_views = ""

    def version(self) -> str:
        """The version of the library that the producer's row in `libraries.toml` needs."""
        needs = BUILT_IN[self.name].needs if self.name in BUILT_IN else None
        return version_of(self.make, needs) if needs else ""

    def produce(self, plan: Plan) -> Any:
        """The object of `make`, or `Unsupported` with the first key that cannot be met."""
        reason = declined(plan, self.capabilities)
        return Unsupported(f"{self.name}: {reason}") if reason else self.make(plan)

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        """The view of the protocol, unless there are none."""
        if self.no_views:
            return Unsupported(f"{self.name}: {self.no_views}")
        return super().apply_view(obj, operation)

    def make(self, plan: Plan) -> Any:
        """The object, filled; or `Unsupported` for what only the library knows it cannot make."""
        raise NotImplementedError(f"{type(self).__name__}.make(plan) must return an object")


def row_major(
    dtypes: Iterable[str], *, readonly: tuple[bool, ...] = (False,), **more: Any
) -> Capabilities:
    """Capabilities of small arrays in C order and native byte order; `more` has other keys, or
    another `max_nbytes`.
    """
    common: dict[str, Any] = {
        "max_nbytes": TOUCHED_BYTES,
        "layouts": "C",
        "byteorders": ("native",),
    }
    return Capabilities(**{"dtypes": tuple(dtypes), "readonly": readonly, **common, **more})


def flat_bytes(*, dtype: str = "uint8", readonly: tuple[bool, ...]) -> Capabilities:
    """Capabilities of a type that holds bytes in one dimension and nothing else."""
    return row_major((dtype,), readonly=readonly, min_ndim=1, max_ndim=1)


class FlatBytesProducer(HostProducer):
    """Bytes in one dimension, whose slices are copies or bytes of another type."""

    capabilities = flat_bytes(readonly=(False,))

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Unsupported:
        return Unsupported(f"{self.name}: a {type(obj).__name__} has no views")


def declined(plan: Plan, can: Capabilities) -> str:
    """Why a plan is outside these capabilities, as half a sentence; empty if it is not."""
    for test in (_shape, _element, _placement, _other):
        reason = test(plan, can)
        if reason:
            return reason
    return ""


def _shape(plan: Plan, can: Capabilities) -> str:
    if not can.min_ndim <= plan.ndim <= can.max_ndim:
        return f"{plan.ndim} dimensions, it makes {can.min_ndim} to {can.max_ndim}"
    if can.max_extent is not None and max(plan.shape, default=0) > can.max_extent:
        return f"extent {max(plan.shape)}, it takes at most {can.max_extent}"
    if can.max_nbytes is not None and plan.nbytes > can.max_nbytes:
        return f"{plan.nbytes} bytes, it makes at most {can.max_nbytes} without touching its pages"
    return ""


def _element(plan: Plan, can: Capabilities) -> str:
    if can.dtypes is not None and plan.dtype not in can.dtypes:
        return f"it has no element type {plan.dtype}"
    if plan.byteorder not in (can.byteorders or (plan.byteorder,)):
        return "it holds numbers in native byte order only"
    return ""


def _placement(plan: Plan, can: Capabilities) -> str:
    in_c_order, in_f_order = (*range(plan.ndim),), (*reversed(range(plan.ndim)),)
    possible = {"any": (plan.layout,), "CF": (None, in_c_order, in_f_order)}
    if plan.layout not in possible.get(can.layouts or "C", (None, in_c_order)):
        return f"layout {plan.layout}, it takes {can.layouts or 'C'} layouts only"
    low, high = can.alignment_range_bytes
    if not low <= plan.alignment_size <= high:
        return f"alignment of {plan.alignment_size} bytes, it makes {low} to {high}"
    if plan.aligned_index is not None and plan.alignment_size > 1:
        return (
            "" if "aligned_index" in can.asked_keys else "it aligns no index of the caller's choice"
        )
    return ""


def _other(plan: Plan, can: Capabilities) -> str:
    if plan.dims is not None and "dims" not in can.asked_keys:
        return "its dimensions have no names"
    if plan.halo is not None and "halo" not in can.asked_keys:
        return "it knows no halo"
    if plan.readonly not in (can.readonly or (plan.readonly,)):
        return f"it makes {'writable' if plan.readonly else 'read-only'} memory only"
    if plan.device not in can.asked_devices:
        made = ", ".join(name or "host" for name in can.asked_devices)
        return f"{plan.device or 'host'} memory, it makes {made} memory only"
    return ""


def viewed(
    obj: Any, operation: Sequence[Any], *, broadcast: Callable[[Any, tuple[int, ...]], Any] | None
) -> Any:
    """A view by indexing and `transpose`; `broadcast(obj, shape)` is the library's own.

    None for a library that has none, whose producer declines those views itself.
    """
    name, *arguments = operation
    if name != "broadcast" or broadcast is None:
        return python_view(obj, operation)
    axis, extent = arguments
    return broadcast(obj, (*obj.shape[:axis], extent, *obj.shape[axis + 1 :]))
