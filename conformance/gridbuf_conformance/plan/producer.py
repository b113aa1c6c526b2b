"""Producers: objects that make an array for each plan, and declare their capabilities.

A producer needs only `name` and `produce`. The other members are optional. `capabilities` restricts
the plans, `version` appears in reports, `apply_view` makes views, and `device_table` and
`on_stream` give access to device memory and streams. The suite discovers the exchange interfaces on
the object; a producer does not declare them.
"""

from __future__ import annotations

import array
import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .dtypes import DTYPES
from .plan import ALIGNMENT_LIMIT_BYTES, DEVICES, NDIM_LIMIT, Plan

__all__ = ["Capabilities", "Producer", "Unsupported", "is_declined", "python_view"]


@dataclass(frozen=True)
class Unsupported:
    """The answer of a producer to a plan that it cannot satisfy.

    Parameters
    ----------
    reason : str
        Why the producer declines, as one short sentence.

    Raises
    ------
    ValueError
        If the reason is empty or not a string.

    Examples
    --------
    >>> Unsupported("float64 only")
    Unsupported(reason='float64 only')
    """

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise ValueError(
                f"the reason is {self.reason!r}, must be a sentence; "
                "say which arrays cannot be made"
            )


_ASKABLE = frozenset({"layout", "alignment_size", "aligned_index", "dims", "halo"})


def is_declined(made: Any) -> bool:
    """Whether a producer's answer is `Unsupported`. The answer itself is not asked: its `__class__`
    may run code.
    """
    return issubclass(type(made), Unsupported)


@dataclass(frozen=True)
class Capabilities:
    """The arrays that a producer can make. Plans stay inside; None leaves a key undeclared.

    The defaults are those of most libraries: host memory, native byte order, no layout. A declared
    capability is a promise: if the producer declines every plan that uses it, rule GT-20 fails.
    Undeclared shapes, dtypes and read-only flags are requested over their whole range, and the
    producer may decline them. Undeclared keys of the storage specification (layout,
    alignment, dims, halo) are never requested.

    Parameters
    ----------
    dtypes : tuple of str, optional
        Names of `plan.DTYPES`. Plans have types of less than a byte (int4, float4 …), padded
        records and single characters (str1) only if they are declared here.
    min_ndim, max_ndim : int, optional
        Bounds of the number of dimensions.
    max_extent : int, optional
        The largest extent.
    max_nbytes : int, optional
        The largest size in bytes, without padding.
    layouts : {"C", "CF", "any"}, optional
        "C": C order only, plans have no layout. "CF": C and Fortran order. "any": every
        permutation.
    alignment_bytes : tuple of int, optional
        The lowest and the highest alignment, in bytes.
    byteorders : tuple of str, optional
        The byte orders, of "native" and "swapped". The default is native only; with None the
        producer may decline the other.
    readonly : tuple of bool, optional
        The values of `readonly` that the producer can make.
    devices : tuple, optional
        The kinds of memory, of `plan.DEVICES`. The default is host memory only.
    dims, halo : bool, optional
        Whether the producer uses these keys.
    declares : frozenset of str, optional
        The plan keys of "layout", "alignment_size", "aligned_index", "dims" and "halo" that the
        producer accepts. Keys that another parameter implies need not be repeated.

    Raises
    ------
    ValueError
        If a value is outside its range.

    Examples
    --------
    >>> Capabilities(dtypes=("float64",), layouts="CF", min_ndim=2, max_ndim=3).asked_keys
    frozenset({'layout'})
    """

    dtypes: tuple[str, ...] | None = None
    min_ndim: int = 0
    max_ndim: int = NDIM_LIMIT
    max_extent: int | None = None
    max_nbytes: int | None = None
    layouts: str | None = None
    alignment_bytes: tuple[int, int] | None = None
    byteorders: tuple[str, ...] | None = ("native",)
    readonly: tuple[bool, ...] | None = None
    devices: tuple[str | None, ...] | None = None
    dims: bool | None = None
    halo: bool | None = None
    declares: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "declares", frozenset(self.declares))
        for key in ("dtypes", "alignment_bytes", "byteorders", "readonly", "devices"):
            value = getattr(self, key)
            object.__setattr__(self, key, None if value is None else tuple(value))
        self._validate()

    @property
    def asked_devices(self) -> tuple[str | None, ...]:
        """The kinds of memory in plans for this producer."""
        return self.devices or (None,)

    @property
    def asked_keys(self) -> frozenset[str]:
        """The keys of the storage specification in plans for this producer."""
        implied = {
            "layout": self.layouts in ("CF", "any"),
            "alignment_size": self.alignment_bytes is not None and self.alignment_bytes[1] > 1,
            "dims": bool(self.dims),
            "halo": bool(self.halo),
        }
        return self.declares | {key for key, holds in implied.items() if holds}

    @property
    def alignment_range_bytes(self) -> tuple[int, int]:
        """The lowest and the highest alignment in plans for this producer."""
        if "alignment_size" not in self.asked_keys:
            return (1, 1)
        return self.alignment_bytes or (1, ALIGNMENT_LIMIT_BYTES)

    def to_dict(self) -> dict[str, Any]:
        """A form for JSON, which the worker sends to the driver."""
        return {**self.__dict__, "declares": sorted(self.declares)}

    def _validate(self) -> None:
        _require_subset("dtypes", self.dtypes, tuple(DTYPES))
        _require_subset("byteorders", self.byteorders, ("native", "swapped"))
        _require_subset("readonly", self.readonly, (False, True))
        _require_subset("devices", self.devices, DEVICES)
        _require_subset("declares", tuple(sorted(self.declares)), tuple(sorted(_ASKABLE)))
        if self.layouts not in (None, "C", "CF", "any"):
            raise ValueError(
                f'layouts is {self.layouts!r}, must be "C", "CF", "any" or None; pick one'
            )
        if not 0 <= self.min_ndim <= self.max_ndim <= NDIM_LIMIT:
            raise ValueError(
                f"min_ndim {self.min_ndim} and max_ndim {self.max_ndim} must satisfy "
                f"0 <= min_ndim <= max_ndim <= {NDIM_LIMIT}; correct them"
            )
        low, high = self.alignment_bytes or (1, 1)
        if not 1 <= low <= high <= ALIGNMENT_LIMIT_BYTES:
            raise ValueError(
                f"alignment_bytes is {self.alignment_bytes}, must be (lowest, highest) within "
                f"1..{ALIGNMENT_LIMIT_BYTES}; correct it"
            )
        if self.max_extent is not None and self.max_extent < 1:
            raise ValueError(
                f"max_extent is {self.max_extent}, must be at least 1; leave it out for no limit"
            )
        smallest_bytes = min(DTYPES[name].itemsize for name in self.dtypes or DTYPES)
        if self.max_nbytes is not None and self.max_nbytes < smallest_bytes:
            raise ValueError(
                f"max_nbytes is {self.max_nbytes}, must hold one element ({smallest_bytes} bytes); "
                "raise it, or leave it out for no limit"
            )


