"""Checks of the CUDA stream protocol, CS-01 … CS-03: objects that are streams."""

from __future__ import annotations

from ...outcomes import Verdict
from ...rules.registry import check
from ...rules.subject import Subject
from ...rules.verdicts import advise, fail, ok, unsupported, untested

_PAIR = "a method that returns (0, handle)"
_STREAM = "0, 1, 2 or the handle of a live stream"


@check("CS-01", needs="CS", once=True)
def pair_has_the_form(s: Subject) -> Verdict:
    info = s.cuda_stream
    if info.error is not None:
        return fail(_PAIR, info.error.type)
    if not info.is_method:
        return fail(_PAIR, "an attribute, which only older consumers take")
    kinds = [item.t for item in info.pair.items]
    if info.pair.t != "tuple" or kinds != ["int", "int"]:
        return fail(_PAIR, f"a {info.pair.t} of {', '.join(kinds) or 'nothing'}")
    version = info.pair.items[0].value
    return ok() if version == 0 else fail(_PAIR, f"version {version}")


@check("CS-02", needs="CS", once=True)
def stream_is_alive(s: Subject) -> Verdict:
    info = s.cuda_stream
    if info.handle is not None and info.handle < 0:
        return fail(_STREAM, "a negative number")
    return fail(_STREAM, "a handle that the driver does not know") if info.live is False else _ok(s)


@check("CS-03", needs="CS", once=True)
def stream_lives_as_long_as_the_object(s: Subject) -> Verdict:
    info = s.cuda_stream
    if info.live_after is False:
        return fail("a stream that lives as long as the object", "destroyed by the second call")
    if info.again != info.pair:
        return advise("the same stream in each call", "another one in the second call")
    return _ok(s)


def _ok(s: Subject) -> Verdict:
    """Of a created stream, only a driver knows whether it exists."""
    info = s.cuda_stream
    if info.handle is None:
        return unsupported("no handle is stated")
    return untested("no driver to ask") if info.handle > 2 and info.live is None else ok()
