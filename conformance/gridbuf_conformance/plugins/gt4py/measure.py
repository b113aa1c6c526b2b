"""Info on `__gt_data_interface__` in use: its hooks in order, and what the acquired side holds.

An object with an entry for the host and one for the device may keep two copies. Whether they are
kept equal shows only after a write: through one entry, as a stencil would (acquire, write, touch,
release), and then reads through the other (acquire, read, release). On the device the write is left
pending on the stream that the entry names, for that is how stencils write. Everything written is
put back.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...abi.descriptors import Descriptor, Rejected
from .descriptor import of_entry
from ...abi.device import LEGACY_STREAM, DeviceError
from ...interfaces.dlpack_structs.structs import CPU
from ...abi.memory import Memory
from ...info import (
    DataInterfaceInfo,
    EntryInfo,
    ErrorInfo,
    HookInfo,
    NamingInfo,
    Observation,
    RenamedInfo,
    Value,
)
from ...info.steps import Stage, enter
from ...info.values import attempt, describe
from ...measure.content import walk
from ...measure.held import Held
from ...measure.interface import described

_SLOW_MILLISECONDS = 5


def add_metadata(held: Held, obj: Any, present: set[str]) -> None:
    """Reads `__gt_data_interface__`, which is used when the content is read."""
    if "__gt_data_interface__" in present:
        held.info.gt_data, held.data_interface = data_interface_info(obj)


def add_content(held: Held, obj: Any, poke: bool) -> None:
    """Uses the entries, or the two array interfaces that stand for them."""
    data = held.info.gt_data
    if held.is_view:
        return
    if data is not None and data.entries is not None:
        use_entries(obj, held.data_interface, data, held.memory, write=poke)
    elif poke and _has_mirrors(held):
        held.info.standing = use_interfaces_as_entries(obj, held.memory)


def add_attributes(info: Observation, obj: Any, groups: frozenset[str]) -> None:
    """Reads GT4Py's attributes, and how a named array deals with names."""
    if "GT" in groups:
        info.gt4py = _attributes(obj)
        info.domain_starts = _domain_starts(obj)
        if info.root.gt_data is not None:
            info.naming = _naming_info(obj)


def _has_mirrors(held: Held) -> bool:
    """Whether the host's and CUDA's interface differ in memory, and no data interface says so."""
    host, device = held.found.get("AI"), held.found.get("CAI")
    if host is None or device is None or held.info.gt_data is not None:
        return False
    return host.address != device.address


HOOKS = ("acquire", "touch", "release")
"""The functions of a data interface's entry, in the order in which a consumer calls them."""


def data_interface_info(obj: Any) -> tuple[DataInterfaceInfo, Any]:
    """(info on `__gt_data_interface__`, the value itself). Hooks are called by `_call_hook`."""
    enter(Stage.GT, "data-interface")
    value, error = attempt(lambda: obj.__gt_data_interface__)
    if error is not None:
        return DataInterfaceInfo(error=error), None
    info = DataInterfaceInfo(value=describe(value))
    if type(value) is not dict:
        return info, value
    info.keys = [describe(key) for key in value]
    info.entries, error = attempt(
        lambda: {str(key): _entry_info(entry) for key, entry in value.items()}
    )
    return (info, value) if error is None else (DataInterfaceInfo(error=error), None)


def _entry_info(entry: Any) -> EntryInfo:
    if not isinstance(entry, dict):
        return EntryInfo(value=describe(entry))
    given = {hook: entry[hook] for hook in HOOKS if entry.get(hook) is not None}
    hooks = {hook: HookInfo(callable(function)) for hook, function in given.items()}
    return EntryInfo(fields=described(entry), hooks=hooks)


def _call_hook(key: str, hook: str, function: Any) -> ErrorInfo | None:
    """What calling one hook without arguments raised."""
    enter(Stage.GT, f"hook={hook} of {key}")
    _, error = attempt(function)
    return error


