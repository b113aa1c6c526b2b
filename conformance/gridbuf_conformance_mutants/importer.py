"""A strict consumer of DLPack in pure `ctypes`: the reference of the consumers' zoo.

Each of its steps is one small method, so that a mutant is a subclass with one of them done wrongly.
It checks everything before it takes anything: what it refuses is left unconsumed in its capsule.
"""

from __future__ import annotations
from gridbuf_conformance.interfaces.dlpack_structs.structs import Managed, Tensor, VersionedManaged

import ctypes
import threading
from contextlib import AbstractContextManager
from typing import Any

from .elements import ELEMENTS, Element

CPU = 1
READ_ONLY = 1
MAX_DIMENSIONS = 64
_DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.PyDLL(None)
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

_USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}
_KINDS: dict[bytes, type[Managed] | type[VersionedManaged]] = {
    b"dltensor": Managed,
    b"dltensor_versioned": VersionedManaged,
}


_turn = threading.Lock()


class Owner:
    """An imported tensor: its deleter is called when the last array over it is freed."""

    def __init__(self, importer: Importer, address: int, managed: Managed) -> None:
        self._importer = importer
        self._address = address
        self._deleter = managed.deleter
        self._context = managed.manager_ctx

    def __del__(self) -> None:
        self._importer.delete(self._address, self._deleter, self._context)


class Imported:
    """What the importer returns: an array interface over the tensor's memory."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self._owner = owner


class Importer:
    """The strict consumer."""

    interfaces = ("dlpack", "dlpack-legacy")

    def __call__(self, exporter: Any) -> Any:
        capsule = self.ask(exporter)
        with self.turn():
            return self.take(capsule)

    def turn(self) -> AbstractContextManager[Any]:
        """One thread at a time checks a capsule and renames it."""
        return _turn

    # -- asking ----------------------------------------------------------------------------------

    def ask(self, exporter: Any) -> object:
        """The capsule, of the newest form that the exporter has."""
        self.check_device(*exporter.__dlpack_device__())
        return self.call(exporter)

    def call(self, exporter: Any) -> object:
        try:
            return exporter.__dlpack__(max_version=(1, 3))
        except TypeError:
            return exporter.__dlpack__()

    def check_device(self, device_type: int, device_id: int) -> None:
        if device_type != CPU:
            raise BufferError(f"device type is {device_type}, must be {CPU}: host memory only")

    # -- checking --------------------------------------------------------------------------------

    def take(self, capsule: Any) -> Any:
        """The array; a refused capsule stays unchanged."""
        name = self.name_of(capsule)
        address = _api.PyCapsule_GetPointer(capsule, name)
        managed = self.struct_of(name).from_address(address)
        self.check_version(managed)
        tensor = managed.tensor
        self.check_device(tensor.device_type, tensor.device_id)
        self.check_dimensions(tensor)
        interface = self.describe(tensor, self.is_readonly(managed))
        self.rename(capsule, name)
        return self.result(interface, self.owner(address, managed))

    def name_of(self, capsule: Any) -> bytes:
        if type(capsule).__name__ != "PyCapsule":
            raise TypeError(f"__dlpack__ returned {type(capsule).__name__}, must be a capsule")
        name = _api.PyCapsule_GetName(capsule)
        if name not in _KINDS:
            raise ValueError("the capsule holds no tensor, or was used; export it again")
        return bytes(name)

    def struct_of(self, name: bytes) -> type[Managed] | type[VersionedManaged]:
        return _KINDS[name]

    def check_version(self, managed: Managed | VersionedManaged) -> None:
        if isinstance(managed, VersionedManaged) and managed.major != 1:
            raise BufferError(f"the major version is {managed.major}, must be 1")

    def check_dimensions(self, tensor: Tensor) -> None:
        if not 0 <= tensor.ndim <= MAX_DIMENSIONS:
            raise BufferError(f"ndim is {tensor.ndim}, must be 0..{MAX_DIMENSIONS}")

    def is_readonly(self, managed: Managed | VersionedManaged) -> bool:
        return isinstance(managed, VersionedManaged) and bool(managed.flags & READ_ONLY)

    # -- describing ------------------------------------------------------------------------------

    def describe(self, tensor: Tensor, readonly: bool) -> dict[str, Any]:
        """The array interface of the tensor."""
        element = self.element_of(tensor)
        shape = self.shape_of(tensor)
        return {
            "version": 3,
            "shape": shape,
            "typestr": element.typestr(False),
            "data": (self.address_of(tensor), readonly),
            "strides": self.strides_of(tensor, shape, element.itemsize),
        }

    def element_of(self, tensor: Tensor) -> Element:
        if tensor.lanes != 1:
            raise BufferError(f"lanes is {tensor.lanes}, must be 1: there are no vector types")
        for element in ELEMENTS.values():
            if element.dlpack == (tensor.code, tensor.bits):
                return element
        raise BufferError(f"type code {tensor.code} with {tensor.bits} bits is unknown")

    def shape_of(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()

    def address_of(self, tensor: Tensor) -> int:
        return int((tensor.data or 0) + tensor.byte_offset)

    def strides_of(
        self, tensor: Tensor, shape: tuple[int, ...], itemsize: int
    ) -> tuple[int, ...] | None:
        if not tensor.ndim or not tensor.strides or 0 in shape:
            return None
        strides = tensor.strides[: tensor.ndim]
        return tuple(s * itemsize if n > 1 else 0 for n, s in zip(shape, strides))

    # -- taking ----------------------------------------------------------------------------------

    def rename(self, capsule: Any, name: bytes) -> None:
        _api.PyCapsule_SetName(capsule, _USED[name])

    def owner(self, address: int, managed: Managed | VersionedManaged) -> Any:
        return Owner(self, address, managed)

    def result(self, interface: dict[str, Any], owner: Any) -> Any:
        return Imported(interface, owner)

    def delete(self, address: int, deleter: int | None, context: int | None) -> None:
        """Lets go of a tensor that was taken."""
        if deleter:
            _DELETER(deleter)(address)


reference = Importer()
