"""gridbuf's two front ends: the native `Buffer` with every interface, and plain-array functions.

Both are judged from outside like everyone else's: only their public allocation functions are used.
Buffers in device, pinned and managed memory are made on a CUDA device where there is one, and on
gridbuf's emulated device elsewhere, which the version in the report then says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gridbuf
import gridbuf.testing
import numpy as np

from ...abi.device import TableAccess
from ...plan import ALIGNMENT_LIMIT_BYTES, Plan
from ...producer import Capabilities
from ...producers.base import HostProducer, viewed
from .numpy import NumPyProducer, numpy_dtype, write_content

_KEYS = frozenset({"layout", "alignment_size", "aligned_index", "dims"})


def keywords(plan: Plan) -> dict[str, Any]:
    """gridbuf's keywords for the plan; what the plan does not ask is not passed."""
    keys = ("layout", "aligned_index", "dims", "halo")
    asked = {key: plan[key] for key in keys if plan[key] is not None}
    if plan.alignment_size != 1:
        asked["alignment_size"] = plan.alignment_size
    return asked


class _Described:
    """The array interface alone: NumPy prefers the buffer and cannot read a swapped `g` in it."""

    def __init__(self, array: gridbuf.Buffer) -> None:
        self.owner = array
        self.__array_interface__ = array.__array_interface__


class BufferProducer(HostProducer):
    """`gridbuf.allocate`: a `gridbuf.Buffer`."""

    name = "gridbuf"
    capabilities = Capabilities(
        dtypes=NumPyProducer.capabilities.dtypes,
        layouts="any",
        alignment_bytes=(1, ALIGNMENT_LIMIT_BYTES),
        byteorders=("native", "swapped"),
        readonly=(False,),
        dims=True,
        declares=_KEYS,
    )

    def make(self, plan: Plan) -> gridbuf.Buffer:
        result = gridbuf.allocate(plan.shape, numpy_dtype(plan), **keywords(plan))
        write_content(np.asarray(_Described(result)), plan)
        return result

    def apply_view(self, obj: gridbuf.Buffer, operation: Sequence[Any]) -> Any:
        return viewed(obj, operation, broadcast=gridbuf.Buffer.broadcast_to)


class OnDevice(BufferProducer):
    """Buffers in memory that the device reaches."""

    memory = ""

    def __init__(self) -> None:
        try:
            self._table = gridbuf.testing.device_table()
        except gridbuf.DeviceUnavailableError:
            gridbuf.testing.emulated_device()
            self._table = gridbuf.testing.device_table()

    def version(self) -> str:
        emulated = " on the emulated device" if gridbuf.testing.is_emulated() else ""
        return f"{gridbuf.__version__}{emulated}"

    def device_table(self) -> Any:
        return self._table

    def on_stream(self, stream: int) -> Any:
        return gridbuf.stream(stream)

    def make(self, plan: Plan) -> gridbuf.Buffer:
        dtype = numpy_dtype(plan)
        result = gridbuf.allocate(plan.shape, dtype, memory=self.memory, **keywords(plan))
        self.write(result, plan)
        return result

    def write(self, result: gridbuf.Buffer, plan: Plan) -> None:
        """Puts the plan's content in; the host does it where it can."""
        write_content(np.asarray(_Described(result)), plan)

    def copy_in(self, plan: Plan, address: int, strides: Sequence[int], stream: int) -> None:
        """Lays the array out in host memory and copies its hull over, on the stream."""
        hull_bytes = plan.itemsize + sum(s * (n - 1) for s, n in zip(strides, plan.shape))
        image = np.zeros(hull_bytes, np.uint8)
        write_content(np.ndarray(plan.shape, numpy_dtype(plan), image, 0, strides), plan)
        TableAccess(self.device_table()).copy(address, image.ctypes.data, hull_bytes, stream)


class PinnedProducer(OnDevice):
    """`gridbuf.allocate(memory="pinned")`."""

    name = "gridbuf.pinned"
    memory = "pinned"
    capabilities = replace(BufferProducer.capabilities, devices=("pinned",))


class ManagedProducer(OnDevice):
    """`gridbuf.allocate(memory="managed")`."""

    name = "gridbuf.managed"
    memory = "managed"
    capabilities = replace(BufferProducer.capabilities, devices=("managed",))


class DeviceProducer(OnDevice):
    """`gridbuf.allocate(memory="device")`."""

    name = "gridbuf.device"
    memory = "device"
    capabilities = replace(BufferProducer.capabilities, devices=("gpu",))

    def write(self, result: gridbuf.Buffer, plan: Plan) -> None:
        """Copies the content over, on the buffer's own stream."""
        if plan.fill is not None and plan.nbytes:
            interface = result.__cuda_array_interface__
            self.copy_in(plan, interface["data"][0], result.strides, interface["stream"])


class PlainProducer(HostProducer):
    """`gridbuf.empty` and `gridbuf.zeros`: NumPy arrays placed by the storage spec's rules."""

    name = "gridbuf.plain"
    capabilities = BufferProducer.capabilities

    def make(self, plan: Plan) -> np.ndarray:
        # Plans without content come as large as the system allows, and zeros commits its pages.
        allocate = gridbuf.zeros if plan.fill else gridbuf.empty
        result = allocate(plan.shape, numpy_dtype(plan), **keywords(plan))
        write_content(result, plan)
        return result

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        return NumPyProducer().apply_view(obj, operation)
