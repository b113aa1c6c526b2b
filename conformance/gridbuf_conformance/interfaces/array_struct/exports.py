"""Array struct exports: `__array_struct__`, an unnamed capsule over a C struct that says where a
block is.

Each access makes its own struct and capsule. The capsule's destructor is the release: the
memory belongs to the capsules, not to the object, so that a consumer that keeps only the object
is left with memory that was given back. The suite holds each capsule until the consumer has
returned, for the destructor is Python code and would lose an exception that is on its way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_ssize_t, c_void_p
from dataclasses import dataclass
from typing import Any

from .struct import ArrayStruct
from ...abi.descriptors import is_contiguous
from ...abi.libraries import python_api
from ...info import ExportInfo
from ...plan import Plan
from ...plan.dtypes import DTYPES
from ...plan.producer import Capabilities
from ...exports import plans
from ..array_interface.exports import record_fields
from ...exports.export import (
    PLAIN,
    Export,
    Interface,
    ObservedExport,
    Variant,
    strided,
    variants_of,
)
from ...exports.memory import Block

C_ORDER, F_ORDER, ALIGNED, NATIVE, WRITABLE, HAS_DESCR = 0x1, 0x2, 0x100, 0x200, 0x400, 0x800
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)

_api = python_api()
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
_api.PyCapsule_GetName.restype = c_char_p
_api.PyCapsule_GetName.argtypes = [c_void_p]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [c_void_p, c_char_p]

_structs: dict[int, Struct] = {}
"""Every struct that may still be in use, by its address."""


class Struct:
    """One struct, the arrays that it points to, and what became of its capsule.

    A variant edits `raw`, `shape` and `strides` before `capsule` is called; None for either array
    leaves a NULL pointer. `name` is the capsule's.
    """

    def __init__(self, block: Block) -> None:
        plan = block.plan
        self.block = block
        self.raw = ArrayStruct()
        self.name: bytes | None = None
        self.shape: Sequence[int] | None = block.shape
        self.strides: Sequence[int] | None = block.strides
        self.descr: Any = None
        self.held: Any = None
        self.destroyed = 0
        self.raw.two, self.raw.nd = 2, len(block.shape)
        self.raw.typekind = plan.dtype_info.kind.encode()
        self.raw.itemsize, self.raw.data = block.itemsize, block.address
        self.raw.flags = _flags(block)

    def capsule(self) -> Any:
        """The capsule; the struct lives from now on until the suite forgets it."""
        self._arrays = [_array(self.shape), _array(self.strides)]
        self.raw.shape, self.raw.strides = self._arrays
        if self.descr is not None:
            self.raw.descr = id(self.descr)
        address = ctypes.addressof(self.raw)
        _structs[address] = self
        self.held = _api.PyCapsule_New(address, self.name, ctypes.cast(_destructor, c_void_p))
        return self.held


@_DESTRUCTOR
def _destructor(capsule: int, api: Any = _api, structs: Any = _structs) -> None:
    """A capsule may outlive this module's names when the process ends: so they are defaults."""
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    structs[address].destroyed += 1


def _flags(block: Block) -> int:
    """The flags that are true of the memory."""
    native = block.plan.byteorder == "native"
    unit = block.itemsize
    claims = {
        C_ORDER: is_contiguous(block.shape, block.strides, unit, "C"),
        F_ORDER: is_contiguous(block.shape, block.strides, unit, "F"),
        ALIGNED: all(n % unit == 0 for n in (block.address, *block.strides)),
        NATIVE: native,
        WRITABLE: not block.plan.readonly,
    }
    return sum(bit for bit, holds in claims.items() if holds)


def _array(values: Sequence[int] | None) -> Any:
    return None if values is None else (c_ssize_t * max(1, len(values)))(*values)


class _Exporter:
    def __init__(self, observed: ObservedArrayStruct) -> None:
        self._observed = observed

    @property
    def __array_struct__(self) -> Any:
        return self._observed.answer()


class ObservedArrayStruct(ObservedExport):
    """An exporter with `__array_struct__`: counts the requests, and the capsules' ends."""

    def __init__(self, export: Export, block: Block) -> None:
        super().__init__(export, block)
        self.structs: list[Struct] = []
        self.make(_Exporter)

    def answer(self) -> Any:
        """A new capsule, bent by the variant."""
        self.reads += 1
        struct = Struct(self.block)
        if isinstance(self.variant, StructVariant) and self.variant.in_place is not None:
            return self.variant.in_place
        self.variant.bend(struct)
        self.structs.append(struct)
        return struct.capsule()

    def info(self) -> ExportInfo:
        return ExportInfo(reads=self.reads, destroyed=[s.destroyed for s in self.structs])

    def is_free(self) -> bool:
        return all(struct.destroyed for struct in self.structs)

    def forget(self) -> None:
        super().forget()
        for struct in self.structs:
            struct.held = None  # the destructor runs here unless the consumer holds the capsule

    def close(self) -> None:
        super().close()
        for struct in self.structs:
            _structs.pop(ctypes.addressof(struct.raw), None)


# -- variants ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StructVariant(Variant):
    """A variant of the struct: `bend` edits it, `in_place` is answered instead of a capsule."""

    in_place: Any = None


def _raw(field: str, value: Any) -> Callable[[Struct], None]:
    """Sets one field of the struct."""

    def bend(struct: Struct) -> None:
        setattr(struct.raw, field, value)

    return bend


