"""gridbuf's storages: one producer for all four types, and one for each.

Content goes in as a stencil's results do: through `__gt_data_interface__`, with acquire, touch and release. A storage
with two buffers gets it on either side, by the plan's seed, so that every export has something to bring over. Memory
of a device is a CUDA device's where there is one, else that of gridbuf's emulated device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gridbuf.storage
import numpy as np

from ..abi.device import TableAccess
from ..plan import Plan
from ..producer import python_view
from .gridbuf import BufferProducer, OnDevice, keywords
from .numpy import numpy_dtype, write_content

__all__ = [
    "CpuStorageProducer",
    "GpuStorageProducer",
    "ManagedStorageProducer",
    "StorageProducer",
    "SyncedStorageProducer",
]

_BUFFERS = BufferProducer.capabilities
_KEYS = replace(_BUFFERS, halo=True, declares=_BUFFERS.declares | {"halo"})


class _Storages(OnDevice):
    """What all have in common. `placement` gives the keywords that choose the type."""

    def placement(self, plan: Plan) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} must define placement")

    def make(self, plan: Plan) -> gridbuf.storage.Storage:
        more = {} if plan.halo is None else {"halo": plan.halo}
        asked = {**keywords(plan), **self.placement(plan), **more}
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
            self._write_on_the_device(entry, result.strides, plan)
        _call(entry, "touch")

    def _write_on_the_device(
        self, entry: dict[str, Any], strides: tuple[int, ...], plan: Plan
    ) -> None:
        """Lays the array out in host memory and copies its hull over, on the stream that the entry names."""
        hull_bytes = plan.itemsize + sum(s * (n - 1) for s, n in zip(strides, plan.shape))
        image = np.zeros(hull_bytes, np.uint8)
        write_content(np.ndarray(plan.shape, numpy_dtype(plan), image, 0, strides), plan)
        access = TableAccess(self.device_table())
        access.copy(entry["data"][0], image.ctypes.data, hull_bytes, entry.get("stream") or 1)

    def apply_view(self, obj: gridbuf.storage.Storage, operation: Sequence[Any]) -> Any:
        return python_view(obj, operation)


def _call(entry: dict[str, Any], hook: str) -> None:
    if entry.get(hook) is not None:
        entry[hook]()


class CpuStorageProducer(_Storages):
    """`CPUStorage`."""

    name = "gridbuf.storage.cpu"
    capabilities = replace(_KEYS, devices=(None,))

    def placement(self, plan: Plan) -> dict[str, Any]:
        return {}


class GpuStorageProducer(_Storages):
    """`GPUStorage`: a device buffer only."""

    name = "gridbuf.storage.gpu"
    capabilities = replace(_KEYS, devices=("gpu",))

    def placement(self, plan: Plan) -> dict[str, Any]:
        return {"device": "gpu", "managed": None}


class SyncedStorageProducer(_Storages):
    """`SoftwareManagedGPUStorage`: a buffer on each side, kept in step by gridbuf.

    A request for both sides makes it copy: it cannot be large without touching its pages.
    """

    name = "gridbuf.storage.synced"
    capabilities = replace(_KEYS, devices=("gpu",), max_nbytes=2**24)

    def placement(self, plan: Plan) -> dict[str, Any]:
        return {"device": "gpu", "managed": "gt4py"}


class ManagedStorageProducer(_Storages):
    """`CUDAManagedGPUStorage`: one memory that the driver moves."""

    name = "gridbuf.storage.managed"
    capabilities = replace(_KEYS, devices=("managed",))

    def placement(self, plan: Plan) -> dict[str, Any]:
        return {"device": "gpu", "managed": "cuda"}


class StorageProducer(_Storages):
    """All four: by the plan's device, and in device memory with and without a host buffer, by the plan's seed."""

    name = "gridbuf.storage"
    capabilities = replace(_KEYS, devices=(None, "gpu", "managed"))

    def placement(self, plan: Plan) -> dict[str, Any]:
        if plan.device is None:
            return {}
        if plan.device == "managed":
            return {"device": "gpu", "managed": "cuda"}
        has_host_buffer = bool((plan.fill or 0) // 2 % 2)
        return {"device": "gpu", "managed": "gt4py" if has_host_buffer else None}
