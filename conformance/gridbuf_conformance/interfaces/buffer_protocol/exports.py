"""Buffer protocol exports, the variants: each edits one answer of `buffer`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import c_void_p

from ...plan import Plan
from ...plan.dtypes import DTYPES
from ...plan.producer import Capabilities
from ...exports import plans
from .answers import (
    POINTER_BYTES,
    Answer,
    BufferVariant,
    MethodVariant,
    ObservedBuffer,
    WrongMethodExporter,
)
from ...exports.export import PLAIN, Interface, Variant, strided, variants_of
from ...exports.memory import Block


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
    answer.strides = (POINTER_BYTES, *answer.strides[1:])
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


def _rows_misfit(plan: Plan) -> str:
    return "" if plan.view_map.shape else "it has no axis"


def _refused(answer: Answer, block: Block) -> None:
    raise BufferError("the suite's exporter refuses every request on purpose")


_KEPT = ("PB-24", "PB-25", "PB-31", "PB-35", "XA-15")
"""The observations of every consumer that takes a buffer."""
_ANY_ARRAY = ("XA-15", "PB-32", "PB-20", "PB-22", *_KEPT[:-1], "XA-06", "XA-19")
_variant = variants_of(BufferVariant, _KEPT, adapt=plans.plain, control=plans.plain)
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
    _variant("refused", "PB-26", "error", "every request is refused", _refused),
    *strided(_variant, "PB-32"),
    _variant(
        "suboffsets",
        "PB-32",
        "right-or-error",
        "the first axis is a table of pointers, described by suboffsets if INDIRECT is requested",
        _through_pointers,
        misfit=_rows_misfit,
    ),
    _variant(
        "negative-suboffsets",
        "PB-10",
        "right-or-error",
        "suboffsets is there and all its entries are -1",
        _negative_suboffsets,
        misfit=_rows_misfit,
    ),
    _variant(
        "null-strides",
        "PB-09",
        "right-or-error",
        "strides is NULL, whatever the request; the memory is in row-major order",
        _null_strides,
    ),
    _variant(
        "junk-strides",
        "PB-32",
        "right-or-error",
        "axes of extent 1 have strides that mean nothing",
        _junk_strides,
        adapt=plans.of_ndim(3),
    ),
    _variant(
        "read-only",
        "XA-06",
        "right-or-error",
        "the memory may not be written",
        adapt=plans.readonly,
    ),
    _variant("zero-dim", "PB-15", "right-or-error", "one item", adapt=plans.zero_dim),
    _variant(
        "dims-64",
        "PB-16",
        "right-or-error",
        "64 dimensions, the most there are",
        _wrapped(64),
        described=plans.widened(64),
    ),
    _variant(
        "dims-65",
        "PB-16",
        "right-or-error",
        "65 dimensions, one too many",
        _wrapped(65),
        described=plans.widened(65),
        is_robust=True,
    ),
    _variant(
        "empty",
        "PB-17",
        "right-or-error",
        "no elements, at an inaccessible address",
        _nowhere,
        adapt=plans.empty,
        misfit=plans.not_empty_misfit,
    ),
    _variant(
        "empty-null",
        "PB-17",
        "right-or-error",
        "no elements, at NULL",
        _null,
        adapt=plans.empty,
        misfit=plans.not_empty_misfit,
        is_robust=True,
    ),
    _variant(
        "null-format",
        "PB-07",
        "right",
        "format is NULL, which is to be read as B",
        _no_format,
        adapt=plans.of_dtype("uint8"),
        misfit=_is_of("uint8"),
        may_be_refused=True,
    ),
    _variant(
        "at-prefix",
        "PB-20",
        "right",
        "the format says @, the default",
        _prefixed("@"),
        adapt=plans.of_dtype("float64"),
        misfit=_is_of("float64", "float32", "int64", "int32", "int16"),
    ),
    _variant(
        "order-prefix",
        "PB-20",
        "right",
        "the format says the byte order, which is the native one",
        _prefixed("<" if sys.byteorder == "little" else ">"),
        adapt=plans.of_dtype("float64"),
        misfit=_is_of("float64", "float32", "int64", "int32", "int16"),
    ),
    _variant(
        "equals-prefix",
        "PB-20",
        "right",
        "the format says =, native order with standard sizes",
        _prefixed("="),
        adapt=plans.of_dtype("float64"),
        misfit=_is_of("float64", "float32", "int64", "int32", "int16"),
    ),
    _variant("odd-address", "PB-18", "right-or-error", "the first element is at an odd address"),
    _variant(
        "swapped", "PB-20", "right-or-error", "numbers of the other byte order", adapt=plans.swapped
    ),
    _variant(
        "packed-record",
        "PB-20",
        "right-or-error",
        "records of 13 bytes without padding",
        adapt=plans.of_dtype("struct"),
        misfit=_is_of("struct"),
        control=plans.numbers,
    ),
    _variant(
        "aligned-record",
        "PB-20",
        "right-or-error",
        "records of a byte and a double, with the 7 bytes between them that @ implies",
        _as("T{b:a:d:b:}"),
        adapt=plans.of_dtype("complex128"),
        misfit=_is_of("complex128"),
        is_retyped=True,
        control=plans.numbers,
    ),
    _variant(
        "padded-record",
        "PB-20",
        "right-or-error",
        "records of a byte and a double, with 7 bytes between them that the format writes",
        _as("T{=b:a:7xd:b:}"),
        adapt=plans.of_dtype("complex128"),
        misfit=_is_of("complex128"),
        is_retyped=True,
        control=plans.numbers,
    ),
    _variant(
        "native-letter",
        "PB-21",
        "right",
        "the integer's letter is l or L, whose size is the platform's",
        _native_letter,
        adapt=_integers,
        misfit=_is_of("int64", "uint64"),
    ),
    _variant(
        "complex",
        "PB-22",
        "right-or-error",
        "complex numbers, written Zf or Zd",
        adapt=_complex,
        misfit=_is_of("complex64", "complex128"),
        control=plans.numbers,
    ),
    _variant(
        "complex-letter",
        "PB-22",
        "right-or-error",
        "complex numbers, written F or D as CPython 3.14 does",
        _complex_letter(""),
        adapt=_complex,
        misfit=_is_of("complex64", "complex128"),
        control=_complex,
    ),
    _variant(
        "complex-letter-order",
        "PB-22",
        "right-or-error",
        "complex numbers, written with their byte order before F or D",
        _complex_letter("<" if sys.byteorder == "little" else ">"),
        adapt=_complex,
        misfit=_is_of("complex64", "complex128"),
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
        exporter=WrongMethodExporter,
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
        position=50,
        plain_rules={
            "complex": "PB-22",
            "swapped": "PB-20",
            "records": "PB-20",
            "strides": "PB-32",
        },
    ),
)
