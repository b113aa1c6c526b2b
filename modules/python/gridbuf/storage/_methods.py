"""The methods of storages that are functions of NumPy: what the function gives for a storage, the method gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn

import numpy as np

from .. import _core
from ._table import MISSING, RULES, row_of

_TEXT = """Return {text}, as `numpy.{name}(storage, ...)` (docs/spec.md 11.16 to 11.29, 11.40).

Parameters
----------
{axis}*arguments, **options
    Those of `numpy.{name}` after the array. An axis is a number or a name.

Returns
-------
Storage, array or scalar
    {returns}.

Raises
------
TypeError
    NumPy refuses the arguments, or there are several names outside of a tuple.
"""
_AXIS = """axis : int, str, or a tuple of them, optional
    Dimensions, by number or name. Default: all. The halo counts, too: `storage.domain_view.{name}()` leaves it out.
"""


def _reduction(name: str, text: str) -> Callable[..., Any]:
    def method(self: Any, /, axis: Any = None, *arguments: Any, **options: Any) -> Any:
        if isinstance(axis, str) and any(type(x) is str and x in self.dims for x in arguments):
            raise TypeError(
                f"{name} takes one axis; name several in a tuple: {name}({(axis, *arguments)})"
            )
        return getattr(np, name)(self, axis, *arguments, **options)

    return _documented(method, name, text, _AXIS.format(name=name))


def _function(name: str, text: str) -> Callable[..., Any]:
    def method(self: Any, /, *arguments: Any, **options: Any) -> Any:
        if name == "reshape" and len(arguments) > 1:
            arguments = (arguments,)
        return getattr(np, name)(self, *arguments, **options)

    return _documented(method, name, text)


def _documented(method: Any, name: str, text: str, axis: str = "") -> Callable[..., Any]:
    row = row_of(name)
    assert row is not None
    returns = RULES[row.rule]
    method.__name__, method.__qualname__ = name, f"Storage.{name}"
    method.__doc__ = _TEXT.format(
        name=name, text=text, axis=axis, returns=returns[0].upper() + returns[1:]
    )
    return method  # type: ignore[no-any-return]


class Methods(_core.StorageBase):
    """NumPy's functions as methods."""

    __slots__ = ()

    all = _reduction("all", "whether all elements are true")
    any = _reduction("any", "whether an element is true")
    argmax = _reduction("argmax", "the index of the largest element")
    argmin = _reduction("argmin", "the index of the smallest element")
    max = _reduction("max", "the largest element")
    mean = _reduction("mean", "the mean of the elements")
    min = _reduction("min", "the smallest element")
    prod = _reduction("prod", "the product of the elements")
    std = _reduction("std", "the standard deviation of the elements")
    sum = _reduction("sum", "the sum of the elements")
    var = _reduction("var", "the variance of the elements")

    argpartition = _function("argpartition", "the indices that partition along a dimension")
    argsort = _function("argsort", "the indices that sort along a dimension")
    choose = _function("choose", "elements of arrays, chosen by integers")
    conjugate = _function("conjugate", "the complex conjugate of each element")
    conj = _function("conj", "the complex conjugate of each element")
    cumprod = _function("cumprod", "products up to each element along a dimension")
    cumsum = _function("cumsum", "sums up to each element along a dimension")
    diagonal = _function("diagonal", "the diagonal")
    dot = _function("dot", "the product of two arrays")
    nonzero = _function("nonzero", "the indices of the elements that are not zero, by dimension")
    ravel = _function("ravel", "the elements in one dimension")
    repeat = _function("repeat", "each element several times")
    reshape = _function("reshape", "the elements in another shape")
    round = _function("round", "the rounded elements")
    searchsorted = _function("searchsorted", "where elements belong in a sorted storage")
    squeeze = _function("squeeze", "a view without the dimensions of one element")
    swapaxes = _function("swapaxes", "a view with two dimensions exchanged")
    take = _function("take", "elements at indices")
    trace = _function("trace", "the sum along the diagonal")

    def compress(self, condition: Any, axis: Any = None) -> Any:
        """Return the slices along a dimension where a condition holds, as `numpy.compress`.

        Parameters
        ----------
        condition : sequence of bool
            One value for each slice; slices beyond it are left out.
        axis : int or str, optional
            The dimension, by number or name. Default: the elements in one dimension.

        Returns
        -------
        Storage or array
            A storage with the same dimensions; a plain array if `axis` is None.

        Notes
        -----
        Rules: docs/spec.md 11.40.
        """
        return np.compress(condition, self, axis)

    def flatten(self, order: Any = "C") -> Any:
        """Return a copy of the elements in one dimension (docs/spec.md 11.40).

        Parameters
        ----------
        order : {"C", "F", "A", "K"}, optional
            The order of the elements, as in NumPy.

        Returns
        -------
        numpy.ndarray or cupy.ndarray
            New memory; `ravel` shares it where it can.
        """
        return np.ravel(self, order).copy()

    def sort(self, axis: Any = -1, kind: Any = None) -> None:
        """Sort along a dimension, in place, as `numpy.ndarray.sort` (docs/spec.md 11.40).

        Parameters
        ----------
        axis : int or str, optional
            The dimension, by number or name.
        kind : str, optional
            Of `numpy.sort`.
        """
        self[...] = np.sort(self, axis, kind)

    def partition(self, kth: Any, axis: Any = -1) -> None:
        """Partition along a dimension, in place, as `numpy.ndarray.partition` (docs/spec.md 11.40).

        Parameters
        ----------
        kth : int or sequence of int
            The places that get the element they have in a sorted array.
        axis : int or str, optional
            The dimension, by number or name.
        """
        self[...] = np.partition(self, kth, axis)

    def tobytes(self, order: Any = "C") -> bytes:
        """Return the elements as bytes, without padding (docs/spec.md 11.40).

        Parameters
        ----------
        order : {"C", "F", "A"}, optional
            The order of the elements, as in NumPy.

        Returns
        -------
        bytes
            A copy.

        Raises
        ------
        GTNoSuchBufferError
            The storage has no host buffer.
        """
        return self.to_numpy().tobytes(order)

    def view(self, *type_or_dtype: Any) -> Any:
        """Return a view: of the storage, or with a type of NumPy's an ndarray over the host's elements.

        Parameters
        ----------
        *type_or_dtype : type or dtype, optional
            As in `numpy.ndarray.view`. Default: a storage.

        Returns
        -------
        Storage or numpy.ndarray
            A view.

        Raises
        ------
        GTNoSuchBufferError
            A type is given, and the storage has no host buffer.

        Notes
        -----
        Rules: docs/spec.md 11.40.
        """
        return self.to_numpy().view(*type_or_dtype) if type_or_dtype else self[...]

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Return the storage on a device: itself if it is there (docs/spec.md 11.41).

        Parameters
        ----------
        device : {None, "cpu", "gpu"}
            None and "cpu" are the host.
        stream : None
            gridbuf orders the work itself.

        Returns
        -------
        Storage
            The storage, or a copy with the same dims and halo: a `CPUStorage` or a `GPUStorage`.

        Raises
        ------
        ValueError
            No such device, or a stream.
        """
        if device not in (None, "cpu", "gpu") or stream is not None:
            raise ValueError(
                f'device is {device!r} and stream {stream!r}, but must be None, "cpu" or "gpu", without a stream'
            )
        wanted: Literal["gpu"] | None = "gpu" if device == "gpu" else None
        if self.device == wanted:
            return self
        return _core._storage_storage(self, device=wanted, managed=None)

    @property
    def flat(self) -> Any:
        """NumPy's iterator over the elements on the host, which can be read and assigned."""
        return self.to_numpy().flat

    @flat.setter
    def flat(self, value: Any) -> None:
        self.to_numpy().flat[:] = value

    @property
    def mT(self) -> Any:  # noqa: N802 (NumPy's name)
        """A view with the last two dimensions exchanged."""
        return np.matrix_transpose(self)

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(self == value))


class _Missing:
    """An attribute of NumPy's arrays that storages do not have."""

    def __init__(self, name: str, instead: str) -> None:
        self.text = f"storages do not have {name}; use {instead}"

    def __get__(self, storage: Any, owner: type | None = None) -> NoReturn:
        raise AttributeError(self.text)


for _name, _instead in MISSING.items():
    setattr(Methods, _name, _Missing(_name, _instead))
