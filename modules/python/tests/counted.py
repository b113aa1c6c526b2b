"""Counts the calls of entry points that are written against CPython's C API.

CPython reads the pointer to a C function at each call, from a struct whose layout is public and the same from 3.11 to 3.14: that
of a function or method from its PyMethodDef, that of an attribute from its PyGetSetDef, that of an operation from its type. A
function that counts, and calls the replaced one, takes its place.
"""

from __future__ import annotations

import ctypes
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

_WORD_BYTES = ctypes.sizeof(ctypes.c_void_p)
_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * 4)
"""Any entry point: at most four words go in and one comes out. Arguments that it does not have are ignored."""

# In words from the beginning of each struct. The head of objects is 2 words, or 4 in free-threaded Python.
_HEAD = object.__basicsize__ // _WORD_BYTES
_M_ML, _D_METHOD, _ML_METH = _HEAD, _HEAD + 3, 1
_REPR, _AS_SEQUENCE, _AS_MAPPING, _CALL, _AS_BUFFER, _ITER = (
    _HEAD + n for n in (9, 11, 12, 14, 18, 25)
)
SLOTS = {
    "__buffer__": [(_AS_BUFFER, 0)],
    "__release_buffer__": [(_AS_BUFFER, 1)],
    "__len__": [(_AS_SEQUENCE, 0), (_AS_MAPPING, 0)],
    "__getitem__": [(_AS_SEQUENCE, 3), (_AS_MAPPING, 1)],
    "__setitem__": [(_AS_MAPPING, 2)],
    "__iter__": [(_ITER,)],
    "__repr__": [(_REPR,)],
    "__call__": [(_CALL,)],
}
"""Operations of types that the extension has. CPython 3.11 does not show those of buffers as attributes."""
_SAME_SLOT = {"__delitem__": "__setitem__"}


def _word(address: int, index: int) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(address + index * _WORD_BYTES)


def _slot(type_: type, path: tuple[int, ...]) -> ctypes.c_void_p:
    table, *field = path
    word = _word(id(type_), table)
    return _word(word.value, field[0]) if field and word.value else word


def _family(type_: type) -> Iterator[type]:
    yield type_
    for derived in type_.__subclasses__():
        yield from _family(derived)


def _pointers_of_slot(type_: type, name: str) -> list[ctypes.c_void_p]:
    """Also those of classes that inherit the operation: each type has a copy of the pointer."""
    found = []
    for path in SLOTS[name]:
        own = _slot(type_, path).value
        if own and own != _slot(object, path).value:
            found += [w for t in _family(type_) if (w := _slot(t, path)).value == own]
    return found


def entry_points(module: ModuleType) -> dict[str, list[ctypes.c_void_p]]:
    """The pointers of each function, method, attribute and operation of the module that is not pybind11's, by name."""
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, types.BuiltinFunctionType) and value.__self__ is module:
            found[name] = [_word(_word(id(value), _M_ML).value, _ML_METH)]
        elif type(value) is type and not issubclass(value, (Exception, int)):
            found |= {f"{name}.{key}": pointers for key, pointers in _of_type(value)}
    return found


def _of_type(type_: type) -> Iterator[tuple[str, list[ctypes.c_void_p]]]:
    for name, member in vars(type_).items():
        if isinstance(member, (types.MethodDescriptorType, types.GetSetDescriptorType)):
            yield name, [_word(_word(id(member), _D_METHOD).value, _ML_METH)]
        elif isinstance(member, types.WrapperDescriptorType):
            assert {name, _SAME_SLOT.get(name)} & {*SLOTS}, f"add the place of {name} to SLOTS"
    for name in SLOTS:
        # An attribute that pybind11 sets also changes the slot.
        ours = isinstance(vars(type_).get(name), (types.WrapperDescriptorType, types.NoneType))
        if ours and (pointers := _pointers_of_slot(type_, name)):
            yield name, pointers


@contextmanager
def counted(points: dict[str, list[ctypes.c_void_p]]) -> Iterator[Counter[str]]:
    """Counts the calls of each of `entry_points`, by name."""
    calls: Counter[str] = Counter()
    with ExitStack() as restored:
        for name, pointers in points.items():
            for pointer in pointers:
                original = pointer.value
                counting = _counting(name, calls, original)
                restored.callback(setattr, pointer, "value", original)
                restored.callback(id, counting)  # keeps it
                pointer.value = ctypes.cast(counting, ctypes.c_void_p).value
        yield calls


def _counting(name: str, calls: Counter[str], original: int) -> ctypes._FuncPointer:
    call = _FUNCTION(original)

    def count(*arguments: int | None) -> int | None:
        calls[name] += 1
        return call(*arguments)

    return _FUNCTION(count)
