"""The reference consumer of host memory: it takes every right export and refuses every wrong one.

Pure Python and `ctypes`. What it takes becomes a `Taken`: an array of our own over the same memory,
which holds whatever keeps that memory alive, and says with `__array_interface__` what it saw. Each
decision is one small method, so that a mutant overrides exactly one of them.
"""

from __future__ import annotations

import ctypes
import math
from ctypes import byref, c_char_p, c_void_p, py_object
from typing import Any

from gridbuf_conformance.interfaces.buffer_protocol import pep3118
from gridbuf_conformance.interfaces.array_struct.struct import ArrayStruct
from gridbuf_conformance.abi.descriptors import c_strides
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer
from gridbuf_conformance.interfaces.buffer_protocol.slots import BufferExporter

NDIM_LIMIT = 64
SIZE_LIMIT_BYTES = 2**63 - 1
FULL_RO = 0x11C
_KINDS = {"int": "i", "uint": "u", "float": "f", "complex": "c", "bool": "b", "text": "U"}

_api = ctypes.PyDLL(None)
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [py_object, c_char_p]
_api.PyCapsule_GetName.restype = c_char_p
_api.PyCapsule_GetName.argtypes = [py_object]
_api.PyObject_GetBuffer.argtypes = [py_object, ctypes.POINTER(PyBuffer), ctypes.c_int]
_api.PyBuffer_Release.argtypes = [ctypes.POINTER(PyBuffer)]
_api.PyBuffer_Release.restype = None


def capsule_pointer(capsule: Any) -> int:
    """A capsule's pointer, for any name of the capsule."""
    return _api.PyCapsule_GetPointer(capsule, _api.PyCapsule_GetName(capsule))


class Taken:
    """An array over memory of another object, which `kept` keeps alive."""

    def __init__(self, entries: dict[str, Any], kept: object) -> None:
        self._entries = entries
        self._kept = kept

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return dict(self._entries)


def _entries(shape: Any, strides: Any, typestr: str, address: int, readonly: bool) -> dict:
    data = (address, readonly)
    return {"version": 3, "shape": shape, "strides": strides, "typestr": typestr, "data": data}


# -- the array interface -------------------------------------------------------------------------


class ArrayInterfaceConsumer:
    """Takes `__array_interface__`."""

    def __call__(self, exporter: Any) -> Any:
        return self.take(exporter)

    def take(self, exporter: Any) -> Any:
        """The result."""
        entries = self.entries(exporter)
        self.refuse_keys(entries)
        shape, typestr = entries["shape"], self.typestr(entries)
        self.refuse_shape(shape, self.itemsize(typestr))
        strides = self.strides(entries, shape, self.itemsize(typestr))
        nbytes = math.prod(shape) * self.itemsize(typestr)
        address, readonly, owner = self.memory(entries, nbytes)
        self.look(address, shape, readonly)
        taken = _entries(shape, strides, typestr, address, readonly)
        return Taken(taken, self.kept(exporter, owner))

    def entries(self, exporter: Any) -> dict[str, Any]:
        return exporter.__array_interface__

    def refuse_keys(self, entries: dict[str, Any]) -> None:
        if entries.get("mask") is not None:
            raise TypeError("a mask, and this consumer has none")

    def typestr(self, entries: dict[str, Any]) -> str:
        if entries["typestr"][1] == "t":
            raise TypeError("bits, and this consumer has bytes")
        return entries["typestr"]

    def itemsize(self, typestr: str) -> int:
        number = int(typestr[2:].partition("[")[0])
        return 4 * number if typestr[1] == "U" else number

    def refuse_shape(self, shape: tuple[int, ...], itemsize: int) -> None:
        if len(shape) > NDIM_LIMIT:
            raise ValueError(f"{len(shape)} dimensions, this consumer has at most {NDIM_LIMIT}")
        if math.prod(shape) * itemsize > SIZE_LIMIT_BYTES:
            raise ValueError("more bytes than an address space has")

    def strides(self, entries: dict[str, Any], shape: tuple[int, ...], itemsize: int) -> Any:
        strides = entries.get("strides")
        if strides is not None and len(strides) != len(shape):
            raise ValueError(f"{len(strides)} strides for {len(shape)} dimensions")
        return strides

    def memory(self, entries: dict[str, Any], nbytes: int) -> tuple[int, bool, Any]:
        """(address of the first element, read-only, the holder in addition to the exporter)."""
        data = entries["data"]
        if isinstance(data, tuple):
            return (*data, None)
        offset = entries.get("offset", 0)
        self.refuse_offset(offset)
        view = self.exported(data)
        self.refuse_size(view.struct.len, offset, nbytes)
        return view.struct.buf + offset, bool(view.struct.readonly), self.held(view)

    def refuse_offset(self, offset: int) -> None:
        if offset < 0:
            raise ValueError(f"offset is {offset}, must not be negative")

    def refuse_size(self, length: int, offset: int, nbytes: int) -> None:
        if offset + nbytes > length:
            raise ValueError(f"a buffer of {length} bytes, {offset + nbytes} are needed")

    def exported(self, data: Any) -> View:
        return View(data, 0)

    def held(self, view: View) -> Any:
        return view

    def look(self, address: int, shape: tuple[int, ...], readonly: bool) -> None:
        """A right consumer touches nothing when it imports."""

    def kept(self, exporter: Any, owner: Any) -> Any:
        return exporter, owner


