"""What a stencil does about points of a halo that are not valid (docs/spec.md 9.81)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

from .. import _core

HaloCheck = Literal["off", "warn", "raise", "exchange"]

_MODES: tuple[HaloCheck, ...] = ("off", "warn", "raise", "exchange")  # by their numbers in the core


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
        missing: then all ranks call the stencil, in the same order. Of a field without a
        decomposition "exchange" raises. At first "off".

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
    return _MODES[_core._set_halo_check(number_of(mode))]


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
    stencil: str, names: Sequence[str], fields: Sequence[Any], call: _core.BoundStencil
) -> None:
    """Exchanges, and raises or warns for ends of halos that are still read too deep."""
    together: dict[int, dict[int, tuple[Any, list[list[int]]]]] = {}
    for i, axis, end, needed, _ in call.stale:
        field = fields[i]
        owner = owner_number(field)
        if owner >= 0 and _mode(call, field) == "exchange":
            missing = together.setdefault(owner, {})
            _, depth = missing.setdefault(id(field), (field, [[0, 0] for _ in field.halo]))
            depth[axis][end] = max(depth[axis][end], needed)
    if together:
        from ..mpi._decomposition import by_number

        for owner in sorted(together):
            both = list(together[owner].values())
            depths = [depth for _, depth in both]
            by_number(owner).exchange(*(field for field, _ in both), depth=depths)
        call.check_halos()
    for i, axis, end, needed, valid in call.stale:
        if needed > valid:
            text = _text(stencil, names[i], fields[i], axis, end, needed, valid)
            if _mode(call, fields[i]) != "warn":
                raise StaleHaloError(text)
            warnings.warn(text, StaleHaloWarning, stacklevel=4)


def _mode(call: _core.BoundStencil, field: Any) -> HaloCheck:
    number = call.mode if call.mode >= 0 else field._halo_check
    return _MODES[(number if number >= 0 else _core._set_halo_check(-1)) % len(_MODES)]


def _text(stencil: str, name: str, field: Any, axis: int, end: int, needed: int, valid: int) -> str:
    place = field._stale_place
    since = f"; it was written at {place}" if place else ""
    return (
        f"field {name!r}, dimension {field.dims[axis]!r}: stencil {stencil!r} reads {needed} point{'s' * (needed > 1)} of the "
        f"{('lower', 'upper')[end]} halo, of which {valid} are valid{since}; exchange the halo before, or say "
        "mark_halo_valid() if other code has filled it"
    )
