"""A device in pure Python, and arrays in its memory, for the zoo's defects of device rules.

Device pages refuse every access by the host; only the table's `copy` opens them for a moment. A
stream is a queue of work that runs only in a wait for the stream: a producer that forgets to wait
always reads old bytes. Pinned and managed memory is ordinary memory that the device knows.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar

from gridbuf_conformance.abi import device as abi
from gridbuf_conformance.plan import Plan

from . import capsules
from .capsules import Export
from .elements import Element
from .exchange_table import ExportsExchange
from .memory import Block
from .reference import (
    CPU,
    SHIFT_BYTES,
    Array,
    ExportsArrayInterface,
    ExportsArrayStruct,
    ExportsBuffer,
    ExportsDLPack,
    Memory,
    Reference,
    is_int_pair,
    strides_of,
)

LEGACY = 1
_TYPES = {"gpu": 2, "pinned": 3, "managed": 13}  # DLPack's device types
_FIRST_HANDLE = 0x1000


class DeviceError(RuntimeError):
    """What the device refuses; the table turns it into an error code."""


class DeviceBlock(Block):
    """Memory of one kind; of kind "gpu" its pages refuse the host except inside `opened`."""

    def __init__(self, length_bytes: int, kind: str) -> None:
        self.kind = kind
        super().__init__(length_bytes)
        self.allow(writable=True)
        DEVICE.blocks[self.low] = self

    def allow(self, *, writable: bool) -> None:
        """Only memory that the host reaches has a permission to lose."""
        if self.kind == "gpu":
            self.protect(0)
        else:
            super().allow(writable=writable)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Lets this process read and write the pages, as the device would."""
        with DEVICE.lock:  # what one thread opens, another must not close
            self.protect(mmap.PROT_READ | mmap.PROT_WRITE)
            try:
                yield
            finally:
                self.allow(writable=True)


class Device:
    """Memory, streams and the library's current stream; `table` is the C table over them."""

    def __init__(self) -> None:
        self.blocks: weakref.WeakValueDictionary[int, DeviceBlock] = weakref.WeakValueDictionary()
        self.queues: dict[int, list[Callable[[], None]]] = {1: [], 2: []}
        self.lock = threading.RLock()
        self.current = LEGACY
        self._next = _FIRST_HANDLE

    # -- memory -----------------------------------------------------------------------------------

    def block_at(self, address: int) -> DeviceBlock | None:
        """The block that holds an address."""
        for low, block in list(self.blocks.items()):
            if low <= address < block.high:
                return block
        return None

    def move(self, target: int, source: int, length_bytes: int) -> None:
        """Copies bytes immediately."""
        with contextlib.ExitStack() as opened:
            for block in {self.block_at(target), self.block_at(source)} - {None}:
                opened.enter_context(block.opened())
            ctypes.memmove(target, source, length_bytes)

    def fill(self, target: int, value: int, length_bytes: int) -> None:
        """Fills bytes now."""
        block = self.block_at(target)
        if block is not None:
            with block.opened():
                ctypes.memset(target, value & 0xFF, length_bytes)

    # -- streams ----------------------------------------------------------------------------------

    def queue(self, stream: int) -> list[Callable[[], None]]:
        if stream not in self.queues:
            raise DeviceError("invalid stream handle")
        return self.queues[stream]

    def create_stream(self) -> int:
        self._next += 16
        self.queues[self._next] = []
        return self._next

    def destroy_stream(self, stream: int) -> None:
        self.synchronize(stream)
        del self.queues[stream]

    def synchronize(self, stream: int) -> None:
        """Runs what a stream has to do; 0 runs all streams."""
        for handle in list(self.queues) if stream == 0 else [stream]:
            _run(self.queue(handle))

    def order_after(self, consumer: int, producer: int) -> None:
        """Work that `consumer` gets from now on runs after what `producer` has to do now."""
        pending = self.queue(producer)
        if pending and pending is not self.queue(consumer):
            self.queue(consumer).append(lambda: _run(pending))

    @contextlib.contextmanager
    def working_on(self, stream: int) -> Iterator[None]:
        """Makes a stream the library's current one."""
        previous, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = previous

    # -- the table --------------------------------------------------------------------------------

    def table(self) -> object:
        """The capsule of the C table; the same one every time."""
        fields = dict(abi.DeviceTable._fields_)
        operations = {
            "copy": self._copy,
            "synchronize": self.synchronize,
            "pointer_info": self._pointer_info,
            "slow_fill": self._slow_fill,
            "stream_create": self._stream_create,
            "stream_destroy": self.destroy_stream,
            "stream_query": self._stream_query,
        }
        if not hasattr(self, "_capsule"):
            functions = {name: fields[name](self._coded(f)) for name, f in operations.items()}
            # A callback that returns bytes would never free them: it returns an address instead.
            self._text = ctypes.create_string_buffer(256)
            self._say = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(self._text))
            error_text = ctypes.cast(self._say, fields["error_text"])
            size = ctypes.sizeof(abi.DeviceTable)
            self._table = abi.DeviceTable(1, size, b"zoo", *functions.values(), error_text)
            self._name = abi.TABLE_NAME.encode()
            self._capsule = capsules.new_capsule(ctypes.addressof(self._table), self._name)
        return self._capsule

    def _coded(self, operation: Callable[..., None]) -> Callable[..., int]:
        def call(*arguments: object) -> int:
            try:
                operation(*arguments)
            except Exception as error:
                self._text.value = str(error).encode()[:255]
                return 1
            return 0

        return call

    def _copy(self, target: int, source: int, length_bytes: int, stream: int) -> None:
        self.synchronize(stream)
        self.move(target, source, length_bytes)

    def _pointer_info(self, address: int, info: object) -> None:
        block, found = self.block_at(address), info.contents
        found.device_type = _TYPES[block.kind] if block else 1
        found.device_id = 0
        found.base, found.length_bytes = (
            (block.low, block.high - block.low) if block else (address, 0)
        )
        found.host_accessible = block is None or block.kind != "gpu"
        found.device_accessible = block is not None

    def _slow_fill(
        self, target: int, value: int, length_bytes: int, milliseconds: int, stream: int
    ) -> None:
        self.queue(stream).append(lambda: self.fill(target, value, length_bytes))

    def _stream_create(self, stream: object) -> None:
        stream[0] = self.create_stream()

    def _stream_query(self, stream: int, idle: object) -> None:
        idle[0] = not self.queue(stream)


