"""Exports and imports of arrays without a copy; views, exports and arithmetic of storages."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Names, Work, uses

_SHAPE = (64, 64, 80)
_VALUE = 2.5
_COMMON = "No bytes are copied: the size of the array (2.5 MiB) does not matter."


def _x(library: str) -> Names:
    """`x`, an array of the library's own class (a Buffer, an ndarray, a tensor), and consumers of it."""

    def names(module: ModuleType) -> dict[str, Any]:
        if library == "gridbuf":
            x = module.allocate(_SHAPE)
            np.asarray(x)[...] = _VALUE
        else:
            x = module.full(_SHAPE, _VALUE, dtype=module.float64)
        return {"x": x, "asarray": np.asarray, "from_dlpack": np.from_dlpack}

    return names


def _to_torch(library: str) -> Names:
    def names(module: ModuleType) -> dict[str, Any]:
        from torch.utils.dlpack import from_dlpack

        return {**_x(library)(module), "from_dlpack": from_dlpack}

    return names


def _loops(module: ModuleType) -> dict[str, Any]:
    from gridbuf_benchmarks import _loops as loops

    functions = (loops.through_table, loops.through_method)
    of = "numpy" if module.__name__ == "numpy" else "gridbuf"
    return {**_x(of)(module), **{one.__name__: one for one in functions}}


def _same(statement: str, libraries: str, result: str = "") -> tuple[Entry, ...]:
    return tuple(
        Entry(library, statement, _x(library), result=result) for library in libraries.split()
    )


_ATTRIBUTES = "(len(x), x.shape, x.ndim, x.dtype, x.__dlpack_device__())"
_ATTRIBUTES_NOTE = "What a consumer asks before it takes the memory."
_ALL, _TWO = "gridbuf numpy torch", "gridbuf numpy"
_NOTES = {
    "memoryview": "The buffer protocol, exported and released. PyTorch's tensors do not have it.",
    "asarray": "A new ndarray over foreign memory. NumPy's entry wraps a memoryview of an ndarray, made beforehand, because "
    "np.asarray(ndarray) only returns its argument; PyTorch answers through __array__.",
    "from_dlpack": "NumPy as the consumer of a DLPack capsule from each library's own array.",
    "torch.from_dlpack": "PyTorch as the consumer; needs PyTorch.",
    "as_buffer": "gridbuf as the consumer of an ndarray. NumPy's entry is the cheapest view of one there is, a memoryview, which "
    "knows neither names of dimensions nor a layout map.",
    "as_numpy": "An ndarray of a Buffer. NumPy's entry is as for np.asarray.",
    "attributes": _ATTRIBUTES_NOTE,
    "index": "A view, made and dropped. A Buffer's view has names of dimensions and a layout; NumPy's has none of them.",
    "array_interface": "Building the dict alone, without a consumer. PyTorch's tensors do not have it.",
    "dlpack": "Making and dropping a legacy capsule that is not consumed.",
    "dlpack_versioned": "Making and dropping a versioned capsule that is not consumed.",
    "c_table": "1000 exports and releases in a loop of C: through DLPack's C exchange table, and by calling __dlpack__ from the "
    "same C. The peer is gridbuf itself.",
}


def _exchanges() -> Iterator[Case]:
    ndarray = uses("as_buffer", make=lambda: {"x": np.full(_SHAPE, _VALUE)})
    as_buffer = Entry("gridbuf", "as_buffer(x)", ndarray, "of an ndarray")
    view = uses(make=lambda: {"x": np.full(_SHAPE, _VALUE).data, "asarray": np.asarray})
    asarray = (
        *_same("asarray(x)", "gridbuf"),
        Entry("numpy", "asarray(x)", view, "from a memoryview"),
        Entry("torch", "asarray(x)", _x("torch"), "through __array__"),
    )
    to_torch = tuple(Entry(one, "from_dlpack(x)", _to_torch(one)) for one in _ALL.split())
    versioned = _same("x.__dlpack__(max_version=(1, 0))", _ALL)
    as_numpy = Entry(
        "gridbuf",
        "as_numpy(x)",
        lambda module: {**_x("gridbuf")(module), "as_numpy": module.as_numpy},
    )
    by_table = Entry("gridbuf", "through_table(x, 1000)", _loops)
    by_methods = (
        Entry("numpy", "through_method(x, 1000)", _loops),
        Entry("gridbuf_dlpack", "through_method(x, 1000)", _loops),
    )
    cases: dict[str, tuple[str, tuple[Entry, ...], str]] = {
        "memoryview": ("memoryview(x)", _same("memoryview(x)", _TWO), ""),
        "asarray": ("np.asarray(x)", asarray, "hand-over"),
        "from_dlpack": ("np.from_dlpack(x)", _same("from_dlpack(x)", _ALL), "hand-over"),
        "torch.from_dlpack": ("torch.from_dlpack(x)", to_torch, ""),
        "as_buffer": (
            "gridbuf.as_buffer(ndarray)",
            (as_buffer, *_same("memoryview(x)", "numpy")),
            "as-buffer",
        ),
        "as_numpy": ("gridbuf.as_numpy(x)", (as_numpy, asarray[1]), ""),
        "attributes": ("attributes of x", _same(_ATTRIBUTES, _TWO, "x"), ""),
        "index": ("x[:, :, :]", _same("x[:, :, :]", _TWO), "subscript"),
        "array_interface": ("x.__array_interface__", _same("x.__array_interface__", _TWO), ""),
        "dlpack": ("x.__dlpack__()", _same("x.__dlpack__()", _ALL), ""),
        "dlpack_versioned": ("x.__dlpack__(max_version=…)", versioned, ""),
        "c_table": ("1000 exports in C", (by_table, *by_methods), "c-table"),
    }
    for name, (title, entries, promise) in cases.items():
        yield Case(
            id=f"exchange/{name}",
            title=title,
            note=f"{_NOTES[name]} {_COMMON}",
            work=Work(_SHAPE, values=_VALUE),
            entries=entries,
            promises=(promise,) if promise else (),
            consumer="torch" if name.startswith("torch") else None,
        )


