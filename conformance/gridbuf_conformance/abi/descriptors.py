"""What each interface says of an array, in one form: address, shape, byte strides, element type.

`of_array_interface`, `of_array_struct`, `of_buffer`, `of_dlpack`, `of_cuda_interface` and `of_entry` turn raw info (see `measure`) into a
`Descriptor`, or raise `Rejected` with the id of the rule that the info breaks. Both sides use them: the
measurer to decide which addresses may be followed at all, the judge to compare interfaces. They are pure,
and all arithmetic is on Python's unbounded integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

from ..info import (
    NONE,
    ArrayInfo,
    CapsuleInfo,
    Entries,
    EntryInfo,
    InterfaceInfo,
    RequestInfo,
    StructInfo,
    TensorInfo,
    Value,
    ViewInfo,
)
from . import elements, pep3118, typestr
from .device import LEGACY_STREAM, DeviceSpace
from .dlpack import CPU, CUDA, CUDA_MANAGED, FLAG_COPIED, FLAG_READONLY, HOST_READABLE, NARROW_CODES
from .elements import Element
from .memory import Memory

__all__ = [
    "ADDRESS_LIMIT",
    "SIZE_LIMIT_BYTES",
    "Descriptor",
    "Rejected",
    "best_buffer",
    "c_strides",
    "compact_strides",
    "descriptors_of",
    "is_contiguous",
    "of_array_interface",
    "of_array_struct",
    "of_buffer",
    "of_cuda_interface",
    "of_dlpack",
    "of_entry",
    "of_tensor",
    "readers",
    "sample_indices",
    "simple_view",
]

ADDRESS_LIMIT = 2**64
SIZE_LIMIT_BYTES = 2**63 - 1
"""The largest size that a consumer can hold in its signed 64-bit integers."""
_SAMPLE_LIMIT = 96


class Rejected(Exception):
    """Info that does not describe an array of whole bytes: `rule` is the broken id; None if it is not a failure."""

    def __init__(self, rule: str | None, why: str) -> None:
        super().__init__(why)
        self.rule = rule


@dataclass(frozen=True)
class Descriptor:
    """An array as one interface describes it; strides in bytes, `element` None where it is not known.

    `readonly` is None where the interface cannot say; `is_copy` is True where it says that this export is
    a copy; `device` is DLPack's (type, id), for the CUDA array interface (2, 0) until a driver says more;
    `stream` is the stream that the interface names, None for no pending work; `is_raw` marks memory exported as plain bytes,
    `is_indirect` arrays of pointers: neither is compared or walked.
    """

    interface: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    element: Element | None
    readonly: bool | None
    is_copy: bool = False
    device: tuple[int, int] = (CPU, 0)
    is_indirect: bool = False
    is_raw: bool = False
    stream: int | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def element_count(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
        return self.element_count * self.itemsize

    @property
    def is_empty(self) -> bool:
        return self.nbytes == 0

    @property
    def is_host(self) -> bool:
        """Whether the interface says that the host can read this memory."""
        return self.device[0] in HOST_READABLE

    @property
    def is_managed(self) -> bool:
        """Whether the driver moves this memory between host and device."""
        return self.device[0] == CUDA_MANAGED

    @property
    def sides(self) -> frozenset[str]:
        """The sides that can reach this memory, as the interface says: "host", "device" or both."""
        if self.device[0] == CPU:
            return frozenset({"host"})
        return frozenset({"host", "device"} if self.is_host else {"device"})

    def space_in(self, memory: Memory) -> Memory | DeviceSpace:
        """Where the array's bytes are read and written.

        Bytes of device memory are read as a consumer would: behind the work on the stream that the interface
        names, and at once where it names none. What both sides reach is left to the driver if there is one.
        """
        if self.is_host and (not self.is_managed or memory.devices.access is None):
            return memory
        stream = self.stream if self.interface == "CAI" else LEGACY_STREAM
        return DeviceSpace(memory.devices.access, stream)

    @cached_property
    def hull(self) -> tuple[int, int] | None:
        """Lowest and highest byte offset from `address` that any element reaches; None when empty."""
        if self.is_empty:
            return None
        reach = [stride * (extent - 1) for stride, extent in zip(self.strides, self.shape)]
        return sum(min(0, r) for r in reach), sum(max(0, r) for r in reach) + self.itemsize

    @property
    def span(self) -> tuple[int, int] | None:
        """The hull as absolute addresses."""
        return self.hull and (self.address + self.hull[0], self.address + self.hull[1])

    @property
    def meaningful_strides(self) -> tuple[int | None, ...]:
        """Strides with None where they carry no meaning: axes of extent ≤ 1, and empty arrays."""
        empty = 0 in self.shape
        return tuple(
            None if empty or extent <= 1 else stride
            for stride, extent in zip(self.strides, self.shape)
        )

    def offset_of(self, index: tuple[int, ...]) -> int:
        """Byte offset of an element from `address`."""
        return sum(i * stride for i, stride in zip(index, self.strides))

    def sample_offsets(self) -> list[int]:
        """Byte offsets of the elements that are read, in the order of `sample_indices`."""
        return [self.offset_of(index) for index in sample_indices(self.shape)]

    def is_contiguous(self, order: str) -> bool:
        """Whether the memory is contiguous in order "C" or "F"."""
        return is_contiguous(self.shape, self.strides, self.itemsize, order)


def compact_strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    """Byte strides of a contiguous array in order "C" or "F"."""
    axes = range(len(shape))
    strides, step = [0] * len(shape), itemsize
    for axis in axes if order == "F" else reversed(axes):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Byte strides of a C-contiguous array."""
    return compact_strides(shape, itemsize, "C")


