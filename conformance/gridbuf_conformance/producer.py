"""What a producer is to the suite: an object that answers plans with arrays, and what it says it
can do.

Only `name` and `produce` are needed. Everything else narrows what is asked (`capabilities`), names
the version in reports (`version`), teaches the suite how this library makes views
(`apply_view`), or leads it to device memory and streams (`device_table`, `on_stream`). Which exchange interfaces an object has is discovered on the object, never
declared.
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

__all__ = ["Capabilities", "Producer", "Unsupported"]


@dataclass(frozen=True)
class Unsupported:
    """A producer's answer to a plan that it cannot meet: the reason, as one short sentence."""

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise ValueError(
                f"the reason is {self.reason!r}, must be a sentence; say what cannot be made"
            )


_ASKABLE = frozenset({"layout", "alignment_size", "aligned_index", "dims", "halo"})


@dataclass(frozen=True)
class Capabilities:
    """What a producer says it can make. Plans are drawn inside it; None leaves the key undeclared.

    What is declared is a promise: if every plan that uses it is answered `Unsupported`, rule GT-20
    fails. Without a promise, shape, dtype, byte order and read-only are asked over their whole
    range (and may be declined), and the keys of the storage spec (layout, alignment, dims, halo)
    are not asked at all.

    `dtypes`: names of `plan.DTYPES`; those of less than a byte (int4, float4 …) are asked only if they are
    declared here. `min_ndim`, `max_ndim`, `max_extent`, `max_nbytes` (bytes
    without padding) bound the shape. `layouts`: "C" (C order only, no layout is asked), "CF" (C and
    Fortran order) or "any" (every permutation). `alignment_bytes`: (lowest, highest) that may be
    asked. `byteorders`, `readonly`: the values it can make. `devices`: the kinds of memory it makes, of
    `plan.DEVICES`; without it, host memory only. `dims`, `halo`: whether these keys mean something to it. `declares`: the plan keys of "layout", "alignment_size", "aligned_index",
    "dims", "halo" that it takes; the keys that another field already implies need not be repeated.

    Raises ValueError for a value outside its range.
    """

    dtypes: tuple[str, ...] | None = None
    min_ndim: int = 0
    max_ndim: int = NDIM_LIMIT
    max_extent: int | None = None
    max_nbytes: int | None = None
    layouts: str | None = None
    alignment_bytes: tuple[int, int] | None = None
    byteorders: tuple[str, ...] | None = None
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
        """The kinds of memory that plans may ask."""
        return self.devices or (None,)

    @property
    def asked_keys(self) -> frozenset[str]:
        """The storage-spec keys that plans for this producer may use."""
        implied = {
            "layout": self.layouts in ("CF", "any"),
            "alignment_size": self.alignment_bytes is not None and self.alignment_bytes[1] > 1,
            "dims": bool(self.dims),
            "halo": bool(self.halo),
        }
        return self.declares | {key for key, holds in implied.items() if holds}

    @property
    def alignment_range_bytes(self) -> tuple[int, int]:
        """Lowest and highest alignment that plans may ask."""
        if "alignment_size" not in self.asked_keys:
            return (1, 1)
        return self.alignment_bytes or (1, ALIGNMENT_LIMIT_BYTES)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, for the way from the worker to the driver."""
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
    """Base of producers; deriving from it is optional, its members are what the suite looks for.

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

    def version(self) -> str:
        """Version of the library that makes the arrays; an empty string if it has none."""
        return ""

    def produce(self, plan: Plan) -> Any:
        """An object as the plan asks, its elements holding `plan.content()`, or
        `Unsupported(reason)`.

        Nothing may be substituted in silence (GT-20). With `fill` None, the memory must not be
        touched.
        """
        raise NotImplementedError(f"{type(self).__name__}.produce(plan) must return an object")

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        """A view of `obj` by one operation of `plan["views"]`, or `Unsupported(reason)`.

        This default indexes the object and calls its `transpose`; override it for a library that
        spells views differently. Types whose slices are copies are declined.
        """
        return python_view(obj, operation)

    def device_table(self) -> Any:
        """The capsule of a C table (`abi.device`) by which this producer's device memory is read, or None.

        Without one the CUDA driver is asked, where there is one. Only needed for devices that it does not know.
        """
        return None

    def on_stream(self, stream: int) -> Any:
        """A context manager inside which the library works on this stream, or None if it has no such thing.

        `stream` is a handle as in the CUDA array interface. With it the suite can keep work pending on a stream
        of its choice and see whether an export waits for it (CAI-18, DP-18, DP-24, DX-09).
        """
        return None


def python_view(obj: Any, operation: Sequence[Any]) -> Any:
    """A view by Python's own means: indexing, and a `transpose` method; else `Unsupported`."""
    kind = type(obj).__name__
    if isinstance(obj, _SLICES_COPY):
        return Unsupported(f"slices of {kind} are copies, not views")
    name, *arguments = operation
    try:
        if name == "transpose":
            return obj.transpose(*arguments[0])
        if name == "broadcast":
            return Unsupported(f"{kind} has no common spelling for broadcasting")
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
