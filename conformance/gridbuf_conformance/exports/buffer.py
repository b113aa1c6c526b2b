"""Buffer protocol exports: an object whose `Py_buffer` answers are written field by field.

The exporter's type has C slots (`abi.buffer_exporter`), so every request flag is treated as the
documents say, on every Python; a variant edits one `Answer` before it is written into the struct.
Each granted request is watched until its release: that it comes once, and finds the arrays behind
`shape`, `strides` and `suboffsets` as they were. When no request is open any more the memory counts
as given back, for that is what the release says.

From Python 3.12 on a class can export by its methods `__buffer__` and `__release_buffer__`
(PEP 688); the variants that begin with "method" do.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from ctypes import c_ssize_t, c_void_p
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ..abi.buffer_exporter import answering_type, own, static_text
from ..abi.descriptors import is_contiguous
from ..abi.pybuffer import REQUESTS, PyBuffer
from ..info import ExportInfo
from ..plan import Plan
from ..plan.dtypes import DTYPES
from ..plan.producer import Capabilities
from . import plans
from .export import Export
from .memory import Block
from .native import Ledger, ViewFrame, release_function
from .variant import PLAIN, Interface, ObservedExport, Variant

__all__ = ["INTERFACES", "Answer", "ObservedBuffer", "BufferVariant", "BytesExporter"]

WRITABLE, FORMAT, ND, STRIDES, INDIRECT = 0x1, 0x4, 0x8, 0x18, 0x118
_ORDERS = {
    "row-major memory": (0x38, "C"),
    "column-major memory": (0x58, "F"),
    "contiguous memory": (0x98, "CF"),
}
_POINTER_BYTES = ctypes.sizeof(c_void_p)


def asks(flags: int, request: int) -> bool:
    """Whether a request holds every bit of another."""
    return flags & request == request


# -- answers ---------------------------------------------------------------------------------------


@dataclass
class Answer:
    """The fields of one `Py_buffer`, None for NULL. `shape` and the like are numbers."""

    buf: int
    length: int
    itemsize: int
    readonly: bool
    format: str | None
    shape: Sequence[int]
    strides: Sequence[int]
    suboffsets: Sequence[int] | None = None
    has_strides: bool = True
    kept: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, block: Block) -> Answer:
        """The unchanged block."""
        plan = block.plan
        return cls(
            block.address,
            block.nbytes,
            block.itemsize,
            plan.readonly,
            _format(plan),
            block.shape,
            block.strides,
        )

    def refuse_unmet(self, flags: int) -> None:
        """Raises BufferError for a request that this array cannot meet."""

        def has_order(order: str) -> bool:
            shape, strides = tuple(self.shape), tuple(self.strides)
            return is_contiguous(shape, strides, self.itemsize, order)

        unmet = [
            name
            for name, (request, orders) in _ORDERS.items()
            if asks(flags, request) and not any(map(has_order, orders))
        ]
        if flags & WRITABLE and self.readonly:
            unmet.append("writable memory")
        if not asks(flags, STRIDES) and not has_order("C"):
            unmet.append("memory without strides")
        if self.suboffsets is not None and not asks(flags, INDIRECT):
            unmet.append("memory without suboffsets")
        if unmet:
            raise BufferError(f"this array cannot be given as {unmet[0]}; ask for another form")

    def write(self, view: PyBuffer, flags: int) -> list[Any]:
        """Fills everything but `obj` and `internal`; returns the arrays that the view points to."""
        view.buf, view.len, view.itemsize = self.buf or None, self.length, self.itemsize
        view.readonly, view.ndim = self.readonly, len(self.shape)
        wanted = self.format if flags & FORMAT else None
        view.format = None if wanted is None else static_text(wanted)
        asked = {
            "shape": (self.shape, asks(flags, ND)),
            "strides": (self.strides, asks(flags, STRIDES) and self.has_strides),
            "suboffsets": (self.suboffsets, asks(flags, INDIRECT)),
        }
        arrays = []
        for name, (values, is_asked) in asked.items():
            array = _array(values) if is_asked and values else None
            setattr(view, name, array)
            arrays.append(array)
        return arrays


def _array(values: Sequence[int]) -> Any:
    return (c_ssize_t * len(values))(*values)


def _format(plan: Plan) -> str | None:
    """The format of a plan's element type; an explicit order only where it is not the native one."""
    written = plan.dtype_info.format
    if written is None or plan.byteorder == "native":
        return written
    other = ">" if sys.byteorder == "little" else "<"
    if plan.dtype_info.fields:
        return written.replace("=", other)
    return other + written


