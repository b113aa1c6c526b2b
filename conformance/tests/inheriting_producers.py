"""Producers whose arrays have NumPy's code, by a base class or an array that they hold, or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plugins.libraries.numpy import NumPyProducer, ReferencesProducer
from gridbuf_conformance_mutants.host_consumer import Delegate, Proxy


class _Refusing(Delegate):
    """Its own error for each request that the other object refuses."""

    def get_buffer(self, view: Any, flags: int) -> None:
        try:
            super().get_buffer(view, flags)
        except ValueError:
            raise ValueError("not like this") from None


class _Subclass(np.ndarray):
    """NumPy's code in another class."""


class Subclass(NumPyProducer):
    """A subclass of `ndarray`."""

    name = "subclass"

    def version(self) -> str:
        return "1.0"

    def produce(self, plan: Plan) -> Any:
        array = super().produce(plan)
        return self.wrapped(array) if isinstance(array, np.ndarray) else array

    def wrapped(self, array: np.ndarray) -> Any:
        return array.view(_Subclass)


class Delegating(Subclass):
    """Objects whose buffer is that of an array that they hold."""

    no_views = "it has no views"

    def wrapped(self, array: np.ndarray) -> Any:
        return Delegate(array)


class Refusing(Delegating):
    """Objects that hold an array, and refuse requests as NumPy does by their own code."""

    def wrapped(self, array: np.ndarray) -> Any:
        return _Refusing(array)


class Proxied(ReferencesProducer):
    """Objects that hand on the dict of an array of references."""

    name = "proxied"
    no_views = "it has no views"

    def version(self) -> str:
        return "1.0"

    def make(self, plan: Plan) -> Any:
        return Proxy(super().make(plan))
