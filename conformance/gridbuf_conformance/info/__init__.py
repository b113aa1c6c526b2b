"""What a worker measures, as dataclasses that survive JSON: the measurer fills them, the judge reads them.

`to_json` leaves out fields that are None, `from_json` restores the defaults, so that a field that was not measured
costs nothing on the wire. A field named `error` has the exception that was raised instead of an answer. `Entries` are the
integers behind a pointer: None for NULL, `UNMAPPED` where no memory is mapped.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = [
    "NONE",
    "UNMAPPED",
    "ArrayInfo",
    "BufferLifeInfo",
    "CapsuleInfo",
    "CapsuleLifeInfo",
    "ConsumerObservation",
    "ConsumptionInfo",
    "DataInterfaceInfo",
    "DeviceInfo",
    "DriverInfo",
    "DropInfo",
    "EntryInfo",
    "Entries",
    "ErrorInfo",
    "ExchangeInfo",
    "ExportInfo",
    "GrowthInfo",
    "HookInfo",
    "InterfaceInfo",
    "LifeInfo",
    "LossInfo",
    "MappingInfo",
    "MethodInfo",
    "NamingInfo",
    "Observation",
    "PendingInfo",
    "PointerInfo",
    "ProbeInfo",
    "PythonBufferInfo",
    "ReleaseInfo",
    "RequestInfo",
    "ResizeInfo",
    "StreamInfo",
    "StructInfo",
    "TableLookInfo",
    "TensorCounts",
    "TensorInfo",
    "TwoViewsInfo",
    "Value",
    "ViewInfo",
    "from_json",
    "to_json",
]

UNMAPPED = "unmapped"
Entries = Union[list[int], str, None]


@dataclass
class ErrorInfo:
    """An exception: its type, the names of all its bases, and its text without addresses.

    `ordinary` says whether it is an Exception, `causes` names the types that led to it.
    """

    type: str
    mro: list[str] = field(default_factory=list)
    text: str = ""
    ordinary: bool = True
    causes: list[str] = field(default_factory=list)


@dataclass
class Value:
    """A Python value with its type as a tag, because the rules turn on it (`values.describe`).

    `t` is "int", "bool", "str", "float", "bytes" (with `value`), "none", "tuple" or "list" (with `items`
    and `length`), "dict" (with `keys`), "error", or "other", with the name of its `type`.
    """

    t: str
    value: Any = None
    items: list[Value] = field(default_factory=list)
    length: int | None = None
    keys: list[str] | None = None
    type: str | None = None
    callable: bool = False
    error: ErrorInfo | None = None


NONE = Value("none")


@dataclass
class ProbeInfo:
    """What `hasattr` answered."""

    present: bool = False
    error: ErrorInfo | None = None


@dataclass
class ViewInfo:
    """The fields of a granted `Py_buffer`; `obj` is "self", "other" or None (NULL)."""

    buf: int = 0
    obj: str | None = None
    len: int = 0
    itemsize: int = 0
    readonly: int = 0
    ndim: int = 0
    format: str | None = None
    format_unmapped: bool = False
    shape: Entries = None
    strides: Entries = None
    suboffsets: Entries = None


@dataclass
class RequestInfo:
    """One buffer request: the `view` that was granted, or the refusal and whether `view.obj` is NULL."""

    view: ViewInfo | None = None
    error: ErrorInfo | None = None
    obj_is_null: bool = True


@dataclass
class InterfaceInfo:
    """An array interface dict, NumPy's or CUDA's: its value and, for a dict, its described items.

    A `data` object adds its buffer's requests, a `mask` object its own interface.
    """

    error: ErrorInfo | None = None
    value: Value = field(default_factory=lambda: NONE)
    fields: dict[str, Value] | None = None
    data_buffer: dict[str, RequestInfo] = field(default_factory=dict)
    mask_interface: InterfaceInfo | None = None


@dataclass
class StructInfo:
    """`__array_struct__`: the capsule, and the struct behind it where it is mapped."""

    error: ErrorInfo | None = None
    capsule: bool = False
    name: str | None = None
    unmapped: bool = False
    two: int = 0
    nd: int = 0
    typekind: str = ""
    itemsize: int = 0
    flags: int = 0
    data: int = 0
    has_descr_pointer: bool = False
    shape: Entries = None
    strides: Entries = None
    descr: Value = field(default_factory=lambda: NONE)


@dataclass
class TensorInfo:
    """A `DLTensor`; `dtype` is (code, bits, lanes)."""

    data: int = 0
    device: list[int] = field(default_factory=lambda: [0, 0])
    ndim: int = 0
    dtype: list[int] = field(default_factory=lambda: [0, 8, 1])
    byte_offset: int = 0
    shape: Entries = None
    strides: Entries = None

    @property
    def extents(self) -> list[int]:
        """The entries of the shape; none where it is NULL or not mapped."""
        return self.shape if isinstance(self.shape, list) else []


@dataclass
class CapsuleInfo(TensorInfo):
    """One answer of `__dlpack__`, or of a function of the exchange table.

    `deleter` is "NULL", "executable" or "not executable"; None where no struct could be read. The fields
    from `result` on are those of the exchange table's calls.
    """

    error: ErrorInfo | None = None
    capsule: bool = False
    name: str | None = None
    type: str = ""
    unmapped: bool = False
    version: list[int] | None = None
    flags: int | None = None
    deleter: str | None = None
    result: int | None = None
    value: int | None = None
    references: list[int] | None = None
    reported: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    device_asked: list[int] = field(default_factory=list)
    uncounted: bool = False
    null: bool = False
    own_type: bool | None = None
    calls_after_refusal: int = 0
    calls_while_held: int = 0
    calls: int = 0

    @property
    def is_tensor(self) -> bool:
        """Whether there is a struct that could be read."""
        return self.deleter is not None


@dataclass
class DeviceInfo:
    """`__dlpack_device__()` asked twice; `integers` where both entries are ints or such Enum members."""

    error: ErrorInfo | None = None
    first: Value = field(default_factory=lambda: NONE)
    second: Value = field(default_factory=lambda: NONE)
    integers: list[int] | None = None


@dataclass
class TableLookInfo:
    """Whether a second look found the table at one address, with one content."""

    same_address: bool = False
    same_content: bool = False


@dataclass
class ExchangeInfo:
    """DLPack's C exchange table: its capsule, its header, and what each of its functions did."""

    error: ErrorInfo | None = None
    on_type: bool = True
    capsule: bool = False
    type: str = ""
    name: str | None = None
    unmapped: bool = False
    version: list[int] = field(default_factory=lambda: [0, 0])
    chain: int | str = 0
    entries: dict[str, str] = field(default_factory=dict)
    export: CapsuleInfo | None = None
    bare: CapsuleInfo | None = None
    imported: CapsuleInfo | None = None
    allocated: CapsuleInfo | None = None
    allocation_refused: CapsuleInfo | None = None
    stream: CapsuleInfo | None = None
    again: TableLookInfo = field(default_factory=TableLookInfo)


