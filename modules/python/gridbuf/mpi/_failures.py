"""Common failures: an error on one rank is an error on all, so that no rank waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Value = TypeVar("_Value")


class HaloExchangeError(RuntimeError):
    """Another rank failed, so the operation did not take place.

    The message names the rank (docs/spec.md 9.59).
    """


def together(comm: Any, work: Callable[[], _Value]) -> list[_Value]:
    """The results of `work` of all ranks, by rank. Collective: if it fails on one rank, it fails on all.

    Raises:
      Exception: what `work` raised on this rank.
      HaloExchangeError: it raised on another rank.
    """
    value, error = None, None
    try:
        value = work()
    except Exception as caught:
        error = caught
    outcomes = comm.allgather(
        (value, None if error is None else f"{type(error).__name__}: {error}")
    )
    if error is not None:
        raise error
    for rank, (_, text) in enumerate(outcomes):
        if text is not None:
            raise HaloExchangeError(f"rank {rank} failed, and with it all others: {text}")
    return [value for value, _ in outcomes]
