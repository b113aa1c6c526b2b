"""Exchange: the time of one hand-over of an existing array to a consumer, without copying."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Names, Work

__all__ = ["CASES"]

_SHAPE = (64, 64, 80)
_VALUE = 2.5
_WORK = Work(_SHAPE, values=_VALUE)
_COMMON = "No bytes are copied: the size of the array (2.5 MiB) does not matter."


def _source(library: str, module: ModuleType) -> Any:
    """An array of 2.5 s, the library's own class: a Buffer, an ndarray, a tensor."""
    if library == "torch":
        return module.full(_SHAPE, _VALUE, dtype=module.float64)
    if library == "numpy":
        return module.full(_SHAPE, _VALUE)
    buffer = module.allocate(_SHAPE)
    np.asarray(buffer)[...] = _VALUE
    return buffer


def _entry(library: str, statement: str, note: str = "", **more: Callable[[Any], Any]) -> Entry:
    """An entry on `x`, the library's own array; `more` makes further names from it."""

    def names(module: ModuleType) -> dict[str, Any]:
        x = _source(library, module)
        extra = {name: make(x) for name, make in more.items()}
        return {"x": x, "asarray": np.asarray, "from_dlpack": np.from_dlpack, **extra}

    return Entry(library, statement, names, note)


def _torch_import(library: str) -> Names:
    def names(module: ModuleType) -> dict[str, Any]:
        from torch.utils.dlpack import from_dlpack

        return {"x": _source(library, module), "from_dlpack": from_dlpack}

    return names


def _import(module: ModuleType) -> dict[str, Any]:
    return {"x": _source("numpy", np), "as_buffer": module.as_buffer}


_HAND_OVERS = 1000


def _loops(module: ModuleType) -> dict[str, Any]:
    from gridbuf_benchmarks import _loops as loops

    return {
        "x": _source("gridbuf", module),
        "through_table": loops.through_table,
        "through_method": loops.through_method,
    }


CASES: tuple[Case, ...] = (
    Case(
        id="exchange/memoryview",
        title="memoryview(x)",
        note=f"The buffer protocol, exported and released. PyTorch's tensors do not have it. {_COMMON}",
        work=_WORK,
        entries=(_entry("gridbuf", "memoryview(x)"), _entry("numpy", "memoryview(x)")),
    ),
    Case(
        id="exchange/asarray",
        promises=("asarray",),
        title="np.asarray(x)",
        note=(
            "A new ndarray over foreign memory. NumPy's entry wraps a memoryview of an ndarray, made beforehand, "
            "because np.asarray(ndarray) only returns its argument; PyTorch answers through __array__. "
            + _COMMON
        ),
        work=_WORK,
        entries=(
            _entry("gridbuf", "asarray(x)"),
            _entry("numpy", "asarray(view)", "from a memoryview", view=memoryview),
            _entry("torch", "asarray(x)", "through __array__"),
        ),
    ),
    Case(
        id="exchange/from_dlpack",
        promises=("asarray",),
        title="np.from_dlpack(x)",
        note=f"NumPy as the consumer of a DLPack capsule from each library's own array. {_COMMON}",
        work=_WORK,
        entries=tuple(_entry(key, "from_dlpack(x)") for key in ("gridbuf", "numpy", "torch")),
    ),
    Case(
        id="exchange/torch.from_dlpack",
        title="torch.from_dlpack(x)",
        note=f"PyTorch as the consumer; needs PyTorch. {_COMMON}",
        work=_WORK,
        entries=tuple(
            Entry(key, "from_dlpack(x)", _torch_import(key))
            for key in ("gridbuf", "numpy", "torch")
        ),
        consumer="torch",
    ),
    Case(
        id="exchange/as_buffer",
        title="gridbuf.as_buffer(ndarray)",
        note=(
            "gridbuf as the consumer of an ndarray. NumPy's entry is the cheapest view of one there is, a memoryview, which "
            f"knows neither names of dimensions nor a layout map. {_COMMON}"
        ),
        work=_WORK,
        entries=(
            Entry("gridbuf", "as_buffer(x)", _import, "of an ndarray"),
            _entry("numpy", "memoryview(x)"),
        ),
        promises=("as-buffer",),
    ),
    Case(
        id="exchange/array_interface",
        title="x.__array_interface__",
        note=f"Building the dict alone, without a consumer. PyTorch's tensors do not have it. {_COMMON}",
        work=_WORK,
        entries=tuple(_entry(key, "x.__array_interface__") for key in ("gridbuf", "numpy")),
    ),
    Case(
        id="exchange/dlpack",
        title="x.__dlpack__()",
        note=f"Making and dropping a legacy capsule that nobody consumes. {_COMMON}",
        work=_WORK,
        entries=tuple(_entry(key, "x.__dlpack__()") for key in ("gridbuf", "numpy", "torch")),
    ),
    Case(
        id="exchange/dlpack_versioned",
        title="x.__dlpack__(max_version=…)",
        note=f"Making and dropping a versioned capsule that nobody consumes. {_COMMON}",
        work=_WORK,
        entries=tuple(
            _entry(key, "x.__dlpack__(max_version=(1, 0))") for key in ("gridbuf", "numpy", "torch")
        ),
    ),
    Case(
        id="exchange/c_table",
        title=f"{_HAND_OVERS} exports in C",
        note=(
            f"{_HAND_OVERS} exports and releases in a loop of C: through DLPack's C exchange table, and by calling "
            f"__dlpack__ from the same C. The peer is gridbuf itself. {_COMMON}"
        ),
        work=_WORK,
        entries=(
            Entry("gridbuf", f"through_table(x, {_HAND_OVERS})", _loops),
            Entry("gridbuf_dlpack", f"through_method(x, {_HAND_OVERS})", _loops),
        ),
        promises=("c-table",),
    ),
)
