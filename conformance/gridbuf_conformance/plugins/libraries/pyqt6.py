"""PyQt6's `QByteArray`: Qt's bytes, which can grow.

sip's `voidptr` and `array`, by which Qt exports pixels, do not own or keep memory alive. That is
documented, and their user is responsible for the memory. They are not judged.
"""

from __future__ import annotations

from PyQt6.QtCore import PYQT_VERSION_STR, QByteArray

from ...plan import Plan
from ...producers.base import FlatBytesProducer


class ByteArrayProducer(FlatBytesProducer):
    """`QByteArray` of a copy."""

    name = "pyqt6"

    def version(self) -> str:
        return PYQT_VERSION_STR

    def make(self, plan: Plan) -> QByteArray:
        return QByteArray(plan.content())