@dataclass
class HookInfo:
    """A hook of a data interface's entry: whether it can be called, and what calling it raised."""

    callable: bool = False
    error: ErrorInfo | None = None


@dataclass
class EntryInfo:
    """One entry of `__gt_data_interface__`; `fields` is None for anything but a dict."""

    value: Value = field(default_factory=lambda: NONE)
    fields: dict[str, Value] | None = None
    hooks: dict[str, HookInfo] = field(default_factory=dict)
    walk: str | None = None

    def item(self, key: str) -> Value:
        """A described item; None where there is none."""
        return (self.fields or {}).get(key, NONE)


@dataclass
class DataInterfaceInfo:
    """`__gt_data_interface__`; `entries` is None for anything but a dict."""

    error: ErrorInfo | None = None
    value: Value = field(default_factory=lambda: NONE)
    keys: list[Value] = field(default_factory=list)
    entries: dict[str, EntryInfo] | None = None
    passed_on: dict[str, bool | None] = field(default_factory=dict)


@dataclass
class RenamedInfo:
    """The names of a renamed array: its own, and those that each entry shows."""

    error: ErrorInfo | None = None
    wanted: Value = field(default_factory=lambda: NONE)
    shown: list[Value] = field(default_factory=list)


@dataclass
class NamingInfo:
    """How the accessor of a named array deals with names (GT-11)."""

    dims: Value = field(default_factory=lambda: NONE)
    data_has_names: bool = False
    renamed: RenamedInfo | None = None