def use_entries(
    obj: Any, value: Any, info: DataInterfaceInfo, memory: Memory, *, write: bool
) -> None:
    """Uses each entry of a data interface as a consumer does, and adds the observations to `info`.

    `value` is the dict and `info` what `data_interface_info` said of it. Each entry gains the
    outcome of its hooks and, as `walk`, its content after `acquire`; with two entries and `write`,
    `info.passed_on` says for "None>gpu" and "gpu>None" whether values written through the first are
    read through the second. Without `write` nothing is written and nothing is touched.
    """
    entries = info.entries or {}
    for key, entry in value.items():
        _use(entry, str(key), entries[str(key)], memory, write)
    if write and set(entries) == {"None", "gpu"}:
        host, device = _Side(obj, None, memory), _Side(obj, "gpu", memory)
        info.passed_on = {
            "None>gpu": _passed_on(host, device),
            "gpu>None": _passed_on(device, host),
        }


def use_interfaces_as_entries(obj: Any, memory: Memory) -> dict[str, bool | None]:
    """The info on `passed_on` for an object without data interface, whose array interfaces stand
    for the entries.
    """
    host, device = (_Side(_Standing(obj), key, memory) for key in (None, "gpu"))
    return {"None>gpu": _passed_on(host, device), "gpu>None": _passed_on(device, host)}


class _Standing:
    """The data interface that an object's array interfaces stand for (GT-08), without hooks."""

    def __init__(self, obj: Any) -> None:
        self._obj = obj

    @property
    def __gt_data_interface__(self) -> dict[str | None, Any]:
        return {None: self._obj.__array_interface__, "gpu": self._obj.__cuda_array_interface__}


def _use(entry: Any, name: str, info: EntryInfo, memory: Memory, write: bool) -> None:
    array = _descriptor(info, name)
    for hook in HOOKS:
        # What may not be written is not touched: that would say that it was.
        may_be_called = hook != "touch" or (write and array is not None and not array.readonly)
        given = info.hooks.get(hook)
        if may_be_called and given is not None and given.callable:
            given.error = _call_hook(name, hook, entry[hook])
        if hook == "acquire":
            info.walk = None if array is None else walk(array, memory)


def _descriptor(entry: EntryInfo, name: str) -> Descriptor | None:
    try:
        return of_entry(entry, name)
    except Rejected:
        return None


@dataclass
class _Side:
    """One entry, read again at each use: `acquire` may change what it says."""

    obj: Any
    key: str | None
    memory: Memory

    def acquire(self) -> Descriptor | None:
        """The array that this side shows after its `acquire`; None if it shows none."""
        self._call("acquire")
        info, _ = data_interface_info(self.obj)
        return _descriptor((info.entries or {}).get(str(self.key), EntryInfo()), str(self.key))

    def release(self, *, touched: bool = False) -> None:
        if touched:
            self._call("touch")
        self._call("release")

    def _call(self, hook: str) -> None:
        _, value = data_interface_info(self.obj)
        entry = value.get(self.key) if isinstance(value, dict) else None
        function = entry.get(hook) if isinstance(entry, dict) else None
        if callable(function):
            _call_hook(str(self.key), hook, function)

    def read(self, array: Descriptor) -> list[bytes] | None:
        """A byte of the first and of the last element, as a consumer reads: on the device behind
        the stream that the entry names. None where they cannot be read."""
        space = array.space_in(self.memory)
        read = [space.read(address, 1) for address in _places(array)]
        return [byte for byte in read if byte is not None] if None not in read else None

    def write(self, array: Descriptor, values: list[bytes]) -> None:
        """Writes those bytes at once."""
        space = array.space_in(self.memory)
        for address, value in zip(_places(array), values):
            space.write(address, value)

    def write_late(self, array: Descriptor, values: list[bytes]) -> None:
        """The same as a stencil would: its work on the device is pending when this returns."""
        if array.device[0] == CPU:
            self.write(array, values)
            return
        access, stream = self.memory.devices.access, array.stream or LEGACY_STREAM
        if access is None:
            raise DeviceError("the device is not accessible")
        for address, value in zip(_places(array), values):
            access.slow_fill(address, value[0], 1, _SLOW_MILLISECONDS, stream)