def _run(queue: list[Callable[[], None]]) -> None:
    while queue:
        queue.pop(0)()


DEVICE = Device()


class DeviceMemory(Memory):
    """An array in device, pinned or managed memory, with the stream on which it was made."""

    def __init__(
        self, block: object, *arguments: object, stream: int | None = None, **flags: object
    ):
        super().__init__(block, *arguments, **flags)
        self.stream = DEVICE.current if stream is None else stream

    @property
    def device(self) -> tuple[int, int]:
        return _TYPES[self.block.kind], 0

    @staticmethod
    def new_block(length_bytes: int, kind: str) -> Block:
        """Memory of a kind for an array of this type."""
        return DeviceBlock(length_bytes, kind)

    def reshaped(self, shape: tuple, strides: tuple, offset: int) -> Memory:
        view = super().reshaped(shape, strides, offset)
        view.stream = self.stream
        return view

    def fill(self, content: bytes) -> None:
        with self.block.opened():
            super().fill(content)

    def duplicate(self) -> Memory:
        """The same array in its own block: the same strides and alignment."""
        length_bytes = self.block.high - self.block.low
        block = DeviceBlock(length_bytes + SHIFT_BYTES, self.block.kind)
        low = block.low + (self.block.low - block.low) % SHIFT_BYTES
        DEVICE.move(low, self.block.low, length_bytes)
        flags = {"swapped": self.swapped, "readonly": self.readonly, "stream": self.stream}
        address = low + self.address - self.block.low
        return type(self)(block, self.element, self.shape, self.strides, address, **flags)

    def copied(self) -> Memory:
        return self.copied_to(DeviceBlock(self.total_bytes, self.block.kind), type(self))

    def copied_to(self, block: Block, kind: type[Memory]) -> Memory:
        """A row-major copy in the given block, made now."""
        strides = strides_of(self.shape, range(self.ndim), self.item_bytes)
        copy = kind(block, self.element, self.shape, strides, block.low, swapped=self.swapped)
        self._copy_elements(copy)
        return copy

    def _copy_elements(self, copy: Memory) -> None:
        for index in () if self.is_untouched else itertools.product(*map(range, self.shape)):
            target, source = (
                array.address + sum(i * s for i, s in zip(index, array.strides))
                for array in (copy, self)
            )
            DEVICE.move(target, source, self.item_bytes)


class ExportsCudaInterface:
    """`__cuda_array_interface__`, version 3."""

    @property
    def __cuda_array_interface__(self) -> dict:
        return self.cuda_interface()

    def cuda_interface(self) -> dict:
        return {
            "shape": self.shape,
            "typestr": self.element.typestr(self.swapped),
            "descr": self.element.descr(self.swapped),
            "data": (0 if self.is_empty else self.address, self.readonly),
            "strides": None if self.is_contiguous("C") else self.strides,
            "version": 3,
            "stream": self.stream,
        }


