"""Access to device memory of any library: copies, streams and pointer information.

The suite cannot follow a device pointer. One of two classes copies bytes and describes addresses:

- `TableAccess`, by a small C table that a producer hands out as a capsule named
  `gridbuf_device_table_v1` (its text is below): a device that no driver knows, such as an emulated
  one, is judged through it;
- `CudaAccess`, by the CUDA driver itself, for every producer without a table.

`Devices` selects one of them at the first question that needs it. Without either, the rules that
need the answer of the device are UNTESTED.

```c
typedef struct { int32_t device_type, device_id; /* DLPack's codes */ uint64_t base, length_bytes;
                 int32_t host_accessible, device_accessible; } gridbuf_pointer_info;
typedef struct { uint32_t version /*1*/, struct_bytes; const char* name;
  int (*copy)(uint64_t target, uint64_t source, uint64_t length_bytes,
              uint64_t stream);  // done at return
  int (*synchronize)(uint64_t stream);  // 0: the whole device
  int (*pointer_info)(uint64_t address, gridbuf_pointer_info* info);
  int (*slow_fill)(uint64_t target, int32_t value, uint64_t length_bytes, uint32_t milliseconds,
                   uint64_t stream);
  int (*stream_create)(uint64_t* stream);
  int (*stream_destroy)(uint64_t stream);
  int (*stream_query)(uint64_t stream, int32_t* idle);
  const char* (*error_text)(void);
} gridbuf_device_table;  // every int function: 0 = done
```

Stream handles are those of the CUDA array interface: 1 the legacy default stream, 2 the per-thread
default stream, anything else the address of a stream.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_size_t,
    c_ubyte,
    c_uint,
    c_uint32,
    c_uint64,
    c_void_p,
    sizeof,
)
from typing import Any, NamedTuple

from .capsule import capsule_name_address, capsule_pointer, is_capsule
from .libraries import c_function

TABLE_NAME = "gridbuf_device_table_v1"
LEGACY_STREAM, PER_THREAD_STREAM = 1, 2
_WHOLE_DEVICE = 0
_WHOLE_READ_LIMIT_BYTES = 1 << 16


class DeviceError(Exception):
    """The device refused, or answered with an error; the text is the driver's."""


class PointerInfo(NamedTuple):
    """What the driver says of an address; `device_type` in DLPack's codes, 1 for host memory."""

    device_type: int
    device_id: int
    base: int
    length_bytes: int
    host_accessible: bool
    device_accessible: bool


class DeviceAccess(ABC):
    """What the suite asks of a device. Every method may raise `DeviceError`."""

    name = ""

    @abstractmethod
    def copy(self, target: int, source: int, length_bytes: int, stream: int) -> None:
        """Copies bytes in any direction, behind the work on `stream`; done at return."""

    @abstractmethod
    def synchronize(self, stream: int = _WHOLE_DEVICE) -> None:
        """Waits for a stream, or for the whole device."""

    @abstractmethod
    def pointer_info(self, address: int) -> PointerInfo:
        """Describes the memory at an address."""

    @abstractmethod
    def slow_fill(
        self, target: int, value: int, length_bytes: int, milliseconds: int, stream: int
    ) -> None:
        """Enqueues: wait, then fill the bytes. Returns at once."""

    @abstractmethod
    def create_stream(self) -> int:
        """A new stream that the default streams do not wait for."""

    @abstractmethod
    def destroy_stream(self, stream: int) -> None:
        """Ends a stream of `create_stream`."""

    @abstractmethod
    def check_stream(self, stream: int) -> None:
        """Raises DeviceError if the handle is not a live stream."""


# -- the table -----------------------------------------------------------------------------------


class _PointerInfo(Structure):
    """`gridbuf_pointer_info` (32 bytes)."""

    _fields_ = [
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("base", c_uint64),
        ("length_bytes", c_uint64),
        ("host_accessible", c_int32),
        ("device_accessible", c_int32),
    ]


_COPY = CFUNCTYPE(c_int, c_uint64, c_uint64, c_uint64, c_uint64)
_SYNCHRONIZE = CFUNCTYPE(c_int, c_uint64)
_POINTER_INFO = CFUNCTYPE(c_int, c_uint64, POINTER(_PointerInfo))
_SLOW_FILL = CFUNCTYPE(c_int, c_uint64, c_int32, c_uint64, c_uint32, c_uint64)
_STREAM_CREATE = CFUNCTYPE(c_int, POINTER(c_uint64))
_STREAM_QUERY = CFUNCTYPE(c_int, c_uint64, POINTER(c_int32))
_ERROR_TEXT = CFUNCTYPE(c_char_p)


