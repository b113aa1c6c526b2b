"""Checks of the CUDA array interface, CAI-01 … CAI-30: the producer's side.

The version that the dict states picks the rules: masks came with 1, the meaning of None and of size
zero with 2, streams with 3. What only the driver knows is UNTESTED where there is none to ask.
"""

from __future__ import annotations

from ...abi.descriptors import Rejected
from .descriptor import of_cuda_interface
from ...interfaces.dlpack_structs.structs import CPU, CUDA, ROCM
from ...interfaces.array_interface.typestr import legal_sizes, parse
from ...info import NONE, InterfaceInfo, Value
from ...outcomes import Verdict
from ...rules.common import hull_verdict, readonly_verdict
from ...interfaces.array_interface.dicts import (
    byte_order_verdict,
    descr_verdict,
    is_dict_verdict,
    keys_verdict,
    mask_verdict,
    shape_verdict,
    shown,
    strides_verdict,
    typestr_verdict,
)
from ...rules.registry import check
from ...rules.subject import Subject
from ...rules.verdicts import fail, ok, unsupported, untested

_NEWEST_VERSION = 3
_DEFAULT_STREAMS = (1, 2)
_KEYS_WITH_RULES = frozenset(
    {"shape", "typestr", "data", "version", "strides", "descr", "mask", "stream"}
)
"""What these keys may hold is judged by their own rules."""


@check("CAI-01", needs="CAI")
def attribute_is_a_dict(s: Subject) -> Verdict:
    return is_dict_verdict(s.cai)


@check("CAI-02", needs="CAI")
def required_keys_are_present(s: Subject) -> Verdict:
    return keys_verdict(s.cuda_fields, ("shape", "typestr", "data", "version"))


@check("CAI-03", needs="CAI")
def shape_is_a_tuple_of_ints(s: Subject) -> Verdict:
    return shape_verdict(s.cuda_fields)


@check("CAI-04", needs="CAI")
def typestr_matches_the_grammar(s: Subject) -> Verdict:
    verdict = typestr_verdict(s.cuda_fields)
    if verdict.failed:
        return verdict
    text = s.cuda_fields["typestr"].value
    parsed = parse(text)
    sizes = legal_sizes(parsed.kind)
    if sizes is not None and parsed.number not in sizes:
        return fail(f"kind {parsed.kind!r} with one of the sizes {sizes}", repr(text))
    return ok()


@check("CAI-05", needs="CAI")
def data_is_an_address_and_a_bool(s: Subject) -> Verdict:
    data = s.cuda_fields["data"]
    items = data.items
    kinds = [item.t for item in items]
    if data.t == "tuple" and kinds == ["int", "bool"] and items[0].value >= 0:
        return ok()
    if data.t != "tuple" or len(items) != 2:
        return fail("(int address, bool)", f"a {data.t} of {len(items)} entries")
    return fail("(int address, bool)", f"({', '.join(map(_kind, items))})")


def _kind(value: Value) -> str:
    """The type of a value; an address itself says nothing to a reader."""
    if value.t == "int":
        return "int" if value.value >= 0 else "a negative int"
    return shown(value) if value.t in ("none", "bool") else str(value.type or value.t)


@check("CAI-06", needs="CAI")
def arrays_of_size_zero_have_pointer_zero(s: Subject) -> Verdict:
    if s.cuda_version < 2:
        return unsupported("before version 2 size zero had no meaning")
    shape = [extent.value for extent in s.cuda_fields["shape"].items]
    if 0 not in shape:
        return unsupported("the array has elements")
    if s.cuda_fields["data"].items[0].value == 0:
        return ok()
    return fail(f"pointer 0 for shape {tuple(shape)}", "an address")


@check("CAI-07", needs="CAI")
def device_can_access_the_pointer(s: Subject) -> Verdict:
    shape = [extent.value for extent in s.cuda_fields["shape"].items]
    if 0 in shape or parse(s.cuda_fields["typestr"].value).number == 0:
        return unsupported("no byte is touched")
    if not s.cuda_fields["data"].items[0].value:
        return fail(
            "an address, because there are elements", f"address 0 with shape {tuple(shape)}"
        )
    pointer = s.pointer("CAI")
    if s.no_driver:
        return untested(s.no_driver)
    if pointer is None or not pointer.device:
        return fail("memory that the device can access", "the driver knows no such device memory")
    return ok()


@check("CAI-08", needs="CAI", believable=True)
def read_only_flag_is_true(s: Subject) -> Verdict:
    return readonly_verdict(s, "CAI")


