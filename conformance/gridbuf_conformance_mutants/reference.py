"""The reference producer: an array type that obeys every rule, to be broken rule by rule.

`Array` is a view of a `Block` through a shape, byte strides and an offset. Each interface it has is
one class here (`ExportsArrayInterface`, `ExportsBuffer`, …) and each answer one small method, so
that a mutant overrides exactly the answer it gets wrong. An array with fewer interfaces is a
different combination of the same classes.
"""

from __future__ import annotations
from gridbuf_conformance.interfaces.dlpack_structs.structs import Managed, VersionedManaged
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer

import ctypes
import itertools
import math
from collections.abc import Sequence
from ctypes import c_ssize_t
from typing import ClassVar

from gridbuf_conformance.interfaces.array_struct.struct import ArrayStruct
from gridbuf_conformance.interfaces.buffer_protocol.slots import (
    BufferExporter,
    retained,
    static_text,
)
from gridbuf_conformance.plan import ALIGNMENT_LIMIT_BYTES, UNTOUCHED_FROM_BYTES, Plan
from gridbuf_conformance.plan.producer import Capabilities, Unsupported
from gridbuf_conformance.plan.views import ViewMap

from . import capsules
from .elements import ELEMENTS, Element
from .exchange_table import ExportsExchange
from .memory import Block

# Request flags of the buffer protocol.
WRITABLE, FORMAT, ND, STRIDES, INDIRECT = 0x1, 0x4, 0x8, 0x18, 0x118
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS = 0x38, 0x58, 0x98

CPU = (1, 0)
READ_ONLY, IS_COPIED = 1, 2  # DLPack's flag bits
DLPACK_VERSION = (1, 1)

_api = ctypes.PyDLL(None)
_api.PyMem_RawMalloc.restype = ctypes.c_void_p
_api.PyMem_RawMalloc.argtypes = [ctypes.c_size_t]
_api.PyMem_RawFree.argtypes = [ctypes.c_void_p]

SHIFT_BYTES = 3 * 2**14
"""The distance of a duplicate from the original, or a multiple, that keeps the alignment."""


def asks(flags: int, request: int) -> bool:
    """Whether a request holds every bit of another."""
    return flags & request == request