class DeviceTable(Structure):
    """`gridbuf_device_table`, version 1."""

    _fields_ = [
        ("version", c_uint32),
        ("struct_bytes", c_uint32),
        ("name", c_char_p),
        ("copy", _COPY),
        ("synchronize", _SYNCHRONIZE),
        ("pointer_info", _POINTER_INFO),
        ("slow_fill", _SLOW_FILL),
        ("stream_create", _STREAM_CREATE),
        ("stream_destroy", _SYNCHRONIZE),
        ("stream_query", _STREAM_QUERY),
        ("error_text", _ERROR_TEXT),
    ]


class TableAccess(DeviceAccess):
    """A device behind a producer's table, for which it vouches as for its `produce`.

    Raises ValueError for a capsule that holds no table of this version.
    """

    def __init__(self, capsule: Any) -> None:
        if not is_capsule(capsule):
            raise ValueError(f"the device table is a {type(capsule).__name__}, must be a capsule")
        address = capsule_name_address(capsule)
        name = ctypes.string_at(address).decode("latin-1") if address else None
        if name != TABLE_NAME:
            raise ValueError(f"the device table's capsule is named {name!r}, must be {TABLE_NAME}")
        self._capsule = capsule
        self._table = DeviceTable.from_address(capsule_pointer(capsule))
        found = (self._table.version, self._table.struct_bytes)
        if found[0] != 1 or found[1] < sizeof(DeviceTable):
            raise ValueError(
                f"the device table has version {found[0]} and {found[1]} bytes, "
                f"must have version 1 and at least {sizeof(DeviceTable)}"
            )
        self.name = (self._table.name or b"").decode("latin-1")

    def copy(self, target: int, source: int, length_bytes: int, stream: int) -> None:
        self._done(self._table.copy(target, source, length_bytes, stream), "copy")

    def synchronize(self, stream: int = _WHOLE_DEVICE) -> None:
        self._done(self._table.synchronize(stream), "synchronize")

    def pointer_info(self, address: int) -> PointerInfo:
        info = _PointerInfo()
        self._done(self._table.pointer_info(address, byref(info)), "pointer_info")
        return PointerInfo(
            info.device_type,
            info.device_id,
            info.base,
            info.length_bytes,
            bool(info.host_accessible),
            bool(info.device_accessible),
        )

    def slow_fill(
        self, target: int, value: int, length_bytes: int, milliseconds: int, stream: int
    ) -> None:
        done = self._table.slow_fill(target, value, length_bytes, milliseconds, stream)
        self._done(done, "slow_fill")

    def create_stream(self) -> int:
        stream = c_uint64()
        self._done(self._table.stream_create(byref(stream)), "stream_create")
        return stream.value

    def destroy_stream(self, stream: int) -> None:
        self._done(self._table.stream_destroy(stream), "stream_destroy")

    def check_stream(self, stream: int) -> None:
        idle = c_int32()
        self._done(self._table.stream_query(stream, byref(idle)), "stream_query")

    def _done(self, result: int, operation: str) -> None:
        if result:
            text = (self._table.error_text() or b"").decode("utf-8", "replace")
            raise DeviceError(f"{operation}: {text or f'error {result}'}")


# -- the CUDA driver -----------------------------------------------------------------------------

_CUDA, _CUDA_HOST, _CUDA_MANAGED, _CPU = 2, 3, 13, 1  # DLPack's device types
_MEMORY_TYPE, _DEVICE_POINTER, _HOST_POINTER = 2, 3, 4  # CUpointer_attribute
_IS_MANAGED, _DEVICE_ORDINAL, _RANGE_START, _RANGE_SIZE = 8, 9, 11, 12
_IN_DEVICE_MEMORY = 2  # CU_MEMORYTYPE_DEVICE
_INVALID_VALUE, _NOT_READY = 1, 600
_NON_BLOCKING = 1


