"""The arrays of a C++ library, from a shared library made with `gridbuf_conformance.h`.

The shared library makes DLPack tensors. An object here wraps them in capsules, so that all that the
suite knows about tensors applies. The Python methods of these objects are the suite's: only the
rules on tensors judge them.

Each export is a new tensor of the library. Most libraries move an array into its tensor, so that
each export is also another array (`Producer.exports_move`).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int64, c_void_p
from typing import Any

from ..interfaces.dlpack_structs.structs import CPU, Managed, VersionedManaged, callable_deleter
from ..abi.libraries import python_api
from ..abi.memory import Memory
from ..plan import Plan
from ..producer import Capabilities, Producer, Unsupported
from .base import TOUCHED_BYTES

RULES = "DL-*,GT-16,GT-17,GT-20,GT-22,GT-23,XA-08"
"""The rules on tensors, and on what a plan asks of them."""
_ENTRY = "gridbuf_conformance_suites"
_VERSIONED, _DECLINED, _RAISED = 1, -1, -2


class _Order(ctypes.Structure):
    """`Order` of the header."""

    _fields_ = [
        ("dtype", c_char_p),
        ("json", c_char_p),
        ("ndim", c_int64),
        ("shape", POINTER(c_int64)),
        ("layout", POINTER(c_int64)),
        ("alignment_size", c_int64),
        ("aligned_index", POINTER(c_int64)),
        ("has_views", c_int64),
        ("view_ndim", c_int64),
        ("view_shape", POINTER(c_int64)),
        ("view_start", POINTER(c_int64)),
        ("view_axes", POINTER(c_int64)),
        ("view_steps", POINTER(c_int64)),
        ("content", c_char_p),
        ("nbytes", c_int64),
        ("itemsize", c_int64),
        ("type_code", c_int64),
        ("type_bits", c_int64),
        ("swapped", c_int64),
        ("readonly", c_int64),
        ("legacy", c_int64),
    ]


_MAKE = ctypes.CFUNCTYPE(
    c_int64, POINTER(_Order), POINTER(c_void_p), POINTER(c_void_p), POINTER(c_char_p)
)
_DROP = ctypes.CFUNCTYPE(None, c_void_p)


class _Suite(ctypes.Structure):
    """`Suite` of the header."""


_Suite._fields_ = [
    ("order_bytes", c_int64),
    ("name", c_char_p),
    ("dtypes", c_char_p),
    *((name, c_int64) for name in ("layout", "alignment", "views", "min_ndim", "max_ndim")),
    ("exports_again", c_int64),
    ("make", _MAKE),
    ("drop", _DROP),
    ("next", POINTER(_Suite)),
]


def suite_of(path: str, name: str = "") -> SharedLibraryProducer:
    """The producer of a suite; without a name, of the only one.

    Raises OSError for a file that cannot be loaded, LookupError for a name that it does not have.
    """
    entry = getattr(ctypes.CDLL(os.path.abspath(path)), _ENTRY, None)
    if entry is None:
        raise LookupError("it has no GRIDBUF_CONFORMANCE_SUITE(name, Traits)")
    entry.restype = POINTER(_Suite)
    suites, suite = {}, entry()
    while suite:
        if suite.contents.order_bytes != ctypes.sizeof(_Order):
            raise LookupError("it was built with the header of another version; build it again")
        suites[suite.contents.name.decode()] = suite.contents
        suite = suite.contents.next
    if not name and len(suites) == 1:
        name = next(iter(suites))
    if name not in suites:
        raise LookupError(f"name one of its suites: {path}:{' or :'.join(reversed(suites))}")
    return SharedLibraryProducer(suites[name])


class SharedLibraryProducer(Producer):
    """One suite of a shared library."""

    def __init__(self, suite: _Suite) -> None:
        self.suite = suite
        self.name = suite.name.decode()
        self.exports_move = not suite.exports_again
        self.makes_legacy = True
        dtypes = suite.dtypes.decode().split(",") if suite.dtypes else None
        placement = {"alignment_size", "aligned_index"} if suite.alignment else set()
        self.capabilities = Capabilities(
            dtypes=None if dtypes is None else tuple(map(str.strip, dtypes)),
            min_ndim=suite.min_ndim,
            max_ndim=suite.max_ndim,
            max_nbytes=TOUCHED_BYTES,
            layouts="any" if suite.layout else None,
            byteorders=None,
            declares=frozenset(placement),
        )

    def produce(self, plan: Plan) -> Any:
        return self._array(plan.without_views)

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        """Another array, whose tensor is the view."""
        if not self.suite.views:
            return Unsupported(f"{self.name} declares no views")
        return self._array(obj.plan.replaced(views=(*obj.plan.views, operation)))

    def _array(self, plan: Plan) -> Any:
        array = _Array(self, plan)
        made = array.made(legacy=False)
        if not isinstance(made, _Tensor):
            return made
        array.pending, array.device = made, made.device
        return array


class _Tensor:
    """A tensor of the library in a capsule, whose destructor calls the tensor's deleter."""

    def __init__(self, address: int, is_versioned: bool) -> None:
        kind = VersionedManaged if is_versioned else Managed
        self.is_versioned = is_versioned
        raw = _memory.read(address, ctypes.sizeof(kind))
        tensor = kind.from_buffer_copy(raw).tensor if raw else None
        self.device = (tensor.device_type, tensor.device_id) if tensor else (CPU, 0)
        self.capsule = _api.PyCapsule_New(address, _NAMES[is_versioned], _destructor)


