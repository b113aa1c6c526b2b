"""The current step of the measurement: a short name, stored where it outlives its process.

A producer can crash its whole process. The measurement therefore writes its next step
(`enter(Stage.PRODUCE)`, `enter(Stage.DL, "deleter")`) just before it does it. In a worker the name
goes into a page shared with the driver, so that after a crash or a hang the driver knows at which
step it happened, and with `catalogue.rule_of_step` which rule that counts against.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum


class Stage(Enum):
    """The first part of a step, up to its colon: an interface, or a part of the measurement."""

    AGAIN = "again"
    AI = "ai"
    AS = "as"
    CAI = "cai"
    CONSUME = "consume"
    CONTROL = "control"
    CS = "cs"
    DL = "dl"
    DP = "dp"
    DROP = "drop"
    DX = "dx"
    EXIT = "exit"
    EXTRAS = "extras"
    EYES = "eyes"
    GT = "gt"
    IDLE = "idle"
    IMPORT = "import"
    LIFE = "life"
    PB = "pb"
    POKE = "poke"
    PROBE = "probe"
    PRODUCE = "produce"
    RACE = "race"
    READ = "read"
    SLOW = "slow"
    TEARDOWN = "teardown"
    VIEW = "view"
    WALK = "walk"

    @staticmethod
    def of(step: str) -> Stage | None:
        """The stage of a written step; None for no step. Raises ValueError for an unknown stage."""
        return Stage(step.partition(":")[0]) if step else None


SLOT_BYTES = mmap.PAGESIZE
_name = ""
_slot: mmap.mmap | None = None
_is_held = False


def enter(stage: Stage, detail: str = "") -> None:
    """Says what the measurer does next; costs a memory copy, no system call."""
    global _name
    if _is_held:
        return
    step = _name = f"{stage.value}:{detail}" if detail else stage.value
    if _slot is not None:
        encoded = step.encode()[:255]
        _slot[: len(encoded) + 1] = bytes([len(encoded)]) + encoded


def hold(stage: Stage) -> None:
    """Enters a step, of which all steps until the next `hold` or `release` are parts."""
    release()
    enter(stage)
    global _is_held
    _is_held = True


def release() -> None:
    """Ends what `hold` began."""
    global _is_held
    _is_held = False


@contextmanager
def only(stage: Stage) -> Iterator[None]:
    """`hold` until the end: several threads would write their steps over one another."""
    hold(stage)
    try:
        yield
    finally:
        release()


def current() -> str:
    """The step entered last in this process."""
    return _name


def share(slot: mmap.mmap) -> None:
    """From now on writes each step into this page as well (worker)."""
    global _slot
    _slot = slot


def read(slot_fd: int) -> str:
    """The step that the other process entered last (driver). The file is read, not mapped: that
    process can shrink it.
    """
    written = os.pread(slot_fd, 256, 0)
    return written[1 : 1 + written[0]].decode(errors="replace") if written else ""