class CudaAccess(DeviceAccess):
    """CUDA devices through the driver, `libcuda.so.1`; raises DeviceError if there is none.

    The context that the producer made current stays current: the device's primary context is
    pushed for each call and popped after it.
    """

    name = "cuda"

    def __init__(self, library: Any = None) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1") if library is None else library
        except OSError as error:
            raise DeviceError(f"no CUDA driver: {error}") from None
        self._contexts: dict[int, int] = {}
        self._call("cuInit", c_uint(0))
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        if not count.value:
            raise DeviceError("the CUDA driver knows no device")

    def copy(self, target: int, source: int, length_bytes: int, stream: int) -> None:
        with self._current(self._device_of(target, source)):
            length = c_size_t(length_bytes)
            self._call(
                "cuMemcpyAsync", c_uint64(target), c_uint64(source), length, c_void_p(stream)
            )
            self._call("cuStreamSynchronize", c_void_p(stream))

    def allocate(self, length_bytes: int) -> int:
        """The address of new memory on device 0: for the suite's own exporters."""
        address = c_uint64()
        with self._current(0):
            self._call("cuMemAlloc_v2", byref(address), c_size_t(length_bytes))
        return address.value

    def free(self, address: int) -> None:
        """Gives memory of `allocate` back."""
        with self._current(0):
            self._call("cuMemFree_v2", c_uint64(address))

    def synchronize(self, stream: int = _WHOLE_DEVICE) -> None:
        with self._current(0):
            if stream == _WHOLE_DEVICE:
                self._call("cuCtxSynchronize")
            else:
                self._call("cuStreamSynchronize", c_void_p(stream))

    def pointer_info(self, address: int) -> PointerInfo:
        kind = self._attribute(_MEMORY_TYPE, address)
        if kind is None:  # memory that the driver has never seen
            return PointerInfo(_CPU, 0, address, 0, True, False)
        managed = bool(self._attribute(_IS_MANAGED, address))
        on_device = kind == _IN_DEVICE_MEMORY
        device_type = _CUDA_MANAGED if managed else _CUDA if on_device else _CUDA_HOST
        device_id = (self._attribute(_DEVICE_ORDINAL, address) or 0) if device_type == _CUDA else 0
        base, length = self._range(address, on_device or managed)
        host, device = (
            self._attribute(which, address) is not None
            for which in (_HOST_POINTER, _DEVICE_POINTER)
        )
        return PointerInfo(device_type, device_id, base, length, host or managed, device)

    def slow_fill(
        self, target: int, value: int, length_bytes: int, milliseconds: int, stream: int
    ) -> None:
        # The driver can call the C library's usleep on its own thread without Python's lock.
        wait = ctypes.cast(c_function("usleep"), c_void_p)
        with self._current(self._device_of(target)):
            self._call("cuLaunchHostFunc", c_void_p(stream), wait, c_void_p(1000 * milliseconds))
            self._call(
                "cuMemsetD8Async",
                c_uint64(target),
                c_ubyte(value & 0xFF),
                c_size_t(length_bytes),
                c_void_p(stream),
            )

    def create_stream(self) -> int:
        stream = c_void_p()
        with self._current(0):
            self._call("cuStreamCreate", byref(stream), c_uint(_NON_BLOCKING))
        return stream.value or 0

    def destroy_stream(self, stream: int) -> None:
        with self._current(0):
            self._call("cuStreamDestroy_v2", c_void_p(stream))

    def check_stream(self, stream: int) -> None:
        """The driver itself may die of a handle that is none: the process' end then says so."""
        with self._current(0):
            self._call("cuStreamQuery", c_void_p(stream), allowed=(0, _NOT_READY))

    # -- how the driver is called -----------------------------------------------------------------

    def _call(self, name: str, *arguments: Any, allowed: Sequence[int] = (0,)) -> int:
        result: int = getattr(self._library, name)(*arguments)
        if result not in allowed:
            raise DeviceError(f"{name}: {self._error(result)}")
        return result

    def _error(self, result: int) -> str:
        text = c_char_p()
        self._library.cuGetErrorString(c_int(result), byref(text))
        return (text.value or b"unknown error").decode("utf-8", "replace")

    def _attribute(self, which: int, address: int) -> int | None:
        """One attribute of a pointer; None for memory that has none (it is not the driver's)."""
        value = c_uint64()
        with self._current(0):
            result = self._call(
                "cuPointerGetAttribute",
                byref(value),
                c_int(which),
                c_uint64(address),
                allowed=(0, _INVALID_VALUE),
            )
        return None if result else value.value

    def _range(self, address: int, is_allocation: bool) -> tuple[int, int]:
        if not is_allocation:
            start = self._attribute(_RANGE_START, address)
            return start or address, self._attribute(_RANGE_SIZE, address) or 0
        base, length = c_uint64(), c_size_t()
        with self._current(0):
            self._call("cuMemGetAddressRange_v2", byref(base), byref(length), c_uint64(address))
        return base.value, length.value

    def _device_of(self, *addresses: int) -> int:
        found = (self._attribute(_DEVICE_ORDINAL, address) for address in addresses)
        return next((ordinal for ordinal in found if ordinal is not None), 0)

    @contextmanager
    def _current(self, ordinal: int) -> Iterator[None]:
        if ordinal not in self._contexts:
            context = c_void_p()
            self._call("cuDevicePrimaryCtxRetain", byref(context), c_int(ordinal))
            self._contexts[ordinal] = context.value or 0
        self._call("cuCtxPushCurrent_v2", c_void_p(self._contexts[ordinal]))
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", byref(c_void_p()))


