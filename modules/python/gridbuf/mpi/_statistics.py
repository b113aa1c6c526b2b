"""What an exchange has sent: counted by its engine, shown to its user."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Counters", "ExchangeStatistics"]


class ExchangeStatistics(NamedTuple):
    """What one rank has sent with one HaloExchange so far."""

    exchanges: int
    """Those that were started, and did not fail here."""
    messages: int
    """To other ranks, those without elements included; fields that travel with GHEX count one for each neighbour."""
    empty_messages: int
    """Those of them without elements: nothing had been written."""
    sent_bytes: int
    """Elements in them. Headers and padding, which are at most some hundred bytes a message, are not counted."""
    whole_bytes: int
    """What they would have held if everything were always sent."""


class Counters:
    """The same while it is counted. `whole_bytes` is what one exchange sends at most."""

    def __init__(self, whole_bytes: int) -> None:
        self._whole_bytes = whole_bytes
        self._exchanges = self._messages = self._empty = self._sent_bytes = 0

    def started(self) -> None:
        """An exchange has been started."""
        self._exchanges += 1

    def sent(self, elements_bytes: int, messages: int = 1) -> None:
        """Messages are on their way, with so many bytes of elements together."""
        self._messages += messages
        self._empty += 0 if elements_bytes else messages
        self._sent_bytes += elements_bytes

    def statistics(self) -> ExchangeStatistics:
        """What was counted so far."""
        return ExchangeStatistics(
            self._exchanges,
            self._messages,
            self._empty,
            self._sent_bytes,
            self._exchanges * self._whole_bytes,
        )
