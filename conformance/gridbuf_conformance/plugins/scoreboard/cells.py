"""One cell: what arrives when another library's consumer takes a producer's array.

This runs in a worker, which `run` starts. Values are compared with the plan: a third party, which
neither library computes. Numbers are read by the `tolist` of the result, else through its
interfaces, else as its bytes; other elements as bytes first. Buffers are requested in full, as
`memoryview` does: a crash at another request is not the result of an exchange. The array that is
passed must show the values of the plan first, by the same reading.

One element changes after the exchange, through the memory of the producer. If the result shows the
new value, it shares that memory. Then the consumer's library computes `x + 0`, which is read, too.
Last, the array of the producer is dropped, and the producer makes others of its size.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from math import prod
from operator import mul
from typing import Any

from ...abi.capsule import capsule_name
from ...abi.descriptors import Descriptor, sample_indices
from ...interfaces.descriptors import descriptors_of
from ...abi.elements import Element, of_plan
from ...abi.memory import Memory
from ...engine.results import scrubbed
from ...engine.messages import send
from ...engine.worker import answer_all, connected
from ...exports.expected_values import number
from ...info import steps
from ...info.values import text_of
from ...measure.content import walk
from ...measure.eyes import METHODS, listed
from ...measure.observation import light_info
from ...plan import Plan
from ...plan.consumer import Consumer, version_of
from ...plan.producer import is_declined, python_view
from ...targets import CannotLoad, Target, load
from ...text import clean, shorten
from .arrays import ARRAYS

_NUMBERS = "biufcMm"
_COMPUTED = "biufc"
_MAX_CHARS = 200
_OTHERS = 4
_ALIGNED_BYTES = 64
_TRIES = 32
_CALLS = 30
_REQUESTS = ("FULL_RO",)
_UNITS_NS = {"us": 10**3, "ms": 10**6, "s": 10**9}
_FLOATS: dict[int, Any] = {4: ctypes.c_float, 8: ctypes.c_double}
"""Types of C by their bytes."""
_Observed = tuple[str, str]
"""An outcome, and what there is to say about it."""


def serve(socket_fd: int, slot_fd: int) -> None:
    """Answers three requests: load a target; observe an array of a pair; time a pair."""
    channel = connected(socket_fd, slot_fd)
    warnings.simplefilter("ignore")
    send(channel, {"number": 0})
    loaded: dict[tuple[str, str], Any] = {}

    def answered(request: dict[str, Any]) -> dict[str, Any]:
        try:
            if "load" in request:
                return _load(Target(**request["load"]), request["library"], loaded)
            pair = loaded["producer", request["producer"]], loaded["consumer", request["consumer"]]
            if not request["array"]:
                return _extras(*pair, None)
            plan = ARRAYS[request["array"]].plan
            return _extras(*pair, plan) if request["extras"] else _outcome(*pair, plan)
        finally:
            steps.release()

    answer_all(channel, answered)


def _load(target: Target, library: str, loaded: dict[tuple[str, str], Any]) -> dict[str, Any]:
    steps.hold(steps.Stage.IMPORT)
    try:
        found = loaded[target.side, target.written] = load(target)
        version = _version(found) or _version_of_module(library)
    except CannotLoad as error:
        return {"error": _message(str(error))}
    gc.collect()
    gc.freeze()  # loaded modules stay: the collections of `_observed` need not scan them
    return {"version": version}


def _outcome(producer: Any, consumer: Consumer, plan: Plan) -> dict[str, Any]:
    try:
        outcome, text = _observed(producer, consumer, plan)
    except BaseException as error:  # the result has a strange interface
        outcome, text = "unread", f"{type(error).__name__}: {text_of(error)}"
    return {"outcome": outcome, "message": _message(text)}


def _extras(producer: Any, consumer: Consumer, plan: Plan | None) -> dict[str, Any]:
    """What is known of two libraries besides the outcomes."""
    steps.hold(steps.Stage.EXTRAS)
    return {
        "time_us": None if plan is None else _time(producer, consumer, plan),
        "flat": bool(getattr(consumer.function, "gives_bytes", False)),
        "protocols": _protocols(producer),
    }


def _version(target: Any) -> str:
    if isinstance(target, Consumer):
        return target.version
    version = getattr(target, "version", "")
    return str((version() if callable(version) else version) or "") or version_of(target.produce)


def _version_of_module(library: str) -> str:
    """The version of a library whose consumer is a function of another file."""
    with contextlib.suppress(ImportError):
        import_module(library)
    return version_of(int, library)


def _message(text: str) -> str:
    return shorten(" ".join(clean(scrubbed(text)).split()), _MAX_CHARS)


# -- one cell ------------------------------------------------------------------------------------


def _observed(producer: Any, consumer: Consumer, plan: Plan) -> _Observed:
    steps.hold(steps.Stage.PRODUCE)
    made, reason = make(producer, plan)
    if reason:
        return "not made", reason
    memory = Memory()
    described, kept = _described(made, memory)
    expected = _expected(plan)
    if _mistake(_read(made, plan, memory), plan, expected):
        return "not made", "the array does not show the values of the plan"
    _others(producer, plan)
    steps.hold(steps.Stage.CONSUME)
    try:
        result = consumer.function(made)
        getattr(result, "block_until_ready", int)()
    except BaseException as error:  # Rust's panics are no `Exception`
        return "refused", f"{type(error).__name__}: {text_of(error)}"
    steps.hold(steps.Stage.READ)
    flat = bool(getattr(consumer.function, "gives_bytes", False))
    mark = _Mark.of(plan, described, memory)
    try:
        seen = _read(result, plan, memory, flat)
    finally:
        mark.remove()
    wrong, is_new = _compared(seen, plan, expected, mark)
    if seen is None:
        return "unread", wrong
    got, held = _described(result, memory)
    if text := wrong or _shape_mistake(seen, plan):
        if converted := _conversion(result, seen, plan, expected, got):
            return "converted", converted
        is_other_rank = not wrong and _is_other_rank(seen, plan)
        return ("other rank" if is_other_rank else "wrong values"), text
    overlaps = _overlap(described, got)
    if mark.written and overlaps and not is_new:
        return (
            "aliasing lost",
            "it is at the same address, and does not show a write of the producer",
        )
    shares = is_new if mark.written else overlaps
    if plan.readonly and shares and (way := _writable(result, got, memory)):
        return "read-only lost", way
    computed = _computed(result) if plan.dtype_info.kind in _COMPUTED else None
    if wrong := _miscomputed(computed, plan, expected, memory, flat):
        return "wrong values", wrong
    is_locked = shares and _lost_write(described, result, computed, got, memory)
    if shares is not False and expected:
        steps.hold(steps.Stage.DROP)
        described.clear()
        kept.clear()
        held.clear()
        del made
        gc.collect()
        others = _others(producer, plan)
        again = _read(result, plan, memory, flat, from_memory=True) or _read(
            result, plan, memory, flat
        )
        if wrong := _mistake(again, plan, expected):
            return "lifetime broken", f"after the producer's array is gone: {wrong}"
        del others
    if is_locked:
        return "became read-only", "neither an interface nor an assignment can write it"
    return {True: "shared", False: "copied", None: "arrived"}[shares], ""


@lru_cache(maxsize=len(ARRAYS))
def _expected(plan: Plan) -> list[bytes]:
    """The elements that are compared: all of a small array, and some of a large one."""
    return [plan.viewed_element_bytes(index) for index in sample_indices(plan.view_map.shape)]


@lru_cache(maxsize=_OTHERS * len(ARRAYS))
def _other(plan: Plan, seed: int) -> Plan:
    return plan.replaced(fill=seed)


def _others(producer: Any, plan: Plan) -> list[Any]:
    """Arrays of the plan with other elements. Dropped at once, they leave these in free memory."""
    return [make(producer, _other(plan, seed), 1)[0] for seed in range(1, _OTHERS)]


def make(producer: Any, plan: Plan, tries: int = _TRIES) -> tuple[Any, str]:
    """The array with its views; or None and the reason why the producer does not make it.

    A library whose arrays are immutable makes them so for every plan. Some consumers copy what is
    not aligned, so an array before its views is aligned if some of `tries` allocations are:
    otherwise a run would differ from the next.
    """
    is_immutable = getattr(getattr(producer, "capabilities", None), "readonly", None) == (True,)
    plan = plan.replaced(readonly=plan.readonly or is_immutable)
    memory, others = Memory(), []
    try:
        for _ in range(tries):
            made = producer.produce(plan)
            if is_declined(made) or tries == 1 or _is_aligned(made, memory):
                break
            others.append(made)
        for operation in plan.views:
            if not is_declined(made):
                made = getattr(producer, "apply_view", python_view)(made, operation)
    except Exception as error:
        return None, f"{type(error).__name__}: {text_of(error)}"
    return (None, str(made.reason)) if is_declined(made) else (made, "")


def _is_aligned(array: Any, memory: Memory) -> bool:
    info, _kept = light_info(array, memory, _REQUESTS)
    return all(d.address % _ALIGNED_BYTES == 0 for d in descriptors_of(info).values())


# -- values --------------------------------------------------------------------------------------

_Seen = tuple["tuple[int, ...] | None", list[Any]]
"""A shape, if it is known, and the elements in row-major order: Python numbers, or bytes."""


def shown(array: Any, plan: Plan) -> list[Any]:
    """The elements of a result as the scoreboard reads them: numbers or bytes; empty for none."""
    seen = _read(array, plan, Memory())
    return seen[1] if seen else []


def _read(
    array: Any, plan: Plan, memory: Memory, flat: bool = False, from_memory: bool = False
) -> _Seen | None:
    """The elements as the array shows them; None if it shows nothing comparable."""
    size = plan.itemsize
    if flat:
        raw = _plain(array, memory, from_memory)
        return None if raw is None else (None, _row_major(_split(raw, size), plan))
    are_numbers = plan.dtype_info.kind in _NUMBERS
    if not from_memory:
        seen = _listed(array) if are_numbers else None
        if seen is not None:
            return seen
        if any(getattr(getattr(s, "dtype", None), "hasobject", False) for s in _sources(array)):
            return None  # its bytes are addresses of Python objects
        seen = None if are_numbers else _as_bytes(array, size)
        if seen is not None:
            return seen
    described, kept = _described(array, memory)
    shape = next((exported.shape for exported in described.values()), None)
    elements = _exported(described, plan, memory)
    if are_numbers and not from_memory and (not elements or isinstance(elements[0], bytes)):
        seen = _as_bytes(array, size)
        if seen is not None:
            return seen[0] if seen[0] is not None else shape, seen[1]
    del kept  # an interface may point to a temporary object
    return None if elements is None else (shape, elements)


def _as_bytes(array: Any, size: int) -> _Seen | None:
    """The elements by `tobytes`; None without it."""
    for source in _sources(array):
        with contextlib.suppress(Exception):
            return _shape(array), _split(source.tobytes(), size)
    return None


def _sources(array: Any) -> Iterator[Any]:
    """The array, and what its methods give."""
    yield array
    for name in ("numpy", "to_numpy", "todense"):
        with contextlib.suppress(Exception):
            yield getattr(array, name)()


def _exported(described: dict[str, Descriptor], plan: Plan, memory: Memory) -> list[Any] | None:
    """The elements that the interfaces show: numbers of the plan's kind or another size, else bytes
    of the plan's size.
    """
    wanted = of_plan(plan.dtype_info, plan.byteorder)
    for exported in described.values():
        walked = walk(exported, memory)
        if walked is None:
            continue
        raw, element = _split(bytes.fromhex(walked), exported.itemsize), exported.element
        if element and plan.dtype_info.kind in _NUMBERS:
            values = [element.value(item) for item in raw]
            is_read = raw and None not in values
            if is_read and (element.kind == wanted.kind or element.itemsize != wanted.itemsize):
                return values
        if exported.itemsize == plan.itemsize:
            return raw
    return None


def _row_major(elements: list[bytes], plan: Plan) -> list[bytes]:
    """The elements of plain bytes in row-major order. Bytes of a Fortran array may be in the order
    of its memory.
    """
    shape = plan.view_map.shape
    is_fortran = list(plan.layout or ()) == list(range(len(shape)))[::-1]
    if plan.views or not is_fortran or len(elements) != prod(shape):
        return elements
    weights = [prod(shape[:axis]) for axis in range(len(shape))]
    moved = [elements[sum(map(mul, index, weights))] for index in sample_indices(shape)]
    shown = _sampled(elements, shape)
    # All but the changed element say which order it is.
    expected = _expected(plan)
    return max(shown, moved, key=lambda found: sum(a == b for a, b in zip(found, expected)))


def _plain(array: Any, memory: Memory, from_memory: bool) -> bytes | None:
    """The bytes of a result that has plain bytes."""
    for source in () if from_memory else ("memoryview", "tolist"):
        try:
            return bytes(memoryview(array) if source == "memoryview" else array.tolist())
        except Exception:
            continue
    for described in _described(array, memory)[0].values():
        if described.span and not described.is_indirect:
            return memory.read(described.span[0], described.span[1] - described.span[0])
    return None


def _split(raw: bytes, size: int) -> list[bytes]:
    return [raw[k : k + size] for k in range(0, len(raw), size)]


def _shape(array: Any) -> tuple[int, ...] | None:
    try:
        return tuple(int(extent) for extent in array.shape)
    except Exception:
        return None


def _listed(array: Any) -> _Seen | None:
    for name in METHODS:
        try:
            nested = listed(getattr(array, name)())
        except Exception:
            continue
        shape: list[int] = []
        level: list[Any] = [nested]
        while level and all(isinstance(item, list) for item in level):
            shape.append(len(level[0]))
            level = [inner for item in level for inner in item]
        if all(isinstance(item, (int, float, complex)) for item in level):
            if level:
                return tuple(shape), level
            own = _shape(array)  # a list without elements does not show all axes
            return (None if own is None else max(own, tuple(shape), key=len)), level
    return None


def _mistake(seen: _Seen | None, plan: Plan, expected: list[bytes]) -> str:
    """The first element that differs from the plan, in words; empty if none does."""
    if seen is None:
        return "the result shows no values"
    wanted = plan.view_map.shape
    elements = _sampled(seen[1], wanted)
    if len(elements) != len(expected):
        return _shape_mistake(seen, plan) or f"{len(elements)} elements instead of {len(expected)}"
    for index, actual, raw in zip(sample_indices(wanted), elements, expected):
        value: Any = raw if isinstance(actual, bytes) else number(plan, raw)
        if value is not None and actual != value:
            told = [v.hex() if isinstance(v, bytes) else repr(v) for v in (actual, value)]
            return f"{told[0]} instead of {told[1]} at element {list(index)}"
    return ""


def _sampled(elements: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Of all elements of a large array, those that are compared."""
    indices = sample_indices(shape)
    if len(elements) != prod(shape) or len(elements) == len(indices):
        return elements
    weights = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [elements[sum(map(mul, index, weights))] for index in indices]