_ARITHMETIC_NOTE = (
    "A new array with the result, allocation included. The operands of both have the same layout; NumPy is told by hand where "
    "the axes of extent 1 go. Both add with the same loop of NumPy's: what differs is finding out what the result looks "
    "like, and where its memory comes from."
)
# Arithmetic of storages by names, and of arrays by position. All elements of all operands are 1.
_EXPRESSIONS = {
    "ijk_plus_k": ("ijk + k", "ijk + k", 2.0),
    "ij_times_k": ("ij * k", "ij[:, :, None] * k", 1.0),
    "ijk_plus_ijk": ("ijk + ijk", "ijk + ijk", 2.0),
    "ijk_times_2": ("ijk * 2.0", "ijk * 2.0", 2.0),
    "sum_k": ("add.reduce(ijk, axis='K')", "add.reduce(ijk, axis=2)", 0.0),
}


def _operands(extent: int) -> Names:
    def names(module: ModuleType) -> dict[str, Any]:
        from gridbuf.storage import ones

        found: dict[str, Any] = {"add": np.add}
        for dims in ("IJK", "IJ", "K"):
            shape = (extent,) * len(dims)
            own = module.__name__ == "gridbuf"
            found[dims.lower()] = ones(shape, dims=dims) if own else np.ones(shape)
        return found

    return names


def _arithmetic() -> Iterator[Case]:
    for extent in (64, 128, 256):
        for name, (by_name, by_position, value) in _EXPRESSIONS.items():
            ndim, values = (2, float(extent)) if name == "sum_k" else (3, value)
            yield Case(
                id=f"storage/ufunc/{extent}/{name}",
                title=f"{by_name}, {extent}³",
                note=_ARITHMETIC_NOTE,
                work=Work((extent,) * ndim, values=values, layout=tuple(range(ndim))),
                entries=(
                    Entry("gridbuf", by_name, _operands(extent)),
                    Entry("numpy", by_position, _operands(extent)),
                ),
                quick=extent < 256,
                promises=("ufunc",),
            )


_INDEX_NOTE = (
    "A view, made and dropped. A storage's view has the names of its dimensions, a halo and an aligned index; "
    "NumPy's has none of them."
)
_EXPORT_NOTE = "No bytes are copied. The storage is one of the host, so no side is to be updated; gridbuf checks this each time."


class _Storage(NamedTuple):
    """A case on a storage and on an ndarray, both `x`. `theirs` is NumPy's expression, where it is another one."""

    title: str
    statement: str
    note: str
    promise: str = ""
    theirs: str = ""
    shape: tuple[int, ...] = _SHAPE
    result: str = ""


_STORAGES = {
    "index/inner": _Storage(
        "s[3:-3, 3:-3, :]", "x[inner]", _INDEX_NOTE, "subscript", "", (58, 58, 80)
    ),
    "index/plane": _Storage("s[5]", "x[5]", _INDEX_NOTE, "subscript", "", (64, 80)),
    "index/planes": _Storage("list(s)", "[*x]", f"{_INDEX_NOTE} 64 views.", result="x"),
    "index/assign": _Storage(
        "s[5, 5, 5] = 2.5",
        "setitem(x, (5, 5, 5), 2.5)",
        "The assignment of a number to one element.",
        result="x",
    ),
    "attributes": _Storage("attributes of s", _ATTRIBUTES, _ATTRIBUTES_NOTE, result="x"),
    "memoryview": _Storage("memoryview(s)", "memoryview(x)", _EXPORT_NOTE),
    "asarray": _Storage(
        "np.asarray(s)",
        "asarray(x)",
        f"{_EXPORT_NOTE} NumPy's entry wraps a memoryview of an ndarray, made beforehand.",
        "hand-over",
        "asarray(memory)",
    ),
    "from_dlpack": _Storage("np.from_dlpack(s)", "from_dlpack(x)", _EXPORT_NOTE, "hand-over"),
    "as_storage": _Storage(
        "as_storage(ndarray)",
        "as_storage(array)",
        "A storage over an ndarray. NumPy's entry is a memoryview of one.",
        theirs="memoryview(array)",
    ),
}


def _field(module: ModuleType) -> dict[str, Any]:
    from gridbuf.storage import as_storage, full

    array = np.full(_SHAPE, _VALUE)
    return {
        "x": full(_SHAPE, _VALUE, halo=(3, 3, 0)) if module.__name__ == "gridbuf" else array,
        "array": array,
        "memory": array.data,
        "inner": np.s_[3:-3, 3:-3, :],
        "as_storage": as_storage,
        "asarray": np.asarray,
        "from_dlpack": np.from_dlpack,
        "setitem": operator.setitem,
    }


def _storages() -> Iterator[Case]:
    for name, case in _STORAGES.items():
        yield Case(
            id=f"storage/{name}",
            title=case.title,
            note=case.note,
            work=Work(case.shape, values=_VALUE),
            entries=(
                Entry("gridbuf", case.statement, _field, result=case.result),
                Entry("numpy", case.theirs or case.statement, _field, result=case.result),
            ),
            promises=(case.promise,) if case.promise else (),
        )


CASES: tuple[Case, ...] = (*_exchanges(), *_arithmetic(), *_storages())
