"""Exports of the CUDA stream protocol: an object with `__cuda_stream__`.

The plain form is the legacy default stream, which needs no device. Without a CUDA device, a created
stream is an address that leads nowhere: no consumer can work on it, and it is only compared.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...exports.export import PLAIN, Export, Interface, ObservedExport, Variant
from ...exports.memory import Block
from ...info import ExportInfo
from ...plan.producer import Capabilities
from ..cuda.exports import driver


class _Stream:
    def __init__(self, observed: ObservedStream) -> None:
        self._observed = observed

    def __cuda_stream__(self) -> tuple[Any, ...]:
        self._observed.reads += 1
        return self._observed.pair


class ObservedStream(ObservedExport):
    """A stream that counts how often it is asked."""

    def __init__(self, export: Export, block: Block) -> None:
        super().__init__(export, block)
        self.pair: tuple[Any, ...] = (0, 1)
        self.variant.bend(self)
        self.make(_Stream)

    def info(self) -> ExportInfo:
        return ExportInfo(reads=self.reads, handle=self.pair[1])


def _pair(version: int, handle: Any) -> Callable[[ObservedStream], None]:
    return lambda observed: setattr(observed, "pair", (version, handle))


def _created(observed: ObservedStream) -> None:
    access = driver()
    if isinstance(access, str):
        observed.pair = (0, observed.block.forbidden)
    else:
        observed.pair = (0, access.create_stream())
        weakref.finalize(observed, access.destroy_stream, observed.pair[1])


def _variant(name: str, rule: str, expects: str, about: str, *pair: Any, **more: Any) -> Variant:
    return Variant(name, (rule,), expects, about, bend=_pair(*pair), **more)


_MAY = "right-or-error"
INTERFACES = (
    Interface(
        "cuda-stream",
        "__cuda_stream__, version 0",
        ("CS",),
        Capabilities(dtypes=("float32",), readonly=(False,)),
        ObservedStream,
        (
            _variant(PLAIN, "CS-02", _MAY, "the legacy default stream", 0, 1),
            _variant("default", "CS-02", _MAY, "the handle is 0, the default stream", 0, 0),
            _variant("per-thread", "CS-02", _MAY, "the per-thread default stream", 0, 2),
            Variant("created", ("CS-02", "CS-03"), _MAY, "a created stream", bend=_created),
            _variant("version-1", "CS-01", "error", "the protocol has version 1", 1, 1),
            _variant("negative", "CS-02", "error", "the handle is -1", 0, -1, is_robust=True),
            _variant("none", "CS-02", "error", "the handle is None", 0, None, is_robust=True),
        ),
        taken_rule="CS-02",
        position=65,
    ),
)
