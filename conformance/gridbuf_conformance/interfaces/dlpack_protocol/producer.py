"""Checks of DLPack's Python methods, DP-01 … DP-27."""

from __future__ import annotations

from ...abi.descriptors import Descriptor
from ..dlpack_structs.structs import CPU, CUDA, ROCM
from ...info import DeviceInfo, ErrorInfo
from ...outcomes import Verdict
from ...rules.common import leaked
from ..array_interface.dicts import shown
from ...rules.registry import check
from ...rules.subject import Subject, overlap
from ...rules.verdicts import advise, fail, ok, unsupported, untested

_NAMES = ("dltensor", "dltensor_versioned")
_KEYWORDS = ("stream=None", "max_version=None", "dl_device=None", "copy=None")


def _error(s: Subject, call: str) -> ErrorInfo | None:
    return s.call(call).error


def _is(error: ErrorInfo, *names: str) -> bool:
    return bool(set(names) & set(error.mro))


def _takes(s: Subject, keyword: str) -> bool:
    """Whether the producer takes a keyword at all: with the value None it is not a TypeError."""
    if "max_version" in keyword:
        error = _error(s, "max_version=None")
    else:
        error = _error(s, keyword)
    known = keyword in s.calls
    return known and not (error is not None and _is(error, "TypeError"))


def _for(call: str) -> str:
    """The call, for a message, if it has several keywords."""
    return f" for {call}" if ", " in call else ""


def _calls_with(s: Subject, keyword: str) -> list[str]:
    """The calls with a keyword and its value, alone or with other keywords."""
    return [call for call in s.calls if keyword in call.split(", ")]


def _exports(s: Subject) -> bool:
    return s.main.error is None


def _original(s: Subject) -> Descriptor | None:
    """The address of the memory: from another interface, or an export that is not a copy."""
    for array in s.others("DL").values():
        return array
    exports = (s.arrays.get("DL"), s.tensor("copy=False"))
    return next((export for export in exports if export is not None and not export.is_copy), None)


@check("DP-01")
def methods_come_together(s: Subject) -> Verdict:
    probes = s.probes
    if any(probes[name].error is not None for name in ("__dlpack__", "__dlpack_device__")):
        return unsupported("hasattr raised, see XA-18")
    export, device = (probes[n].present for n in ("__dlpack__", "__dlpack_device__"))
    if export == device:
        return ok() if export else unsupported("the object has no __dlpack__")
    missing = "__dlpack_device__" if export else "__dlpack__"
    return fail("both __dlpack__ and __dlpack_device__", f"no {missing}")


@check("DP-02", needs="DLPACK")
def device_is_a_pair_of_ints(s: Subject) -> Verdict:
    info = s.info.device or DeviceInfo()
    if info.error is not None and not s.observation.has_memory:
        return unsupported("an array without memory is on no device of DLPack")
    if info.error is not None:
        return fail("a pair of ints", f"__dlpack_device__() raised {info.error.type}")
    if info.integers is None:
        return fail("a tuple of two ints", shown(info.first))
    if info.first != info.second:
        return fail("the same device each time", f"{shown(info.first)}, then {shown(info.second)}")
    return ok()


@check("DP-03", needs="DLPACK")
def result_is_a_named_capsule(s: Subject) -> Verdict:
    for call, info in {**s.calls, "held": s.main}.items():
        if info.error is not None or info.name in _NAMES:
            continue
        actual = f"a capsule named {info.name!r}" if info.capsule else f"a {info.type}"
        where = "" if call in ("held", "legacy") else f" for {call}"
        return fail(f"a capsule named {' or '.join(_NAMES)}", actual + where)
    life = s.life.capsule
    if life is not None and life.again:
        return fail("a new capsule from each call", life.again, blocks=False)
    return ok() if _exports(s) else unsupported("every export is refused")


@check("DP-04", needs="DLPACK")
def capsule_is_on_the_device(s: Subject) -> Verdict:
    device = s.info.device_pair
    if device is None or not s.capsules:
        return unsupported("no device, or no capsule")
    for call, info in s.capsules.items():
        if not call.startswith("dl_device") and info.device != device:
            return fail(f"device {tuple(device)}", f"device {tuple(info.device)} in the capsule")
    return ok()


@check("DP-06", needs="DLPACK", once=True)
def unconsumed_capsule_frees(s: Subject) -> Verdict:
    info = s.life.capsule
    if info is None or info.error is not None:
        return unsupported("no capsule whose life can be followed")
    gained = leaked(info.unconsumed_growth)
    references = info.references[1] - info.references[0]
    if references >= 8:
        return fail(
            "the tensor freed with its capsule", f"{references // 8} references kept by each"
        )
    if gained:
        return fail(
            "the tensor freed with its capsule", f"{gained} left when it is dropped unconsumed"
        )
    counted = info.unconsumed_growth.rounds
    return ok("" if counted else "live bytes were not counted: other threads were running")