def strides_of(
    shape: Sequence[int], layout: Sequence[int], item_bytes: int, unit: int = 1
) -> tuple:
    """Byte strides of a layout map; the contiguous extent is padded to a multiple of `unit`."""
    strides = [0] * len(shape)
    distance = item_bytes
    for place, axis in enumerate(sorted(range(len(shape)), key=lambda axis: -layout[axis])):
        strides[axis] = distance
        is_padded = place == 0 and len(shape) > 1
        distance *= max(1, -(-shape[axis] // unit) * unit if is_padded else shape[axis])
    return tuple(strides)


class Memory:
    """What every array of the zoo is: a block seen through a shape, byte strides and an address."""

    def __init__(
        self,
        block: Block,
        element: Element,
        shape: Sequence[int],
        strides: Sequence[int],
        address: int,
        *,
        swapped: bool = False,
        readonly: bool = False,
        dims: tuple[str, ...] | None = None,
        halo: tuple[tuple[int, int], ...] | None = None,
    ) -> None:
        self.block = block
        self.element = element
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.address = address
        self.swapped = swapped
        self.readonly = readonly
        self.halo = halo
        if dims is not None:
            self.__gt_dims__ = dims

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def item_bytes(self) -> int:
        return self.element.itemsize

    @property
    def total_bytes(self) -> int:
        return math.prod(self.shape) * self.item_bytes

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    @property
    def is_untouched(self) -> bool:
        """Whether this is a huge array without content, which must not be read."""
        return self.total_bytes >= UNTOUCHED_FROM_BYTES

    def is_contiguous(self, order: str) -> bool:
        """Contiguity in "C" or "F" order; axes of extent 1 and empty arrays carry no meaning."""
        axes = range(self.ndim) if order == "F" else reversed(range(self.ndim))
        distance = self.item_bytes
        for axis in axes:
            if self.shape[axis] != 1 and self.strides[axis] != distance and not self.is_empty:
                return False
            distance *= self.shape[axis]
        return True

    def viewed(self, operation: Sequence) -> Memory:
        """A view by one of the plan's view operations."""
        view = ViewMap.of(self.shape, [operation])
        result = self.reshaped(view.shape, view.strides(self.strides), view.offset(self.strides))
        if None not in view.axes:
            self.pass_names_on(result, view.axes, is_turned=operation[0] == "transpose")
        return result

    def pass_names_on(self, view: Memory, axes: Sequence[int], *, is_turned: bool) -> None:
        """Give a view the names of its dimensions, and their halos if no dimension was cut."""
        names = vars(self).get("__gt_dims__")
        if names is not None:
            view.__gt_dims__ = tuple(names[axis] for axis in axes)
        if self.halo is not None and is_turned:
            view.halo = tuple(self.halo[axis] for axis in axes)

    def reshaped(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> Memory:
        """The same memory through another shape, byte strides and offset from element zero."""
        flags = {"swapped": self.swapped, "readonly": self.readonly}
        return type(self)(self.block, self.element, shape, strides, self.address + offset, **flags)

    def fill(self, content: bytes) -> None:
        """Write the elements' bytes, given in row-major order."""
        source = (ctypes.c_char * len(content)).from_buffer_copy(content)
        start = ctypes.addressof(source)
        for number, index in enumerate(itertools.product(*map(range, self.shape))):
            target = self.address + sum(i * s for i, s in zip(index, self.strides))
            ctypes.memmove(target, start + number * self.item_bytes, self.item_bytes)

    def duplicate(self) -> Memory:
        """The same array in its own block: the same strides, permission and alignment."""
        if self.is_untouched:
            return self
        old, length_bytes = self.block, self.block.high - self.block.low
        block = Block(length_bytes + SHIFT_BYTES)
        low = block.low + (old.low - block.low) % SHIFT_BYTES
        ctypes.memmove(low, old.low, length_bytes)
        block.allow(writable=not self.readonly)
        flags = {"swapped": self.swapped, "readonly": self.readonly}
        address = low + self.address - old.low
        return type(self)(block, self.element, self.shape, self.strides, address, **flags)

    def copied(self) -> Memory:
        """A row-major copy in its own block; huge arrays have no content to copy."""
        block = Block(self.total_bytes)
        strides = strides_of(self.shape, range(self.ndim), self.item_bytes)
        copy = type(self)(block, self.element, self.shape, strides, block.low, swapped=self.swapped)
        for index in () if self.is_untouched else itertools.product(*map(range, self.shape)):
            target, source = (
                array.address + sum(i * s for i, s in zip(index, array.strides))
                for array in (copy, self)
            )
            ctypes.memmove(target, source, self.item_bytes)
        return copy


def freed_copy(array: Memory) -> int:
    """Where the first element of a copy was, whose memory is free again."""
    reach = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape)]
    before, after = -sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
    length_bytes = before + after + array.item_bytes
    start = _api.PyMem_RawMalloc(length_bytes)
    ctypes.memmove(start, array.address - before, length_bytes)
    _api.PyMem_RawFree(start)
    return start + before


class ExportsArrayInterface:
    """`__array_interface__`, protocol 3."""

    @property
    def __array_interface__(self) -> dict:
        return self.array_interface()

    def array_interface(self) -> dict:
        typestr = self.element.typestr(self.swapped)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": typestr,
            "descr": self.element.descr(self.swapped),
            "data": (self.address, self.readonly),
            "strides": None if self.is_contiguous("C") else self.strides,
        }


class BufferInDict(Memory, ExportsArrayInterface):
    """The array interface whose data is a buffer object, with an offset to the first element."""

    def array_interface(self) -> dict:
        length_bytes = self.block.high - self.block.low
        exported = memoryview((ctypes.c_ubyte * length_bytes).from_address(self.block.low))
        start = 0 if self.is_empty else self.address - self.block.low
        data = exported.cast("B").toreadonly() if self.readonly else exported.cast("B")
        return {**super().array_interface(), "offset": start, "data": data}