# -- exporters -------------------------------------------------------------------------------------


if TYPE_CHECKING:
    _BytesExporterBase = object
else:
    _BytesExporterBase = answering_type("BytesExporterBase", release_function())


class BytesExporter(_BytesExporterBase):
    """An exporter that asks its `ObservedBuffer`; releases are counted by machine code (`native`)."""

    def __init__(self, observed: ObservedBuffer) -> None:
        self._observed = observed

    def get_buffer(self, view: PyBuffer, flags: int) -> int | None:
        """The C slot: fills the struct or raises."""
        view.obj = None
        self._observed.grant(view, flags)
        own(self, view)
        return None


@dataclass
class _Granted:
    """One granted view: the arrays behind it as they were, and what its release leaves."""

    frame: ViewFrame
    arrays: list[Any]
    before: list[bytes | None]
    kept: list[Any]


class ObservedBuffer(ObservedExport):
    """An exporter of buffers: notes each request, whether it was granted, and each release."""

    def __init__(self, export: Export, block: Block) -> None:
        super().__init__(export, block)
        self.variant = export.variant
        self.requests: list[str] = []
        self.views: list[_Granted] = []
        self.ledger = Ledger()
        if isinstance(self.variant, BufferVariant) and self.variant.takes_back:
            self.ledger.low, self.ledger.length_bytes = block.low, block.high - block.low
        self.method_grants = 0
        self.method_releases: list[bool] = []
        self.exporter = self._exporter()

    def _exporter(self) -> Any:
        if isinstance(self.variant, MethodVariant):
            return self.variant.exporter(self)
        return BytesExporter(self)

    def answer(self) -> Answer:
        """The description of the memory, changed by the variant."""
        answer = Answer.of(self.block)
        if isinstance(self.variant, BufferVariant):
            self.variant.bend(answer, self.block)
        return answer

    def grant(self, view: PyBuffer, flags: int) -> None:
        """Answers one request; raises BufferError for one that cannot be met."""
        self.requests.append(_request_name(flags))
        answer = self.answer()
        answer.refuse_unmet(flags)
        if self.views and self.is_free():
            self.block.allow()
        arrays = answer.write(view, flags)
        frame = ViewFrame(0, ctypes.pointer(self.ledger))
        view.internal = ctypes.addressof(frame)
        before = [_content(array) for array in arrays]
        self.views.append(_Granted(frame, arrays, before, answer.kept))
        self.ledger.open += 1

    def info(self) -> ExportInfo:
        return ExportInfo(
            requests=self.requests,
            releases=[view.frame.released for view in self.views],
            metadata_unchanged=all(
                [_content(array) for array in view.arrays] == view.before for view in self.views
            ),
            method_grants=self.method_grants,
            method_releases=self.method_releases,
        )

    def was_asked(self) -> bool:
        return bool(self.requests)

    def is_free(self) -> bool:
        return all(view.frame.released for view in self.views)

    def close(self) -> None:
        self.block.allow()


def _content(array: Any) -> bytes | None:
    return None if array is None else bytes(array)


def _request_name(flags: int) -> str:
    """A request as the documents write it, or its number."""
    for name, value in REQUESTS.items():
        if value == flags:
            return name
    return f"flags {flags:#x}"


# -- exporters written as methods (PEP 688) --------------------------------------------------------


class _MethodExporter:
    """Exports through `__buffer__`: a memoryview of a `BytesExporter`."""

    def __init__(self, observed: ObservedBuffer) -> None:
        self._observed = observed
        self._source = BytesExporter(observed)
        self._handed: list[int] = []

    def __buffer__(self, flags: int) -> Any:
        view = memoryview(cast("Any", self._source))
        if flags & WRITABLE and view.readonly:
            raise BufferError("this array cannot be given as writable memory; ask to read only")
        self._handed.append(id(view))
        self._observed.method_grants += 1
        return view

    def __release_buffer__(self, view: memoryview) -> None:
        self._observed.method_releases.append(id(view) in self._handed)
        view.release()


class _BytesExporter:
    """A `__buffer__` that returns bytes, which the interpreter refuses."""

    def __init__(self, observed: ObservedBuffer) -> None:
        self._content = b"\x00" * max(observed.block.nbytes, 1)

    def __buffer__(self, flags: int) -> Any:
        return self._content


# -- variants ----------------------------------------------------------------------------------------


