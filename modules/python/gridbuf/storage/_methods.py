"""The methods of storages that are functions of NumPy: what the function gives for a storage, the method gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn

import numpy as np

from .. import _core
from ._table import MISSING, RULES, row_of

__all__ = ["Methods"]

_TEXT = """Return {text}, as `numpy.{name}(storage, ...)`.

Parameters
----------
{parameters}

Returns
-------
Storage, array or scalar
    {returns}.

Raises
------
TypeError
    {raises}.

Notes
-----
Rules: docs/spec.md 11.16 to 11.29, 11.40.

Examples
--------
>>> import gridbuf.storage
>>> field = gridbuf.storage.ones((2, 3))
>>> {example}
{result}
"""
_OF_REDUCTION = """axis : int, str, or a tuple of them, optional
    Dimensions, by number or name. Default: all. The halo counts, too: `storage.domain_view.{name}()` leaves it out.
*arguments, **options
    Those of `numpy.{name}`, such as `keepdims`."""
_OF_FUNCTION = """*arguments, **options
    Those of `numpy.{name}` after the array. `axis` is a number or a name."""


def _reduction(name: str, text: str) -> Callable[..., Any]:
    def method(self: Any, /, axis: Any = None, *arguments: Any, **options: Any) -> Any:
        if isinstance(axis, str) and any(type(x) is str and x in self.dims for x in arguments):
            raise TypeError(
                f"{name} takes one axis; name several in a tuple: {name}({(axis, *arguments)})"
            )
        return getattr(np, name)(self, axis, *arguments, **options)

    return _documented(
        method,
        name,
        text=text,
        parameters=_OF_REDUCTION.format(name=name),
        raises="Several names outside of a tuple",
        example=f'field.{name}(axis="J").dims',
        result="('I',)",
    )


def _function(name: str, text: str, example: str, result: str) -> Callable[..., Any]:
    def method(self: Any, /, *arguments: Any, **options: Any) -> Any:
        if name == "reshape" and len(arguments) > 1:
            arguments = (arguments,)
        return getattr(np, name)(self, *arguments, **options)

    return _documented(
        method,
        name,
        text=text,
        parameters=_OF_FUNCTION.format(name=name),
        raises="What NumPy refuses",
        example=example,
        result=result,
    )


def _documented(method: Any, name: str, **texts: str) -> Callable[..., Any]:
    row = row_of(name)
    assert row is not None
    returns = RULES[row.rule]
    method.__name__, method.__qualname__ = name, f"Storage.{name}"
    method.__doc__ = _TEXT.format(name=name, returns=returns[0].upper() + returns[1:], **texts)
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

    argpartition = _function(
        "argpartition",
        "the indices that partition along a dimension",
        "field.argpartition(1).shape",
        "(2, 3)",
    )
    argsort = _function(
        "argsort",
        "the indices that sort along a dimension",
        'field.argsort(axis="J").shape',
        "(2, 3)",
    )
    choose = _function(
        "choose",
        "elements of arrays, chosen by integers",
        "gridbuf.storage.zeros((2,), int).choose([7, 8]).tolist()",
        "[7, 7]",
    )
    conjugate = _function(
        "conjugate", "the complex conjugate of each element", "field.conjugate().shape", "(2, 3)"
    )
    conj = _function(
        "conj", "the complex conjugate of each element", "field.conj().shape", "(2, 3)"
    )
    cumprod = _function(
        "cumprod",
        "products up to each element along a dimension",
        'field.cumprod(axis="I").shape',
        "(2, 3)",
    )
    cumsum = _function(
        "cumsum",
        "sums up to each element along a dimension",
        'field.cumsum(axis="I").shape',
        "(2, 3)",
    )
    diagonal = _function("diagonal", "the diagonal", "field.diagonal().shape", "(2,)")
    dot = _function("dot", "the product of two arrays", "field.dot([1.0, 2.0, 3.0]).shape", "(2,)")
    nonzero = _function(
        "nonzero",
        "the indices of the elements that are not zero, one array for each dimension",
        "[axis.tolist() for axis in field[:1, :2].nonzero()]",
        "[[0, 0], [0, 1]]",
    )
    ravel = _function("ravel", "the elements in one dimension", "field.ravel().shape", "(6,)")
    repeat = _function(
        "repeat", "each element several times", "field.repeat(2, axis=0).shape", "(4, 3)"
    )
    reshape = _function(
        "reshape", "the elements in another shape", "field.reshape(3, 2).shape", "(3, 2)"
    )
    searchsorted = _function(
        "searchsorted",
        "where elements belong in a sorted storage of one dimension",
        "field[0].searchsorted([1.0, 2.0]).shape",
        "(2,)",
    )
    squeeze = _function(
        "squeeze", "a view without the dimensions of one element", "field.squeeze().shape", "(2, 3)"
    )
    swapaxes = _function(
        "swapaxes",
        "a view with two dimensions exchanged",
        'field.swapaxes("I", "J").shape',
        "(3, 2)",
    )
    take = _function("take", "elements at indices", "field.take([0, 1], 1).shape", "(2, 2)")
    trace = _function("trace", "the sum along the diagonal", "float(field.trace())", "2.0")

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

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).compress([True, False], axis="I").shape
        (1, 3)
        """
        return np.compress(condition, self, axis)

    def flatten(self, order: Any = "C") -> Any:
        """Return a copy of the elements in one dimension.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}, optional
            The order of the elements, as in NumPy.

        Returns
        -------
        numpy.ndarray or cupy.ndarray
            New memory; `ravel` shares it where it can.

        Notes
        -----
        Rules: docs/spec.md 11.40.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).flatten().shape
        (6,)
        """
        return np.ravel(self, order).copy()

    def sort(self, axis: Any = -1, kind: Any = None) -> None:
        """Sort along a dimension, in place, as `numpy.ndarray.sort`.

        Parameters
        ----------
        axis : int or str, optional
            The dimension, by number or name.
        kind : str, optional
            Of `numpy.sort`.

        Notes
        -----
        Rules: docs/spec.md 11.40.

        Examples
        --------
        >>> import gridbuf.storage
        >>> field = gridbuf.storage.storage([2.0, 1.0])
        >>> field.sort()
        >>> field.tolist()
        [1.0, 2.0]
        """
        self[...] = np.sort(self, axis, kind)

    def partition(self, kth: Any, axis: Any = -1) -> None:
        """Partition along a dimension, in place, as `numpy.ndarray.partition`.

        Parameters
        ----------
        kth : int or sequence of int
            The places that get the element they have in a sorted array.
        axis : int or str, optional
            The dimension, by number or name.

        Notes
        -----
        Rules: docs/spec.md 11.40.

        Examples
        --------
        >>> import gridbuf.storage
        >>> field = gridbuf.storage.storage([3.0, 1.0, 2.0])
        >>> field.partition(0)
        >>> field.tolist()[0]
        1.0
        """
        self[...] = np.partition(self, kth, axis)

    def tobytes(self, order: Any = "C") -> bytes:
        """Return the elements as bytes, without padding.

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

        Notes
        -----
        Rules: docs/spec.md 11.40.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2,), dtype="int8").tobytes()
        b'\\x01\\x01'
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

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).view("int64").shape
        (2, 3)
        """
        return self.to_numpy().view(*type_or_dtype) if type_or_dtype else self[...]

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Return the storage on a device: itself if it is there.

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

        Notes
        -----
        Rules: docs/spec.md 11.41.

        Examples
        --------
        >>> import gridbuf.storage
        >>> field = gridbuf.storage.ones((2, 3))
        >>> field.to_device("cpu") is field
        True
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

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, storage: Any, owner: type | None = None) -> NoReturn:
        raise AttributeError(f"storages do not have {self.name}; use {self.instead}")


for _name, _instead in MISSING.items():
    _missing = _Missing(_instead)
    _missing.__set_name__(Methods, _name)
    setattr(Methods, _name, _missing)
