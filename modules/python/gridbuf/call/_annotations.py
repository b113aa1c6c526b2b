"""What a stencil asks of its fields: the annotations of its parameters.

`Field[dtype]` is a field over I, J, K; `Field[dtype, IJ]` one over I and J. Further arguments are written
`Argument[value]`, in any order: `Field[np.float32, IJ, LayoutMap[1, 0], Alignment[64]]`. An explicit argument wins over what
`DefaultParameters` gives. They are the arguments that GDP-3's draft proposed; `Alignment` counts bytes here.

Type checkers take values in brackets for types. Where that matters, write `Annotated[np.ndarray, Field[...]]`, which means
the same to `stencil`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from .. import _core
from .._dims import Dim

_Layout: TypeAlias = tuple[int, ...] | Callable[[tuple[str, ...]], Sequence[int]]


@final
@dataclass(frozen=True, slots=True, repr=False)
class DType:
    """Element type of a field, as an argument of `Field`: `DType[np.float64]` (docs/spec.md 12.22).

    A dtype with a subarray, such as `(np.float64, (3,))`, adds data dimensions.

    Parameters
    ----------
    dtype : numpy.dtype
        The element type.
    """

    dtype: np.dtype[Any]

    def __class_getitem__(cls, dtype: npt.DTypeLike) -> DType:
        return cls(np.dtype(dtype))

    def __repr__(self) -> str:
        return f"DType[{self.dtype}]"


@final
@dataclass(frozen=True, slots=True, repr=False)
class Axes:
    """Dimensions of a field, as an argument of `Field`: `Axes["IJ"]` or `Axes["Cell", "K", "10"]`.

    The order is horizontal, local, vertical, data, each by name: I, J, K, 0. The order in memory may
    differ. `I`, `J`, `K`, `IJ`, `IK`, `JK` and `IJK` are axes of structured grids.
    Rules: docs/spec.md 12.22 and 12.23.

    Parameters
    ----------
    names : tuple of str
        The names of the dimensions, which have a kind (`Dim`).
    """

    names: tuple[str, ...]

    def __class_getitem__(cls, names: str | Axes | Sequence[str]) -> Axes:
        return _axes(names)

    def __repr__(self) -> str:
        joined = "".join(self.names)
        return f"Axes[{joined if len(joined) == len(self.names) else self.names!r}]"


@final
@dataclass(frozen=True, slots=True, repr=False)
class LayoutMap:
    """Layout map of a field, as an argument of `Field`: `LayoutMap[0, 2, 1]`.

    A compiled stencil relies on it: a field with another layout is a ValueError.
    Rules: docs/spec.md 12.15 and 12.23.

    Parameters
    ----------
    layout : tuple of int or callable
        The rank of each dimension of the annotation, 0 for the largest stride; or a callable of the
        names.
    """

    layout: _Layout

    def __class_getitem__(cls, layout: int | _Layout) -> LayoutMap:
        return cls((layout,) if isinstance(layout, int) else layout)

    def __repr__(self) -> str:
        return f"LayoutMap[{self.layout}]"


@final
@dataclass(frozen=True, slots=True, repr=False)
class Alignment:
    """Alignment of a field, as an argument of `Field`: `Alignment[64]` (docs/spec.md 12.16).

    The element at the origin, and the start of every row through it, is at a multiple of so many
    bytes.

    Parameters
    ----------
    alignment_bytes : int
        Bytes.
    """

    alignment_bytes: int

    def __class_getitem__(cls, alignment_bytes: int) -> Alignment:
        return cls(alignment_bytes)

    def __repr__(self) -> str:
        return f"Alignment[{self.alignment_bytes}]"


@final
@dataclass(frozen=True, slots=True, repr=False)
class DefaultParameters:
    """Layout and alignment of a preset, as an argument of `Field`:
    `DefaultParameters["gt:cpu_ifirst"]`.

    Parameters
    ----------
    preset : str
        The name of a preset, also "C" or "F".

    Notes
    -----
    An explicit argument takes precedence. Rules: docs/spec.md 12.15.
    """

    preset: str

    def __class_getitem__(cls, preset: str) -> DefaultParameters:
        _core.plan((1,), backend=preset)  # An unknown name is an error that lists close matches.
        return cls(preset)

    def __repr__(self) -> str:
        return f"DefaultParameters[{self.preset!r}]"


def _axes(names: str | Axes | Sequence[str]) -> Axes:
    if isinstance(names, Axes):
        return names
    dims = tuple(map(Dim, names))
    # The core knows which lists of names there are; their order is checked where the field is declared.
    _core.plan((1,) * len(dims), dims=dims)
    return Axes(dims)


I = Axes(("I",))  # noqa: E741 (GT4Py's name)
J = Axes(("J",))
K = Axes(("K",))
IJ = Axes(("I", "J"))
IK = Axes(("I", "K"))
JK = Axes(("J", "K"))
IJK = Axes(("I", "J", "K"))


@final
@dataclass(frozen=True, slots=True)
class FieldType:
    """What a stencil asks of one field; `Field[...]` returns it (docs/spec.md 12.22).

    Parameters
    ----------
    dtype : numpy.dtype
        Element type, without a subarray.
    axes : tuple of str
        Dimensions in the annotation's order, with data dimensions.
    data_shape : tuple of int, default ()
        Extents of the data dimensions in elements; -1 for any.
    layout : tuple of int or callable, optional
        Layout map. Default: any.
    alignment_bytes : int, optional
        Bytes, of the element at the origin. Default: any.
    preset : str, optional
        The name in `DefaultParameters`. Default: none.
    """

    dtype: np.dtype[Any]
    axes: tuple[str, ...]
    data_shape: tuple[int, ...] = ()
    layout: _Layout | None = None
    alignment_bytes: int | None = None
    preset: str | None = None

    def __repr__(self) -> str:
        dtype = str(self.dtype) if not self.data_shape else f"{self.dtype}, {self.data_shape}"
        spatial = tuple(name for name in self.axes if not name.isdigit())
        parts = [
            dtype,
            "".join(spatial) if all(len(name) == 1 for name in spatial) else repr(Axes(spatial)),
        ]
        parts += [f"LayoutMap[{self.layout}]"] if self.layout is not None else []
        parts += [f"Alignment[{self.alignment_bytes}]"] if self.alignment_bytes is not None else []
        parts += [f"DefaultParameters[{self.preset!r}]"] if self.preset is not None else []
        return f"Field[{', '.join(parts)}]"

    def __or__(self, other: object) -> FieldType:
        """`Field[...] | None`: a parameter whose default is None."""
        return self if other is None else NotImplemented

    __ror__ = __or__


@final
class Field:
    """Annotation of a parameter that takes a field: `Field[dtype, axes, ...]`.

    Axes are IJK unless you give them. Further arguments are `LayoutMap[...]`, `Alignment[...]` and
    `DefaultParameters[...]`.

    Notes
    -----
    `Field[...]` is a TypeError for a missing dtype, an unknown argument, and an argument given
    twice. Rules: docs/spec.md 12.22 to 12.24.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.Field["float32", gridbuf.IJ, gridbuf.Alignment[64]]
    Field[float32, IJ, Alignment[64]]
    """

    def __new__(cls) -> Field:
        raise TypeError("Field is written with brackets: Field[np.float64, IJK]")

    def __class_getitem__(cls, arguments: Any) -> FieldType:
        """The field's type. TypeError for an unknown argument, a missing dtype, and an argument given twice."""
        given: dict[type, Any] = {}
        for argument in arguments if isinstance(arguments, tuple) else (arguments,):
            found = _argument(argument, given)
            if type(found) in given:
                raise TypeError(
                    f"Field[...] got {found!r} after {given[type(found)]!r}; give each argument once"
                )
            given[type(found)] = found
        if DType not in given:
            raise TypeError(
                "Field[...] has no dtype; give it first, for example Field[np.float64, IJK]"
            )
        return _field_type(given)


