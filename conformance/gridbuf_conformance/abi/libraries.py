"""The two libraries that every Python process has loaded: the interpreter and the C library."""

from __future__ import annotations

import ctypes
import sys
from typing import Any


def python_api() -> ctypes.PyDLL:
    """The interpreter's C API; not `ctypes.pythonapi`, whose types any library may change."""
    if sys.platform == "win32":
        return ctypes.PyDLL("python", handle=sys.dllhandle)
    return ctypes.PyDLL(None)


def c_function(name: str, *, use_errno: bool = False) -> Any:
    """A function of the C library; None where the system does not have it."""
    if sys.platform == "win32":
        return None
    return getattr(ctypes.CDLL(None, use_errno=use_errno), name, None)
