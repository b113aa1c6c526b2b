"""PyTorch tensors on the CPU, allocated by `torch.empty_permuted`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ..plan import Plan
from ..producer import Capabilities, Unsupported
from .base import HostProducer, viewed

__all__ = ["FakeProducer", "NegativeProducer", "TorchProducer"]

_DTYPES = {
    **{name: getattr(torch, name) for name in ("float64", "float32", "float16", "bfloat16")},
    **{
        f"{sign}int{bits}": getattr(torch, f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "bool": torch.bool,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
}


class TorchProducer(HostProducer):
    """Dense tensors. They have no read-only form, no byte order but the native one, no negative strides."""

    name = "torch"
    capabilities = Capabilities(
        dtypes=tuple(_DTYPES), layouts="any", byteorders=("native",), readonly=(False,)
    )

    def version(self) -> str:
        return torch.__version__

    def make(self, plan: Plan) -> torch.Tensor:
        dtype = _DTYPES[plan.dtype]
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        slowest_first = sorted(range(plan.ndim), key=lambda axis: layout[axis])
        result = torch.empty_permuted(plan.shape, slowest_first, dtype=dtype)
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

    def make(self, plan: Plan) -> torch.Tensor:
        with FakeTensorMode():
            return torch.empty(plan.shape, dtype=_DTYPES[plan.dtype])