def _argument(argument: Any, given: dict[type, Any]) -> Any:
    """One argument, positional ones (a dtype, axes, the shape of data dimensions) as what they mean."""
    if isinstance(argument, (DType, Axes, LayoutMap, Alignment, DefaultParameters)):
        return argument
    if DType in given and Axes not in given and isinstance(argument, str):
        return _axes(argument)
    if DType in given and _is_shape(argument):  # Field[(dtype, shape)] is Field[dtype, shape].
        return DType(np.dtype((given.pop(DType).dtype, argument)))
    try:
        return DType(np.dtype(argument))
    except TypeError as error:
        raise TypeError(
            f"Field[...] got {argument!r}, which is not a dtype; its arguments are a dtype, axes such as IJK, DType[...], "
            "Axes[...], LayoutMap[...], Alignment[...] and DefaultParameters[...]"
        ) from error


def _is_shape(argument: Any) -> bool:
    return isinstance(argument, tuple) and all(isinstance(extent, int) for extent in argument)


def _field_type(given: dict[type, Any]) -> FieldType:
    dtype = given[DType].dtype
    axes = given[Axes].names if Axes in given else IJK.names
    named = [name for name in axes if Dim(name).kind == "data"]
    if named and dtype.shape:
        raise TypeError(
            f"Field[...] has data dimensions twice: {named} among its axes, and the shape {dtype.shape} of its dtype; "
            "give one of them"
        )
    return FieldType(
        dtype=dtype.base,
        axes=axes + tuple(map(str, range(len(dtype.shape)))),
        data_shape=dtype.shape or (-1,) * len(named),
        layout=given[LayoutMap].layout if LayoutMap in given else None,
        alignment_bytes=given[Alignment].alignment_bytes if Alignment in given else None,
        preset=given[DefaultParameters].preset if DefaultParameters in given else None,
    )


def field_type_of(annotation: Any) -> FieldType | None:
    """The field's type in an annotation, alone or in the metadata of `Annotated`; None if there is none."""
    if isinstance(annotation, FieldType):
        return annotation
    metadata: Iterable[Any] = getattr(annotation, "__metadata__", ())
    return next((item for item in metadata if isinstance(item, FieldType)), None)
