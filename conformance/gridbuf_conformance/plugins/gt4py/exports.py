"""Data interface exports: an object with `__gt_data_interface__`, whose hooks are noted.

The memory is out of date until it is acquired: its elements hold other bytes, and `acquire` puts
the right ones there, as an object with two sides does. So a consumer that reads first shows wrong
values, and the order of `acquire`, `touch` and `release` is on record.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...info import ExportInfo
from ...plan.dtypes import DTYPES
from ...plan.producer import Capabilities
from ...exports import plans
from ...interfaces.array_interface.exports import typestr_of
from ...exports.export import PLAIN, Export, Interface, ObservedExport, Variant, variants_of
from ...exports.memory import Block

_HOOKS = ("acquire", "touch", "release")


class _Exporter:
    def __init__(self, observed: ObservedDataInterface) -> None:
        self._answer = observed.answer

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        return self._answer()


class _ArrayExporter:
    """An object without `__gt_data_interface__`: its array interface replaces the host entry."""

    def __init__(self, observed: ObservedDataInterface) -> None:
        self._answer = observed.entry

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, **self._answer()}


class ObservedDataInterface(ObservedExport):
    """An exporter whose entry is out of date until acquired; it notes the order of the hooks."""

    def __init__(self, export: Export, block: Block) -> None:
        super().__init__(export, block)
        self.events: list[str] = []
        self.has_hooks = not (
            isinstance(self.variant, EntriesVariant) and self.variant.is_plain_array
        )
        self._content = block.bytes()
        if self.has_hooks:
            self._make_stale()
        self.make(_Exporter if self.has_hooks else _ArrayExporter)

    def _make_stale(self) -> None:
        ctypes.memset(self.block.low, 0x11, len(self._content))

    def _make_current(self) -> None:
        if "acquire" not in self.events:
            ctypes.memmove(self.block.low, self._content, len(self._content))

    def entry(self) -> dict[str, Any]:
        """The host's entry without its hooks."""
        self.reads += 1
        block = self.block
        return {
            "shape": block.shape,
            "typestr": typestr_of(block.plan),
            "data": (block.address, False),
            "strides": block.strides,
        }

    def answer(self) -> dict[Any, Any]:
        """The dict of entries, bent by the variant."""
        entry = {"version": 3, **self.entry()}
        entry.update({hook: self._hook(hook) for hook in _HOOKS})
        entries: dict[Any, Any] = {None: entry}
        self.variant.bend(entries, self)
        return entries

    def _hook(self, name: str) -> Callable[[], None]:
        def hook() -> None:
            if name == "acquire":
                self._make_current()
            self.events.append(name)

        return hook

    def info(self) -> ExportInfo:
        return ExportInfo(reads=self.reads, events=list(self.events), has_hooks=self.has_hooks)

    def forget(self) -> None:
        super().forget()
        if self.has_hooks:
            self.block.protect(mmap.PROT_READ | mmap.PROT_WRITE)
            self._make_current()


# -- variants ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EntriesVariant(Variant):
    """A variant of the entries: `bend` edits them.

    `is_plain_array`: there is no `__gt_data_interface__`, and an array interface in its place.
    """

    is_plain_array: bool = False


def _without(key: str) -> Callable[[dict[Any, Any], ObservedDataInterface], None]:
    def bend(entries: dict[Any, Any], observed: ObservedDataInterface) -> None:
        del entries[None][key]

    return bend


def _unknown_key(entries: dict[Any, Any], observed: ObservedDataInterface) -> None:
    entries[None]["conformance_suite"] = "this key means nothing"


def _named(entries: dict[Any, Any], observed: ObservedDataInterface) -> None:
    entry = entries[None]
    entry["dims"] = ("Cell", "K", "Edge", "tracer", "E2V")[: len(entry["shape"])]


def _forwarded(entries: dict[Any, Any], observed: ObservedDataInterface) -> None:
    """An array interface of NumPy's, passed on with the hooks."""
    dense = not plans.not_dense_misfit(observed.block.plan)
    described = {"version": 3, "descr": [("", entries[None]["typestr"])]}
    entries[None].update(described, strides=None if dense else entries[None]["strides"])


def _none_hooks(entries: dict[Any, Any], observed: ObservedDataInterface) -> None:
    entries[None].update(touch=None, release=None)


def _device_only(entries: dict[Any, Any], observed: ObservedDataInterface) -> None:
    """An entry for a device, at an address that the host may not touch."""
    entry = entries.pop(None)
    entries["gpu"] = {**entry, "data": (observed.block.forbidden, False)}


_SEEN = ("GT-07",)
_variant = variants_of(EntriesVariant, _SEEN, adapt=plans.plain)
_VARIANTS: tuple[Variant, ...] = (
    Variant(PLAIN, _SEEN, "right-or-error", "an entry for the host, with hooks", adapt=plans.plain),
    Variant(
        "gaps",
        _SEEN,
        "right-or-error",
        "every second element of the last axis",
        adapt=plans.stepped,
    ),
    _variant(
        "four-keys",
        "GT-02",
        "right",
        "the entry has shape, typestr, data and strides, and no version",
        _without("version"),
    ),
    *(
        _variant(
            f"absent-{key}",
            "GT-02",
            "error",
            f"the entry does not have the key {key}",
            _without(key),
            is_robust=True,
        )
        for key in ("shape", "typestr", "data")
    ),
    _variant(
        "absent-strides",
        "GT-02",
        "right-or-error",
        "the entry does not have the key strides; the memory is in row-major order",
        _without("strides"),
        is_robust=True,
    ),
    EntriesVariant(
        "other-names", ("GT-02",), "right-or-error", "dims are Cell, K, …", plans.plain, bend=_named
    ),
    _variant(
        "unknown-key",
        "GT-06",
        "right",
        "the entry has one key more, that no text names",
        _unknown_key,
    ),
    _variant(
        "forwarded",
        "GT-06",
        "right",
        "the entry is an array interface of NumPy's, with hooks",
        _forwarded,
    ),
    EntriesVariant(
        "none-hooks",
        _SEEN,
        "right",
        "touch and release are None",
        adapt=plans.plain,
        bend=_none_hooks,
    ),
    EntriesVariant(
        "array-interface",
        ("GT-08",),
        "right",
        "an array interface in the place of the host's entry",
        adapt=plans.plain,
        is_plain_array=True,
    ),
    _variant(
        "device-only",
        "GT-10",
        "error",
        "the only entry is for a device, and there is none",
        _device_only,
    ),
)

INTERFACES = (
    Interface(
        "data-interface",
        "__gt_data_interface__ with hooks",
        ("GT",),
        Capabilities(
            dtypes=tuple(
                name
                for name, info in DTYPES.items()
                if info.typestr is not None and info.kind in "fiucb"
            ),
            max_ndim=5,
            layouts="any",
            byteorders=("native",),
            readonly=(False,),
        ),
        ObservedDataInterface,
        _VARIANTS,
        taken_rule="GT-06",
        position=70,
    ),
)