def _places(array: Descriptor) -> list[int]:
    """First and last element's addresses: they show copies that stop early or never start."""
    last = tuple(extent - 1 for extent in array.shape)
    return [array.address, array.address + array.offset_of(last)]


def _passed_on(source: _Side, target: _Side) -> bool | None:
    """Are bytes written through one entry read through the other? None if it cannot be tried."""
    enter(Stage.GT, f"write={source.key}")
    written = source.acquire()
    if written is None or not _can_be_tried(written, source.memory):
        return None
    before = source.read(written)
    if before is None:
        return None
    values = [bytes([byte[0] ^ 1]) for byte in before]
    if written.element_count == 1:
        values[1] = values[0]
    try:
        source.write_late(written, values)
        source.release(touched=True)
        shown = target.acquire()
        seen = target.read(shown) if shown and shown.shape == written.shape else None
        target.release()
    except DeviceError:
        seen = None
    _put_back(source, target, before)
    return None if seen is None else seen == values


def _can_be_tried(array: Descriptor, memory: Memory) -> bool:
    """Whether something may be written: not read-only, no pointers, a way to the device."""
    return (
        array.span is not None
        and array.readonly is False
        and memory.devices.access is not None
        and array.space_in(memory).writable(*array.span)
        and not (array.element and array.element.kind == "object")
    )


def _put_back(source: _Side, target: _Side, before: list[bytes]) -> None:
    """The old bytes, written as the new ones were; and directly on a side that the object left with
    others.
    """
    access = source.memory.devices.access
    with contextlib.suppress(DeviceError):
        if access is not None:
            access.synchronize(0)
    for side, touched in ((source, True), (target, False), (source, False)):
        array = side.acquire()
        if array is not None and side.read(array) != before:
            side.write(array, before)
        side.release(touched=touched)


def _attributes(obj: Any) -> dict[str, Value]:
    """The attributes of GT4Py's protocol and `gt4py.next` fields that the allocation rules read."""
    info = {}
    for name in ("__gt_dims__", "__gt_origin__", "default_origin"):
        enter(Stage.GT, f"{name}")
        value, error = attempt(partial(getattr, obj, name, None))
        info[name] = Value("error", error=error) if error is not None else describe(value)
    return info


def _domain_starts(obj: Any) -> list[Value] | None:
    """Where the ranges of a `gt4py.next` field's domain start; None for other objects."""
    enter(Stage.GT, "domain")
    starts: list[Value] | None
    starts, _ = attempt(lambda: [describe(span.start) for span in obj.domain.ranges])
    return starts


def _naming_info(obj: Any) -> NamingInfo | None:
    """How a named array's accessor (xarray's `DataArray`) treats names (GT-11); None for others.

    `renamed` has the names after two dimensions have exchanged theirs (one: got another).
    """
    kind = type(obj)
    if not (hasattr(kind, "rename") and hasattr(kind, "dims") and hasattr(kind, "data")):
        return None
    enter(Stage.GT, "rename")
    info: NamingInfo
    info, error = attempt(lambda: _naming(obj))
    return None if error is not None else info


def _naming(obj: Any) -> NamingInfo:
    names = list(obj.dims)
    own = getattr(obj.data, "__gt_data_interface__", None)
    entries = own.values() if isinstance(own, dict) else ()
    has_names = any(entry.get("dims") is not None for entry in entries)
    info = NamingInfo(describe(tuple(names)), has_names)
    if names:
        other = names[1] if len(names) > 1 else f"not_{names[0]}"
        renamed = obj.rename({names[0]: other, **({other: names[0]} if len(names) > 1 else {})})
        value, error = attempt(lambda: renamed.__gt_data_interface__)
        info.renamed = RenamedInfo(error=error)
        if error is None:
            shown = [describe(entry.get("dims")) for entry in value.values()]
            info.renamed = RenamedInfo(wanted=describe(tuple(renamed.dims)), shown=shown)
    return info
