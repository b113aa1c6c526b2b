"""Benchmarks of small calls: each calls the entry points of the extension that it is about."""

import gridbuf
import numpy as np
import pytest
from counted import counted, entry_points
from gridbuf import _core

from gridbuf_benchmarks.cases import named

# The cases of benchmarks/gridbuf_benchmarks/cases, and the entry points that each of their calls calls.
MEASURED = {
    "allocate/small/allocate": "allocate",
    **{f"allocate/small/{name}": name for name in ("empty", "zeros", "ones", "full")},
    **{
        f"allocate/small/{name}_like": f"{name}_like" for name in ("empty", "zeros", "ones", "full")
    },
    **{
        f"allocate/storage/{name}": f"_storage_{name}"
        for stem in ("empty", "zeros", "ones", "full")
        for name in (stem, f"{stem}_like")
    },
    "from_array/128/102": "from_array",
    "exchange/as_buffer": "as_buffer",
    "exchange/as_numpy": "as_numpy",
    "exchange/asarray": "Buffer.__buffer__",
    "exchange/from_dlpack": "Buffer.__dlpack__",
    "exchange/attributes": """
        Buffer.__len__ Buffer.shape Buffer.ndim Buffer.dtype Buffer.__dlpack_device__
    """,
    "exchange/index": "Buffer.__getitem__",
    "storage/memoryview": "StorageBase.__buffer__ StorageBase.__release_buffer__",
    "storage/asarray": "StorageBase.__buffer__",
    "storage/from_dlpack": "StorageBase.__dlpack__",
    "storage/attributes": """
        StorageBase.__len__ StorageBase.shape StorageBase.ndim StorageBase.dtype
        StorageBase.__dlpack_device__
    """,
    "storage/index/inner": "StorageBase.__getitem__",
    "storage/index/assign": "StorageBase.__setitem__",
    "storage/index/planes": "StorageBase.__iter__",
    "storage/ufunc/64/ijk_plus_k": """
        StorageBase._parameters
    """,
    "tiny/row": "copyto",
}

CALLS = 3


@pytest.mark.parametrize("case", MEASURED)
def test_a_benchmark_calls_its_entry_points(case: str) -> None:
    entry = named(case).entries[0]
    names = dict(entry.names(gridbuf))
    with counted(entry_points(_core)) as calls:
        for _ in range(CALLS):
            eval(entry.statement, names)
    assert [name for name in MEASURED[case].split() if calls[name] < CALLS] == []


def test_calls_are_counted() -> None:
    buffer = gridbuf.allocate((2, 3))
    with counted(entry_points(_core)) as calls:
        gridbuf.zeros((2, 3))
        assert (len(buffer), buffer.shape, buffer[0].ndim) == (2, (2, 3), 1)
        gridbuf.zeros(shape=(4,), dtype="int32")
        np.asarray(buffer)[...] = 1.0
    assert calls == {
        "zeros": 2,
        "Buffer.__len__": 1,
        "Buffer.shape": 1,
        "Buffer.__getitem__": 1,
        "Buffer.ndim": 1,
        "Buffer.__buffer__": 1,
    }
    assert gridbuf.zeros(2).sum() == len(buffer[0]) - 3
    assert calls["zeros"] == 2, "after that, nothing is counted"
