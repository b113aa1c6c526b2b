"""Consumers that mix the interfaces of an object that has several, each in one way."""

from __future__ import annotations

from typing import Any

from .consumer import wrong
from .host_consumer import ArrayInterfaceConsumer
from .importer import Importer
from .table import rows

row = rows(__name__)


class _TakesTheArrayInterface(ArrayInterfaceConsumer):
    interfaces = ("several",)

    def take(self, exporter: Any) -> Any:
        with memoryview(exporter) as view:
            self.view = view
            return super().take(exporter)


# fmt: off
row(wrong(weakens=("XA-15",)), _TakesTheArrayInterface, "TakesStridesOfTheBuffer",
    "The address is that of the array interface, the strides are those of the buffer.",
    strides=lambda self, entries, shape, itemsize: self.view.strides)
# fmt: on


@wrong(advises=("XA-06",))
class TakesTheFlagOfTheBuffer(_TakesTheArrayInterface):
    """The address is that of the array interface, the read-only flag is that of the buffer."""

    def memory(self, entries: dict[str, Any], nbytes: int) -> tuple[int, bool, Any]:
        address, _, owner = super().memory(entries, nbytes)
        return address, self.view.readonly, owner


@wrong(weakens=("XA-15",))
class TakesTheDeviceOfTheArrayInterface(Importer):
    """DLPack's memory is taken for host memory if there is an array interface."""

    interfaces = ("several",)

    def ask(self, exporter: Any) -> object:
        self._is_host = hasattr(exporter, "__array_interface__")
        return super().ask(exporter)

    def check_device(self, device_type: int, device_id: int) -> None:
        if not self._is_host:
            super().check_device(device_type, device_id)
