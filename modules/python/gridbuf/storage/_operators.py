"""Operators of storages: those of NumPy's mixin, which call ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class Operators(NDArrayOperatorsMixin):
    """Every operator of NumPy's. Comparisons with texts are as in NumPy."""

    __slots__ = ()


def _comparison(name: str, of_texts: bool) -> Callable[[Any, Any], Any]:
    compare = getattr(NDArrayOperatorsMixin, name)

    def method(self: Any, other: Any) -> Any:
        try:
            return compare(self, other)
        except TypeError:
            if not isinstance(other, (str, bytes)):
                raise
            return np.full_like(self, of_texts, dtype=bool)

    return method


for _name, _of_texts in {"__eq__": False, "__ne__": True}.items():
    setattr(Operators, _name, _comparison(_name, _of_texts))
