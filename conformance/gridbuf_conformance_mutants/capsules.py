"""DLPack structs and capsules, and the old array struct's capsule, made with ctypes.

Every export is an `Export`: the struct, the two arrays it points to, and the owner of the memory.
It lives in `_exports` from the making of the capsule until its deleter runs, which is what a
deleter is for.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, PYFUNCTYPE, c_char_p, c_int64, c_void_p

from gridbuf_conformance.interfaces.array_struct.struct import ArrayStruct
from gridbuf_conformance.interfaces.dlpack_structs.structs import Managed, VersionedManaged

_DELETER = CFUNCTYPE(None, c_void_p)
_DESTRUCTOR = _CALL_WITH_LOCK = PYFUNCTYPE(None, c_void_p)

_api = ctypes.PyDLL(
    None
)  # not ctypes.pythonapi: its argument types are shared by the whole process
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, c_void_p, c_void_p]
_api.PyCapsule_GetName.restype = c_char_p
_api.PyCapsule_GetName.argtypes = [c_void_p]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [c_void_p, c_char_p]


_NAMES = {Managed: b"dltensor", VersionedManaged: b"dltensor_versioned"}  # static storage: DP-10
_exports: dict[int, Export] = {}


def live_exports() -> int:
    """How many exports have not been deleted yet."""
    return len(_exports)


def int64_array(values: Sequence[int]) -> ctypes.Array:
    return (c_int64 * max(1, len(values)))(*values)


class Export:
    """One exported tensor. Faulty producers derive from it or edit `managed` before `capsule()`."""

    def __init__(self, managed: Managed | VersionedManaged, owner: object) -> None:
        self.managed = managed
        self.owner = owner
        self.kept: list[object] = []
        self.on_delete: Callable[[], None] | None = None
        self.address = ctypes.addressof(managed)
        self.name = _NAMES[type(managed)]

    def set_metadata(self, shape: Sequence[int] | None, strides: Sequence[int] | None) -> None:
        """Point the tensor at private arrays; None leaves a NULL pointer."""
        for field, values in (("shape", shape), ("strides", strides)):
            array = None if values is None else int64_array(values)
            self.kept.append(array)
            setattr(self.managed.tensor, field, array)

    def capsule(
        self, deleter: object = None, destructor: object = None, name_address: int | None = None
    ) -> object:
        """The capsule. `deleter` and `destructor` (ctypes functions) replace the right ones."""
        destructor = call_deleter if destructor is None else destructor
        self.publish(deleter)
        name = ctypes.cast(c_char_p(self.name), c_void_p) if name_address is None else name_address
        return _api.PyCapsule_New(self.address, name, ctypes.cast(destructor, c_void_p))

    def publish(self, deleter: object = None) -> int:
        """Give the struct its deleter and keep it until that runs; returns the struct's address."""
        deleter = _deleter if deleter is None else deleter
        self.managed.deleter = ctypes.cast(deleter, c_void_p)
        self.managed.manager_ctx = self.address
        _exports[self.address] = self
        return self.address


def new_capsule(address: int, name: bytes, destructor: object = None) -> object:
    """A capsule, without destructor unless one is given; `name` has to live as long as it does."""
    name_address = ctypes.cast(c_char_p(name), c_void_p)
    return _api.PyCapsule_New(address, name_address, ctypes.cast(destructor, c_void_p))


def delete(address: int) -> None:
    """What a right deleter does: let go of the owner and of the struct itself."""
    export = _exports.pop(address, None)
    if export is not None and export.on_delete is not None:
        export.on_delete()


def call_deleter_of(
    capsule_address: int,
    names: Sequence[bytes] = tuple(_NAMES.values()),
    is_finalizing: Callable[[], bool] = sys.is_finalizing,
):
    """Call the deleter if the dying capsule has one of these names: a consumed one has another."""
    if is_finalizing():  # the names of this module may be gone
        return
    name = _api.PyCapsule_GetName(capsule_address)
    if name not in names:
        return
    address = _api.PyCapsule_GetPointer(capsule_address, name)
    kind = Managed if name == _NAMES[Managed] else VersionedManaged
    deleter = kind.from_address(address).deleter
    if deleter:
        _CALL_WITH_LOCK(deleter)(address)


def deleter_callback(function: Callable[[int], None]) -> object:
    """A C deleter that takes the GIL itself (ctypes callbacks do) and runs the function."""
    return _DELETER(function)


def destructor_callback(function: Callable[[int], None]) -> object:
    """A capsule destructor that runs the function on the dying capsule's address."""
    return _DESTRUCTOR(function)


_deleter = deleter_callback(delete)
call_deleter = destructor_callback(call_deleter_of)
"""The destructor of a right capsule."""


# --- the array struct of the first array interface ----------------------------------------------


def filled_struct(
    shape: Sequence[int],
    strides: Sequence[int],
    *,
    kind: str,
    item_bytes: int,
    flags: int,
    address: int,
) -> ArrayStruct:
    """A filled struct; the arrays it points to live as long as it does."""
    arrays = [(ctypes.c_ssize_t * max(1, len(n)))(*n) for n in (shape, strides)]
    struct = ArrayStruct(2, len(shape), kind.encode(), item_bytes, flags, *arrays, address, None)
    struct.kept = arrays
    return struct


_structs: dict[int, tuple[ArrayStruct, object]] = {}


def array_struct_capsule(struct: ArrayStruct, owner: object, name: bytes | None = None) -> object:
    """A capsule that keeps the struct and its owner until it is freed."""
    address = ctypes.addressof(struct)
    _structs[address] = (struct, owner)
    name_pointer = ctypes.cast(c_char_p(name), c_void_p)
    capsule = _api.PyCapsule_New(address, name_pointer, ctypes.cast(_free_struct, c_void_p))
    _api.PyCapsule_SetContext(capsule, id(owner))
    return capsule


@destructor_callback
def _free_struct(capsule_address: int) -> None:
    name = _api.PyCapsule_GetName(capsule_address)
    _structs.pop(_api.PyCapsule_GetPointer(capsule_address, name), None)


_api.PyCapsule_SetContext.argtypes = [ctypes.py_object, c_void_p]