def _shape_mistake(seen: _Seen, plan: Plan) -> str:
    """The shape, if it is known and another one than the plan's; else an empty text."""
    shape, wanted = seen[0], plan.view_map.shape
    is_right = shape is None or shape == wanted
    return "" if is_right else f"shape {list(shape or ())} instead of {list(wanted)}"


def _is_other_rank(seen: _Seen, plan: Plan) -> bool:
    """Whether the shapes differ in axes of extent 1 only, or are of empty arrays of other ranks."""
    shape, wanted = seen[0] or (), plan.view_map.shape
    if len(shape) == len(wanted) or not seen[1]:
        return len(shape) != len(wanted)
    return [n for n in shape if n != 1] == [n for n in wanted if n != 1]


def _conversion(
    result: Any, seen: _Seen, plan: Plan, expected: list[bytes], got: dict[str, Descriptor]
) -> str:
    """`FROM as TO` if the elements are those of the plan, rounded to the element type that the
    result says, or all in one text; else an empty text.
    """
    shape, elements = seen[0], _sampled(seen[1], plan.view_map.shape)
    if shape == () and len(expected) > 1 and elements == expected:
        return f"{plan.dtype} as bytes{sum(map(len, expected))}"
    has_other_shape = _shape_mistake(seen, plan) and not _is_other_rank(seen, plan)
    if has_other_shape or len(elements) != len(expected):
        return ""
    name, _, unit = str(getattr(result, "dtype", "")).rstrip("]").partition("[")
    if unit in _UNITS_NS and plan.dtype.startswith(name) and isinstance(elements[0], bytes):
        times = [_time_of(raw) // _UNITS_NS[unit] for raw in expected]
        return f"{plan.dtype} as {name}[{unit}]" if times == [*map(_time_of, elements)] else ""
    values = [number(plan, raw) for raw in expected]
    for element in {array.element for array in got.values() if array.element}:
        rounded = [_rounded(value, element) for value in values]
        if None not in rounded and rounded == elements != values:
            return f"{plan.dtype} as {element.kind}{element.itemsize * 8}"
    return ""


def _time_of(raw: bytes) -> int:
    return int.from_bytes(raw, sys.byteorder, signed=True)


def _rounded(value: Any, to: Element) -> float | complex | None:
    """A number as C converts it to a smaller floating-point type; None for other types."""
    is_complex = to.kind == "complex"
    part = _FLOATS.get(to.itemsize // (2 if is_complex else 1))
    if part is None or value is None or to.kind not in ("float", "complex"):
        return None
    if is_complex:
        return complex(part(complex(value).real).value, part(complex(value).imag).value)
    return None if isinstance(value, complex) else part(value).value


def _computed(result: Any) -> Any:
    """What the library computes of a result, or its copy; None if it does neither."""
    for way in ("__add__", "copy"):
        with contextlib.suppress(Exception):
            computed = result + 0 if way == "__add__" else result.copy()
            getattr(computed, "block_until_ready", int)()
            return computed
    return None


def _miscomputed(
    computed: Any, plan: Plan, expected: list[bytes], memory: Memory, flat: bool
) -> str:
    """The first element of what the library computed that differs; empty if none does."""
    seen = None if computed is None else _read(computed, plan, memory, flat)
    if not seen or (seen[1] and not flat and isinstance(seen[1][0], bytes)):
        return ""  # x + 0 may have other bytes: those of a long double have padding
    wrong = _mistake(seen, plan, expected)
    got = _described(computed, memory)[0]
    if not wrong or _conversion(computed, seen, plan, expected, got):
        return ""
    return f"computed with (x + 0): {wrong}"


def _compared(
    seen: _Seen | None, plan: Plan, expected: list[bytes], mark: _Mark
) -> tuple[str, bool]:
    """The first mistake, and whether the result shows the changed element."""
    if mark.written and not _mistake(seen, plan, mark.changed(expected)):
        return "", True
    return _mistake(seen, plan, expected), False


# -- memory --------------------------------------------------------------------------------------


def _described(array: Any, memory: Memory) -> tuple[dict[str, Descriptor], list[Any]]:
    """What the interfaces of an array in host memory say, and what keeps it valid."""
    memory.map.refresh()
    info, kept = light_info(array, memory, _REQUESTS)
    found = {
        name: described
        for name, described in descriptors_of(info).items()
        if described.is_host and not described.is_copy
    }
    return found, kept


class _Mark:
    """One element with another value, written into the producer's memory, and removed again."""

    def __init__(self, memory: Memory, address: int, old: bytes, new: bytes, plan: Plan) -> None:
        self._memory, self._address, self._old, self._new, self._plan = (
            memory,
            address,
            old,
            new,
            plan,
        )
        self.written = bool(address) and old != new and memory.write(address, new)

    @classmethod
    def of(cls, plan: Plan, described: dict[str, Descriptor], memory: Memory) -> _Mark:
        """In the first element, where the producer says that it may be written."""
        view = plan.view_map
        if (
            len({view.base_index(index) for index in sample_indices(view.shape)}) > 1
        ):  # the others are compared
            index = (0,) * len(view.shape)
            old = plan.viewed_element_bytes(index)
            for seed in range(1, 5):
                new = _other(plan, seed).viewed_element_bytes(index)
                for array in described.values():
                    is_plain = array.itemsize == len(old) and not array.is_indirect
                    if new != old and array.readonly is False and is_plain:
                        return cls(memory, array.address, old, new, plan)
        return cls(memory, 0, b"", b"", plan)

    def changed(self, expected: list[bytes]) -> list[bytes]:
        """The elements with the changed one, at every index that shows it."""
        view = self._plan.view_map
        indices = sample_indices(view.shape)
        first = view.base_index(indices[0])
        return [
            self._new if view.base_index(index) == first else raw
            for index, raw in zip(indices, expected)
        ]

    def remove(self) -> None:
        if self.written:
            self._memory.write(self._address, self._old)


def _overlap(one: dict[str, Descriptor], other: dict[str, Descriptor]) -> bool | None:
    """Whether two arrays share memory; None if an interface is missing or an array is empty."""
    spans = [[a.span for a in arrays.values() if a.span] for arrays in (one, other)]
    if not all(spans):
        return None
    return any(a[0] < b[1] and b[0] < a[1] for a in spans[0] for b in spans[1])


def _writable(result: Any, got: dict[str, Descriptor], memory: Memory) -> str:
    """How a result can be written, in words; empty if it cannot."""
    for name, array in got.items():
        if array.readonly is False:
            return f"its {name} export says that it may be written"
    if all(memory.writable(*array.span) for array in got.values() if array.span):
        return "an assignment to an element is accepted" if _is_assigned(result) else ""
    return ""


def _lost_write(
    before: dict[str, Descriptor],
    result: Any,
    computed: Any,
    got: dict[str, Descriptor],
    memory: Memory,
) -> bool:
    """Whether writable memory cannot be written by the result of a library whose arrays can."""
    was_writable = any(array.readonly is False for array in before.values())
    return was_writable and not _writable(result, got, memory) and _is_assigned(computed)


def _is_assigned(array: Any) -> bool:
    try:
        index = (0,) * len(array.shape)
        array[index] = array[index]
    except Exception:
        return False
    return True


# -- protocols and time --------------------------------------------------------------------------

_ATTRIBUTES = (
    "__dlpack__",
    "__dlpack_c_exchange_api__",
    "__array_interface__",
    "__array_struct__",
    "__cuda_array_interface__",
    "__array__",
)
_KEYWORDS: dict[str, dict[str, Any]] = {
    "max_version=": {"max_version": (1, 3)},
    "copy=": {"max_version": (1, 3), "copy": True},
    "dl_device=": {"max_version": (1, 3), "dl_device": (1, 0)},
}


def _protocols(producer: Any) -> list[str]:
    """What the arrays of a producer have: attributes, a buffer, and what `__dlpack__` takes."""
    tries = (make(producer, array.plan) for array in ARRAYS.values())
    made: Any = next((made for made, reason in tries if not reason), None)
    found = [name for name in _ATTRIBUTES if hasattr(type(made), name) or hasattr(made, name)]
    try:
        memoryview(made).release()
        found.append("buffer")
    except Exception:
        pass
    for name, keywords in _KEYWORDS.items() if "__dlpack__" in found else ():
        try:
            capsule = made.__dlpack__(**keywords)
        except Exception:
            continue
        found.append(name)
        if capsule_name(capsule, Memory().text) == "dltensor_versioned":
            found.append("versioned")
    return list(dict.fromkeys(found))


def _time(producer: Any, consumer: Consumer, plan: Plan) -> float | None:
    """The median time of an exchange, in microseconds."""
    made, _ = make(producer, plan)
    try:
        return round(statistics.median(_times(consumer.function, made)), 2)
    except Exception:
        return None


def _times(function: Callable[[Any], Any], made: Any) -> Iterator[float]:
    for number_ in range(_CALLS + 5):
        begin = time.perf_counter()
        result = function(made)
        passed = time.perf_counter() - begin
        del result
        if number_ >= 5:  # the first calls import and compile
            yield passed * 1e6
