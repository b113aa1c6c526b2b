"""The steps at the end of a stencil's call, also after an exception.

Every field that was acquired is released once, and every field that the function may have written is touched. Each of
these steps runs, also if another one raises. The call raises the first exception. Later ones are its context, so that none is
lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeAlias

Step: TypeAlias = tuple[Any, ...]
"""The field, the name of the step, what to call, and its arguments."""


class noted:  # noqa: N801 (it is used as a function)
    """A step of one field: a note on what it raises names both."""

    def __init__(self, field: str, step: str) -> None:
        self.field, self.step = field, step

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            _note(error, f"raised by field {self.field!r} of a stencil, step: {self.step}")


def finish(steps: Iterable[Step], first: BaseException | None = None) -> None:
    """Attempts all steps.

    `first` is the exception of the call, which the caller raises. Without it, the first exception of a step is raised.
    """
    raised = first
    try:
        for field, step, action, *arguments in steps:
            try:
                action(*arguments)
            except BaseException as error:  # noqa: BLE001 (it is raised below, or is attached to the exception that is raised)
                _note(error, f"raised by field {field!r} of a stencil, step: {step}")
                if raised is None:
                    raised = error
                else:
                    _hang(raised, error, field, step)
        if first is None and raised is not None:
            raise raised
    finally:
        del first, raised  # Tracebacks refer to this frame: it must not refer to their exceptions.


def _hang(first: BaseException, later: BaseException, field: str, step: str) -> None:
    """`later` becomes the innermost context of `first`, so that a traceback shows it."""
    chain = [first]
    while chain[-1].__context__ is not None:
        chain.append(chain[-1].__context__)
    if not any(error is later for error in chain):
        later.__context__ = None
        chain[-1].__context__ = later
    _note(first, f"then {type(later).__name__} was raised by field {field!r}, step: {step}")


def _note(error: BaseException, text: str) -> None:
    with suppress(Exception):  # A class of exceptions may refuse notes. The call goes on.
        if text not in getattr(error, "__notes__", ()):
            error.add_note(text)
