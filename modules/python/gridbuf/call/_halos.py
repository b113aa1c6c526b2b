"""What a stencil does about points of a halo that are not valid (docs/spec.md 9.81)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from .. import _core

HaloCheck = Literal["off", "warn", "raise", "exchange"]

_MODES = ("off", "warn", "raise", "exchange")  # by their numbers in the core


class StaleHaloError(RuntimeError):
    """A stencil would read points of a halo that do not have the neighbours' values.

    The message names the field, the dimension, the end, the depth that is read, the valid depth,
    and the line that wrote the field since the last exchange (docs/spec.md 9.81).
    """


class StaleHaloWarning(UserWarning):
    """A stencil reads points of a halo that do not have the neighbours' values.

    With `halo_check="warn"` (docs/spec.md 9.81).
    """


def set_halo_check(mode: HaloCheck) -> HaloCheck:
    """Choose what happens when a stencil reads a halo deeper than it is valid (docs/spec.md 9.81).

    It holds for fields that belong to no decomposition, in the whole process. A decomposition has
    its own, and a call may have `halo_check=`.

    Parameters
    ----------
    mode : {"off", "warn", "raise", "exchange"}
        Nothing, a StaleHaloWarning, a StaleHaloError, or an exchange of the points that are
        missing; of a field without a decomposition "exchange" raises. At first "off".

    Returns
    -------
    str
        The mode before.

    Raises
    ------
    ValueError
        There is no such mode.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.set_halo_check(gridbuf.set_halo_check("warn"))
    'warn'
    """
    return _MODES[_core._set_halo_check(number_of(mode))]  # type: ignore[return-value]


def number_of(mode: object) -> int:
    """The number of a mode in the core; -1 for None, which is the field's own."""
    if mode is None:
        return -1
    if mode not in _MODES:
        raise ValueError(
            f"halo_check is {mode!r}, but must be one of {', '.join(map(repr, _MODES))}"
        )
    return _MODES.index(mode)


def owner_number(field: Any) -> int:
    """The number of the decomposition that a field belongs to; -1 for none."""
    check: int = field._halo_check
    return -1 if check < 0 else check // len(_MODES)


def check_number(owner: int, mode: object) -> int:
    """What the core keeps of a field that belongs to a decomposition."""
    return owner * len(_MODES) + number_of(mode)


def handle(
    stencil: str,
    names: Sequence[str],
    fields: Sequence[Any],
    stale: Iterable[tuple[int, int, int, int, int]],
    mode: int,
) -> None:
    """Raises, warns or exchanges, for each (field, axis, end, needed depth, valid depth)."""
    missing: dict[int, tuple[Any, list[list[int]]]] = {}
    for i, axis, end, needed, valid in stale:
        field = fields[i]
        number = field._halo_check if mode < 0 else mode
        if number < 0:  # of no decomposition: that of the process
            number = _core._set_halo_check(-1)
        chosen, owner = _MODES[number % len(_MODES)], owner_number(field)
        fits = needed <= field.halo[axis][end]
        if chosen == "exchange" and owner >= 0 and fits:
            _, depth = missing.setdefault(id(field), (field, [[0, 0] for _ in field.halo]))
            depth[axis][end] = needed
            continue
        text = _text(stencil, names[i], field, axis, end, needed, valid)
        if chosen != "warn":
            raise StaleHaloError(text)
        warnings.warn(text, StaleHaloWarning, stacklevel=5)
    if missing:
        from ..mpi._decomposition import by_number

        together = list(missing.values())
        by_number(owner_number(together[0][0])).exchange(
            *(field for field, _ in together), depth=[depth for _, depth in together]
        )


def _text(stencil: str, name: str, field: Any, axis: int, end: int, needed: int, valid: int) -> str:
    place = field._stale_place
    since = f"; it was written at {place}" if place else ""
    return (
        f"field {name!r}, dimension {field.dims[axis]!r}: stencil {stencil!r} reads {needed} points of the "
        f"{('lower', 'upper')[end]} halo, of which {valid} are valid{since}; exchange the halo before, or say "
        "mark_halo_valid() if other code has filled it"
    )