@check("CAI-09", needs="CAI")
def version_is_known(s: Subject) -> Verdict:
    version = s.cuda_fields["version"]
    if version.t == "int" and 0 <= version.value <= _NEWEST_VERSION:
        return ok()
    return fail(f"an int from 0 to {_NEWEST_VERSION}", shown(version))


@check("CAI-10", needs="CAI", believable=True)
def no_strides_mean_c_order(s: Subject) -> Verdict:
    strides = s.cuda_fields.get("strides", NONE)
    array = s.arrays["CAI"]
    if strides.t != "none" or s.cuda_version < 2:
        return unsupported("strides are given, or had no meaning before version 2")
    for name, other in s.others("CAI").items():
        comparable = other.shape == array.shape and other.itemsize == array.itemsize
        if comparable and not other.is_copy and not other.is_contiguous("C"):
            return fail(
                f"strides {other.strides}, as {name} has them",
                "None, which means C order",
            )
    return ok()


@check("CAI-11", needs="CAI")
def strides_are_ints_in_bytes(s: Subject) -> Verdict:
    return strides_verdict(s.cuda_fields)


@check("CAI-12", needs="CAI", believable=True)
def hull_is_in_one_allocation(s: Subject) -> Verdict:
    return hull_verdict(s, "CAI")


@check("CAI-14", needs="CAI")
def descr_is_well_formed(s: Subject) -> Verdict:
    return descr_verdict(s.cuda_fields)


@check("CAI-15", needs="CAI")
def mask_is_an_array_or_none(s: Subject) -> Verdict:
    if s.cuda_version < 1:
        return unsupported("masks came with version 1")
    return mask_verdict(s.cai, of_cuda_interface)


# -- streams -------------------------------------------------------------------------------------


def _stream(s: Subject) -> Value:
    """The described stream; None means an absent one."""
    return s.cuda_fields.get("stream", NONE)


_BEFORE_STREAMS = "streams came with version 3"


@check("CAI-16", needs="CAI")
def stream_is_none_or_an_int(s: Subject) -> Verdict:
    if s.cuda_version < 3:
        return unsupported(_BEFORE_STREAMS)
    stream = _stream(s)
    if stream.t == "none" or (stream.t == "int" and stream.value != 0):
        return ok()
    return fail("None, or an int other than 0", shown(stream))


@check("CAI-17", needs="CAI", believable=True, once=True)
def stream_is_alive(s: Subject) -> Verdict:
    if s.cuda_version < 3 or _stream(s).t == "none":
        return unsupported("no stream is named")
    if _stream(s).value < 0:
        return fail("1, 2 or the handle of a live stream", "a negative number")
    if s.no_driver:
        return untested(s.no_driver)
    if s.stream.live:
        return ok()
    return fail("1, 2 or the handle of a live stream", f"the driver: {s.stream.error}")


def _pending_verdict(s: Subject, *, named: bool) -> Verdict:
    """Did a reader that waited for the named stream read bytes before they were written?"""
    if s.cuda_version < 3:
        return unsupported(_BEFORE_STREAMS)
    if s.no_driver:
        return untested(s.no_driver)
    if s.device_error:
        return untested(s.device_error)
    if s.info.late.get("CAI") and named is (_stream(s).t == "int"):
        return fail(_AWAITED[named], "content that changed once the whole device was at rest")
    pending = s.pending
    if pending.get("CAI") is False and pending["CAI stream"] is named:
        return fail(_AWAITED[named], "bytes from before the work that was pending on it")
    seen = pending.get("CAI") is not None and pending["CAI stream"] is named
    judged = "CAI" in s.info.late and named is (_stream(s).t == "int")
    if seen or judged:
        return ok()
    return unsupported(f"{'a' if named else 'no'} stream was not named, or nothing was pending")


_AWAITED = {
    True: "the finished content after a wait for the stream",
    False: "a stream, or no work pending",
}


@check("CAI-18", needs="CAI", believable=True, once=True)
def waiting_on_stream_covers_all_work(s: Subject) -> Verdict:
    return _pending_verdict(s, named=True)


@check("CAI-19", needs="CAI", believable=True, once=True)
def no_stream_means_no_work(s: Subject) -> Verdict:
    return _pending_verdict(s, named=False)


@check("CAI-21", needs="CAI", believable=True, once=True)
def duties_are_on_by_default(s: Subject) -> Verdict:
    if s.observation.switched_off:
        return untested(f"the environment sets {', '.join(s.observation.switched_off)}; unset it")
    if s.no_driver:
        return untested(s.no_driver)
    late = s.info.late.get("CAI")
    in_time = s.pending.get("CAI")
    if late is None and in_time is None:
        return unsupported("nothing was pending")
    if s.cuda_version < 3 and (late or in_time is False):
        return fail(
            "by default version 3, whose stream orders work, or nothing pending",
            f"version {s.cuda_version}, and pending work without a stream to wait for",
        )
    return ok()


