"""PyTorch tensors on the CPU, allocated by `torch.empty_permuted`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ...plan import Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import HostProducer, viewed
from .standard import MmapProducer

_NAMES = (
    *("float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)
_DTYPES = {name: getattr(torch, name) for name in _NAMES if hasattr(torch, name)}
"""PyTorch 1.12 has neither wide unsigned integers nor float8."""


class TorchProducer(HostProducer):
    """Dense tensors: never read-only, only native byte order, no negative strides."""

    name = "torch"
    capabilities = Capabilities(
        dtypes=tuple(_DTYPES), layouts="any", byteorders=("native",), readonly=(False,)
    )

    def make(self, plan: Plan) -> torch.Tensor:
        dtype = _DTYPES[plan.dtype]
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        slowest_first = sorted(range(plan.ndim), key=lambda axis: layout[axis])
        memory = torch.empty([plan.shape[axis] for axis in slowest_first], dtype=dtype)
        result = memory.permute([slowest_first.index(axis) for axis in range(plan.ndim)])
        if plan.fill is not None and plan.nbytes:
            content = torch.frombuffer(bytearray(plan.content()), dtype=dtype)
            result.copy_(content.reshape(plan.shape))
        return result

    def apply_view(self, obj: torch.Tensor, operation: Sequence[Any]) -> torch.Tensor | Unsupported:
        name, *arguments = operation
        if name == "reverse" or (name == "slice" and arguments[3] < 0):
            return Unsupported("torch: its strides are never negative, flip copies")
        if name == "transpose":
            return obj.permute(*arguments[0]) if arguments[0] else obj
        return viewed(obj, operation, broadcast=torch.Tensor.expand)


class NegativeProducer(TorchProducer):
    """Tensors whose negative bit is set: the memory has the negatives of the elements."""

    name = "torch.negative"
    capabilities = replace(
        TorchProducer.capabilities, dtypes=("float64", "float32"), layouts="C", max_nbytes=2**20
    )

    def make(self, plan: Plan) -> torch.Tensor:
        values = super().make(plan)
        return torch.complex(torch.zeros_like(values), -values).conj().imag


class FakeProducer(TorchProducer):
    """Tensors of `FakeTensorMode`: shapes and element types without memory."""

    name = "torch.fake"
    capabilities = replace(TorchProducer.capabilities, layouts="C")
    has_memory = False

    def __init__(self) -> None:
        # Not above: PyTorch 1.12 does not have it.
        from torch._subclasses.fake_tensor import FakeTensorMode

        self._mode = FakeTensorMode
        self.make(Plan())  # the first use imports hundreds of modules: not on the time of a plan

    def make(self, plan: Plan) -> torch.Tensor:
        with self._mode():
            return torch.empty(plan.shape, dtype=_DTYPES[plan.dtype])


class MetaProducer(TorchProducer):
    """Tensors on the device `meta`: shapes and element types without memory."""

    name = "torch.meta"
    capabilities = replace(TorchProducer.capabilities, layouts="C")
    has_memory = False

    def make(self, plan: Plan) -> torch.Tensor:
        return torch.empty(plan.shape, dtype=_DTYPES[plan.dtype], device="meta")


class FreedProducer(TorchProducer):
    """Tensors whose storage was resized to no bytes, as FSDP frees parameters between uses."""

    name = "torch.freed"
    capabilities = replace(
        TorchProducer.capabilities, dtypes=("float64", "float32"), layouts="C", max_nbytes=2**20
    )
    has_memory = False

    def make(self, plan: Plan) -> torch.Tensor | Unsupported:
        if not plan.nbytes:
            return Unsupported("torch.freed: a tensor without elements has no storage to free")
        result = super().make(plan)
        result.untyped_storage().resize_(0)
        return result


class SparseProducer(TorchProducer):
    """Sparse tensors: by coordinates, and as compressed rows for int64 in two dimensions."""

    name = "torch.sparse"
    capabilities = replace(
        TorchProducer.capabilities,
        dtypes=("float64", "float32", "int64"),
        layouts="C",
        max_nbytes=2**16,
    )
    has_memory = False

    def make(self, plan: Plan) -> torch.Tensor:
        dense = super().make(plan)
        is_compressed = plan.dtype == "int64" and plan.ndim == 2
        return dense.to_sparse_csr() if is_compressed else dense.to_sparse()


class OpaqueProducer(TorchProducer):
    """Tensors whose elements are not the numbers in memory: quantized, conjugated, nested."""

    name = "torch.opaque"
    capabilities = replace(
        TorchProducer.capabilities,
        dtypes=("float32", "complex64", "int8"),
        layouts="C",
        max_nbytes=2**16,
    )
    has_memory = False

    def make(self, plan: Plan) -> torch.Tensor:
        dense = super().make(plan)
        if plan.dtype == "int8":
            return torch.quantize_per_tensor(dense.float(), 1.0, 0, torch.qint8)
        if plan.dtype == "complex64":
            return dense.conj()
        return torch.nested.nested_tensor([dense, dense])


class StridedProducer(TorchProducer):
    """`torch.as_strided`: any stride along axes of extent 1, and along all of empty tensors."""

    name = "torch.strided"
    capabilities = replace(TorchProducer.capabilities, layouts="C", max_nbytes=2**20)

    def make(self, plan: Plan) -> torch.Tensor:
        result = super().make(plan)
        strides = [
            17 + 1000 * axis if extent == 1 or not result.numel() else stride
            for axis, (stride, extent) in enumerate(zip(result.stride(), plan.shape))
        ]
        return result.as_strided(plan.shape, strides)


class ReadOnlyProducer(TorchProducer):
    """`torch.frombuffer` of read-only pages: PyTorch warns, and the tensor does not record it."""

    name = "torch.readonly"
    capabilities = replace(
        TorchProducer.capabilities, layouts="C", max_nbytes=2**20, readonly=(True,)
    )

    def make(self, plan: Plan) -> torch.Tensor | Unsupported:
        pages = MmapProducer().make(plan)
        if isinstance(pages, Unsupported):
            return pages
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.frombuffer(pages, dtype=_DTYPES[plan.dtype]).reshape(plan.shape)
