"""Buffers and plain arrays go into the optional peers as they are: PyTorch and GT4Py, the released packages."""

# No `from __future__ import annotations`: GT4Py evaluates a stencil's annotations, which are names of its own here.
import importlib.util
from pathlib import Path

import gridbuf
import ml_dtypes
import numpy as np
import pytest

HOW = "install the peers with `./bazelw --peers`"


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        importlib.util.find_spec(name) is None, reason=f"{name} is not installed; {HOW}"
    )


@needs("torch")
def test_torch_takes_a_buffer_without_copying() -> None:
    import torch

    buffer = gridbuf.allocate((3, 4, 5), "f4", layout=(2, 0, 1), alignment_size=64)
    tensor = torch.from_dlpack(buffer)
    assert tuple(tensor.shape) == buffer.shape
    assert tuple(stride * 4 for stride in tensor.stride()) == buffer.strides
    assert tensor.data_ptr() == buffer.to_numpy().ctypes.data
    tensor[1, 2, 3] = 7.0
    assert buffer[1, 2, 3] == 7.0
    del buffer
    assert tensor[1, 2, 3] == 7.0


@needs("torch")
def test_torch_takes_bfloat16_and_views() -> None:
    import torch

    buffer = gridbuf.full((4, 6), 1.5, ml_dtypes.bfloat16).base
    tensor = torch.from_dlpack(buffer[1::2].T)
    assert tensor.dtype == torch.bfloat16
    assert tuple(tensor.shape) == (6, 2)
    assert (tensor == 1.5).all()


@needs("gt4py")
def test_gt4py_reads_names_origin_and_memory() -> None:
    from gt4py.storage.cartesian import utils

    buffer = gridbuf.allocate((5, 6, 7), dims="KJI", aligned_index=(0, 2, 1))
    assert utils.get_dims(buffer) == ("K", "J", "I")
    assert utils.get_origin(buffer) == (1, 2, 0)
    assert np.shares_memory(utils.asarray(buffer, device="cpu"), buffer.to_numpy())


@needs("gt4py")
def test_a_gt4py_stencil_takes_buffers_and_plain_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where it keeps what it compiles
    from gt4py.cartesian import gtscript
    from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval

    def double(source: Field[np.float64], target: Field[np.float64]):  # type: ignore[no-untyped-def]
        with computation(PARALLEL), interval(...):
            target = 2.0 * source  # noqa: F841

    stencil = gtscript.stencil(backend="numpy", definition=double)
    source = gridbuf.full((6, 5, 4), 3.0, backend="gt:cpu_ifirst", aligned_index=(1, 1, 0))
    # A buffer in another order of dimensions; its origin is in the order of annotations.
    target = gridbuf.zeros((4, 5, 6), dims="KJI", aligned_index=(0, 1, 1)).base
    stencil(source=source.base, target=target)
    result = target.to_numpy().transpose(2, 1, 0)
    assert (result[1:, 1:, :] == 6.0).all()
    assert (result[0] == 0.0).all()
    assert (result[:, 0] == 0.0).all()
    plain = gridbuf.zeros((6, 5, 4), backend="gt:cpu_kfirst")
    stencil(source=source, target=plain)
    assert (plain == 6.0).all()
