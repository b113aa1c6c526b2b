"""Hand-made producers of memory, each right or wrong in one chosen way: what a consumer has to survive.

None of them needs a library: DLPack capsules, Py_buffers and array structs are put together with ctypes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import abi

Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# With plain addresses: destructors get an object that is already going.
_raw_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

# Capsules keep pointers to these, and structs may outlive the test that made them.
LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
_kept: list[Any] = []


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule: int) -> None:
    """Runs the deleter of an unconsumed capsule (DP-06)."""
    name = _raw_name(capsule)
    if name not in (LEGACY, VERSIONED):
        return
    kind = abi.Managed if name == LEGACY else abi.ManagedVersioned
    struct = kind.from_address(_raw_pointer(capsule, name))
    if struct.deleter:
        struct.deleter(ctypes.addressof(struct))


def longs(values: Sequence[int] | None) -> Any:
    """A C array of 64-bit numbers; None stays NULL."""
    return None if values is None else (ctypes.c_int64 * max(len(values), 1))(*values)


class Tensor:
    """A DLPack producer of doubles in rows; keyword arguments change what the struct says.

    `deleted` counts the calls of the deleter.
    """

    def __init__(self, values: Sequence[float] = (1.0, 2.0, 3.0), **fields: Any) -> None:
        self.memory = (ctypes.c_double * max(len(values), 1))(*values)
        self.deleted = 0
        self.fields = {
            "data": ctypes.addressof(self.memory),
            "device_type": 1,
            "device_id": 0,
            "code": 2,
            "bits": 64,
            "lanes": 1,
            "byte_offset": 0,
            "shape": (len(values),),
            "strides": (1,),
            "major": 1,
            "minor": 3,
            "flags": 0,
            "versioned": True,
            "has_deleter": True,
        }
        self.fields |= fields
        self.calls: list[dict[str, Any]] = []

    def struct(self) -> abi.Managed | abi.ManagedVersioned:
        fields = self.fields
        managed = abi.ManagedVersioned() if fields["versioned"] else abi.Managed()
        shape, strides = longs(fields["shape"]), longs(fields["strides"])
        tensor = managed.tensor
        for name in ("data", "device_type", "device_id", "code", "bits", "lanes", "byte_offset"):
            setattr(tensor, name, fields[name])
        tensor.ndim = fields.get("ndim", len(fields["shape"] or ()))
        if shape is not None:
            tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
        if fields["versioned"]:
            managed.major, managed.minor = fields["major"], fields["minor"]
            managed.flags = fields["flags"]

        def delete(_: int) -> None:
            self.deleted += 1

        if fields["has_deleter"]:
            managed.deleter = type(managed.deleter)(delete)
        _kept.append((self, managed, shape, strides, self.memory))
        return managed

    def capsule(self) -> Any:
        managed = self.struct()
        name = VERSIONED if self.fields["versioned"] else LEGACY
        return _new_capsule(ctypes.addressof(managed), name, ctypes.cast(_destroy, ctypes.c_void_p))

    def __dlpack__(self, **keywords: Any) -> Any:
        self.calls.append(keywords)
        return self.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.fields["device_type"], self.fields["device_id"])


def with_table(from_object: Callable[..., int]) -> Any:
    """An object whose type has an exchange table with this function."""
    table = abi.ExchangeTable(major=1, minor=3)
    for name, function in {
        "allocate": lambda *_: -1,
        "from_object": from_object,
        "to_object": lambda *_: -1,
        "stream": lambda *_: 0,
    }.items():
        setattr(table, name, type(getattr(table, name))(function))
    _kept.append(table)
    capsule = _new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    return type("WithTable", (), {"__dlpack_c_exchange_api__": capsule})()


class Dict:
    """An object with an array interface of the caller's making."""

    def __init__(self, interface: Any, name: str = "__array_interface__") -> None:
        setattr(self, name, interface)


class ArrayStruct(ctypes.Structure):
    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.py_object),
    ]


class Struct:
    """A producer of an array struct over three doubles; keyword arguments change what it says."""

    def __init__(self, name: bytes | None = None, **fields: Any) -> None:
        self.memory = (ctypes.c_double * 3)(1.0, 2.0, 3.0)
        self.shape, self.strides = (ctypes.c_ssize_t * 1)(3), (ctypes.c_ssize_t * 1)(8)
        self.struct = ArrayStruct(
            two=2, nd=1, typekind=b"f", itemsize=8, flags=0x701, data=ctypes.addressof(self.memory)
        )
        self.struct.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_ssize_t))
        self.struct.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_ssize_t))
        for field, value in fields.items():
            setattr(self.struct, field, value)
        _kept.append(self)
        self.__array_struct__ = _new_capsule(ctypes.addressof(self.struct), name, None)


# ---- A type whose bf_getbuffer is a Python function: Python 3.11 has no other way to be one. ----


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("pfunc", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


_GET_BUFFER, _RELEASE_BUFFER = 1, 2
_GetBuffer = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.py_object, ctypes.POINTER(abi.PyBuffer), ctypes.c_int
)
_ReleaseBuffer = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.POINTER(abi.PyBuffer))
_type_from_spec = ctypes.pythonapi.PyType_FromSpec
_type_from_spec.restype = ctypes.py_object
_type_from_spec.argtypes = [ctypes.POINTER(_Spec)]


def exporter(
    fill: Callable[[abi.PyBuffer], object], release: Callable[[], None] | None = None
) -> Any:
    """An object that answers every buffer request with what `fill` writes, or with -1 if it returns something.

    `release`, if given, is told of each release.
    """

    def get_buffer(owner: Any, view: Any, _flags: int) -> int:
        view = view.contents
        if fill(view):
            return -1
        view.obj = id(owner)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
        return 0

    def release_buffer(_owner: Any, _view: Any) -> None:
        assert release is not None
        release()

    get, put = _GetBuffer(get_buffer), _ReleaseBuffer(release_buffer)
    slots = (_Slot * 3)(
        _Slot(_GET_BUFFER, ctypes.cast(get, ctypes.c_void_p)),
        _Slot(_RELEASE_BUFFER, ctypes.cast(put, ctypes.c_void_p)) if release else _Slot(0, None),
        _Slot(0, None),
    )
    spec = _Spec(b"tests.Exporter", object.__basicsize__, 0, 1 << 18, slots)
    _kept.append((get, put, slots, spec))
    return _type_from_spec(ctypes.byref(spec))()


def doubles(memory: Any, count: int, **fields: Any) -> Callable[[abi.PyBuffer], None]:
    """Fills a Py_buffer with `count` doubles in `memory`; keyword arguments change fields."""

    def fill(view: abi.PyBuffer) -> None:
        given = {"ndim": 1, "shape": (count,), "strides": (8,), "suboffsets": None} | fields
        view.buf = fields.get("buf", ctypes.addressof(memory))
        view.len = fields.get("len", count * 8)
        view.itemsize = fields.get("itemsize", 8)
        view.readonly = fields.get("readonly", 0)
        view.format = fields.get("format", b"d")
        view.ndim = given["ndim"]
        for name in ("shape", "strides", "suboffsets"):
            entries = longs(given[name])
            _kept.append(entries)
            # A null pointer too: the struct comes with whatever was there.
            setattr(view, name, ctypes.cast(entries, ctypes.POINTER(ctypes.c_ssize_t)))

    return fill
