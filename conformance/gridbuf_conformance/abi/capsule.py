"""PyCapsules from the outside: name, pointer, renaming."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .libraries import python_api

_api = python_api()
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetName.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_void_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_void_p]
_api.PyCapsule_SetName.restype = ctypes.c_int
_CAPSULE_TYPE = ctypes.py_object.in_dll(_api, "PyCapsule_Type")
_CAPSULE_TYPE_ADDRESS = ctypes.addressof(_CAPSULE_TYPE)


def is_capsule(value: Any) -> bool:
    """Whether `value` is exactly a PyCapsule."""
    return id(type(value)) == _CAPSULE_TYPE_ADDRESS


def capsule_name_address(capsule: Any) -> int:
    """Where the capsule's name is stored; 0 for no name."""
    return _api.PyCapsule_GetName(capsule) or 0


def capsule_name(capsule: Any, text_at: Callable[[int], bytes | None]) -> str | None:
    """The capsule's name, read by `Memory.text`; None for NULL, "(unmapped)" if unreadable."""
    address = capsule_name_address(capsule)
    if not address:
        return None
    text = text_at(address)
    return "(unmapped)" if text is None else text.decode("latin-1")


def capsule_pointer(capsule: Any) -> int:
    """The capsule's pointer, asked for with the capsule's own name."""
    return _api.PyCapsule_GetPointer(capsule, _api.PyCapsule_GetName(capsule)) or 0


def rename_capsule(capsule: Any, static_name: bytes) -> None:
    """Renames the capsule; `static_name` has to live as long as the capsule does."""
    _api.PyCapsule_SetName(capsule, ctypes.cast(ctypes.c_char_p(static_name), ctypes.c_void_p))