@check("DP-07", needs="DLPACK", once=True)
def renamed_capsule_does_nothing(s: Subject) -> Verdict:
    info = s.life.capsule
    if info is None or info.destructor_called_deleter is None:
        return unsupported("no deleter to count")
    if info.destructor_called_deleter:
        return fail("a destructor that leaves a used capsule alone", "it called the deleter")
    return ok()


@check("DP-10", needs="DLPACK", once=True)
def names_are_static(s: Subject) -> Verdict:
    info = s.life.capsule
    if info is None or info.name_after is None:
        return unsupported("no capsule whose life can be followed")
    if info.name_after == info.name:
        return ok()
    return fail(f"{info.name!r} in static storage", "other bytes there once the capsule was gone")


@check("DP-11", needs="DLPACK")
def versions_are_negotiated(s: Subject) -> Verdict:
    together = [call for call in s.calls if ", " in call and "max_version" not in call]
    for call in ("legacy", "max_version=None", *together):
        if s.call(call).name == "dltensor_versioned":
            return fail(
                "a legacy capsule, or a refusal, without max_version",
                f"a versioned capsule{_for(call)}",
            )
    if not _takes(s, "max_version=None"):
        return unsupported("max_version is not taken")
    if s.call("max_version=(1,0)").name == "dltensor":
        return ok("a legacy capsule for max_version (1, 0): allowed, versioned preferred")
    return ok()


@check("DP-12", needs="DLPACK")
def lower_major_gets_no_newer_capsule(s: Subject) -> Verdict:
    if not _takes(s, "max_version=None") or not _exports(s):
        return unsupported("max_version is not taken, or every export is refused")
    for call in ("max_version=(0,1)", "max_version=(0,8)"):
        info = s.calls[call]
        if info.name == "dltensor_versioned":
            return fail(f"a legacy capsule or BufferError for {call}", "a versioned capsule")
        if info.error is not None and not _is(info.error, "BufferError"):
            return fail(f"a legacy capsule or BufferError for {call}", info.error.type)
    return ok()


@check("DP-13", needs="DLPACK")
def bad_version_is_a_type_error(s: Subject) -> Verdict:
    if not _takes(s, "max_version=None") or "max_version=[1,0]" not in s.calls:
        return unsupported("max_version is not taken, or every export is refused")
    for call in ("max_version=[1,0]", "max_version=(1,0,0)", "max_version='1.0'"):
        error = _error(s, call)
        if error is None:
            return fail(f"TypeError for {call}", "accepted")
        if not _is(error, "TypeError"):
            return fail(f"TypeError for {call}", error.type)
    return ok()


@check("DP-14", needs="DLPACK")
def four_keywords_are_taken(s: Subject) -> Verdict:
    wanted = "keywords stream, max_version, dl_device, copy"
    older = (
        "the standard of 2022 had stream alone, and consumers call such producers again: "
        "this does not fail"
    )
    if "stream=None" not in s.calls:
        refusals = [_error(s, call) for call in ("legacy", "max_version=None")]
        if [error is not None and _is(error, "TypeError") for error in refusals] == [False, True]:
            return advise(wanted, "TypeError for max_version", note=older)
        return unsupported("every export is refused")
    taken = [keyword for keyword in _KEYWORDS if _takes(s, keyword)]
    refused = [name for name, one in s.calls.items() if one.error and _is(one.error, "TypeError")]
    for call in refused:
        if ", " in call and not {*refused} & {*call.split(", ")}:
            return fail("keywords that are taken singly, together", f"TypeError for {call}")
    if len(taken) == len(_KEYWORDS):
        return ok()
    missing = ", ".join(k.partition("=")[0] for k in _KEYWORDS if k not in taken)
    if taken == ["stream=None"]:
        return advise(wanted, "stream alone", note=older)
    return fail(wanted, f"TypeError for {missing}")


@check("DP-15", needs="DLPACK")
def cpu_takes_no_stream(s: Subject) -> Verdict:
    device = s.info.device_pair or [0]
    if device[0] != CPU or not _takes(s, "stream=None"):
        return unsupported("not on the CPU, or stream is not taken")
    note = "" if _error(s, "stream=-1") else "stream=-1 is accepted, as most producers do"
    for call in ("stream=1", "stream=0"):
        if _error(s, call) is None:
            return fail(f"an error for {call} on the CPU", "accepted")
    return ok(note)