def _straight(answer: Answer, block: Block) -> None:
    return None


@dataclass(frozen=True)
class BufferVariant(Variant):
    """A variant of the struct: `bend` edits the answer to each request.

    `takes_back`: with the last release the exporter closes its pages, as one that frees does.
    """

    bend: Callable[[Answer, Block], None] = _straight
    takes_back: bool = False


@dataclass(frozen=True)
class MethodVariant(Variant):
    """An exporter that is a class with methods, from Python 3.12 on."""

    exporter: Callable[[ObservedBuffer], Any] = _MethodExporter


def _wrapped(ndim: int) -> Callable[[Answer, Block], None]:
    """Leading axes of extent 1 up to so many dimensions."""

    def bend(answer: Answer, block: Block) -> None:
        missing = ndim - len(answer.shape)
        answer.shape = plans.widened(ndim)(tuple(answer.shape))
        answer.strides = (*(answer.length,) * missing, *answer.strides)

    return bend


def _nowhere(answer: Answer, block: Block) -> None:
    answer.buf = block.forbidden


def _null(answer: Answer, block: Block) -> None:
    answer.buf = 0


def _null_strides(answer: Answer, block: Block) -> None:
    answer.has_strides = False


def _junk_strides(answer: Answer, block: Block) -> None:
    pairs = zip(answer.shape, answer.strides)
    answer.strides = tuple(stride if extent > 1 else 2**60 + 1 for extent, stride in pairs)


def _no_format(answer: Answer, block: Block) -> None:
    answer.format = None


def _as(text: str) -> Callable[[Answer, Block], None]:
    """This format, the only one for this memory."""

    def bend(answer: Answer, block: Block) -> None:
        answer.format = text

    return bend


def _prefixed(prefix: str) -> Callable[[Answer, Block], None]:
    def bend(answer: Answer, block: Block) -> None:
        answer.format = prefix + (block.plan.dtype_info.format or "")

    return bend


def _native_letter(answer: Answer, block: Block) -> None:
    """`l` and `L` have the platform's size: that of a pointer where this suite runs."""
    answer.format = "l" if block.plan.dtype == "int64" else "L"


def _through_pointers(answer: Answer, block: Block) -> None:
    """The first axis runs along a table of pointers, each to 16 bytes before its row."""
    rows, step = answer.shape[0], answer.strides[0]
    starts = [answer.buf + row * step - 16 for row in range(rows)]
    table = (c_void_p * max(rows, 1))(*starts)
    answer.kept.append(table)
    answer.buf = ctypes.addressof(table)
    answer.strides = (_POINTER_BYTES, *answer.strides[1:])
    answer.suboffsets = (16, *(-1,) * (len(answer.shape) - 1))


def _negative_suboffsets(answer: Answer, block: Block) -> None:
    answer.suboffsets = (-1,) * len(answer.shape)


def _integers(plan: Plan) -> Plan:
    plan = plans.plain(plan)
    return plan if plan.dtype in ("int64", "uint64") else plan.replaced(dtype="int64")


def _complex(plan: Plan) -> Plan:
    plan = plans.plain(plan)
    return plan if plan.dtype == "complex64" else plan.replaced(dtype="complex128")


def _complex_letter(prefix: str) -> Callable[[Answer, Block], None]:
    def bend(answer: Answer, block: Block) -> None:
        answer.format = prefix + ("F" if block.plan.dtype == "complex64" else "D")

    return bend


def _is_of(*dtypes: str) -> Callable[[Plan], str]:
    def misfit(plan: Plan) -> str:
        fits = plan.dtype in dtypes and plan.byteorder == "native"
        return "" if fits else f"its element type is not one of {', '.join(dtypes)} in native order"

    return misfit


def _rows(plan: Plan) -> Plan:
    return plans.plain(plan)


def _rows_misfit(plan: Plan) -> str:
    return "" if plan.view_map.shape else "it has no axis"


def _empty_only(plan: Plan) -> str:
    return "" if 0 in plan.view_map.shape else "it has elements"