class ExportsArrayStruct:
    """`__array_struct__`: an unnamed capsule over `PyArrayInterface`."""

    @property
    def __array_struct__(self) -> object:
        return capsules.array_struct_capsule(self.array_struct(), self)

    def array_struct(self) -> ArrayStruct:
        return capsules.filled_struct(
            self.shape,
            self.strides,
            kind=self.element.kind,
            item_bytes=self.item_bytes,
            flags=self.array_struct_flags(),
            address=self.address,
        )

    def array_struct_flags(self) -> int:
        aligned = all(n % self.item_bytes == 0 for n in (self.address, *self.strides))
        claims = {
            0x1: self.is_contiguous("C"),
            0x2: self.is_contiguous("F"),
            0x100: aligned,
            0x200: not self.swapped,
            0x400: not self.readonly,
        }
        return sum(bit for bit, holds in claims.items() if holds)


class ExportsBuffer(BufferExporter):
    """The buffer protocol."""

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        view.obj = None
        self.refuse_unmet(flags)
        self.describe(view, flags)
        self.own(view)

    def refuse_unmet(self, flags: int) -> None:
        """Raise BufferError for a request that this memory cannot meet."""
        in_c, in_f = self.is_contiguous("C"), self.is_contiguous("F")
        unmet = {
            "writable memory": flags & WRITABLE and self.readonly,
            "C-contiguous memory": asks(flags, C_CONTIGUOUS) and not in_c,
            "Fortran-contiguous memory": asks(flags, F_CONTIGUOUS) and not in_f,
            "contiguous memory": asks(flags, ANY_CONTIGUOUS) and not (in_c or in_f),
            "memory without strides": not asks(flags, STRIDES) and not in_c,
        }
        for request, is_unmet in unmet.items():
            if is_unmet:
                raise BufferError(f"this array cannot be given as {request}; ask for strides")

    def describe(self, view: PyBuffer, flags: int) -> None:
        """Fill everything but `obj`."""
        view.buf = self.address
        view.len = self.total_bytes
        view.itemsize = self.item_bytes
        view.readonly = self.readonly
        view.ndim = self.ndim
        view.suboffsets = None
        format_text = static_text(self.element.buffer_format(self.swapped))
        view.format = format_text if flags & FORMAT else None
        self.point_to_arrays(view, flags)

    def point_to_arrays(self, view: PyBuffer, flags: int) -> None:
        """Point `shape` and `strides` at arrays that live until the release."""
        shape = (c_ssize_t * max(1, self.ndim))(*self.shape)
        strides = (c_ssize_t * max(1, self.ndim))(*self.strides)
        view.shape = shape if self.ndim and asks(flags, ND) else None
        view.strides = strides if self.ndim and asks(flags, STRIDES) else None
        view.internal = retained(shape, strides)