class _Array:
    """The array of a plan, as an object with DLPack's methods."""

    def __init__(self, producer: SharedLibraryProducer, plan: Plan) -> None:
        self.plan = plan
        self.pending: _Tensor | None = None
        self.device = (CPU, 0)
        self._producer = producer
        self._handle = c_void_p()
        self._drop = producer.suite.drop
        self._order, self._kept = _order_of(plan)

    def __del__(self) -> None:
        if self._handle:
            self._drop(self._handle)

    def made(self, *, legacy: bool) -> _Tensor | Unsupported | None:
        """What the library answers; raises what it threw."""
        tensor, text = c_void_p(), c_char_p()
        order = self._order
        order.legacy = legacy
        result = self._producer.suite.make(
            ctypes.byref(order),
            ctypes.byref(self._handle),
            ctypes.byref(tensor),
            ctypes.byref(text),
        )
        reason = (text.value or b"").decode(errors="replace")
        if result == _RAISED:
            raise RuntimeError(f"C++ exception: {reason}")
        if result == _DECLINED:
            return Unsupported(reason or "it gives no reason")
        return _Tensor(tensor.value, result == _VERSIONED) if tensor.value else None

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        legacy = max_version is None or max_version[0] < 1
        if stream is not None or copy or dl_device not in (None, self.device):
            raise BufferError("the library exports its own memory only")
        if legacy and not self._producer.makes_legacy:
            raise BufferError("the library makes versioned tensors only")
        tensor: Any
        tensor, self.pending = self.pending, None
        if tensor is None or (legacy and tensor.is_versioned):
            tensor = self.made(legacy=legacy)
        if not isinstance(tensor, _Tensor):
            raise BufferError(tensor.reason if tensor else "the library made no tensor")
        if legacy and tensor.is_versioned:
            self._producer.makes_legacy = False
            raise BufferError("the library makes versioned tensors only")
        return tensor.capsule


def _order_of(plan: Plan) -> tuple[_Order, list[Any]]:
    """The order for a plan, and what it points to."""
    kept: list[Any] = []

    def array(numbers: Sequence[int]) -> Any:
        kept.append((c_int64 * len(numbers))(*numbers))
        return ctypes.cast(kept[-1], POINTER(c_int64))

    view, info, content = plan.view_map, plan.dtype_info, plan.content()
    code, bits = info.dlpack or (-1, 0)
    order = _Order(
        dtype=plan.dtype.encode(),
        json=plan.to_json(brief=True).encode(),
        ndim=plan.ndim,
        shape=array(plan.shape),
        layout=None if plan.layout is None else array(plan.layout),
        alignment_size=plan.alignment_size,
        aligned_index=array(plan.aligned_element),
        has_views=bool(plan.views),
        view_ndim=len(view.shape),
        view_shape=array(view.shape),
        view_start=array(view.start),
        view_axes=array([-1 if axis is None else axis for axis in view.axes]),
        view_steps=array(view.steps),
        content=content,
        nbytes=len(content),
        itemsize=plan.itemsize,
        type_code=code,
        type_bits=bits,
        swapped=plan.byteorder == "swapped",
        readonly=plan.readonly,
    )
    return order, kept


_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
"""Capsules keep the address of their name, so these live as long as the process."""
_api = python_api()
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
_api.PyCapsule_GetName.restype = c_char_p
_api.PyCapsule_GetName.argtypes = [c_void_p]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [c_void_p, c_char_p]
_memory = Memory()


_DELETER = ctypes.PYFUNCTYPE(None, c_void_p)


def _destroyed(capsule: int) -> None:
    """Calls the deleter of a tensor that was not taken, if it can be code."""
    name = _api.PyCapsule_GetName(capsule)
    if name not in _NAMES.values():
        return
    address = _api.PyCapsule_GetPointer(capsule, name)
    kind = VersionedManaged if name == _NAMES[True] else Managed
    raw = _memory.read(address, ctypes.sizeof(kind))
    deleter = callable_deleter(kind.from_buffer_copy(raw), _memory) if raw else None
    if deleter is not None:
        _DELETER(deleter)(address)


_destructor_function = _DELETER(_destroyed)
_destructor = ctypes.cast(_destructor_function, c_void_p)
