"""Array interface exports: an object whose `__array_interface__` gives a dict over a block.

The property builds a new dict on every access, as NumPy's own does, and the object owns the memory:
when the last reference to it is gone the memory counts as given back. A variant edits the dict, or
raises in its place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...info import ExportInfo
from ...plan import Plan
from ...plan.dtypes import DTYPES
from ...plan.producer import Capabilities
from ...exports import plans
from ..buffer_protocol.answers import Answer, BytesExporter, ObservedBuffer
from ...exports.export import (
    PLAIN,
    Export,
    Interface,
    ObservedExport,
    Variant,
    fits,
    strided,
    variants_of,
)
from ...exports.memory import Block

_ROOM_BYTES = 64


def typestr_of(plan: Plan) -> str:
    """The typestr of a plan's element type and byte order."""
    written = plan.dtype_info.typestr or ""
    if plan.byteorder == "swapped" and written[:1] in ("<", ">"):
        return (">" if written[0] == "<" else "<") + written[1:]
    return written


def record_fields(plan: Plan) -> list[tuple[Any, ...]]:
    """The record type as `descr` lists it: its fields, and padding as fields without a name."""
    entries: dict[int, tuple[Any, ...]] = {
        offset: ("", f"|V{width}") for offset, width in plan.dtype_info.padding
    }
    for name, kind, offset, repeat in plan.dtype_info.fields:
        of_field = typestr_of(Plan(dtype=kind, byteorder=_order(kind, plan.byteorder)))
        entries[offset] = (name, of_field, repeat) if repeat else (name, of_field)
    return [entries[offset] for offset in sorted(entries)]


def _order(kind: str, byteorder: str) -> str:
    return byteorder if DTYPES[kind].has_byteorder else "native"


class _Exporter:
    def __init__(self, observed: ObservedArrayInterface) -> None:
        self._answer = observed.answer

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._answer()


class ObservedArrayInterface(ObservedExport):
    """An exporter with `__array_interface__`: counts how often it was asked."""

    def __init__(self, export: Export, block: Block) -> None:
        super().__init__(export, block)
        self.exported: list[_ObservedBytes] = []
        self.make(_Exporter)

    def answer(self) -> dict[str, Any]:
        """A new dict, bent by the variant; raises what the variant raises."""
        self.reads += 1
        entries = self.entries()
        if isinstance(self.variant, DictVariant) and self.variant.raises is not None:
            raise self.variant.raises("the suite's exporter raises this on purpose")
        self.variant.bend(entries, self)
        return entries

    def entries(self) -> dict[str, Any]:
        """What a right exporter says."""
        block, plan = self.block, self.block.plan
        entries = {
            "version": 3,
            "shape": block.shape,
            "typestr": typestr_of(plan),
            "data": (block.address, plan.readonly),
            "strides": None if block.is_row_major else block.strides,
        }
        if plan.dtype_info.fields:
            entries["descr"] = record_fields(plan)
        return entries

    def export_bytes(self, start_bytes: int, length_bytes: int) -> BytesExporter:
        """An object with a buffer of plain bytes, from so many bytes after the first element."""
        exported = _ObservedBytes(self.export, self.block, start_bytes, length_bytes)
        self.exported.append(exported)
        exporter: BytesExporter = exported.exporter
        return exporter

    def info(self) -> ExportInfo:
        exported = [exported.life_info() for exported in self.exported]
        return ExportInfo(reads=self.reads, exported=exported)

    def forget(self) -> None:
        super().forget()
        for exported in self.exported:
            exported.forget()

    def is_free(self) -> bool:
        return super().is_free() and all(exported.is_free() for exported in self.exported)

    def close(self) -> None:
        super().close()
        for exported in self.exported:
            exported.close()


class _ObservedBytes(ObservedBuffer):
    """Some bytes of a block, as a separate object."""

    def __init__(self, export: Export, block: Block, start_bytes: int, length_bytes: int) -> None:
        self._start, self._length = block.address + start_bytes, length_bytes
        super().__init__(export, block)

    def answer(self) -> Answer:
        readonly = self.block.plan.readonly
        return Answer(self._start, self._length, 1, readonly, "B", (self._length,), (1,))


# -- variants ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DictVariant(Variant):
    """A variant of the dict: `bend` edits it, `raises` is raised in its place."""

    raises: type[Exception] | None = None


