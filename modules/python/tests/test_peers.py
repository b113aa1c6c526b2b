"""Buffers and plain arrays go into the released packages of GT4Py and PyTorch without a change; layouts agree with GT4Py's."""

# No `from __future__ import annotations`: GT4Py evaluates a stencil's annotations, which are local names here.
import importlib.util
import itertools
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


# What GT4Py calls differently on purpose: its CPU presets ask for no alignment, its "gt:gpu" for 32 bytes.
OUR_ALIGNMENT_BYTES = {"gt:cpu_ifirst": 64, "gt:gpu": 128}

# The orders of dimensions in which the released GT4Py follows names. It appends data dimensions by position and has lost
# the order of I, J and K (GT4Py #2574), so it is not an oracle for the others.
CANONICAL_ORDERS = [
    (*spatial, *map(str, range(count)))
    for length in (1, 2, 3)
    for spatial in itertools.combinations("IJK", length)
    for count in range(3)
]


def gt4py_presets() -> list[str]:
    if importlib.util.find_spec("gt4py") is None:
        return []
    from gt4py.storage.cartesian import layout_registry

    return sorted(layout_registry.REGISTRY)


@needs("gt4py")
def test_gt4py_has_presets_and_we_know_them_all() -> None:
    assert set(gt4py_presets()) >= {
        "gt:cpu_kfirst",
        "gt:cpu_ifirst",
        "gt:gpu",
        "dace:cpu",
        "dace:gpu",
    }
    assert set(gt4py_presets()) <= set(gridbuf.presets())


@needs("gt4py")
@pytest.mark.parametrize("preset", gt4py_presets())
def test_presets_are_gt4pys(preset: str) -> None:
    from gt4py.storage.cartesian import layout_registry

    theirs = layout_registry.from_name(preset)
    ours = gridbuf.presets()[preset]
    assert ours["device"] == (None if theirs["device"] == "cpu" else "gpu")
    assert ours["alignment_size"] == OUR_ALIGNMENT_BYTES.get(preset, theirs["alignment"])
    for dims in CANONICAL_ORDERS:
        plan = gridbuf.plan((3,) * len(dims), backend=preset, device=None, dims=dims)
        assert plan.layout == theirs["layout_map"](dims), dims


@needs("gt4py")
@pytest.mark.parametrize("preset", gt4py_presets())
@pytest.mark.parametrize("alignment_bytes", [1, 32, 64, 128])
def test_strides_and_alignment_are_gt4pys(preset: str, alignment_bytes: int) -> None:
    from gt4py.storage.cartesian import layout_registry, utils

    layout_map = layout_registry.from_name(preset)["layout_map"]
    for dims, dtype in itertools.product(CANONICAL_ORDERS, ("f8", "f4", "i1")):
        shape = (5, 6, 7, 3, 2)[: len(dims)]
        index = tuple(extent // 2 for extent in shape)
        _, theirs = utils.allocate_cpu(shape, layout_map(dims), dtype, alignment_bytes, index)
        ours = gridbuf.empty(
            shape,
            dtype,
            dims=dims,
            layout=layout_map(dims),
            alignment_size=alignment_bytes,
            aligned_index=index,
        )
        assert ours.strides == theirs.strides, (dims, dtype)
        for array in (ours, theirs):
            offset = sum(i * stride for i, stride in zip(index, array.strides, strict=True))
            assert (array.ctypes.data + offset) % alignment_bytes == 0