# -- finding and using it ------------------------------------------------------------------------


class Devices:
    """The device access of one run, looked for when it is first needed.

    `find_table` returns a producer's table (a capsule) or None; then the CUDA driver is tried.
    `reason` says why there is none, in half a sentence. A table that is given and cannot be read
    raises ValueError: that is a mistake of the producer's author, and no finding.
    """

    def __init__(self, find_table: Callable[[], Any] | None = None) -> None:
        self._find_table = find_table
        self._access: DeviceAccess | None = None
        self._looked = False
        self.reason = ""

    def settle(self) -> None:
        """Waits for the device, if one is in use: pending work holds memory without a leak."""
        if self._access is not None:
            self._access.synchronize()

    @property
    def access(self) -> DeviceAccess | None:
        """The access, or None."""
        if not self._looked:
            self._access = self._found()
            self._looked = True
        return self._access

    def _found(self) -> DeviceAccess | None:
        capsule = self._find_table() if self._find_table is not None else None
        if capsule is not None:
            return TableAccess(capsule)
        try:
            return CudaAccess()
        except DeviceError as error:
            self.reason = f"no driver to ask ({error}) and no device table given"
            return None


class Space:
    """Memory by address. A subclass says what is readable, and reads it."""

    def readable(self, low: int, high: int) -> bool:
        """Whether [low, high) may be read."""
        raise NotImplementedError(f"{type(self).__name__} must define readable")

    def read(self, address: int, count: int) -> bytes | None:
        """`count` bytes at `address`, or None where they cannot be read."""
        raise NotImplementedError(f"{type(self).__name__} must define read")

    def elements(
        self,
        address: int,
        hull: tuple[int, int] | None,
        offsets: Sequence[int],
        itemsize_bytes: int,
    ) -> bytes | None:
        """The bytes of the elements at `address + offset`, one after another, or None.

        `hull` is the range of offsets that any element can reach; all of it has to be readable.
        """
        if hull is None or not offsets:
            return b""
        low, high = hull
        if not self.readable(address + low, address + high):
            return None
        if high - low <= _WHOLE_READ_LIMIT_BYTES:
            whole = self.read(address + low, high - low)
            if whole is None:
                return None
            return b"".join(whole[o - low : o - low + itemsize_bytes] for o in offsets)
        pieces = [self.read(address + offset, itemsize_bytes) for offset in offsets]
        found = [piece for piece in pieces if piece is not None]
        return b"".join(found) if len(found) == len(pieces) else None


class DeviceSpace(Space):
    """Device memory as `Memory` shows the host's: the same questions, None or False if unknown.

    Bytes move behind the work on `stream`; None uses a separate stream, which does not wait.
    """

    def __init__(self, access: DeviceAccess | None, stream: int | None) -> None:
        self._access = access
        self._stream = stream

    def readable(self, low: int, high: int) -> bool:
        """Whether [low, high) is in one allocation that the device can reach."""
        if low >= high:
            return True
        first, last = self.info(low), self.info(high - 1)
        return (
            first is not None
            and last is not None
            and first.device_accessible
            and (first.base, first.length_bytes) == (last.base, last.length_bytes)
            and first.base <= low
            and high <= first.base + first.length_bytes
        )

    writable = readable

    def info(self, address: int) -> PointerInfo | None:
        """The driver's word on an address, None where it has none."""
        if self._access is None or not 0 <= address < 2**64:
            return None
        try:
            return self._access.pointer_info(address)
        except DeviceError:
            return None

    def read(self, address: int, count: int) -> bytes | None:
        """`count` bytes, or None where they cannot be copied."""
        if not count:
            return b""
        if not self.readable(address, address + count):
            return None
        target = (ctypes.c_char * count)()
        moved = self._moved(ctypes.addressof(target), address, count)
        return target.raw if moved else None

    def write(self, address: int, data: bytes) -> bool:
        """Writes `data`; False, and nothing written, where that cannot be done."""
        source = (ctypes.c_char * len(data)).from_buffer_copy(data)
        return self.writable(address, address + len(data)) and self._moved(
            address, ctypes.addressof(source), len(data)
        )

    def _moved(self, target: int, source: int, count: int) -> bool:
        access, own = self._access, None
        if access is None:
            return False
        try:
            stream = self._stream
            if stream is None:
                stream = own = access.create_stream()
            access.copy(target, source, count, stream)
        except DeviceError:
            return False
        finally:
            if own is not None:
                access.destroy_stream(own)
        return True
