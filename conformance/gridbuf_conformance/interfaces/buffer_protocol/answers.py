"""Buffer protocol exports: an object whose `Py_buffer` answers are written field by field.

The exporter's type has C slots (`abi.buffer_exporter`), so every request flag is treated as the
documents say, on every Python; a variant (`buffer_variants`) edits one `Answer` before it is
written into the struct. Each granted request is watched until its release: that it comes once, and
finds the arrays behind `shape`, `strides` and `suboffsets` as they were. When no request is open
any more the memory counts as given back, for that is what the release says.

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

from .slots import answering_type, own, static_text
from ...abi.descriptors import is_contiguous
from .pybuffer import REQUESTS, PyBuffer
from ...info import ExportInfo
from ...plan import Plan
from ...exports.export import Export, ObservedExport, Variant
from ...exports.memory import Block
from ...exports.native import Ledger, ViewFrame, release_function

WRITABLE, FORMAT, ND, STRIDES, INDIRECT = 0x1, 0x4, 0x8, 0x18, 0x118
_ORDERS = {
    "row-major memory": (0x38, "C"),
    "column-major memory": (0x58, "F"),
    "contiguous memory": (0x98, "CF"),
}
POINTER_BYTES = ctypes.sizeof(c_void_p)


def asks(flags: int, request: int) -> bool:
    """Whether a request holds every bit of another."""
    return flags & request == request


# -- answers -------------------------------------------------------------------------------------


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
    """The format of a plan's element type; an explicit order only if it is not native."""
    written = plan.dtype_info.format
    if written is None or plan.byteorder == "native":
        return written
    other = ">" if sys.byteorder == "little" else "<"
    if plan.dtype_info.fields:
        return written.replace("=", other)
    return other + written


# -- exporters -----------------------------------------------------------------------------------


if TYPE_CHECKING:
    _BytesExporterBase = object
else:
    _BytesExporterBase = answering_type("BytesExporterBase", release_function())


class BytesExporter(_BytesExporterBase):
    """An exporter that asks its `ObservedBuffer`; machine code counts releases (`native`)."""

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
        self.requests: list[str] = []
        self.views: list[_Granted] = []
        self.ledger = Ledger()
        if isinstance(self.variant, BufferVariant) and self.variant.takes_back:
            self.ledger.low, self.ledger.length_bytes = block.low, block.high - block.low
        self.method_grants = 0
        self.method_releases: list[bool] = []
        variant = self.variant
        self.make(variant.exporter if isinstance(variant, MethodVariant) else BytesExporter)

    def answer(self) -> Answer:
        """The description of the memory, changed by the variant."""
        answer = Answer.of(self.block)
        self.variant.bend(answer, self.block)
        return answer

    def grant(self, view: PyBuffer, flags: int) -> None:
        """Answers one request; raises BufferError for one that cannot be met."""
        self.requests.append(_request_name(flags))
        answer = self.answer()
        answer.refuse_unmet(flags)
        if self.views and self._is_released:
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

    @property
    def _is_released(self) -> bool:
        return all(view.frame.released for view in self.views)

    def is_free(self) -> bool:
        return self._is_released and super().is_free()

    def close(self) -> None:
        super().close()
        self.block.allow()


def _content(array: Any) -> bytes | None:
    return None if array is None else bytes(array)


def _request_name(flags: int) -> str:
    """A request as the documents write it, or its number."""
    for name, value in REQUESTS.items():
        if value == flags:
            return name
    return f"flags {flags:#x}"


# -- exporters written as methods (PEP 688) ------------------------------------------------------


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


class WrongMethodExporter:
    """A `__buffer__` that returns bytes, which the interpreter refuses."""

    def __init__(self, observed: ObservedBuffer) -> None:
        self._content = b"\x00" * max(observed.block.nbytes, 1)

    def __buffer__(self, flags: int) -> Any:
        return self._content


@dataclass(frozen=True)
class BufferVariant(Variant):
    """A variant of the struct: `bend` edits the answer to each request.

    `takes_back`: with the last release the exporter closes its pages, as one that frees does.
    """

    takes_back: bool = False


@dataclass(frozen=True)
class MethodVariant(Variant):
    """An exporter that is a class with methods, from Python 3.12 on."""

    exporter: Callable[[ObservedBuffer], Any] = _MethodExporter