class ExportsDLPack:
    """`__dlpack__` and `__dlpack_device__` of the 2025 array API standard, for host memory."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        self.check_keywords(stream, max_version, dl_device)
        versioned = max_version is not None and max_version >= (1, 0)
        source = self.copied() if copy else self
        source.check_describable(versioned)
        return source.export(versioned, copied=bool(copy)).capsule()

    def check_keywords(self, stream, max_version, dl_device) -> None:
        if stream is not None:
            raise BufferError(f"stream is {stream!r}, must be None: host memory has no streams")
        if max_version is not None and not is_int_pair(max_version):
            raise TypeError(f"max_version is {max_version!r}, must be a tuple of two ints")
        if dl_device is not None and not is_int_pair(dl_device):
            raise TypeError(f"dl_device is {dl_device!r}, must be a tuple of two ints")
        if dl_device not in (None, CPU):
            raise BufferError(f"dl_device is {dl_device!r}, must be {CPU}: this is host memory")

    def check_describable(self, versioned: bool) -> None:
        if self.element.dlpack is None or self.swapped:
            raise BufferError("DLPack cannot describe this element type; convert it first")
        if any(s % self.item_bytes and n > 1 for n, s in zip(self.shape, self.strides)):
            raise BufferError("a stride is not a multiple of the item size; copy the array first")
        if self.readonly and not versioned:
            raise BufferError("a legacy capsule cannot say read-only; pass max_version=(1, 0)")

    def export(self, versioned: bool, *, copied: bool) -> capsules.Export:
        managed = VersionedManaged() if versioned else Managed()
        export = capsules.Export(managed, owner=self)
        self.describe_tensor(export)
        if versioned:
            managed.major, managed.minor = DLPACK_VERSION
            managed.flags = READ_ONLY * self.readonly | IS_COPIED * copied
        return export

    def describe_tensor(self, export: capsules.Export) -> None:
        tensor = export.managed.tensor
        tensor.data = None if self.is_empty else self.address
        tensor.device_type, tensor.device_id = CPU
        tensor.ndim = self.ndim
        tensor.code, tensor.bits = self.element.dlpack
        tensor.lanes = 1
        strides = [stride // self.item_bytes for stride in self.strides]
        export.set_metadata(self.shape if self.ndim else None, strides if self.ndim else None)


def is_int_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(type(n) is int for n in value)


class Exports:
    """Arrays that have one interface only: a defect is not a disagreement."""

    class ArrayInterface(ExportsArrayInterface, Memory):
        """Only `__array_interface__`."""

    class ArrayStruct(ExportsArrayStruct, Memory):
        """Only `__array_struct__`."""

    class Buffer(Memory, ExportsBuffer):
        """Only the buffer protocol."""

    class DLPack(ExportsDLPack, Memory):
        """Only DLPack."""


class Array(
    ExportsArrayInterface, ExportsArrayStruct, ExportsDLPack, ExportsExchange, Memory, ExportsBuffer
):
    """All host interfaces over one memory."""


class Unexportable(ExportsDLPack, Memory):
    """An array without memory: every export is refused."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("there is no memory, so there is no device of DLPack")

    def __dlpack__(self, **keywords: object) -> object:
        raise BufferError("this array has no memory that could be exported")


class Reference:
    """Makes every array of the plan with these element types."""

    name = "reference"
    array_type: ClassVar[type[Memory]] = Array
    capabilities = Capabilities(
        dtypes=tuple(ELEMENTS),
        max_ndim=5,
        layouts="any",
        byteorders=("native", "swapped"),
        readonly=(False, True),
        alignment_bytes=(1, ALIGNMENT_LIMIT_BYTES),
        dims=True,
        halo=True,
        declares=frozenset({"layout", "alignment_size", "aligned_index", "dims", "halo"}),
    )

    def produce(self, plan: Plan) -> Memory | Unsupported:
        if self.element(plan) is None:
            return Unsupported(f"element type {plan.dtype} has no place in the zoo")
        array = self.allocate(plan)
        if plan.fill is not None:
            self.fill(array, plan)
        if plan.readonly:
            array.block.allow(writable=False)
        return array

    def element(self, plan: Plan) -> Element | None:
        """The plan's element type; None if the zoo has none."""
        return ELEMENTS.get(plan.dtype)

    def fill(self, array: Memory, plan: Plan) -> None:
        """Write the plan's content."""
        array.fill(plan.content())

    def allocate(self, plan: Plan) -> Memory:
        """The array of the plan, not yet filled."""
        element = self.element(plan)
        strides = self.strides(plan, element)
        distance = sum(i * s for i, s in zip(plan.aligned_element, strides))
        extents = zip(plan.shape, strides)
        hull_bytes = sum((n - 1) * s for n, s in extents if n) + element.itemsize
        block = self.block(hull_bytes + plan.alignment_size)
        address = block.low + -(block.low + distance) % plan.alignment_size
        order = {"swapped": plan.byteorder == "swapped", "readonly": plan.readonly}
        return self.array_type(
            block, element, plan.shape, strides, address, dims=plan.dims, halo=plan.halo, **order
        )

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        unit = plan.alignment_size // math.gcd(plan.alignment_size, element.itemsize)
        return strides_of(plan.shape, layout, element.itemsize, unit)

    def block(self, length_bytes: int) -> Block:
        return Block(length_bytes)

    def apply_view(self, array: Memory, operation: Sequence) -> Memory:
        return array.viewed(operation)


class MemorylessReference(Reference):
    """The right producer of arrays without memory."""

    name = "memoryless reference"
    has_memory = False
    array_type = Unexportable