_KEPT = ("PB-24", "PB-25", "PB-31", "PB-35", "XA-15")
"""The observations of every consumer that takes a buffer."""
_ANY_ARRAY = ("XA-15", "PB-32", "PB-20", "PB-22", *_KEPT[:-1], "XA-06", "XA-19")
_VARIANTS: tuple[Variant, ...] = (
    Variant(PLAIN, _ANY_ARRAY, "right-or-error", "as the documents say", adapt=plans.solid),
    BufferVariant(
        "taken-back",
        ("PB-35", "PB-24"),
        "right-or-error",
        "the exporter closes its memory with the last release",
        adapt=plans.plain,
        takes_back=True,
        control=plans.plain,
    ),
    Variant(
        "negative-stride",
        ("PB-32", *_KEPT),
        "right-or-error",
        "the last axis runs backwards",
        adapt=plans.reversed_axis,
        control=plans.plain,
    ),
    Variant(
        "zero-stride",
        ("PB-32", *_KEPT),
        "right-or-error",
        "every element of the first axis is the same one",
        adapt=plans.broadcast,
        control=plans.plain,
    ),
    Variant(
        "gaps",
        ("PB-32", *_KEPT),
        "right-or-error",
        "every second element of the last axis",
        adapt=plans.stepped,
        control=plans.plain,
    ),
    BufferVariant(
        "suboffsets",
        ("PB-32", *_KEPT),
        "right-or-error",
        "the first axis is a table of pointers, described by suboffsets if INDIRECT is requested",
        adapt=_rows,
        misfit=_rows_misfit,
        bend=_through_pointers,
        control=plans.plain,
    ),
    BufferVariant(
        "negative-suboffsets",
        ("PB-10", *_KEPT),
        "right-or-error",
        "suboffsets is there and all its entries are -1",
        adapt=_rows,
        misfit=_rows_misfit,
        bend=_negative_suboffsets,
        control=plans.plain,
    ),
    BufferVariant(
        "null-strides",
        ("PB-09", *_KEPT),
        "right-or-error",
        "strides is NULL, whatever the request; the memory is in row-major order",
        adapt=plans.plain,
        bend=_null_strides,
        control=plans.plain,
    ),
    BufferVariant(
        "junk-strides",
        ("PB-32", *_KEPT),
        "right-or-error",
        "axes of extent 1 have strides that mean nothing",
        adapt=plans.of_ndim(3),
        bend=_junk_strides,
        control=plans.plain,
    ),
    Variant(
        "read-only",
        ("XA-06", *_KEPT),
        "right-or-error",
        "the memory may not be written",
        adapt=plans.readonly,
        control=plans.plain,
    ),
    Variant(
        "zero-dim",
        ("PB-15", *_KEPT),
        "right-or-error",
        "one item",
        adapt=plans.zero_dim,
        control=plans.plain,
    ),
    BufferVariant(
        "dims-64",
        ("PB-16", *_KEPT),
        "right-or-error",
        "64 dimensions, the most there are",
        adapt=plans.plain,
        bend=_wrapped(64),
        described=plans.widened(64),
        control=plans.plain,
    ),
    BufferVariant(
        "dims-65",
        ("PB-16", *_KEPT),
        "right-or-error",
        "65 dimensions, one too many",
        adapt=plans.plain,
        bend=_wrapped(65),
        described=plans.widened(65),
        control=plans.plain,
        is_robust=True,
    ),
    BufferVariant(
        "empty",
        ("PB-17", *_KEPT),
        "right-or-error",
        "no elements, at an inaccessible address",
        adapt=plans.empty,
        misfit=_empty_only,
        bend=_nowhere,
        control=plans.plain,
    ),
    BufferVariant(
        "empty-null",
        ("PB-17", *_KEPT),
        "right-or-error",
        "no elements, at NULL",
        adapt=plans.empty,
        misfit=_empty_only,
        bend=_null,
        control=plans.plain,
        is_robust=True,
    ),
    BufferVariant(
        "null-format",
        ("PB-07", *_KEPT),
        "right",
        "format is NULL, which is to be read as B",
        adapt=plans.of_dtype("uint8"),
        misfit=_is_of("uint8"),
        bend=_no_format,
        control=plans.plain,
    ),
    BufferVariant(
        "at-prefix",
        ("PB-20", *_KEPT),
        "right",
        "the format says @, the default",
        adapt=plans.of_dtype("float64"),
        misfit=_is_of("float64", "float32", "int64", "int32", "int16"),
        bend=_prefixed("@"),
        control=plans.plain,
    ),
    BufferVariant(
        "order-prefix",
        ("PB-20", *_KEPT),
        "right",
        "the format says the byte order, which is the native one",
        adapt=plans.of_dtype("float64"),
        misfit=_is_of("float64", "float32", "int64", "int32", "int16"),
        bend=_prefixed("<" if sys.byteorder == "little" else ">"),
        control=plans.plain,
    ),
    BufferVariant(
        "equals-prefix",
        ("PB-20", *_KEPT),
        "right",
        "the format says =, native order with standard sizes",
        adapt=plans.of_dtype("float64"),
        misfit=_is_of("float64", "float32", "int64", "int32", "int16"),
        bend=_prefixed("="),
        control=plans.plain,
    ),
    Variant(
        "odd-address",
        ("PB-18", *_KEPT),
        "right-or-error",
        "the first element is at an odd address",
        adapt=plans.plain,
        control=plans.plain,
    ),
    Variant(
        "swapped",
        ("PB-20", *_KEPT),
        "right-or-error",
        "numbers of the other byte order",
        adapt=plans.swapped,
        control=plans.plain,
    ),
    Variant(
        "packed-record",
        ("PB-20", *_KEPT),
        "right-or-error",
        "records of 13 bytes without padding",
        adapt=plans.of_dtype("struct"),
        misfit=_is_of("struct"),
        control=plans.numbers,
    ),
    BufferVariant(
        "aligned-record",
        ("PB-20", *_KEPT),
        "right-or-error",
        "records of a byte and a double, with the 7 bytes between them that @ implies",
        adapt=plans.of_dtype("complex128"),
        misfit=_is_of("complex128"),
        bend=_as("T{b:a:d:b:}"),
        is_retyped=True,
        control=plans.numbers,
    ),
    BufferVariant(
        "padded-record",
        ("PB-20", *_KEPT),
        "right-or-error",
        "records of a byte and a double, with 7 bytes between them that the format writes",
        adapt=plans.of_dtype("complex128"),
        misfit=_is_of("complex128"),
        bend=_as("T{=b:a:7xd:b:}"),
        is_retyped=True,
        control=plans.numbers,
    ),
    BufferVariant(
        "native-letter",
        ("PB-21", *_KEPT),
        "right",
        "the integer's letter is l or L, whose size is the platform's",
        adapt=_integers,
        misfit=_is_of("int64", "uint64"),
        bend=_native_letter,
        control=plans.plain,
    ),
    Variant(
        "complex",
        ("PB-22", *_KEPT),
        "right-or-error",
        "complex numbers, written Zf or Zd",
        adapt=_complex,
        misfit=_is_of("complex64", "complex128"),
        control=plans.numbers,
    ),
    BufferVariant(
        "complex-letter",
        ("PB-22", *_KEPT),
        "right-or-error",
        "complex numbers, written F or D as CPython 3.14 does",
        adapt=_complex,
        misfit=_is_of("complex64", "complex128"),
        bend=_complex_letter(""),
        control=_complex,
    ),
    BufferVariant(
        "complex-letter-order",
        ("PB-22", *_KEPT),
        "right-or-error",
        "complex numbers, written with their byte order before F or D",
        adapt=_complex,
        misfit=_is_of("complex64", "complex128"),
        bend=_complex_letter("<" if sys.byteorder == "little" else ">"),
        control=_complex,
    ),
)
_METHOD_VARIANTS: tuple[Variant, ...] = (
    MethodVariant(
        "method",
        ("PB-29", "PB-28", "PB-24"),
        "right-or-error",
        "__buffer__ and __release_buffer__ written in Python",
        adapt=plans.plain,
        control=plans.plain,
    ),
    MethodVariant(
        "method-read-only",
        ("PB-30", "PB-29", "PB-24"),
        "right-or-error",
        "__buffer__ written in Python refuses writable memory",
        adapt=plans.readonly,
        control=plans.plain,
    ),
    MethodVariant(
        "method-bytes",
        ("PB-28",),
        "error",
        "__buffer__ returns bytes in place of a memoryview",
        adapt=plans.plain,
        exporter=_BytesExporter,
        control=plans.plain,
    ),
)

INTERFACES = (
    Interface(
        "buffer",
        "the buffer protocol, by C slots",
        ("PB",),
        Capabilities(
            dtypes=tuple(name for name, info in DTYPES.items() if info.format is not None),
            max_ndim=8,
            layouts="any",
            byteorders=("native", "swapped"),
            readonly=(False, True),
        ),
        ObservedBuffer,
        # Classes export by methods from Python 3.12 on.
        _VARIANTS + (_METHOD_VARIANTS if sys.version_info >= (3, 12) else ()),
        taken_rule="PB-20",
        shifts={"odd-address": 1},
    ),
)