@check("CAI-22", needs="CAI", believable=True, once=True)
def stream_lives_as_long_as_the_object(s: Subject) -> Verdict:
    if s.cuda_version < 3 or _stream(s).t == "none":
        return unsupported("no stream is named")
    if s.no_driver:
        return untested(s.no_driver)
    info = s.stream
    if info.live_after:
        return ok()
    return fail("a stream that lives as long as the object", "gone when the dict was dropped")


@check("CAI-23", needs="CAI", once=True)
def reading_changes_no_lifetime(s: Subject) -> Verdict:
    owners = [
        key
        for key, value in s.cuda_fields.items()
        if value.t == "other" and key not in _KEYS_WITH_RULES
    ]
    if owners:
        shown_owner = shown(s.cuda_fields[owners[0]])
        return fail("a dict that names no owner", f"{shown_owner} under the key {owners[0]!r}")
    counts = s.life.cai_references
    if counts is not None and counts[1] - counts[0] >= 8:
        gained = (counts[1] - counts[0]) // 8
        return fail(
            "the object's references as before", f"{gained} more for each dict that is held"
        )
    return ok()


@check("CAI-24")
def host_objects_have_no_attribute(s: Subject) -> Verdict:
    present = s.probes["__cuda_array_interface__"].present
    device = s.info.device_pair
    if device is None or device[0] != CPU:
        return unsupported("the object is not known to be in host memory")
    if present and "CAI" not in s.arrays:
        return fail("AttributeError, so that hasattr is False", "hasattr is True for host memory")
    return ok()


@check("CAI-25", needs="CAI", believable=True)
def pointer_and_device_belong_together(s: Subject) -> Verdict:
    device = s.info.device_pair
    pointer = s.pointer("CAI")
    if device is None or device[0] != CUDA:
        return unsupported("no DLPack device to compare with, or none of CUDA's own memory")
    if s.arrays["CAI"].is_empty:
        return unsupported("no elements")
    if pointer is None:
        return untested(s.no_driver or "the driver knows no such memory")
    if pointer.id == device[1]:
        return ok()
    return fail(f"memory of device {device[1]}", f"memory of device {pointer.id}")


@check("CAI-26", needs="CAI")
def byte_order_is_the_one_in_memory(s: Subject) -> Verdict:
    if s.no_driver:
        return untested(s.no_driver)
    return byte_order_verdict(s, "CAI", s.cuda_fields)


@check("CAI-27", needs="CAI")
def old_versions_leave_meanings_open(s: Subject) -> Verdict:
    if s.cuda_version >= 2:
        return unsupported("version 2 and 3 say what strides and size zero mean")
    shape = s.cuda_fields["shape"].items
    uses_strides = s.cuda_fields.get("strides", NONE).t != "none"
    if uses_strides or any(extent.value == 0 for extent in shape):
        return fail("version 2 or 3 with strides or size zero", f"version {s.cuda_version}")
    return ok()


@check("CAI-28", needs="CAI")
def other_vendors_streams_have_no_cuda_meaning(s: Subject) -> Verdict:
    device = s.info.device_pair
    if device is None or device[0] != ROCM:
        return unsupported("not a HIP array under CUDA's name")
    stream = _stream(s)
    if stream.value in _DEFAULT_STREAMS:
        return fail("no default stream of CUDA's for HIP memory", f"stream {stream.value}")
    return ok()


@check("CAI-29", needs="CAI")
def zero_dimensions_are_spelled_as_empty_tuple(s: Subject) -> Verdict:
    shape = s.cuda_fields["shape"]
    if shape.t == "none":
        return fail("() for an array without dimensions", "None")
    if shape.items:
        return unsupported("the array has dimensions")
    strides = s.cuda_fields.get("strides", NONE)
    if strides.t != "tuple" or not strides.items:  # CAI-11 judges strides that are not a tuple
        return ok()
    return fail("strides None or ()", shown(strides))


@check("CAI-30", needs="CAI", believable=True, once=True)
def repeated_access_is_stable(s: Subject) -> Verdict:
    first = s.arrays["CAI"]
    for repeated in s.observation.repeated:
        try:
            other = of_cuda_interface(repeated.cai or InterfaceInfo())
        except Rejected as rejection:
            return fail("the same on every access", f"a later access breaks {rejection.rule}")
        if (other.shape, other.stream) != (first.shape, first.stream):
            return fail("shape and stream the same on every access", "they differ")
        if other.address != first.address and not first.is_empty:
            return fail("one address on every access", "another address on a later access")
    return ok()
