"""The namespace of the array API: what it has works on storages, what it does not have names a replacement."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import gridbuf.storage as gs
import numpy as np
import pytest
from gridbuf.storage import _table
from gridbuf.storage._namespace import namespace

XP: Any = namespace()


def test_functions_are_numpys_and_made_arrays_are_storages() -> None:
    assert isinstance(XP.zeros((2, 3)), gs.Storage) and XP.zeros(3).dims == ("I",)
    assert XP.ones((2,), dtype=XP.int32).dtype == np.int32
    assert XP.full((2,), 7).dtype == np.int64 and XP.full((2,), 7.0).dtype == np.float64
    assert XP.empty((2, 3), device="cpu").shape == (2, 3)
    assert XP.arange(4).tolist() == [0, 1, 2, 3]
    assert XP.linspace(0, 1, 3).tolist() == [0.0, 0.5, 1.0]
    assert XP.eye(2).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    field = XP.asarray([[1.0, 2.0]])
    assert XP.asarray(field) is field
    assert XP.asarray(field, copy=True) is not field
    assert XP.asarray(field, dtype=XP.float32).dtype == np.float32
    memory = np.zeros(3)
    assert np.shares_memory(XP.asarray(memory, copy=False).to_numpy(), memory)
    assert np.shares_memory(XP.from_dlpack(memory).to_numpy(), memory)
    assert not np.shares_memory(XP.from_dlpack(memory, copy=True).to_numpy(), memory)
    assert XP.sum is np.sum and XP.linalg is np.linalg
    assert XP.sum(field) == 3.0 and XP.mean(field, axis="J").dims == ("I",)


def test_what_it_has_is_what_storages_have() -> None:
    for name in dir(np):
        if name.startswith("_") or not callable(getattr(np, name)):
            continue
        is_there = _table.row_of(name) is not None or isinstance(getattr(np, name), type)
        assert not is_there or not hasattr(XP, name) or getattr(XP, name) is not None
    for name in _table.REFUSED:
        with pytest.raises(
            AttributeError, match="the namespace of storages does not have .*; use "
        ):
            getattr(XP, name)
    assert {"asarray", "sum", "float64", "__array_api_version__"} <= set(dir(XP))
    assert repr(XP) == "<namespace of gridbuf's storages, array API 2024.12>"


def test_versions_and_devices() -> None:
    for version in (None, "2022.12", "2024.12"):
        assert namespace(version) is XP
    with pytest.raises(ValueError, match="api_version is '2031.12', but must be from 2021.12"):
        namespace("2031.12")
    info = XP.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() is None
    assert info.devices() == [None, "gpu"]
    assert info.default_dtypes()["real floating"] == np.float64
    assert info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
    field = gs.ones((2, 3), halo=(1, 1))
    assert field.to_device(None) is field and field.to_device("cpu") is field
    with pytest.raises(ValueError, match="device is 'tpu' and stream None, but must be None"):
        field.to_device("tpu")
    with gridbuf_device():
        there = field.to_device("gpu")
        assert type(there) is gs.GPUStorage and there.halo == field.halo
        assert there.to_device("cpu").tolist() == field.tolist()


def gridbuf_device() -> Any:
    import gridbuf.testing

    return gridbuf.testing.emulated_device()


@pytest.mark.parametrize("with_xarray", [False, True])
def test_the_attribute_is_there_unless_xarray_is(with_xarray: bool) -> None:
    """xarray 2026.9 refuses to index arrays that have it at points."""
    if with_xarray:
        pytest.importorskip("xarray")
    code = f"""
{"import xarray" if with_xarray else ""}
import gridbuf.storage, numpy
field = gridbuf.storage.ones((2, 3))
print(hasattr(field, "__array_namespace__"))
try:
    import array_api_compat
except ImportError:
    print("array_api_compat is not there")
else:
    xp = array_api_compat.array_namespace(field, field + 1)
    print(xp.sum(field), array_api_compat.device(field), xp.asarray([1.0]).dims)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == str(not with_xarray), done.stderr
    if not with_xarray:
        assert lines[1] in ("6.0 None ('I',)", "array_api_compat is not there"), done.stderr