@check("DP-16", needs="DLPACK")
def cuda_streams_have_their_meaning(s: Subject) -> Verdict:
    device = s.info.device_pair or [0]
    if device[0] != CUDA or not _takes(s, "stream=None"):
        return unsupported("not on a CUDA device, or stream is not taken")
    for call in ("stream=None", "stream=-1", "stream=1", "stream=2"):
        error = _error(s, call)
        if error is not None:
            return fail(f"an export for {call}", error.type)
    if _error(s, "stream=0") is None:
        return fail("a refusal of stream=0, which is ambiguous", "accepted")
    error = _error(s, "stream='1'")
    if error is None or not _is(error, "TypeError"):
        return fail("TypeError for stream='1'", "accepted" if error is None else error.type)
    return ok()


@check("DP-17", needs="DLPACK")
def rocm_streams_have_their_meaning(s: Subject) -> Verdict:
    device = s.info.device_pair or [0]
    if device[0] != ROCM or not _takes(s, "stream=None"):
        return unsupported("not on a ROCm device, or stream is not taken")
    for call in ("stream=None", "stream=-1", "stream=0"):
        error = _error(s, call)
        if error is not None:
            return fail(f"an export for {call}", error.type)
    for call in ("stream=1", "stream=2"):
        if _error(s, call) is None:
            return fail(f"a refusal of {call}, which has no meaning on ROCm", "accepted")
    return ok()


@check("DP-18", needs="DLPACK", once=True)
def pending_work_comes_before_the_consumer(s: Subject) -> Verdict:
    wanted = "the finished content for work on the consumer's stream"
    if s.info.late.get("DL"):
        return fail(wanted, "content that changed once the whole device was at rest")
    return _pending_verdict(s, "DL", wanted)


@check("DP-24", needs="DLPACK", once=True)
def host_copies_are_synchronized(s: Subject) -> Verdict:
    return _pending_verdict(s, "DL dl_device", "the finished content in host memory")


def _pending_verdict(s: Subject, way: str, wanted: str) -> Verdict:
    """Did an export made while work was pending give the bytes of that work?"""
    device = s.info.device_pair or [CPU]
    if device[0] == CPU:
        return unsupported("host memory has no streams")
    if s.no_driver or s.device_error:
        return untested(s.no_driver or s.device_error)
    fresh = s.pending.get(way)
    if fresh is None:
        return unsupported("no such export, or no stream on which work could be kept pending")
    return ok() if fresh else fail(wanted, "bytes from before the work that was pending on it")


@check("DP-20", needs="DLPACK")
def copy_true_copies(s: Subject) -> Verdict:
    original = _original(s)
    if not _takes(s, "copy=None") or "copy=True" not in s.calls:
        return unsupported("copy is not taken, or memory that is not touched")
    copies = {call: s.tensor(call) for call in _calls_with(s, "copy=True")}
    for call, copy in copies.items():
        if copy is not None and original is not None and overlap(copy, original):
            return fail("separate memory", f"the memory of the array{_for(call)}")
    error = _error(s, "copy=True")
    if error is not None:
        if _is(error, "BufferError"):
            return ok("it cannot copy, and says so")
        return advise("a copy, or BufferError", error.type)
    copy = copies["copy=True"]
    if copy is None:
        return unsupported("the copy's capsule describes no array")
    if original is None or copy.is_empty:
        return unsupported("nothing to compare the copy with")
    return ok()


@check("DP-21", needs="DLPACK")
def copy_false_never_copies(s: Subject) -> Verdict:
    if not _takes(s, "copy=None") or "copy=False" not in s.calls:
        return unsupported("copy is not taken")
    error = _error(s, "copy=False")
    if error is not None:
        if _is(error, "BufferError", "ValueError"):
            return ok("refused")
        return fail("the same memory, or BufferError (ValueError)", error.type)
    verdicts = [_same_memory_verdict(s, call) for call in _calls_with(s, "copy=False")]
    return next((verdict for verdict in verdicts if verdict.failed), verdicts[0])


@check("DP-22", needs="DLPACK")
def default_reuses_memory(s: Subject) -> Verdict:
    held, original = s.arrays.get("DL"), _original(s)
    shared = s.tensor("copy=False")
    if held is None or original is None or held.is_empty:
        return unsupported("nothing to compare, or no elements")
    if held.address == original.address:
        return _same_memory_verdict(s, "copy=None") if _takes(s, "copy=None") else ok()
    if shared is not None and overlap(shared, original) and not overlap(held, original):
        return fail("the array's own memory, as copy=False gives", "a copy without need")
    return ok("another address; where it should be is XA-01's question")