def _entry(key: str, value: Any) -> Callable[[dict[str, Any], ObservedArrayInterface], None]:
    """Sets one key."""

    def bend(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
        entries[key] = value

    return bend


def without(key: str) -> Callable[[dict[str, Any], ObservedArrayInterface], None]:
    def bend(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
        entries.pop(key)

    return bend


def explicit_strides(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    entries["strides"] = observed.block.strides


def _junk_strides(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    pairs = zip(observed.block.shape, observed.block.strides)
    entries["strides"] = tuple(s if n > 1 else 2**60 + 1 for n, s in pairs)


def _one_stride_short(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    entries["strides"] = observed.block.strides[1:]


def _described(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    entries["shape"] = observed.variant.described(entries["shape"])


def _shape(*extents: int) -> Callable[[dict[str, Any], ObservedArrayInterface], None]:
    """Far more elements than there are, in the form of a contiguous array."""

    def bend(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
        entries["shape"], entries["strides"] = extents, None

    return bend


def _bits(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    """The bytes as packed bits: eight elements to a byte."""
    entries["shape"], entries["typestr"] = (8 * observed.block.nbytes,), "|t1"


def _nowhere(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    entries["data"] = (observed.block.forbidden, False)


def _empty_strides(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    entries["data"] = (observed.block.forbidden, False)
    entries["strides"] = tuple(2**60 + n for n in range(len(entries["shape"])))


def _mask(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    """Every element but the last is valid."""
    shape = observed.block.shape
    count = max(observed.block.nbytes // observed.block.itemsize, 1)
    entries["mask"] = _Mask(shape, bytes([1] * (count - 1) + [0]))


class _Mask:
    def __init__(self, shape: tuple[int, ...], content: bytes) -> None:
        self._memory = (ctypes.c_char * len(content)).from_buffer_copy(content)
        self._shape = shape

    @property
    def __array_interface__(self) -> dict[str, Any]:
        address = ctypes.addressof(self._memory)
        return {"version": 3, "shape": self._shape, "typestr": "|b1", "data": (address, True)}


def _object(
    start_bytes: int = 0, *, offset: int | None = None, missing_bytes: int = 0
) -> Callable[[dict[str, Any], ObservedArrayInterface], None]:
    """`data` is an object with a buffer of the array's bytes, fewer of them, or more in front."""

    def bend(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
        length = observed.block.nbytes - start_bytes - missing_bytes
        entries["data"] = observed.export_bytes(start_bytes, length)
        if offset is not None:
            entries["offset"] = offset

    return bend


def _object_from_behind(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    """A buffer that begins behind the first element, which a negative offset leads back to."""
    itemsize = observed.block.itemsize
    entries["data"] = observed.export_bytes(itemsize, observed.block.nbytes)
    entries["offset"] = -itemsize


def _beside(entries: dict[str, Any], observed: ObservedArrayInterface) -> None:
    entries["offset"] = observed.block.itemsize


def _pair(plan: Plan) -> Plan:
    """At least two elements."""
    plan = plans.plain(plan)
    return plan.replaced(shape=(*plan.shape[:-1], max(plan.shape[-1], 2)))


def _pair_misfit(plan: Plan) -> str:
    return plans.not_dense_misfit(plan) or ("" if plan.element_count > 1 else "it has one element")


def _one_axis(plan: Plan) -> str:
    return "" if plan.view_map.shape else "it has no axis"


_SEEN = ("AI-28", "XA-15")
"""The observations of every consumer that takes an array interface."""
_ANY_ARRAY = ("XA-15", "AI-22", "AI-25", "AI-34", "AI-28", "XA-19")
_EXPORTED = ("PB-24", "PB-25", "PB-31", "PB-35")


def _raising(name: str, error: type[Exception]) -> DictVariant:
    about = f"the property raises {error.__name__}"
    return DictVariant(name, ("AI-29",), "error", about, adapt=plans.plain, raises=error)


_variant = variants_of(
    DictVariant,
    _SEEN,
    adapt=plans.plain,
    misfit=plans.not_dense_misfit,
    control=plans.plain,
)
_VARIANTS: tuple[Variant, ...] = (
    Variant(PLAIN, _ANY_ARRAY, "right-or-error", "as NumPy's documents say", adapt=plans.solid),
    # strides
    _variant("absent-strides", "AI-23", "right", "the key strides is missing", without("strides")),
    _variant(
        "explicit-strides",
        "AI-23",
        "right",
        "strides are written out, and are those of a row-major array",
        explicit_strides,
    ),
    *strided(_variant, "AI-22", misfit=fits),
    _variant(
        "junk-strides",
        "AI-22",
        "right-or-error",
        "axes of extent 1 have strides that mean nothing",
        _junk_strides,
        adapt=plans.of_ndim(3),
    ),
    _variant(
        "short-strides",
        "AI-21",
        "error",
        "strides has one entry less than shape",
        _one_stride_short,
        adapt=_pair,
        misfit=lambda plan: _pair_misfit(plan) or _one_axis(plan),
    ),
    # required keys
    _variant("absent-typestr", "AI-02", "error", "the key typestr is missing", without("typestr")),
    _variant("absent-shape", "AI-02", "error", "the key shape is missing", without("shape")),
    # shape
    _variant(
        "zero-dim", "AI-24", "right-or-error", "shape is (): one element", adapt=plans.zero_dim
    ),
    _variant(
        "zero-dim-strides",
        "AI-24",
        "right-or-error",
        "shape and strides are (): one element",
        explicit_strides,
        adapt=plans.zero_dim,
    ),
    _variant(
        "empty",
        "AI-24",
        "right-or-error",
        "no elements, at an inaccessible address",
        _nowhere,
        adapt=plans.empty,
        misfit=plans.not_empty_misfit,
    ),
    _variant(
        "empty-strides",
        "AI-24",
        "right-or-error",
        "no elements, and strides that mean nothing",
        _empty_strides,
        adapt=plans.empty,
        misfit=plans.not_empty_misfit,
    ),
    _variant(
        "empty-null",
        "AI-20",
        "right-or-error",
        "no elements, at address 0",
        _entry("data", (0, False)),
        adapt=plans.empty,
        misfit=plans.not_empty_misfit,
    ),
    *(
        _variant(
            f"dims-{ndim}",
            "AI-04",
            "right-or-error",
            f"{ndim} dimensions",
            _described,
            described=plans.widened(ndim),
        )
        for ndim in (65, 1000)
    ),
    _variant("huge", "AI-05", "error", "2^62 · 8 elements", _shape(2**62, 8)),
    _variant("wrapping", "AI-05", "error", "2^32 · 2^32 elements", _shape(2**32, 2**32)),
    # element type
    _variant(
        "swapped",
        "AI-34",
        "right-or-error",
        "numbers of the other byte order",
        adapt=plans.swapped,
        misfit=fits,
    ),
    _variant("bits", "AI-10", "error", "packed bits, eight to a byte", _bits),
    _variant(
        "record",
        "XA-15",
        "right-or-error",
        "records of 13 bytes, told by descr",
        adapt=plans.of_dtype("struct"),
        control=plans.numbers,
        misfit=fits,
    ),
    # data
    _variant(
        "read-only",
        "AI-25",
        "right-or-error",
        "the memory may not be written",
        adapt=plans.readonly,
        misfit=fits,
    ),
    _variant(
        "odd-address",
        "AI-31",
        "right-or-error",
        "the first element is at an odd address",
    ),
    _variant(
        "data-object",
        "AI-16",
        "right-or-error",
        "data is an object with a buffer of the array's bytes",
        _object(),
        adapt=_pair,
        also=_EXPORTED,
        misfit=_pair_misfit,
    ),
    _variant(
        "data-object-offset",
        "AI-18",
        "right-or-error",
        "data is an object with a buffer, in which the array begins at offset",
        _object(-_ROOM_BYTES, offset=_ROOM_BYTES),
        adapt=_pair,
        also=_EXPORTED,
        misfit=_pair_misfit,
    ),
    _variant(
        "data-object-too-small",
        "AI-16",
        "error",
        "data is an object with a buffer that is one byte too small",
        _object(missing_bytes=1),
        adapt=_pair,
        misfit=_pair_misfit,
        is_robust=True,
    ),
    _variant(
        "data-object-offset-too-large",
        "AI-16",
        "error",
        "offset leads out of the buffer",
        _object(offset=1),
        adapt=_pair,
        misfit=_pair_misfit,
        is_robust=True,
    ),
    _variant(
        "negative-offset",
        "AI-18",
        "error",
        "offset is negative and leads out of the buffer",
        _object_from_behind,
        adapt=_pair,
        misfit=_pair_misfit,
        is_robust=True,
    ),
    _variant(
        "offset-beside-address",
        "AI-15",
        "right",
        "data is an address, so offset means nothing",
        _beside,
    ),
    # other keys
    _variant("mask", "AI-26", "error", "a mask says that the last element is not valid", _mask),
    _variant("version-99", "AI-27", "right", "version is 99", _entry("version", 99)),
    _variant(
        "unknown-key",
        "AI-32",
        "right",
        "one key more, that no version of the protocol has",
        _entry("conformance_suite", "this key means nothing"),
    ),
    _raising("raises-os-error", OSError),
    _raising("raises-type-error", TypeError),
    _raising("raises-runtime-error", RuntimeError),
)

INTERFACES = (
    Interface(
        "array-interface",
        "__array_interface__, version 3",
        ("AI",),
        Capabilities(
            dtypes=tuple(name for name, info in DTYPES.items() if info.typestr is not None),
            max_ndim=8,
            layouts="any",
            byteorders=("native", "swapped"),
            readonly=(False, True),
        ),
        ObservedArrayInterface,
        _VARIANTS,
        taken_rule="AI-23",
        position=30,
        plain_rules={"swapped": "AI-34", "strides": "AI-22"},
    ),
)