def _without(*arrays: str) -> Callable[[Struct], None]:
    """NULL in place of arrays."""

    def bend(struct: Struct) -> None:
        for name in arrays:
            setattr(struct, name, None)

    return bend


def _no_claims(struct: Struct) -> None:
    """Nothing is said of order and alignment; that the numbers are native ones is."""
    struct.raw.flags &= ~(C_ORDER | F_ORDER | ALIGNED)


def _junk_descr(struct: Struct) -> None:
    struct.raw.descr = struct.block.forbidden


def _with_descr(struct: Struct) -> None:
    struct.descr = record_fields(struct.block.plan)
    struct.raw.flags |= HAS_DESCR


def _named(struct: Struct) -> None:
    struct.name = b"array_struct"


def _wrapped(ndim: int) -> Callable[[Struct], None]:
    """Leading axes of extent 1 up to so many dimensions."""

    def bend(struct: Struct) -> None:
        missing = ndim - len(struct.block.shape)
        struct.shape = plans.widened(ndim)(struct.block.shape)
        struct.strides = (*(struct.block.nbytes,) * missing, *struct.block.strides)
        struct.raw.nd = ndim

    return bend


def _nowhere(struct: Struct) -> None:
    struct.raw.data = struct.block.forbidden


def _zero_dim_only(plan: Plan) -> str:
    return "it has dimensions" if plan.view_map.shape else ""


def _records_only(plan: Plan) -> str:
    return "" if plan.dtype_info.fields else "its elements have no fields"


_SEEN = ("AS-07", "XA-15")
_ANY_ARRAY = ("XA-15", "AS-04", "AS-05", "AS-07")


_variant = variants_of(StructVariant, _SEEN, adapt=plans.plain, control=plans.plain)
_VARIANTS: tuple[Variant, ...] = (
    Variant(PLAIN, _ANY_ARRAY, "right-or-error", "as NumPy's documents say", adapt=plans.solid),
    _variant("version-1", "AS-02", "error", "the first int is 1 and not 2", _raw("two", 1)),
    _variant("version-3", "AS-02", "error", "the first int is 3 and not 2", _raw("two", 3)),
    _variant("named", "AS-01", "error", "the capsule has a name", _named),
    _variant("number", "AS-01", "error", "a number in place of a capsule", in_place=42),
    *strided(_variant, "AS-04"),
    _variant(
        "zero-dim",
        "AS-04",
        "right-or-error",
        "one element, and no arrays behind shape and strides",
        _without("shape", "strides"),
        adapt=plans.zero_dim,
        misfit=_zero_dim_only,
    ),
    _variant(
        "empty",
        "AS-04",
        "right-or-error",
        "no elements, at an inaccessible address",
        _nowhere,
        adapt=plans.empty,
        misfit=plans.not_empty_misfit,
    ),
    _variant(
        "empty-null",
        "AS-04",
        "right-or-error",
        "no elements, at NULL",
        _raw("data", None),
        adapt=plans.empty,
        misfit=plans.not_empty_misfit,
        is_robust=True,
    ),
    _variant(
        "null-strides",
        "AS-04",
        "right-or-error",
        "strides is NULL; the memory is in row-major order",
        _without("strides"),
        is_robust=True,
    ),
    _variant("null-shape", "AS-04", "error", "shape is NULL", _without("shape"), is_robust=True),
    _variant("null-data", "AS-04", "error", "data is NULL", _raw("data", None), is_robust=True),
    *(
        _variant(
            f"dims-{ndim}",
            "AS-04",
            "right-or-error",
            f"{ndim} dimensions",
            _wrapped(ndim),
            described=plans.widened(ndim),
        )
        for ndim in (65, 1000)
    ),
    _variant(
        "no-claims",
        "AS-05",
        "right",
        "the flags claim no order and no alignment",
        _no_claims,
    ),
    _variant(
        "read-only",
        "AS-05",
        "right-or-error",
        "the memory may not be written",
        adapt=plans.readonly,
    ),
    _variant(
        "swapped",
        "AS-05",
        "right-or-error",
        "numbers of the other byte order",
        adapt=plans.swapped,
    ),
    _variant(
        "odd-address",
        "AS-05",
        "right-or-error",
        "the first element is at an odd address",
    ),
    _variant(
        "unannounced-descr",
        "AS-06",
        "right",
        "descr points to inaccessible memory, and no flag announces it",
        _junk_descr,
    ),
    _variant(
        "descr",
        "AS-06",
        "right-or-error",
        "records of 13 bytes, told by descr",
        _with_descr,
        adapt=plans.of_dtype("struct"),
        misfit=_records_only,
        control=plans.numbers,
    ),
)

INTERFACES = (
    Interface(
        "array-struct",
        "__array_struct__",
        ("AS",),
        Capabilities(
            # A struct cannot describe the units of times.
            dtypes=tuple(
                n for n, i in DTYPES.items() if i.typestr is not None and i.kind not in "mM"
            ),
            max_ndim=8,
            layouts="any",
            byteorders=("native", "swapped"),
            readonly=(False, True),
        ),
        ObservedArrayStruct,
        _VARIANTS,
        taken_rule="AS-04",
        position=40,
        plain_rules={"swapped": "AS-05", "strides": "AS-04"},
    ),
)
