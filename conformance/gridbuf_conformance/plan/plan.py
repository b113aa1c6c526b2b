"""The plan: a request for one array, as plain JSON, complete before the producer runs.

A plan describes the array (`shape` … `readonly`), the content of its elements (`fill`), and the
view operations that the suite applies to the result before it measures it (`views`). A plan is
data. So the suite can run it in another process, replay it from a command line, shrink it, and
share it with other languages.

A plan is a read-only mapping with the keys of `plan.schema.json` (`KEYS`), and an immutable,
hashable value. Every plan is valid: the constructor checks every bound that `Plan.validate`
documents.

`None` always means that the plan does not request the key. A producer that does not know a key may
ignore it if it is None (and `alignment_size` if it is 1). It must return `Unsupported` for values
that it cannot provide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar
from unicodedata import is_normalized

from .dtypes import DTYPES, DType, fill_bytes
from .views import ViewMap

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "ALIGNMENT_LIMIT_BYTES",
    "DEVICES",
    "DTYPES",
    "KEYS",
    "NDIM_LIMIT",
    "UNTOUCHED_FROM_BYTES",
    "NoContent",
    "Plan",
    "fill_bytes",
    "is_data_dimension",
]

NDIM_LIMIT = 64
"""The largest number of dimensions of a plan: the limit of the buffer protocol (PB-16)."""
ALIGNMENT_LIMIT_BYTES = 2**20
DEVICES: tuple[str | None, ...] = (None, "gpu", "pinned", "managed")
"""The kinds of memory: ordinary host memory, device memory, page-locked host memory that the device
can reach, and memory that host and device reach and the driver moves."""
UNTOUCHED_FROM_BYTES = 2**30
"""Plans of at least this many bytes have `fill` None: their pages are allocated, but never touched.
"""
_SPAN_LIMIT_BYTES = 2**40
_FILL_LIMIT = 2**32


@dataclass(frozen=True)
class Plan(Mapping[str, Any]):
    """A request for one array. The defaults are the simplest plan.

    Parameters
    ----------
    shape : tuple of int
        Extents: up to 64 integers ≥ 0.
    dtype : str
        Element type: a name of `DTYPES`.
    byteorder : {"native", "swapped"}
        Order of each number's bytes. Only types that have an order can be "swapped".
    layout : tuple of int or None
        Layout map: the rank of each dimension, 0 for the largest stride.
    alignment_size : int
        Bytes that divide the address of the aligned element, from 1 (no constraint) to 2^20.
    aligned_index : tuple of int or None
        Index of the aligned element. None: the lower halo, or 0.
    dims : tuple of str or None
        Names of the dimensions, all different: identifiers of 1 to 63 characters (in Unicode's form
        NFC), as "I", "Cell" and "K", or "0", "1", … for data dimensions.
    halo : tuple of pair of int or None
        (lower, upper) of each dimension; their sum is at most the extent.
    device : {None, "gpu", "pinned", "managed"}
        Kind of memory; None is the host.
    readonly : bool
        Whether writing must be impossible.
    views : tuple of tuple
        Operations on the result, in this order; see `views.ViewMap`.
    fill : int or None
        Seed of the elements' bytes, from 0 to 2^32-1. None: any content.

    Raises
    ------
    ValueError
        If a value is outside its bounds. The message names the value, the bound and what to do.

    Examples
    --------
    >>> plan = Plan(shape=(2, 3), dtype="int16")
    >>> plan["shape"], plan.nbytes, len(plan.content())
    ((2, 3), 12, 12)
    >>> plan.to_json(brief=True)
    '{"shape":[2,3],"dtype":"int16"}'
    """

    RENAMED: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys of older versions, with their current names."""

    shape: tuple[int, ...] = (1,)
    dtype: str = "float64"
    byteorder: str = "native"
    layout: tuple[int, ...] | None = None
    alignment_size: int = 1
    aligned_index: tuple[int, ...] | None = None
    dims: tuple[str, ...] | None = None
    halo: tuple[tuple[int, int], ...] | None = None
    device: str | None = None
    readonly: bool = False
    views: tuple[tuple[Any, ...], ...] = ()
    fill: int | None = 0

    def __post_init__(self) -> None:
        for key in ("shape", "layout", "aligned_index", "dims", "halo", "views"):
            object.__setattr__(self, key, _as_tuples(getattr(self, key)))
        self.validate()

    # -- the mapping -------------------------------------------------------------------

    def __getitem__(self, key: str) -> Any:
        if key not in self.keys_of():
            known = ", ".join(self.keys_of())
            raise KeyError(f"{key!r} is not a key of a plan; the keys are {known}")
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys_of())

    def __len__(self) -> int:
        return len(self.keys_of())

    def __repr__(self) -> str:
        asked = ", ".join(f"{key}={value!r}" for key, value in self._asked().items())
        return f"{type(self).__name__}({asked})"

    @classmethod
    @cache
    def keys_of(cls) -> tuple[str, ...]:
        """The keys of plans of this class, in the order of the JSON."""
        return tuple(field.name for field in fields(cls))

    # -- JSON --------------------------------------------------------------------------

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> Self:
        """Makes a plan from a JSON object.

        Parameters
        ----------
        text : str or mapping
            The object, as text or decoded. Missing keys have their defaults.

        Returns
        -------
        Plan
            The plan.

        Raises
        ------
        ValueError
            If the text is not a JSON object, has unknown keys, or has values that `validate`
            rejects.

        Examples
        --------
        >>> Plan.from_json('{"shape":[2]}')
        Plan(shape=(2,))
        """
        raw = text
        if isinstance(text, str):
            try:
                raw = json.loads(text)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"the plan is not JSON ({error}); quote it as one argument"
                ) from None
        if not isinstance(raw, Mapping):
            raise ValueError(  # noqa: TRY004 (text that is not a plan is a bad value)
                f"a plan is a JSON object, not {type(raw).__name__}; see plan.schema.json"
            )
        for old, new in cls.RENAMED.items():
            if old in raw:
                raise ValueError(
                    f"plan key {old!r} (value {raw[old]!r}) is of an older version; "
                    f"rename it to {new!r}"
                )
        unknown = sorted(set(raw) - set(cls.keys_of()))
        if unknown:
            known = ", ".join(cls.keys_of())
            raise ValueError(f"unknown plan key {unknown[0]!r}; the keys are {known}")
        return cls(**raw)

    def to_dict(self) -> dict[str, Any]:
        """All keys, with lists instead of tuples, as in a report."""
        return {key: _as_lists(value) for key, value in self.items()}

    def to_json(self, *, brief: bool = False) -> str:
        """Canonical JSON: fixed key order, no spaces.

        Parameters
        ----------
        brief : bool, optional
            Leave out keys with their default value.

        Returns
        -------
        str
            The JSON text.
        """
        chosen = self._asked() if brief else dict(self)
        return json.dumps({k: _as_lists(v) for k, v in chosen.items()}, separators=(",", ":"))

    def _asked(self) -> dict[str, Any]:
        return {f.name: self[f.name] for f in fields(self) if self[f.name] != f.default}

    # -- values computed from the keys -------------------------------------------------

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def dtype_info(self) -> DType:
        """What each interface calls the element type."""
        return DTYPES[self.dtype]

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype_info.itemsize

    @property
    def element_count(self) -> int:
        """Number of elements, without padding."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
        return self.element_count * self.itemsize

    @property
    def aligned_element(self) -> tuple[int, ...]:
        """The index of the aligned element: `aligned_index`, else the lower halos, else zeros.

        If a lower halo covers its whole dimension, the index is the last element of the dimension.
        """
        if self.aligned_index is not None:
            return self.aligned_index
        if self.halo is None:
            return (0,) * self.ndim
        pairs = zip(self.halo, self.shape)
        return tuple(min(lower, max(extent - 1, 0)) for (lower, _), extent in pairs)

    @cached_property
    def view_map(self) -> ViewMap:
        """The position of each element of the view in the produced array."""
        return ViewMap.of(self.shape, self.views)

    @property
    def without_views(self) -> Self:
        """The same request without view operations."""
        return self.replaced(views=()) if self.views else self

    def with_other_content(self) -> Self:
        """The same request with another fill, if it has content."""
        return self if self.fill is None else self.replaced(fill=self.fill ^ 1)

    def replaced(self, **changes: Any) -> Self:
        """A plan with changed keys; raises the errors of the constructor."""
        return type(self)(**{**dict(self), **changes})

    # -- content -----------------------------------------------------------------------

    def element_bytes(self, index: tuple[int, ...]) -> bytes:
        """The bytes of the produced element at `index` (formula: `dtypes`).

        Raises
        ------
        NoContent
            If `fill` is None.
        """
        flat = 0
        for position, extent in zip(index, self.shape):
            flat = flat * extent + position
        return self._content(flat, 1)

    def viewed_element_bytes(self, index: tuple[int, ...]) -> bytes:
        """The bytes at `index` of the view of the produced array."""
        return self.element_bytes(self.view_map.base_index(index))

    def content(self) -> bytes:
        """The content that a producer copies into the array.

        Returns
        -------
        bytes
            The bytes of all elements, in row-major order.

        Raises
        ------
        NoContent
            If `fill` is None. A producer may let the exception propagate, which declines the plan.

        Examples
        --------
        >>> len(Plan(shape=(2, 3), dtype="int16").content())
        12
        """
        return self._content(0, self.element_count)

    def _content(self, flat_index: int, count: int) -> bytes:
        if self.fill is None:
            raise NoContent("fill is None: this plan asks for untouched memory, without content")
        info = self.dtype_info
        raw = fill_bytes(self.fill, flat_index, info.itemsize, count)
        info.valid(raw)
        return info.swapped(bytes(raw)) if self.byteorder == "swapped" else bytes(raw)

    # -- bounds ------------------------------------------------------------------------

    def validate(self) -> None:
        """Checks the bounds of the table above.

        Raises
        ------
        ValueError
            If a value is outside its bounds. The message names the value, the bound and what to do.
        """
        self._validate_shape()
        self._validate_element_type()
        self._validate_placement()
        self._validate_names_and_halo()
        shown = ", ".join("null" if name is None else f'"{name}"' for name in DEVICES)
        _require(self.device in DEVICES, "device", self.device, f"one of {shown}")
        _require(type(self.readonly) is bool, "readonly", self.readonly, "true or false")
        self._validate_fill()
        self.view_map  # noqa: B018 (computing it checks every operation)

    def _validate_shape(self) -> None:
        is_shape = isinstance(self.shape, tuple) and all(_is_count(n) for n in self.shape)
        _require(is_shape, "shape", self.shape, "a list of integers >= 0")
        _require(self.ndim <= NDIM_LIMIT, "shape", self.shape, f"at most {NDIM_LIMIT} dimensions")

    def _validate_element_type(self) -> None:
        is_name = isinstance(self.dtype, str) and self.dtype in DTYPES
        _require(is_name, "dtype", self.dtype, "one of " + ", ".join(DTYPES))
        _require(
            self.byteorder in ("native", "swapped"),
            "byteorder",
            self.byteorder,
            '"native" or "swapped"',
        )
        swappable = self.byteorder == "native" or self.dtype_info.has_byteorder
        _require(swappable, "byteorder", self.byteorder, f'"native", for {self.dtype} has no order')
        too_large = f"at most 2^40 bytes of {self.dtype}"
        _require(
            self.nbytes <= _SPAN_LIMIT_BYTES, "shape", self.shape, too_large, "use smaller extents"
        )

    def _validate_placement(self) -> None:
        if self.layout is not None:
            is_permutation = all(map(_is_count, self.layout)) and sorted(self.layout) == [
                *range(self.ndim)
            ]
            _require(
                is_permutation,
                "layout",
                self.layout,
                f"a permutation of 0..{self.ndim - 1}, or null",
            )
        in_range = (
            _is_count(self.alignment_size) and 1 <= self.alignment_size <= ALIGNMENT_LIMIT_BYTES
        )
        _require(
            in_range, "alignment_size", self.alignment_size, f"1..{ALIGNMENT_LIMIT_BYTES} bytes"
        )
        if self.aligned_index is not None:
            inside = len(self.aligned_index) == self.ndim and all(
                _is_count(i) and i < max(extent, 1)
                for i, extent in zip(self.aligned_index, self.shape)
            )
            bound = f"{self.ndim} integers inside shape {list(self.shape)}, or null"
            _require(inside, "aligned_index", self.aligned_index, bound)

    def _validate_names_and_halo(self) -> None:
        if self.dims is not None:
            named = len(self.dims) == self.ndim == len(set(self.dims)) and all(
                map(_is_dim, self.dims)
            )
            bound = f'{self.ndim} different identifiers (1..63 characters), "0", "1", …, or null'
            _require(named, "dims", self.dims, bound)
        if self.halo is not None:
            fits = len(self.halo) == self.ndim and all(
                _is_pair(pair) and sum(pair) <= extent
                for pair, extent in zip(self.halo, self.shape)
            )
            bound = f"{self.ndim} pairs of integers >= 0 with lower + upper <= extent, or null"
            _require(fits, "halo", self.halo, bound)

    def _validate_fill(self) -> None:
        is_seed = self.fill is None or (_is_count(self.fill) and self.fill < _FILL_LIMIT)
        _require(is_seed, "fill", self.fill, "an integer in 0..2^32-1, or null")
        touched = self.fill is not None and self.nbytes >= UNTOUCHED_FROM_BYTES
        _require(
            not touched, "fill", self.fill, "null from 2^30 bytes on", "such pages stay untouched"
        )


class NoContent(ValueError):
    """The plan has no content (`fill` is None).

    A producer need not check `fill`: if this exception propagates, the producer declines the plan.
    """


KEYS: tuple[str, ...] = Plan.keys_of()
"""The keys of every plan, in the order of its JSON."""


def is_data_dimension(name: Any) -> bool:
    """Whether a name is a decimal number: ASCII digits, without leading zeros."""
    return isinstance(name, str) and re.fullmatch("0|[1-9][0-9]*", name) is not None


def _require(holds: bool, key: str, value: Any, bound: str, action: str = "") -> None:
    if not holds:
        raise ValueError(
            f"plan key {key!r} is {_as_lists(value)!r}, must be {bound}; "
            f"{action or 'correct this key'}"
        )


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_count, value))


def _is_dim(name: Any) -> bool:
    is_text = isinstance(name, str) and len(name) <= 63 and is_normalized("NFC", name)
    return is_text and (name.isidentifier() or is_data_dimension(name))


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, (list, tuple)) else value


def _as_lists(value: Any) -> Any:
    return [*map(_as_lists, value)] if isinstance(value, (list, tuple)) else value
