"""gridbuf's storages: one producer for all four types, and one for each.

Content goes in as a stencil's results do: through `__gt_data_interface__`, with acquire, touch and
release. A storage with two buffers gets it on either side, by the plan's seed, so that every export
has something to bring over. Memory of a device is a CUDA device's where there is one, else that of
gridbuf's emulated device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import gridbuf.storage
import numpy as np

from ...plan import Plan
from ...producer import python_view
from .gridbuf import BufferProducer, OnDevice, keywords
from .numpy import numpy_dtype, write_content

_BUFFERS = BufferProducer.capabilities
_KEYS = replace(_BUFFERS, halo=True, declares=_BUFFERS.declares | {"halo"})


class _Storages(OnDevice):
    """What all have in common. `placed` has the keywords that choose the type."""

    placed: ClassVar[dict[str, Any]] = {}

    def placement(self, plan: Plan) -> dict[str, Any]:
        return self.placed

    def make(self, plan: Plan) -> gridbuf.storage.Storage:
        asked = {**keywords(plan), **self.placement(plan)}
        result = gridbuf.storage.empty(plan.shape, numpy_dtype(plan), **asked)
        if plan.fill is not None and plan.nbytes:
            self.write(result, plan)
        return result

    def write(self, result: gridbuf.storage.Storage, plan: Plan) -> None:
        """Puts the plan's content in on one side that the storage has."""
        entries = result.__gt_data_interface__
        side = list(entries)[(plan.fill or 0) % len(entries)]
        entry = entries[side]
        _call(entry, "acquire")
        if side is None:
            write_content(np.asarray(SimpleNamespace(__array_interface__=entry)), plan)
        else:
            self.copy_in(plan, entry["data"][0], result.device_strides, entry.get("stream") or 1)
        _call(entry, "touch")

    def apply_view(self, obj: gridbuf.storage.Storage, operation: Sequence[Any]) -> Any:
        return python_view(obj, operation)


def _call(entry: dict[str, Any], hook: str) -> None:
    if entry.get(hook) is not None:
        entry[hook]()


class CpuStorageProducer(_Storages):
    """`CPUStorage`."""

    name = "gridbuf.storage.cpu"
    capabilities = replace(_KEYS, devices=(None,))


class GpuStorageProducer(_Storages):
    """`GPUStorage`: a device buffer only."""

    name = "gridbuf.storage.gpu"
    capabilities = replace(_KEYS, devices=("gpu",))
    placed: ClassVar = {"device": "gpu", "managed": None}


class SyncedStorageProducer(_Storages):
    """`SoftwareManagedGPUStorage`: a buffer on each side, kept in step by gridbuf.

    A request for both sides makes it copy: it cannot be large without touching its pages.
    """

    name = "gridbuf.storage.synced"
    capabilities = replace(_KEYS, devices=("gpu",), max_nbytes=2**24)
    placed: ClassVar = {"device": "gpu", "managed": "gt4py"}


class TwoLayoutsProducer(SyncedStorageProducer):
    """The same with another layout on the device: the opposite order."""

    name = "gridbuf.storage.layouts"

    def placement(self, plan: Plan) -> dict[str, Any]:
        order = plan.layout or range(plan.ndim)
        opposite = tuple(plan.ndim - 1 - rank for rank in order)
        return {**self.placed, "device_layout": opposite}


class ManagedStorageProducer(_Storages):
    """`CUDAManagedGPUStorage`: one memory that the driver moves."""

    name = "gridbuf.storage.managed"
    capabilities = replace(_KEYS, devices=("managed",))
    placed: ClassVar = {"device": "gpu", "managed": "cuda"}


class StorageProducer(_Storages):
    """All four: by the plan's device; in device memory, its seed decides on a host buffer."""

    name = "gridbuf.storage"
    capabilities = replace(_KEYS, devices=(None, "gpu", "managed"))

    def placement(self, plan: Plan) -> dict[str, Any]:
        if plan.device is None:
            return CpuStorageProducer.placed
        if plan.device == "managed":
            return ManagedStorageProducer.placed
        has_host_buffer = bool((plan.fill or 0) // 2 % 2)
        return (SyncedStorageProducer if has_host_buffer else GpuStorageProducer).placed
