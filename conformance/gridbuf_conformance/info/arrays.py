"""What one array says of itself through each interface, and what its memory has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

__all__ = [
    "ArrayInfo",
    "CapsuleInfo",
    "DataInterfaceInfo",
    "DeviceInfo",
    "Entries",
    "EntryInfo",
    "ErrorInfo",
    "ExchangeInfo",
    "HookInfo",
    "InterfaceInfo",
    "MappingInfo",
    "MethodInfo",
    "NONE",
    "NamingInfo",
    "PointerInfo",
    "ProbeInfo",
    "PythonBufferInfo",
    "ReleaseInfo",
    "RenamedInfo",
    "RequestInfo",
    "StreamInfo",
    "StreamObjectInfo",
    "StructInfo",
    "TableLookInfo",
    "TensorInfo",
    "UNMAPPED",
    "Value",
    "ViewInfo",
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

    `t` is "int", "bool", "str", "float", "bytes" (with `value`), "none", "tuple" or "list" (with
    `items` and `length`), "dict" (with `keys`), "error", or "other", with the name of its `type`.
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
    """A buffer request: the granted `view`, or the refusal and whether `view.obj` is NULL."""

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

    `deleter` is "NULL", "executable" or "not executable"; None where no struct could be read. The
    fields from `result` on are those of the exchange table's calls.
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
    calls_while_held: int = 0
    calls: int = 0

    @property
    def is_tensor(self) -> bool:
        """Whether there is a struct that could be read."""
        return self.deleter is not None


@dataclass
class DeviceInfo:
    """`__dlpack_device__()` asked twice; `integers`: both entries are ints or such Enums."""

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
    later_major: CapsuleInfo | None = None
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
    """How an own `__release_buffer__` takes being called: the types that it raised, and the type of
    the exception that was in flight afterwards."""

    raised: list[str] = field(default_factory=list)
    in_flight: str | None = None


@dataclass
class PythonBufferInfo:
    """`memoryview(obj)`, also released; `__release_buffer__`, and `__buffer__` by request."""

    memoryview: MethodInfo = field(default_factory=MethodInfo)
    after_release: MethodInfo | None = None
    release: ReleaseInfo | None = None
    methods: dict[str, MethodInfo] = field(default_factory=dict)


@dataclass
class PointerInfo:
    """The driver on an address: DLPack's device type and id, and whether the device has access."""

    type: int = 0
    id: int = 0
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
class StreamObjectInfo:
    """`__cuda_stream__` asked twice, and whether its stream was alive after each call; a handle
    that a consumer returned is (None, handle)."""

    is_method: bool = True
    error: ErrorInfo | None = None
    pair: Value = field(default_factory=lambda: NONE)
    again: Value = field(default_factory=lambda: NONE)
    live: bool | None = None
    live_after: bool | None = None

    @property
    def handle(self) -> int | None:
        """The second value, if it is an int."""
        items = self.pair.items
        return items[1].value if len(items) == 2 and items[1].t == "int" else None


@dataclass
class ArrayInfo:
    """Everything measured of one array. `error` says why there is none.

    `main` is the DLPack export that was held, `dlpack` every other call, `walk` the sampled
    elements by interface, `late` whether device content changed once the device was at rest, `free`
    the interfaces whose memory an allocator gave away while their exports were held.
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
    cuda_stream: StreamObjectInfo | None = None
    mapping: dict[str, MappingInfo] = field(default_factory=dict)
    walk: dict[str, str | None] = field(default_factory=dict)
    packed: str | None = None
    poke: dict[str, bool] | None = None
    free: list[str] = field(default_factory=list)
    standing: dict[str, bool | None] = field(default_factory=dict)
    late: dict[str, bool] = field(default_factory=dict)
    device_error: str | None = None
    error: ErrorInfo | None = None

    @property
    def device_pair(self) -> list[int] | None:
        """DLPack's (device type, id) as `__dlpack_device__` states it; None where it does not."""
        return None if self.device is None else self.device.integers