def _same_memory_verdict(s: Subject, call: str) -> Verdict:
    tensor, original = s.tensor(call), _original(s)
    claims_copy = tensor is not None and tensor.is_copy and not tensor.is_empty
    if claims_copy and call != "copy=None" and not s.is_view:  # whether the claim is true: DL-05
        return fail(f"the array's own memory for {call}", "an export that says it is a copy")
    if tensor is None or original is None or original.is_empty:
        return unsupported("nothing to compare, or no elements")
    if overlap(tensor, original):
        return ok()
    return fail(f"the array's own memory for {call}", "other memory")


@check("DP-23", needs="DLPACK")
def devices_are_served_or_refused(s: Subject) -> Verdict:
    if not _takes(s, "dl_device=None"):
        return unsupported("dl_device is not taken")
    elsewhere = s.calls["dl_device=(8,0)"]
    if elsewhere.error is None and elsewhere.device != [8, 0]:
        return fail("an error for a device that cannot be served", "dl_device=(8, 0) ignored")
    host = s.call("dl_device=(1,0)")
    is_elsewhere = (s.info.device_pair or [CPU])[0] != CPU
    if is_elsewhere and host.is_tensor and host.device[0] != CPU:
        return fail("host memory for dl_device=(1, 0)", "dl_device=(1, 0) ignored")
    text_error = s.call("dl_device='cpu'").error
    if text_error is None:
        return fail("TypeError for dl_device='cpu'", "accepted")
    error = elsewhere.error
    if error is not None and not _is(error, "BufferError", "ValueError"):
        return advise("BufferError (or ValueError) for dl_device=(8, 0)", error.type)
    if not _is(text_error, "TypeError"):
        return advise("TypeError for dl_device='cpu'", text_error.type)
    if host.error is not None:
        return advise("a copy on the CPU for dl_device=(1, 0)", host.error.type)
    if s.call("dl_device=(1,7)").is_tensor:
        return advise("an error for dl_device=(1, 7): the host has the id 0", "the id ignored")
    return ok()


@check("DP-25", needs="DLPACK")
def indescribable_arrays_are_refused(s: Subject) -> Verdict:
    why = indescribable(s)
    if why is None:
        return unsupported("DLPack can describe this array")
    if _exports(s):
        element = s.arrays["DL"].element if "DL" in s.arrays else "something"
        if why == "swapped byte order":
            return unsupported("judged by DL-16")
        return fail(f"a refusal of {why}", f"exported as {element}")
    error = s.main.error
    if error is None or _is(error, "BufferError"):
        return ok()
    return advise(f"BufferError for {why}", error.type)


_NO_DLPACK_TYPE = frozenset({"object", "datetime", "timedelta", "text", "struct"})


def indescribable(s: Subject) -> str | None:
    """What DLPack cannot describe of this array, by the producer, the plan or another interface."""
    if not s.observation.has_memory:
        return "an array without strided memory"
    if s.plan is not None and s.plan.dtype_info.dlpack is None:
        return f"elements of type {s.plan.dtype}"
    for other in s.others("DL").values():
        if other.element is not None and other.element.kind in _NO_DLPACK_TYPE:
            return f"elements of kind {other.element.kind}"
        if other.element is not None and other.element.is_swapped:
            return "swapped byte order"
    return None


@check("DP-26", needs="DLPACK")
def uneven_strides_are_refused(s: Subject) -> Verdict:
    for name, array in s.others("DL").items():
        if not array.itemsize or array.is_empty or s.stated_in_elements(name) == "DL":
            continue
        uneven = [b for b in array.meaningful_strides if b is not None and b % array.itemsize]
        if uneven and _exports(s):
            return fail(
                f"a refusal of the byte stride {uneven[0]} with items of {array.itemsize} bytes",
                f"exported with strides {s.main.strides}",
            )
        if uneven:
            return ok()
        meaningless = any(b % array.itemsize for b in array.strides)
        if meaningless and not _exports(s) and indescribable(s) is None:
            return advise("an export: only axes of extent 1 have uneven strides", "a refusal")
    return unsupported("every stride is a multiple of itemsize")


@check("DP-27", needs="DLPACK")
def legacy_capsules_are_writable(s: Subject) -> Verdict:
    readonly_names = [name for name, other in s.others("DL").items() if other.readonly]
    says_so = any(f.flags and f.flags & 1 for f in s.capsules.values())
    if not readonly_names and not says_so:
        return unsupported("the memory is not known to be read-only")
    if "legacy" in s.capsules and s.capsules["legacy"].version is None:
        return fail("a refusal: a legacy capsule cannot say read-only", "a legacy capsule")
    return ok()
