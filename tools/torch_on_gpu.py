"""PyTorch's tensors in device memory: `gridbuf-conformance check tools/torch_on_gpu.py:TorchOnGpu`, on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plugins.libraries.torch import TorchProducer


class TorchOnGpu(TorchProducer):
    """Tensors of the CPU, copied to the device; the copy keeps their strides."""

    name = "torch.cuda"
    capabilities = replace(TorchProducer.capabilities, devices=("gpu",))

    def on_stream(self, stream: int) -> Any:
        return torch.cuda.stream(torch.cuda.ExternalStream(stream))

    def make(self, plan: Plan) -> torch.Tensor:
        return super().make(plan).to("cuda", memory_format=torch.preserve_format)
