"""Verdicts that several interfaces share: hulls, read-only claims, resizing under a consumer."""

from __future__ import annotations

from collections.abc import Iterable

from ..abi.descriptors import ADDRESS_LIMIT
from ..info import ErrorInfo, GrowthInfo
from ..outcomes import Verdict
from ..plan import UNTOUCHED_FROM_BYTES
from .subject import Subject
from .verdicts import drawing_of, fail, ok, unsupported, untested

_NAMES = {
    "AI": "the array interface",
    "AS": "the array struct",
    "CAI": "the CUDA array interface",
    "PB": "the buffer protocol",
    "DL": "DLPack",
}


GIVEN_AWAY = "it was free: an allocator gave it away"


def hull_verdict(s: Subject, interface: str) -> Verdict:
    """Does every address that an index can reach exist? (XA-10 judges the first one.)

    For plans so large that their pages stay untouched, GT-24 asks it of a producer of storages, and
    once.
    """
    if s.scope.storage and s.plan is not None and s.plan.nbytes >= UNTOUCHED_FROM_BYTES:
        return unsupported("judged by GT-24 at this size")
    return reach_verdict(s, interface)


def reach_verdict(s: Subject, interface: str) -> Verdict:
    """The same at any size."""
    array = s.arrays[interface]
    if array.is_indirect:
        return untested("an array of pointers")
    if array.span is None or array.hull is None:
        return ok("no byte is touched")
    low, high = array.span
    if low < 0 or high > ADDRESS_LIMIT:
        reach = f"{array.hull[0]} … {array.hull[1]} bytes from its first element"
        return fail("elements inside the address space", f"the array reaches {reach}")
    if array.is_host and not s.observation.map_known:
        return untested("this system does not report its memory map")
    mapping = s.mapping.get(interface)
    if mapping is None:
        return untested(s.no_driver or "its place was not looked up")
    if mapping.read:
        return ok()
    where = "all mapped" if array.is_host else "all in one allocation of the device"
    return fail(
        "mapped memory under every element",
        f"the array reaches bytes {array.hull[0]} … {array.hull[1]} from its first element, "
        f"which are not {where}",
        drawing=drawing_of(array),
    )


def readonly_verdict(s: Subject, interface: str, *, is_granted: bool = False) -> Verdict:
    """Fails an interface that says writable, if the map, or plan and another one, disagree.

    `is_granted`: it gives writable memory to those who request it, whatever it says to others. A
    view is also compared with the produced array.
    """
    array = s.arrays[interface]
    if array.readonly is not False and not is_granted:
        return ok()
    actual = f"{_NAMES[interface]} {'grants writable memory' if is_granted else 'says writable'}"
    mapping = s.mapping.get(interface)
    if mapping is not None and mapping.read and not mapping.write:
        return fail("read-only, as the memory is mapped", actual)
    if s.plan is not None and s.plan.readonly:
        words = [*s.arrays.items()]
        if s.shares_memory_with_root(interface):
            words += s.root.arrays.items()
        readonly_names = [name for name, other in words if other.readonly]
        if readonly_names:
            return fail(f"read-only, as the plan asks and {_NAMES[readonly_names[0]]} says", actual)
    return ok()


def resize_verdict(s: Subject, interface: str, *, fail_on_move: bool) -> Verdict:
    """Did the object free exported memory? With `fail_on_move` moved memory fails, too."""
    observed = {
        method: info[interface] for method, info in s.life.resizes.items() if interface in info
    }
    if not observed:
        return unsupported("the type was not seen to resize, or was not tried")
    for method, info in observed.items():
        if info.refused is not None:
            if interface == "PB" and not info.allowed_after:
                return fail(
                    f"{method}() works again after release",
                    f"it raises {info.refused} for good",
                )
            continue
        if s.observation.map_known and not info.mapped:
            return fail(f"{method}() refused, or memory kept", "the exported memory was unmapped")
        if fail_on_move and not info.same_address:
            return fail(f"{method}() refused, or the address kept", "the object moved its memory")
    return ok()


def leaked(growth: GrowthInfo) -> str | None:
    """The memory that every round of repetitions gained and kept, or None."""
    iterations = growth.iterations
    if not growth.rounds:
        return None
    least_bytes = min(round_[0] for round_ in growth.rounds)
    least_blocks = min(round_[1] for round_ in growth.rounds)
    if least_bytes >= 16 * iterations:
        return f"at least {least_bytes // iterations} bytes an export"
    if least_blocks >= iterations:
        return f"at least {least_blocks // iterations} blocks of Python memory an export"
    return None


def type_names(errors: Iterable[ErrorInfo]) -> str:
    """The distinct types of some errors, for a message."""
    return ", ".join(sorted({error.type for error in errors}))