@dataclass
class MethodInfo:
    """What one call of `__buffer__` or `memoryview` came to."""

    error: ErrorInfo | None = None
    value: Value = field(default_factory=lambda: NONE)
    is_memoryview: bool = False
    readonly: bool = False


@dataclass
class ReleaseInfo:
    """How an own `__release_buffer__` takes being called: the types that it raised, and the type of the
    exception that was in flight afterwards."""

    raised: list[str] = field(default_factory=list)
    in_flight: str | None = None


@dataclass
class PythonBufferInfo:
    """`memoryview(obj)`, a released memoryview, `__release_buffer__`, and `__buffer__` by request."""

    memoryview: MethodInfo = field(default_factory=MethodInfo)
    after_release: MethodInfo | None = None
    release: ReleaseInfo | None = None
    methods: dict[str, MethodInfo] = field(default_factory=dict)


@dataclass
class PointerInfo:
    """The driver's answer on an address: device type and id of DLPack, and whether host and device can access it."""

    type: int = 0
    id: int = 0
    host: bool = False
    device: bool = False


@dataclass
class MappingInfo:
    """Whether the first element is there, all of the array readable, all of it writable."""

    first: bool = True
    read: bool = True
    write: bool = True
    pointer: PointerInfo | None = None


@dataclass
class StreamInfo:
    """Whether the stream that an interface names is alive, also when its dict is gone."""

    live: bool = False
    live_after: bool = True
    error: str | None = None


@dataclass
class ArrayInfo:
    """Everything measured of one array. `error` and `unsupported` say why there is none.

    `main` is the DLPack export that was held, `dlpack` every other call, `walk` the sampled elements by
    interface, `late` whether device content changed once the device was at rest.
    """

    type: str = ""
    probes: dict[str, ProbeInfo] | None = None
    ai: InterfaceInfo | None = None
    struct: StructInfo | None = None
    cai: InterfaceInfo | None = None
    gt_data: DataInterfaceInfo | None = None
    pb: dict[str, RequestInfo] = field(default_factory=dict)
    python: PythonBufferInfo = field(default_factory=PythonBufferInfo)
    device: DeviceInfo | None = None
    main: CapsuleInfo | None = None
    dlpack: dict[str, CapsuleInfo] = field(default_factory=dict)
    exchange: ExchangeInfo | None = None
    stream: StreamInfo | None = None
    mapping: dict[str, MappingInfo] = field(default_factory=dict)
    walk: dict[str, str | None] = field(default_factory=dict)
    packed: str | None = None
    poke: dict[str, bool] | None = None
    standing: dict[str, bool | None] = field(default_factory=dict)
    late: dict[str, bool] = field(default_factory=dict)
    device_error: str | None = None
    copied: CapsuleInfo | None = None
    error: ErrorInfo | None = None
    unsupported: str | None = None
    operation: list[Any] | None = None
    way: str = ""

    @property
    def device_pair(self) -> list[int] | None:
        """DLPack's (device type, id) as `__dlpack_device__` states it; None where it does not."""
        return None if self.device is None else self.device.integers


@dataclass
class TwoViewsInfo:
    """Two open views of one buffer, one of which was released."""

    refused: bool = False
    unchanged: bool | None = None
    same_address: bool | None = None


