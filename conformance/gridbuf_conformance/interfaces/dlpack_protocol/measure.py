"""Info on DLPack's Python methods: the device query, and all relevant calls of `__dlpack__`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from ..dlpack_structs.structs import CPU, Exported
from ...abi.memory import Memory
from ...info import CapsuleInfo, DeviceInfo
from ...info.steps import Stage, enter
from ...info.values import attempt, describe

VERSION_CALLS: dict[str, dict[str, Any]] = {
    "legacy": {},
    "max_version=None": {"max_version": None},
    "max_version=(0,1)": {"max_version": (0, 1)},
    "max_version=(0,8)": {"max_version": (0, 8)},
    "max_version=(1,0)": {"max_version": (1, 0)},
    "max_version=(1,3)": {"max_version": (1, 3)},
    "max_version=(2,0)": {"max_version": (2, 0)},
}
BAD_VERSION_CALLS: dict[str, dict[str, Any]] = {
    "max_version=[1,0]": {"max_version": [1, 0]},
    "max_version=(1,0,0)": {"max_version": (1, 0, 0)},
    "max_version='1.0'": {"max_version": "1.0"},
}
KEYWORD_CALLS: dict[str, dict[str, Any]] = {
    "stream=None": {"stream": None},
    "stream=1": {"stream": 1},
    "stream=0": {"stream": 0},
    "stream=-1": {"stream": -1},
    "dl_device=None": {"dl_device": None},
    "dl_device=(1,0)": {"dl_device": (1, 0)},
    "dl_device=(1,7)": {"dl_device": (1, 7)},
    "dl_device=(8,0)": {"dl_device": (8, 0)},
    "dl_device='cpu'": {"dl_device": "cpu"},
    "copy=None": {"copy": None},
    "copy=False": {"copy": False},
}
COPY_CALLS: dict[str, dict[str, Any]] = {"copy=True": {"copy": True}}
STREAM_CALLS: dict[str, dict[str, Any]] = {
    "stream=2": {"stream": 2},
    "stream='1'": {"stream": "1"},
}
"""Only asked of devices that have streams."""
NEWEST = {"max_version": (1, 3)}
COMBINED: dict[str, tuple[Any, ...]] = {
    "max_version": ((1, 3),),
    "stream": (None,),
    "dl_device": ((CPU, 0),),
    "copy": (False, True),
}
"""Values of each keyword that any array in host memory can accept, or refuse with BufferError."""


def _device_number(entry: Any) -> int | None:
    """An entry of a device as a number; None if it is neither an int nor an Enum with one."""
    number = describe(int.__int__(getattr(entry, "value", entry)))
    return number.value if number.t == "int" and not isinstance(entry, bool) else None


def device_info(obj: Any) -> DeviceInfo:
    """`__dlpack_device__()` asked twice."""
    enter(Stage.DP, "device")
    results = []
    for _ in range(2):
        value, error = attempt(lambda: obj.__dlpack_device__())
        if error is not None:
            return DeviceInfo(error=error)
        results.append(value)
    info = DeviceInfo(first=describe(results[0]), second=describe(results[1]))
    integers, _ = attempt(lambda: [_device_number(entry) for entry in results[0]])
    if info.first.t == "tuple" and integers and len(integers) == 2 and None not in integers:
        info.integers = integers
    return info


def export(obj: Any, memory: Memory, name: str, keywords: dict[str, Any]) -> Exported | CapsuleInfo:
    """One call of `__dlpack__`: what it returned, or the info on what it raised."""
    enter(Stage.DP, f"call={name}")
    result, error = attempt(lambda: obj.__dlpack__(**keywords))
    return CapsuleInfo(error=error) if error is not None else Exported(result, memory)


def call_info(obj: Any, memory: Memory, name: str, keywords: dict[str, Any]) -> CapsuleInfo:
    """The info on one call; its capsule is dropped unconsumed."""
    exported = export(obj, memory, name, keywords)
    if isinstance(exported, CapsuleInfo):
        return exported
    enter(Stage.DL, f"struct={name}")
    info = exported.info()
    enter(Stage.DL, "unconsumed")
    del exported
    return info


def every_call_info(
    obj: Any, memory: Memory, *, may_copy: bool, device_type: int = CPU
) -> dict[str, CapsuleInfo]:
    """What `__dlpack__` answers to each call: {name: info}; `may_copy` allows requests for copies.

    The keyword calls carry `max_version` where the producer takes it. Then come all combinations of
    the keywords that it takes. Nothing more is asked of an object that refuses both main forms: it
    cannot be exported at all.
    """
    info = {name: call_info(obj, memory, name, kw) for name, kw in VERSION_CALLS.items()}
    if all(info[name].error is not None for name in ("legacy", "max_version=(1,3)")):
        return info
    base = {} if info["max_version=(1,3)"].error is not None else NEWEST
    calls = {**KEYWORD_CALLS, **(COPY_CALLS if may_copy else {})}
    if device_type != CPU:
        calls.update(STREAM_CALLS)
        if not may_copy:
            del calls["dl_device=(1,0)"], calls["dl_device=(1,7)"]  # these are copies, too
    for name, keywords in {
        **BAD_VERSION_CALLS,
        **{n: {**base, **kw} for n, kw in calls.items()},
    }.items():
        info[name] = call_info(obj, memory, name, keywords)
    for name, keywords in _combined_calls(info, may_copy=may_copy, device_type=device_type):
        info[name] = call_info(obj, memory, name, keywords)
    return info


def _combined_calls(
    info: dict[str, CapsuleInfo], *, may_copy: bool, device_type: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Combinations of two or more keywords that are taken singly: "stream=None, copy=False"."""
    refused = {
        name
        for name in COMBINED
        if (error := info[f"{name}=None"].error) and "TypeError" in error.mro
    }
    for values in product(*((..., *values) for values in COMBINED.values())):
        keywords = {name: value for name, value in zip(COMBINED, values) if value is not ...}
        is_possible = device_type == CPU or "dl_device" not in keywords
        may_be_made = is_possible and (may_copy or not keywords.get("copy"))
        if len(keywords) > 1 and may_be_made and not refused & keywords.keys():
            shown = (f"{name}={value!r}".replace(" ", "") for name, value in keywords.items())
            yield ", ".join(shown), keywords
