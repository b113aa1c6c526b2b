"""Consumers for the tests of their run: right, wrong, and not consumers at all."""

from __future__ import annotations

import os
from typing import Any

from gridbuf_conformance_mutants.importer import Importer, reference


def consume(exporter: Any) -> Any:
    """What a file is asked for if nothing is named: the strict consumer."""
    return reference(exporter)


def refuses(exporter: Any) -> Any:
    raise BufferError("not today")


def wraps(exporter: Any) -> Any:
    """Takes everything, and looks at nothing."""
    return [exporter]


def sees_nothing(exporter: Any) -> Any:
    """Takes the tensor, and returns something that no interface leads into."""
    return Sealed(reference(exporter))


class Sealed:
    def __init__(self, content: Any) -> None:
        self._content = content


class _DiesOnMatrices(Importer):
    def shape_of(self, tensor: Any) -> tuple[int, ...]:
        if tensor.ndim == 2:
            os.abort()
        return super().shape_of(tensor)


dies_on_matrices = _DiesOnMatrices()


def interrupts_itself(exporter: Any) -> Any:
    raise SystemExit(3)


NOT_CALLABLE = 42
