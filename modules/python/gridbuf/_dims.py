"""Dimensions: a name with a kind."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Literal, SupportsIndex

from . import _core


class Dim(str):
    """A dimension: its name, with a kind.

    It is a str, so it can be used wherever a name can. A plain str has the kind that was declared for
    it (`gridbuf.declare_dims`), else "horizontal".

    Parameters
    ----------
    name : str or object with `value` and `kind`
        An identifier of 1 to 63 characters, or a decimal number; or a `gt4py.next.Dimension`.
    kind : {"horizontal", "vertical", "local", "data"}, optional
        Default: that of `name`, if it has one, else the declared one, else "horizontal". I and J are
        always horizontal, K is vertical, numbers are data.

    Attributes
    ----------
    value : str
        The name.
    kind : str
        The kind.

    Raises
    ------
    TypeError, ValueError
        `name` is not a name, or `kind` is not a kind.

    Notes
    -----
    Equality is that of the names, as of str. Two dimensions with one name and two kinds in one
    operation are an error. Rules: docs/spec.md 1.7, 1.48 and 5.68.

    Examples
    --------
    >>> import gridbuf
    >>> level = gridbuf.Dim("Level", "vertical")
    >>> gridbuf.allocate((4, 6), dims=("Cell", level)).dims
    ('Cell', Dim('Level', 'vertical'))
    """

    __slots__ = ("_kind",)

    _kind: str

    def __new__(
        cls,
        name: object,
        kind: Literal["horizontal", "vertical", "local", "data"] | None = None,
    ) -> Dim:
        text, found = _core._dim(name, kind)
        self = super().__new__(cls, text)
        self._kind = found
        return self

    @property
    def value(self) -> str:
        """The name as a plain str."""
        return str(self)

    @property
    def kind(self) -> str:
        """The kind: "horizontal", "vertical", "local" or "data"."""
        return self._kind

    def __repr__(self) -> str:
        name = str.__repr__(self)
        return name if self._kind == "horizontal" else f"Dim({name}, {self._kind!r})"

    def __reduce__(self) -> tuple[type[Dim], tuple[str, str]]:
        return Dim, (self.value, self._kind)


def half(dim: object) -> Dim:
    """Return the staggered half of a dimension, whose points are between those of the dimension.

    A dimension and its half are never in one operation (docs/spec.md 11.38).

    Parameters
    ----------
    dim : str or Dim
        The dimension. Of a half it is the dimension of which it is the half.

    Returns
    -------
    Dim
        The half under the name that GT4Py gives it. `gridbuf.declare_dims` gives it another one.

    Raises
    ------
    TypeError, ValueError
        `dim` is not a name, or it is a number.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.half("I")
    '_StaggeredI'
    >>> gridbuf.declare_dims(IHalf=gridbuf.half("I"))
    """
    return Dim(_core._half(dim)[0])


def pairs_of(
    given: Sequence[SupportsIndex | Sequence[SupportsIndex]] | None, ndim: int, name: str = "halo"
) -> tuple[tuple[int, int], ...]:
    """One number or two per dimension as pairs (lower, upper); zeros for None."""
    if given is None:
        return ((0, 0),) * ndim
    if len(given) != ndim:
        raise ValueError(f"{name} has {len(given)} entries for {ndim} dimensions")
    pairs = []
    for entry in given:
        both = (
            tuple(map(operator.index, entry))
            if isinstance(entry, Sequence)
            else (operator.index(entry),) * 2
        )
        if len(both) != 2 or min(both) < 0:
            raise ValueError(
                f"{name} has the entry {entry!r}, but each must be one number or two, none negative"
            )
        pairs.append((both[0], both[1]))
    return tuple(pairs)