class ExportsDeviceDLPack(ExportsDLPack):
    """DLPack with streams and with the way to the host."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        self.check_keywords(stream, max_version, dl_device)
        versioned = max_version is not None and max_version >= (1, 0)
        if dl_device == CPU:
            return self.host_copy(versioned, copy)
        source = self.copied() if copy else self
        source.check_describable(versioned)
        self.hand_over(stream)
        return source.export(versioned, copied=bool(copy)).capsule()

    def check_keywords(self, stream, max_version, dl_device) -> None:
        if stream is not None and type(stream) is not int:
            raise TypeError(f"stream is {stream!r}, must be None or an int")
        if stream == 0:
            raise BufferError("stream 0 is ambiguous; pass 1 for the legacy default stream")
        if max_version is not None and not is_int_pair(max_version):
            raise TypeError(f"max_version is {max_version!r}, must be a tuple of two ints")
        if dl_device is not None and not is_int_pair(dl_device):
            raise TypeError(f"dl_device is {dl_device!r}, must be a tuple of two ints")
        if dl_device not in (None, CPU, self.device):
            raise BufferError(f"dl_device is {dl_device!r}, must be {self.device} or {CPU}")

    def hand_over(self, stream: int | None) -> None:
        """Order the consumer's stream behind the array's."""
        if stream != -1:
            DEVICE.order_after(LEGACY if stream is None else stream, self.stream)

    def host_copy(self, versioned: bool, copy: bool | None) -> object:
        if copy is False:
            raise BufferError("the host cannot have this memory without a copy")
        self.check_describable(versioned)
        DEVICE.synchronize(self.stream)
        copied = self.copied_to(Block(self.total_bytes), Array)
        return copied.export(versioned, copied=True).capsule()

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        tensor = export.managed.tensor
        tensor.device_type, tensor.device_id = self.device


class ExportsDeviceExchange(ExportsExchange):
    """The exchange table for arrays on the device."""

    @classmethod
    def new(cls, shape: tuple[int, ...], element: Element) -> object:
        strides = strides_of(shape, range(len(shape)), element.itemsize)
        total = element.itemsize
        for extent in shape:
            total *= extent
        block = DeviceBlock(total, "gpu")
        return cls(block, element, shape, strides, block.low)

    @classmethod
    def current_stream(cls, device_type: int, device_id: int) -> int | None:
        return DEVICE.current


class ExportsDataInterface:
    """`__gt_data_interface__` with the entries of the interfaces that the array has."""

    @property
    def __gt_data_interface__(self) -> dict:
        return self.data_interface()

    def data_interface(self) -> dict:
        entries = {}
        if hasattr(self, "__array_interface__"):
            entries[None] = self.entry(self.__array_interface__)
        if hasattr(self, "__cuda_array_interface__"):
            entries["gpu"] = self.entry(self.__cuda_array_interface__)
        return entries

    def entry(self, interface: dict) -> dict:
        hooks = {"acquire": self.acquire, "touch": self.touch}
        return {**interface, **hooks, **self.names_and_halo()}

    def names_and_halo(self) -> dict:
        """The requested keys of an entry that an array interface does not have."""
        said = {"dims": getattr(self, "__gt_dims__", None), "halo": self.halo}
        return {key: value for key, value in said.items() if value is not None}

    def acquire(self) -> None:
        DEVICE.synchronize(self.stream)

    def touch(self) -> None:
        """One memory: nothing has to be remembered."""


class DeviceArray(
    ExportsDataInterface,
    ExportsCudaInterface,
    ExportsDeviceDLPack,
    ExportsDeviceExchange,
    DeviceMemory,
):
    """Device memory: the CUDA array interface, DLPack, the exchange table, the data interface."""


class HostReadableArray(
    ExportsDataInterface,
    ExportsArrayInterface,
    ExportsArrayStruct,
    ExportsCudaInterface,
    ExportsDeviceDLPack,
    DeviceMemory,
    ExportsBuffer,
):
    """Pinned and managed memory: the host's interfaces as well."""


class DeviceReference(Reference):
    """The reference producer on the zoo's device."""

    name = "device reference"
    array_types: ClassVar[dict[str, type[Memory]]] = {
        "gpu": DeviceArray,
        "pinned": HostReadableArray,
        "managed": HostReadableArray,
    }
    capabilities = replace(Reference.capabilities, devices=("gpu", "pinned", "managed"))

    def produce(self, plan: Plan) -> object:
        self._kind = plan.device
        return super().produce(plan)

    @property
    def array_type(self) -> type[Memory]:
        return self.array_types[self._kind]

    def block(self, length_bytes: int) -> Block:
        return self.array_type.new_block(length_bytes, self._kind)

    def device_table(self) -> object:
        return DEVICE.table()

    def on_stream(self, stream: int) -> object:
        return DEVICE.working_on(stream)
