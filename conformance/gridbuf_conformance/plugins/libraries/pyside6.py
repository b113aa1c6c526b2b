"""PySide6's `QByteArray`: Qt's bytes, which can grow.

shiboken's `VoidPtr` does not own memory and keeps nothing alive, like the pointers of sip; it is
not judged.
"""

from __future__ import annotations

from PySide6.QtCore import QByteArray

from ...plan import Plan
from ...producers.base import FlatBytesProducer


class ByteArrayProducer(FlatBytesProducer):
    """`QByteArray` of a copy."""

    name = "pyside6"

    def make(self, plan: Plan) -> QByteArray:
        return QByteArray(plan.content())
