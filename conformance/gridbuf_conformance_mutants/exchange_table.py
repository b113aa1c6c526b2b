"""DLPack's C exchange table made with ctypes: a mixin for array types, a method for each answer.

A ctypes callback cannot leave a Python exception behind: what it raises is printed and lost, and
what it sets is raised inside it. But a table's functions report failure by just that, -1 and an
exception set. So each callback is called through a few bytes of machine code that turn its -1 into
one more call, of `PyErr_SetString`. They are written for Linux on x86-64 and aarch64; on other
systems the zoo's arrays have no table, and its tests say so.
"""

from __future__ import annotations
from gridbuf_conformance.interfaces.dlpack_structs.structs import Tensor, VersionedManaged
from gridbuf_conformance.interfaces.dlpack_exchange.table import ExchangeTable

import ctypes
from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    c_char_p,
    c_int,
    c_int32,
    c_void_p,
)
from typing import ClassVar

from gridbuf_conformance.abi.machine_code import (
    call,
    code_pages,
    framed,
    load_argument,
    load_result,
    unless_zero,
)

from . import capsules
from .capsules import Export
from .elements import ELEMENTS, Element
from .memory import Block

_NAME = b"dlpack_exchange_api"
_SET_ERROR = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
_ALLOCATE = PYFUNCTYPE(c_int, POINTER(Tensor), POINTER(c_void_p), c_void_p, c_void_p)
_FROM_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
_BARE_FROM_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(Tensor))
_CURRENT_STREAM = PYFUNCTYPE(c_int, c_int, c_int32, POINTER(c_void_p))
_DELETER = PYFUNCTYPE(None, c_void_p)

_api = ctypes.PyDLL(None)
_api.Py_IncRef.argtypes = [ctypes.py_object]


_code = code_pages(2**20)
AVAILABLE = _code is not None
"""Whether this machine can run the functions of the zoo's tables."""


def _with_error(callback: object, error: type[BaseException] | None, text: bytes) -> int:
    """The address of a function that calls `callback` and sets `error` if that returns -1."""
    if error is None:
        return ctypes.cast(callback, c_void_p).value
    report = load_argument(0, id(error))
    report += load_argument(1, ctypes.cast(text, c_void_p).value)
    report += call(_api.PyErr_SetString) + load_result(-1)
    return _code.place(framed(call(callback) + unless_zero(report)))


_kept: list[object] = []
_REFUSAL = b"DLPack cannot describe this array"


def _status(function: Callable[..., None]) -> Callable[..., int]:
    """0, or -1 where the function raised."""

    def call(*arguments: object) -> int:
        try:
            function(*arguments)
        except Exception:
            return -1
        return 0

    return call