@dataclass
class BufferLifeInfo:
    """Reference counts around eight requests, and two views in both release orders."""

    references: list[int] = field(default_factory=lambda: [0, 0])
    two_views: list[TwoViewsInfo] = field(default_factory=list)


@dataclass
class GrowthInfo:
    """(live bytes, live blocks) gained in each round of repetitions."""

    iterations: int = 0
    rounds: list[list[int]] = field(default_factory=list)


@dataclass
class CapsuleLifeInfo:
    """Counted calls of deleters, and what repetition leaves behind; None where it was not tried."""

    error: ErrorInfo | None = None
    deleter: bool = False
    unconsumed_calls: int = 0
    destructor_called_deleter: bool | None = None
    name: str | None = None
    name_after: str | None = None
    unconsumed_growth: GrowthInfo = field(default_factory=GrowthInfo)
    consumed_growth: GrowthInfo | None = None
    foreign_thread: bool = False
    references: list[int] = field(default_factory=lambda: [0, 0])


@dataclass
class LossInfo:
    """A survivor whose memory was gone, and the drop that preceded."""

    dropped: str
    survivor: str


@dataclass
class DropInfo:
    """One order in which holders were dropped: memory that was lost, descriptions that changed."""

    order: list[str]
    lost: list[LossInfo] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


@dataclass
class ResizeInfo:
    """A resizing method called while memory was held; `refused` is the type of the error."""

    refused: str | None = None
    mapped: bool = True
    same_address: bool = True
    allowed_after: bool | None = None


@dataclass
class LifeInfo:
    """Which objects keep memory alive and which free it; None where it was not tried."""

    dict_mapped: bool | None = None
    cai_references: list[int] | None = None
    buffer: BufferLifeInfo | None = None
    capsule: CapsuleLifeInfo | None = None
    drops: list[DropInfo] | None = None
    resizes: dict[str, dict[str, ResizeInfo]] = field(default_factory=dict)


@dataclass
class PendingInfo:
    """Whether each way out of an object with pending work gave the bytes of that work (`streams`)."""

    error: str | None = None
    seen: dict[str, bool | None] = field(default_factory=dict)


@dataclass
class DriverInfo:
    """Which driver answered for device memory, or why none did."""

    name: str | None = None
    reason: str = ""


@dataclass
class Observation:
    """All that was measured of one product: it, its views, a second product, and their life.

    `gt4py` holds GT4Py's attributes by name. `live` marks an object without a plan, `has_memory` is False where the
    producer says that its objects have no memory to export.
    """

    type: str
    pointer_bytes: int
    map_known: bool
    live: bool
    has_memory: bool = True
    root: ArrayInfo = field(default_factory=ArrayInfo)
    repeated: list[ArrayInfo] = field(default_factory=list)
    gt4py: dict[str, Value] = field(default_factory=dict)
    domain_starts: list[Value] | None = None
    naming: NamingInfo | None = None
    array_attribute: InterfaceInfo | None = None
    view: ArrayInfo | None = None
    second: ArrayInfo | None = None
    life: LifeInfo | None = None
    pending: PendingInfo | None = None
    driver: DriverInfo = field(default_factory=DriverInfo)
    switched_off: list[str] = field(default_factory=list)


# -- consumers ---------------------------------------------------------------------------------


@dataclass
class TensorCounts:
    """What became of one tensor that an exporter handed out; `name` and `armed` while its capsule is held."""

    versioned: bool = False
    deleter: bool = False
    deleter_calls: int = 0
    destructor_calls: int = 0
    metadata_unchanged: bool = True
    name: str | None = None
    armed: bool = False