class View:
    """A granted buffer request, released with the object."""

    def __init__(self, exporter: Any, flags: int) -> None:
        self.struct = PyBuffer()
        self._granted = False
        _api.PyObject_GetBuffer(exporter, byref(self.struct), flags)
        self._granted = True

    def release(self) -> None:
        if self._granted:
            self._granted = False
            _api.PyBuffer_Release(byref(self.struct))

    def __del__(self) -> None:
        self.release()

    def numbers(self, field: str) -> tuple[int, ...] | None:
        """One of the arrays behind the struct, None for NULL."""
        pointer = getattr(self.struct, field)
        return tuple(pointer[: self.struct.ndim]) if pointer else None


# -- the array struct ----------------------------------------------------------------------------


class ArrayStructConsumer:
    """Takes `__array_struct__`."""

    name: bytes | None = None

    def __call__(self, exporter: Any) -> Any:
        return self.take(exporter)

    def take(self, exporter: Any) -> Any:
        """The result."""
        capsule = exporter.__array_struct__
        struct = ArrayStruct.from_address(self.pointer(capsule))
        self.refuse(struct)
        shape, strides = self.shape(struct), self.strides(struct)
        self.refuse_null(struct, shape)
        self.read_descr(struct)
        typestr = self.typestr(struct)
        readonly = self.is_readonly(struct)
        taken = _entries(shape, strides, typestr, struct.data or 0, readonly)
        return Taken(taken, self.kept(exporter, capsule))

    def pointer(self, capsule: Any) -> int:
        return _api.PyCapsule_GetPointer(capsule, None)

    def refuse(self, struct: ArrayStruct) -> None:
        if struct.two != 2:
            raise ValueError(f"the first int is {struct.two}, must be 2")
        if struct.nd > NDIM_LIMIT:
            raise ValueError(f"{struct.nd} dimensions, this consumer has at most {NDIM_LIMIT}")

    def refuse_null(self, struct: ArrayStruct, shape: tuple[int, ...]) -> None:
        if not struct.data and 0 not in shape:
            raise ValueError("data is NULL, and there are elements")

    def shape(self, struct: ArrayStruct) -> tuple[int, ...]:
        return self.numbers(struct, "shape")

    def strides(self, struct: ArrayStruct) -> tuple[int, ...] | None:
        return self.numbers(struct, "strides")

    def numbers(self, struct: ArrayStruct, field: str) -> tuple[int, ...]:
        pointer = getattr(struct, field)
        if struct.nd and not pointer:
            raise ValueError(f"{field} is NULL, must hold {struct.nd} numbers")
        return tuple(pointer[: struct.nd]) if struct.nd else ()

    def read_descr(self, struct: ArrayStruct) -> Any:
        announced = struct.flags & 0x800
        return ctypes.cast(struct.descr, py_object).value if announced else None

    def typestr(self, struct: ArrayStruct) -> str:
        kind = struct.typekind.decode()
        order = "<" if struct.flags & 0x200 else ">"
        number = struct.itemsize // 4 if kind == "U" else struct.itemsize
        return f"{'|' if kind in 'VS' or number == 1 else order}{kind}{number}"

    def is_readonly(self, struct: ArrayStruct) -> bool:
        return not struct.flags & 0x400

    def kept(self, exporter: Any, capsule: Any) -> Any:
        return capsule


# -- the buffer protocol -------------------------------------------------------------------------