def is_contiguous(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, order: str
) -> bool:
    """Whether the strides are those of a contiguous array, where they carry a meaning."""
    if 0 in shape:
        return True
    wanted = compact_strides(shape, itemsize, order)
    return all(
        extent <= 1 or stride == want for extent, stride, want in zip(shape, strides, wanted)
    )


def sample_indices(shape: tuple[int, ...], limit: int = _SAMPLE_LIMIT) -> list[tuple[int, ...]]:
    """The elements that are read of an array of this shape: all of a small one, a spread of a large one.

    First, last, and evenly spaced ones in row-major order, with a step coprime to most extents. The same
    shape always gives the same list.
    """
    count = prod(shape)
    if not count:
        return []  # `product` would first lay out every range, and extents next to a 0 have no bound
    if count <= limit:
        return list(product(*map(range, shape)))
    step = (count - 1) // (limit - 1)
    flats = sorted({*range(0, count, step | 1), count - 1})
    return [_unravelled(flat, shape) for flat in flats]


def _unravelled(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for extent in reversed(shape):
        flat, position = divmod(flat, extent)
        index.append(position)
    return tuple(reversed(index))


def descriptors_of(info: ArrayInfo) -> dict[str, Descriptor]:
    """The arrays that an object's interfaces describe: "AI", "AS", "PB", "DL", "CAI"; not the rejected ones."""
    found: dict[str, Descriptor] = {}
    for name, read in readers(info).items():
        try:
            found[name] = read()
        except Rejected:
            continue
    return found


def readers(info: ArrayInfo) -> dict[str, Callable[[], Descriptor]]:
    """For each interface that the object has, the function that reads its descriptor or rejects it."""
    found: dict[str, Callable[[], Descriptor]] = {}
    dictionary, struct, cuda, capsule = info.ai, info.struct, info.cai, info.main
    if dictionary is not None and dictionary.error is None:
        found["AI"] = lambda: of_array_interface(dictionary, info.pb)
    if struct is not None and struct.error is None:
        found["AS"] = lambda: of_array_struct(struct)
    granted = best_buffer(info.pb)
    if granted is not None:
        found["PB"] = lambda: of_buffer(granted[1])
    if capsule is not None and capsule.error is None:
        found["DL"] = lambda: of_dlpack(capsule)
    if cuda is not None and cuda.error is None:
        found["CAI"] = lambda: of_cuda_interface(cuda)
    return found


# -- array interface -----------------------------------------------------------------------------------


def of_array_interface(info: InterfaceInfo, buffer: Mapping[str, RequestInfo] | None) -> Descriptor:
    """The descriptor of an `__array_interface__` dict; `buffer` holds the info on the object's own buffer.

    Raises `Rejected` naming the AI rule that the dict breaks.
    """
    fields = _present(info.fields, ("shape", "typestr", "version"), _AI)
    raw = fields.get("data", NONE).t != "tuple"
    array = _of_fields("AI", fields, _AI, lambda: _interface_data(info, fields, buffer))
    return replace(array, is_raw=raw)


def of_cuda_interface(info: InterfaceInfo) -> Descriptor:
    """The descriptor of a `__cuda_array_interface__` dict; raises `Rejected` naming the CAI rule that it breaks.

    Before version 3 there was no word on streams: everything is ordered behind the legacy default stream.
    """
    fields = _present(info.fields, ("shape", "typestr", "data", "version"), _CAI)
    array = _of_fields("CAI", fields, _CAI, lambda: _address_and_flag(fields["data"], _CAI))
    version, stream = fields["version"], fields.get("stream", NONE)
    named = stream.value if stream.t == "int" and stream.value else None
    has_streams = version.t == "int" and version.value >= 3
    return replace(array, device=(CUDA, 0), stream=named if has_streams else LEGACY_STREAM)


def of_entry(info: EntryInfo, key: str) -> Descriptor:
    """The descriptor of one entry of `__gt_data_interface__`, `key` being "None" or "gpu".

    Raises `Rejected` with GT-02 for an entry that describes no array.
    """
    fields = _present(info.fields, ("shape", "typestr", "data"), _GT)
    array = _of_fields("GT", fields, _GT, lambda: _address_and_flag(fields["data"], _GT))
    stream = fields.get("stream", NONE)
    named = stream.value if stream.t == "int" and stream.value else None
    if key == "None":
        return array
    return replace(array, interface="CAI", device=(CUDA, 0), stream=named or LEGACY_STREAM)


@dataclass(frozen=True)
class _DictRules:
    """Which rule each mistake in an array interface dict breaks."""

    is_dict: str
    keys: str
    shape: str
    grammar: str
    sizes: str
    bits: str
    total: str
    strides: str
    data: str
    address: str


_AI = _DictRules(
    *("AI-01", "AI-02", "AI-03", "AI-06", "AI-07", "AI-10", "AI-05", "AI-21", "AI-14", "AI-20")
)
_CAI = _DictRules(
    *("CAI-01", "CAI-02", "CAI-03", "CAI-04", "CAI-04"),
    *("CAI-04", "CAI-12", "CAI-11", "CAI-05", "CAI-07"),
)
_GT = _DictRules("GT-01", *("GT-02",) * 9)


def _present(
    fields: dict[str, Value] | None, keys: tuple[str, ...], ids: _DictRules
) -> dict[str, Value]:
    if fields is None:
        raise Rejected(ids.is_dict, "the attribute is not a dict")
    for key in keys:
        if key not in fields:
            raise Rejected(ids.keys, f"the key {key!r} is missing")
    return fields


def _of_fields(
    interface: str,
    fields: dict[str, Value],
    ids: _DictRules,
    data: Callable[[], tuple[int, bool]],
) -> Descriptor:
    """What the array interfaces have in common: shape, typestr, strides, and where `data` says the memory is."""
    shape = _extents(fields["shape"], ids.shape)
    parsed = _typestr(fields["typestr"], ids)
    itemsize = parsed.itemsize
    if itemsize is None:
        raise Rejected(ids.bits, "elements are bits")
    if prod(shape) * itemsize > SIZE_LIMIT_BYTES:
        raise Rejected(ids.total, "the total size cannot be represented")
    strides = _interface_strides(fields.get("strides"), shape, itemsize, ids.strides)
    address, readonly = data()
    if not address and prod(shape) * itemsize:
        raise Rejected(ids.address, "the address is 0")
    element = elements.of_typestr(parsed)
    return Descriptor(interface, address, shape, strides, itemsize, element, readonly)


def _extents(value: Value, rule: str) -> tuple[int, ...]:
    if value.t != "tuple" or any(item.t != "int" or item.value < 0 for item in value.items):
        raise Rejected(rule, "shape is not a tuple of non-negative integers")
    return tuple(item.value for item in value.items)


def _typestr(value: Value, ids: _DictRules) -> typestr.Typestr:
    if value.t != "str":
        raise Rejected(ids.grammar, "typestr is not a string")
    try:
        parsed = typestr.parse(value.value)
    except typestr.BadTypestr as error:
        raise Rejected(ids.grammar, str(error)) from None
    sizes = typestr.legal_sizes(parsed.kind)
    if sizes is not None and parsed.number not in sizes:
        raise Rejected(ids.sizes, f"{parsed.number} is not a size of kind {parsed.kind}")
    return parsed


def _interface_strides(
    value: Value | None, shape: tuple[int, ...], itemsize: int, rule: str
) -> tuple[int, ...]:
    if value is None or value.t == "none":
        return c_strides(shape, itemsize)
    if value.t != "tuple" or len(value.items) != len(shape):
        raise Rejected(rule, "strides is not a tuple of ndim integers")
    if any(item.t != "int" for item in value.items):
        raise Rejected(rule, "strides holds something else than integers")
    return tuple(item.value for item in value.items)


def _interface_data(
    info: InterfaceInfo, fields: dict[str, Value], buffer: Mapping[str, RequestInfo] | None
) -> tuple[int, bool]:
    data = fields.get("data", NONE)
    if data.t == "tuple":
        return _address_and_flag(data, _AI)
    own = data.t == "none"
    simple = simple_view(buffer if own else info.data_buffer)
    if simple is None:
        raise Rejected("AI-17" if own else "AI-16", "no buffer of plain bytes can be had")
    offset = fields.get("offset", Value("int", 0))
    if offset.t != "int" or offset.value < 0:
        raise Rejected("AI-18", "offset is not a non-negative integer")
    return simple.buf + offset.value, bool(simple.readonly)


def _address_and_flag(data: Value, ids: _DictRules) -> tuple[int, bool]:
    items = data.items if data.t == "tuple" else []
    if len(items) != 2 or items[0].t != "int" or items[0].value < 0:
        raise Rejected(ids.data, "data is no (address, read-only flag)")
    return items[0].value, _truth(items[1])


def _truth(value: Value) -> bool:
    if value.t in ("int", "bool", "str", "float", "bytes"):
        return bool(value.value)
    return value.t != "none" and value.length != 0


# -- array struct --------------------------------------------------------------------------------------


def of_array_struct(info: StructInfo) -> Descriptor:
    """The descriptor of a `PyArrayInterface`; raises `Rejected` naming the AS rule that it breaks."""
    if not info.capsule or info.name is not None or info.unmapped:
        raise Rejected("AS-01", "no unnamed capsule with a struct behind it")
    if info.two != 2:
        raise Rejected("AS-02", "the first field is not 2")
    if info.nd < 0 or info.itemsize <= 0:
        raise Rejected("AS-03", "nd or itemsize out of range")
    kind = elements.TYPESTR_KINDS.get(info.typekind)
    if kind is None:
        raise Rejected("AS-03", f"kind {info.typekind!r} is unknown")
    # A clear bit claims nothing: without 0x200 the byte order is not known.
    order = elements.NATIVE_ORDER if info.flags & 0x200 and info.itemsize > 1 else "|"
    element = None if kind == "bits" else Element(kind, info.itemsize, order)
    shape = _entries(info.shape, info.nd, "AS-04")
    strides = _entries(info.strides, info.nd, "AS-04")
    if any(extent < 0 for extent in shape) or (not info.data and 0 not in shape):
        raise Rejected("AS-04", "negative extent, or no memory")
    readonly = not info.flags & 0x400
    return Descriptor("AS", info.data, shape, strides, info.itemsize, element, readonly)


def _entries(value: Entries, ndim: int, rule: str) -> tuple[int, ...]:
    if ndim == 0:
        return ()
    if not isinstance(value, list):
        raise Rejected(rule, "an array of ndim entries is missing or not mapped")
    return tuple(value)


# -- buffer protocol -----------------------------------------------------------------------------------

_BEST_FIRST = ("FULL_RO", "RECORDS_RO", "INDIRECT", "STRIDES", "ND|FORMAT", "ND", "SIMPLE")


def best_buffer(requests: Mapping[str, RequestInfo]) -> tuple[str, ViewInfo] | None:
    """The most telling request that was granted: (its name, the view's info)."""
    for name in _BEST_FIRST:
        request = requests.get(name)
        if request is not None and request.view is not None:
            return name, request.view
    return None


def simple_view(requests: Mapping[str, RequestInfo] | None) -> ViewInfo | None:
    """The view of plain bytes, if that request was granted."""
    request = (requests or {}).get("SIMPLE")
    return None if request is None else request.view


def of_buffer(view: ViewInfo) -> Descriptor:
    """The descriptor of one granted view; raises `Rejected` naming the PB rule that it breaks."""
    if not 0 <= view.ndim <= 64:
        raise Rejected("PB-16", "ndim out of range")
    if view.itemsize < 0 or view.len < 0:
        raise Rejected("PB-17", "negative len or itemsize")
    shape = _buffer_shape(view)
    if isinstance(view.strides, str):
        raise Rejected("PB-25", "strides is not mapped")
    strides = c_strides(shape, view.itemsize) if view.strides is None else tuple(view.strides)
    if not view.buf and prod(shape) * view.itemsize:
        raise Rejected("XA-10", "buf is NULL")
    indirect = isinstance(view.suboffsets, list) and any(s >= 0 for s in view.suboffsets)
    return Descriptor(
        "PB",
        view.buf,
        shape,
        strides,
        view.itemsize,
        _buffer_element(view),
        bool(view.readonly),
        is_indirect=indirect,
    )


def _buffer_shape(view: ViewInfo) -> tuple[int, ...]:
    shape = view.shape
    if isinstance(shape, str):
        raise Rejected("PB-25", "shape is not mapped")
    if shape is None:
        if view.ndim == 0 and view.itemsize == view.len:
            return ()
        return (view.len // view.itemsize if view.itemsize else 0,)
    if any(extent < 0 for extent in shape):
        raise Rejected("PB-17", "negative extent")
    return tuple(shape)


def _buffer_element(view: ViewInfo) -> Element | None:
    if not isinstance(view.format, str):
        return None
    try:
        return elements.of_format(pep3118.parse(view.format), view.itemsize)
    except pep3118.BadFormat:
        return None


# -- DLPack --------------------------------------------------------------------------------------------


def of_dlpack(info: CapsuleInfo) -> Descriptor:
    """The descriptor of one capsule; raises `Rejected` naming the DL or DP rule that it breaks."""
    if not info.capsule or not info.is_tensor:
        raise Rejected("DL-01" if info.unmapped else "DP-03", "no DLPack struct to read")
    version = info.version
    if version is not None and version[0] != 1:
        raise Rejected("DL-02", "unknown major version")
    flags = info.flags
    return replace(
        of_tensor(info, version),
        readonly=None if flags is None else bool(flags & FLAG_READONLY),
        is_copy=bool(flags and flags & FLAG_COPIED),
    )


def of_tensor(info: TensorInfo, version: list[int] | None = None) -> Descriptor:
    """The descriptor of a bare `DLTensor`, which says nothing of writing; `version` is that of its capsule."""
    ndim = info.ndim
    if not 0 <= ndim <= 1024:
        raise Rejected("DL-07", "ndim out of range")
    shape = _entries(info.shape, ndim, "DL-07")
    if any(extent < 0 for extent in shape):
        raise Rejected("DL-07", "negative extent")
    code, bits, lanes = info.dtype
    element = elements.of_dlpack(code, bits, lanes)
    if code in NARROW_CODES and bits > 0 and bits * lanes % 8:
        raise Rejected(None, "elements of less than a byte, or of a byte and a part")
    if element is None or lanes < 1 or bits < 1:
        raise Rejected("DL-15", "the type is unknown or has no whole number of bytes")
    strides = _dlpack_strides(info, version, shape, element.itemsize)
    if info.byte_offset >= 2**63:
        raise Rejected("DL-24", "byte_offset is negative")
    if not info.data and 0 not in shape:
        raise Rejected("DL-27" if ndim else "DL-13", "data is NULL")
    address = info.data + info.byte_offset
    device = (info.device[0], info.device[1])
    return Descriptor("DL", address, shape, strides, element.itemsize, element, None, device=device)


def _dlpack_strides(
    info: TensorInfo, version: list[int] | None, shape: tuple[int, ...], itemsize: int
) -> tuple[int, ...]:
    if not shape:
        return ()
    strides = info.strides
    if strides is None:
        if version is not None and tuple(version) >= (1, 2):
            raise Rejected("DL-08", "strides is NULL")
        return c_strides(shape, itemsize)
    return tuple(stride * itemsize for stride in _entries(strides, len(shape), "DL-07"))