@dataclass
class ExportInfo:
    """The observations of one exporter up to one moment; an interface fills the fields that it has.

    `calls` are the keywords of each `__dlpack__` call, `free` says whether the memory was given back.
    """

    calls: list[dict[str, Value]] = field(default_factory=list)
    handed_out: list[TensorCounts] = field(default_factory=list)
    native_deleter: bool = False
    table_calls: list[str] = field(default_factory=list)
    owned: list[TensorCounts] = field(default_factory=list)
    reads: int = 0
    exported: list[ExportInfo] | None = None
    is_open: bool | None = None
    destroyed: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    releases: list[int] = field(default_factory=list)
    metadata_unchanged: bool = True
    method_grants: int = 0
    method_releases: list[bool] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    has_hooks: bool = False
    free: bool = False


@dataclass
class LookInfo:
    """One look at a result with its library's own eyes (`measure.eyes`): the shape and the texts of the sampled
    numbers, or the signal of which the process died. All None: nothing was to be seen."""

    shape: list[int] | None = None
    values: list[str] | None = None
    died: str | None = None


@dataclass
class CallInfo:
    """The call of one of several threads: what it raised, or what it returned."""

    error: ErrorInfo | None = None
    result: ArrayInfo | None = None


@dataclass
class ConsumptionInfo:
    """One call of a consumer: what it raised or returned, and what the exporter saw.

    `returned`: when the call ended; `kept`: when the suite had dropped the exporter, and the result lived;
    `after`: when the result was gone, too. `block` is the memory's (low, high). `looks`: the result as its own
    library sees it. `keywords`: the arguments of the call beyond the exporter. `calls`: of several threads, each;
    the other fields are then about the first one that took the export.
    """

    error: ErrorInfo | None = None
    asked: bool = False
    block: list[int] = field(default_factory=lambda: [0, 0])
    gives_bytes: bool = False
    unchanged: bool = True
    result: ArrayInfo | None = None
    looks: dict[str, LookInfo] = field(default_factory=dict)
    keywords: dict[str, bool | str | None] = field(default_factory=dict)
    calls: list[CallInfo] = field(default_factory=list)
    returned: ExportInfo = field(default_factory=ExportInfo)
    kept: ExportInfo = field(default_factory=ExportInfo)
    after: ExportInfo = field(default_factory=ExportInfo)


@dataclass
class ConsumerObservation:
    """One export in front of a consumer, and its plain form where that was asked.

    `others` are further calls with the same export, each with one keyword of the consumer.
    """

    export: str
    main: ConsumptionInfo
    control: ConsumptionInfo | None = None
    others: list[ConsumptionInfo] = field(default_factory=list)


# -- JSON ----------------------------------------------------------------------------------------

_T = TypeVar("_T")


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def to_json(info: Any) -> Any:
    """Plain values of an info: dataclasses become dicts without their None fields."""
    if isinstance(info, (str, int, float)) or info is None:
        return info
    if isinstance(info, (list, tuple)):
        return [to_json(one) for one in info]
    if isinstance(info, Mapping):
        return {key: to_json(one) for key, one in info.items()}
    kind: Any = type(info)
    found = {name: getattr(info, name) for name in _names(kind)}
    return {name: to_json(one) for name, one in found.items() if one is not None}


def from_json(kind: Callable[..., _T], raw: Mapping[str, Any]) -> _T:
    """The info of a class that `to_json` wrote; raises TypeError for a field that the class has not."""
    readers = _readers(kind)
    return kind(
        **{
            name: readers[name](one) if name in readers and one is not None else one
            for name, one in raw.items()
        }
    )


@cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    """How the fields that hold infos are read; other fields are the values of the JSON."""
    hints = get_type_hints(kind)
    found = {name: _reader(hints[name]) for name in _names(kind)}
    return {name: reader for name, reader in found.items() if reader is not None}


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda raw: from_json(hint, raw)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        some = [reader for reader in map(_reader, arguments) if reader is not None]
        return some[0] if len(some) == 1 else None
    inner = _reader(arguments[-1]) if origin in (list, dict) else None
    if inner is None:
        return None
    if origin is list:
        return lambda raw: [inner(one) for one in raw]
    return lambda raw: {key: inner(one) for key, one in raw.items()}