class BufferConsumer:
    """Takes buffers."""

    flags = FULL_RO

    def __call__(self, exporter: Any) -> Any:
        return self.take(exporter)

    def take(self, exporter: Any) -> Any:
        """The result."""
        view = self.view(exporter)
        self.refuse(view)
        shape = self.shape(view)
        typestr = self.typestr(view)
        strides = self.strides(view)
        self.look(view)
        taken = _entries(shape, strides, typestr, view.struct.buf or 0, self.is_readonly(view))
        return Taken(taken, self.kept(exporter, view))

    def view(self, exporter: Any) -> View:
        return View(exporter, self.flags)

    def refuse(self, view: View) -> None:
        if view.struct.ndim > NDIM_LIMIT:
            raise BufferError(f"{view.struct.ndim} dimensions, a buffer has at most {NDIM_LIMIT}")
        self.refuse_suboffsets(view.numbers("suboffsets"))

    def refuse_suboffsets(self, suboffsets: tuple[int, ...] | None) -> None:
        if suboffsets is not None and max(suboffsets) >= 0:
            raise BufferError("an array of pointers, and this consumer follows none")

    def shape(self, view: View) -> tuple[int, ...]:
        return view.numbers("shape") or ()

    def strides(self, view: View) -> tuple[int, ...] | None:
        return view.numbers("strides")

    def format(self, view: View) -> str:
        if not view.struct.format:
            return "B"
        return ctypes.string_at(view.struct.format).decode()

    def typestr(self, view: View) -> str:
        parsed = pep3118.parse(self.format(view))
        itemsize = view.struct.itemsize
        if parsed.kind not in _KINDS:
            return f"|V{itemsize}"
        kind = _KINDS[parsed.kind]
        number = itemsize // 4 if kind == "U" else itemsize
        return f"{'|' if number == 1 else parsed.order}{kind}{number}"

    def look(self, view: View) -> None:
        """A right consumer touches nothing when it imports."""

    def is_readonly(self, view: View) -> bool:
        return bool(view.struct.readonly)

    def kept(self, exporter: Any, view: View) -> Any:
        return view


# -- results that hand on what they were given ---------------------------------------------------


class Proxy:
    """An object whose array interface is that of another one, bits and masks included."""

    def __init__(self, of: Any) -> None:
        self._of = of

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._of.__array_interface__


class ProxyConsumer(ArrayInterfaceConsumer):
    """Refuses what no array can be, and hands the rest on."""

    def take(self, exporter: Any) -> Any:
        super().take(exporter)
        return Proxy(exporter)

    def refuse_keys(self, entries: dict[str, Any]) -> None:
        """A proxy hands masks on."""

    def typestr(self, entries: dict[str, Any]) -> str:
        return entries["typestr"]

    def itemsize(self, typestr: str) -> int:
        return 1 if typestr[1] == "t" else super().itemsize(typestr)


class Delegate(BufferExporter):
    """An object whose buffer is that of another one: `view.obj` is the other one, too."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        view.obj = None
        _api.PyObject_GetBuffer(self._of, byref(view), flags)


class DelegateConsumer(BufferConsumer):
    """Looks at the buffer, releases it, and asks again whenever it is asked."""

    def take(self, exporter: Any) -> Any:
        super().take(exporter)
        return Delegate(exporter)


# -- GT4Py's data interface ----------------------------------------------------------------------


class DataInterfaceConsumer:
    """Copies the host's entry of `__gt_data_interface__`, or of an array interface in its place."""

    def __call__(self, exporter: Any) -> Any:
        return self.take(exporter)

    def take(self, exporter: Any) -> Any:
        """The result, a copy."""
        entry = self.entry(exporter)
        self.refuse(entry)
        self.call(entry, "acquire")
        copy = self.copied(entry)
        self.call(entry, "release")
        return copy

    def entry(self, exporter: Any) -> dict[str, Any]:
        entries = getattr(exporter, "__gt_data_interface__", None)
        if entries is None:
            return exporter.__array_interface__
        if None not in entries:
            raise TypeError("no entry for the host, and this consumer has no device")
        return entries[None]

    def refuse(self, entry: dict[str, Any]) -> None:
        """A right consumer leaves keys alone that it does not know."""

    def call(self, entry: dict[str, Any], hook: str) -> None:
        function = entry.get(hook)
        if function is not None:
            function()

    def copied(self, entry: dict[str, Any]) -> Any:
        shape, typestr = entry["shape"], entry["typestr"]
        itemsize = int(typestr[2:])
        strides = entry.get("strides") or c_strides(shape, itemsize)
        address = entry["data"][0]
        content = b"".join(
            ctypes.string_at(address + sum(i * s for i, s in zip(index, strides)), itemsize)
            for index in _indices(shape)
        )
        memory = ctypes.create_string_buffer(content, max(len(content), 1))
        return Taken(_entries(shape, None, typestr, ctypes.addressof(memory), False), memory)


def _indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for extent in shape:
        found = [(*index, i) for index in found for i in range(extent)]
    return found


array_interface = ArrayInterfaceConsumer()
array_struct = ArrayStructConsumer()
buffer = BufferConsumer()
proxy = ProxyConsumer()
delegate = DelegateConsumer()
data_interface = DataInterfaceConsumer()