class ExportsExchange:
    """The table of each class that derives from this, next to `__dlpack__`, made with the class."""

    error_of_refusals: ClassVar[type[BaseException] | None] = BufferError

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        if AVAILABLE:
            cls.__dlpack_c_exchange_api__ = cls.exchange_attribute(cls.exchange_table())

    @classmethod
    def exchange_attribute(cls, table: ExchangeTable) -> object:
        return capsules.new_capsule(ctypes.addressof(table), _NAME)

    @classmethod
    def exchange_table(cls) -> ExchangeTable:
        callbacks = (
            _ALLOCATE(cls._allocate),
            _FROM_OBJECT(_status(cls._from_object)),
            _FROM_OBJECT(_status(cls._to_object)),
            _BARE_FROM_OBJECT(_status(cls._bare_from_object)),
            _CURRENT_STREAM(_status(cls._current_stream)),
        )
        errors = (None, *(cls.error_of_refusals,) * 4)
        functions = [_with_error(c, e, _REFUSAL) for c, e in zip(callbacks, errors)]
        table = ExchangeTable(1, 3, None, *functions)
        _kept.extend((table, callbacks))
        return table

    # -- the answers ------------------------------------------------------------------------------

    @classmethod
    def exported(cls, array: ExportsExchange) -> Export:
        """The owning export of one array; raises for what cannot be described."""
        array.check_describable(True)
        return array.export(True, copied=False)

    @classmethod
    def imported(cls, managed: VersionedManaged, address: int) -> object:
        """An array of this type over a tensor, which then belongs to it."""
        cls.check_version(managed, address)
        tensor = managed.tensor
        element = _element_of(tensor)
        shape = tuple(tensor.shape[: tensor.ndim])
        strides = tuple(s * element.itemsize for s in tensor.strides[: tensor.ndim])
        data = (tensor.data or 0) + tensor.byte_offset
        return cls(_Taken(data, address), element, shape, strides, data)

    @classmethod
    def check_version(cls, managed: VersionedManaged, address: int) -> None:
        """Delete and refuse a tensor of another major version."""
        if managed.major != 1:
            cls.delete_refused(managed, address)
            raise BufferError(f"the major version is {managed.major}, must be 1")

    @classmethod
    def delete_refused(cls, managed: VersionedManaged, address: int) -> None:
        if managed.deleter:
            _DELETER(managed.deleter)(address)

    @classmethod
    def allocated(cls, tensor: Tensor) -> Export:
        """The export of a new array of the prototype's type, shape and device."""
        element = _element_of(tensor)
        shape = tuple(tensor.shape[: tensor.ndim])
        array = cls.new(shape, element)
        return array.export(True, copied=False)

    @classmethod
    def new(cls, shape: tuple[int, ...], element: Element) -> object:
        """A row-major array."""
        strides, distance = [], element.itemsize
        for extent in reversed(shape):
            strides.insert(0, distance)
            distance *= extent
        block = Block(distance)
        return cls(block, element, shape, strides, block.low)

    @classmethod
    def current_stream(cls, device_type: int, device_id: int) -> int | None:
        return None

    # -- the C side -------------------------------------------------------------------------------

    @classmethod
    def _allocate(cls, prototype: object, out: object, context: int, set_error: int) -> int:
        try:
            export = cls.allocated(prototype.contents)
        except Exception as error:
            report = _SET_ERROR(set_error)
            report(context, type(error).__name__.encode(), str(error).encode())
            return -1
        out[0] = export.publish()
        return 0

    @classmethod
    def _from_object(cls, address: int, out: object) -> None:
        out[0] = cls.exported(_object(address)).publish()

    @classmethod
    def _to_object(cls, address: int, out: object) -> None:
        result = cls.imported(VersionedManaged.from_address(address), address)
        _api.Py_IncRef(result)
        out[0] = id(result)

    @classmethod
    def _bare_from_object(cls, address: int, out: object) -> None:
        export = cls.exported(_object(address))
        ctypes.memmove(out, ctypes.addressof(export.managed.tensor), ctypes.sizeof(Tensor))
        _kept_of_last_call[:] = export.kept  # valid until control returns, and a little longer

    @classmethod
    def _current_stream(cls, device_type: int, device_id: int, out: object) -> None:
        out[0] = cls.current_stream(device_type, device_id)


_kept_of_last_call: list[object] = []


def _object(address: int) -> object:
    return ctypes.cast(address, ctypes.py_object).value


def _element_of(tensor: Tensor) -> Element:
    for element in ELEMENTS.values():
        if element.dlpack == (tensor.code, tensor.bits) and tensor.lanes == 1:
            return element
    raise BufferError(f"type code {tensor.code} with {tensor.bits} bits is unknown")


class _Taken:
    """Memory that came with a tensor: the deleter is called after the last array over it."""

    def __init__(self, low: int, managed: int) -> None:
        self.low = self.high = low
        self._managed = managed

    def __del__(self) -> None:
        deleter = VersionedManaged.from_address(self._managed).deleter
        if deleter:
            _DELETER(deleter)(self._managed)