def _require_subset(key: str, values: tuple[Any, ...] | None, known: tuple[Any, ...]) -> None:
    if values is None:
        return
    unknown = [value for value in values if value not in known]
    if unknown or (not values and key != "declares"):
        offender = unknown[0] if unknown else ()
        raise ValueError(f"{key} holds {offender!r}, must be of {', '.join(map(str, known))}")


_SLICES_COPY = (bytes, bytearray, array.array, mmap.mmap, ctypes.Array)


class Producer:
    """Base class of producers. The suite looks for its members; deriving from it is optional.

    Attributes
    ----------
    name : str
        The name in reports.
    capabilities : Capabilities
        The arrays that the producer can make.
    has_memory : bool
        False for objects without one block of strided memory: sparse, meta, traced or deleted
        arrays. Every export of them must be refused (DP-25).
    exports_move : bool
        True if each export of an object is another array, as where a C++ library moves its array
        into the tensor. Exports of an object are then not compared with each other (DL-05).

    Examples
    --------
    ```python
    class Producer(gridbuf_conformance.Producer):
        name = "mylib"

        def produce(self, plan):
            if plan["device"] is not None:
                return gridbuf_conformance.Unsupported("host memory only")
            result = mylib.empty(plan["shape"], plan["dtype"])
            mylib.copy_bytes_in(result, plan.content())
            return result
    ```
    """

    name = "producer"
    capabilities = Capabilities()
    has_memory = True
    exports_move = False

    def version(self) -> str:
        """The version of the library that makes the arrays.

        Returns
        -------
        str
            The version, or an empty string.
        """
        return ""

    def produce(self, plan: Plan) -> Any:
        """Makes the array of a plan.

        The producer must not substitute another array (GT-20). If `fill` is None, it must not touch
        the memory.

        Parameters
        ----------
        plan : Plan
            The request.

        Returns
        -------
        object or Unsupported
            The object, whose elements hold `plan.content()`, or the reason why the producer
            declines.
        """
        raise NotImplementedError(f"{type(self).__name__}.produce(plan) must return an object")

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        """Makes a view of an object.

        The default indexes the object and calls its method `transpose`. It declines types whose
        slices are copies. Override it for a library with other functions for views.

        Parameters
        ----------
        obj : object
            The object that `produce` returned, or a view of it.
        operation : sequence
            One operation of `plan["views"]`: its name and its arguments.

        Returns
        -------
        object or Unsupported
            The view, or the reason why the producer declines.
        """
        return python_view(obj, operation)

    def device_table(self) -> Any:
        """A C table that reads the device memory of this producer.

        Only devices that the CUDA driver does not know need it.

        Returns
        -------
        capsule or None
            The capsule of the table (`abi.device`). With None the suite uses the CUDA driver.
        """
        return None

    def on_stream(self, stream: int) -> Any:
        """Makes the library work on a stream.

        The suite uses it to keep work pending on a stream. It then checks whether an export waits
        for that work (CAI-18, DP-18, DP-24, DX-09).

        Parameters
        ----------
        stream : int
            A stream handle, as in the CUDA array interface.

        Returns
        -------
        context manager or None
            Inside the context the library works on the stream. None if the library cannot do that.
        """
        return None


def python_view(obj: Any, operation: Sequence[Any]) -> Any:
    """A view by indexing or by a method `transpose`; `Unsupported` if that fails."""
    kind = type(obj).__name__
    if isinstance(obj, _SLICES_COPY):
        return Unsupported(f"slices of {kind} are copies, not views")
    name, *arguments = operation
    try:
        if name == "transpose":
            return obj.transpose(*arguments[0])
        if name == "broadcast":
            return Unsupported(f"{kind} has no common function for broadcasting")
        return obj[_index(name, *arguments)]
    except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError) as error:
        return Unsupported(f"{kind} cannot {name}: {type(error).__name__}")


def _index(name: str, axis: int, *bounds: int | None) -> Any:
    selected = {
        "slice": slice(*bounds) if bounds else None,
        "reverse": slice(None, None, -1),
        "empty": slice(0, 0),
        "newaxis": None,
    }[name]
    before = (slice(None),) * axis
    return (*before, selected) if before or selected is None else selected
