"""Types and docstrings of the compiled core. Shapes and indices are in elements, memory in bytes.

The extension has these docstrings, too: `modules/python/arguments/docstrings.py` turns them into a
C++ header. Parameters that functions share are here once: `build_defs/expand_docstrings.py` writes
the stub that the package has.
"""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    final,
    overload,
)

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType, Never, Self, disjoint_base

from ._dims import Dim
from .storage import Storage

_Scalar = TypeVar("_Scalar", bound=np.generic)
_Result = TypeVar("_Result")
_DType: TypeAlias = type[_Scalar] | np.dtype[_Scalar]
_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]

# A name with a kind, such as gt4py.next.Dimension. The keys of a mapping are such names, too; Any,
# because the type of a key is invariant.
class _Dimension(Protocol):
    @property
    def value(self) -> str: ...
    @property
    def kind(self) -> str: ...

_Dims: TypeAlias = str | Sequence[str | _Dimension]
_Axes: TypeAlias = Sequence[SupportsIndex] | Sequence[str]
_Layout: TypeAlias = _Axes | Callable[[tuple[str, ...]], _Axes]
_AlignedIndex: TypeAlias = Sequence[SupportsIndex] | Mapping[Any, SupportsIndex]
_Device: TypeAlias = Literal["gpu"] | None
_Memory: TypeAlias = Literal["host", "pinned", "managed", "device"]
_NewMemory: TypeAlias = _Memory | Literal["shared"]
_Index: TypeAlias = SupportsIndex | slice | EllipsisType | None

class _ArrayInterface(TypedDict, total=False):
    shape: tuple[int, ...]
    typestr: str
    descr: list[Any]
    data: tuple[int, bool]
    strides: tuple[int, ...] | None
    version: int

class _CudaArrayInterface(_ArrayInterface, total=False):
    stream: int

class _DataInterface(_CudaArrayInterface, total=False):
    dims: tuple[str, ...]
    halo: tuple[tuple[int, int], ...]
    acquire: Callable[[], None]

class _Preset(TypedDict):
    device: _Device
    alignment_size: int
    layout: tuple[int, int, int] | Literal["C", "F"]

_build_info: Final[dict[str, str]]

# Keywords that functions share. Their defaults are in the comments.
class _ArrayKeywords(TypedDict, total=False):
    backend: str | None  # = None
    device: _Device  # = ...
    layout: _Layout | None  # = None
    alignment_size: SupportsIndex | None  # = None
    aligned_index: _AlignedIndex | None  # = None
    dims: _Dims | None  # = None
    populate: bool  # = False
    memory: _NewMemory | None  # = None

class GTNoSuchBufferError(BufferError):
    """The array has no memory on the side (host or device) that the call needs."""

class DeviceUnavailableError(RuntimeError):
    """There is no device, or no library that drives it."""

class SyncConflictError(RuntimeError):
    """Host and device both hold newer data in the same region."""

@final
class LayoutPlan:
    """Where the elements of an array are, without memory.

    A value that you can print, compare, hash, pickle and draw. `gridbuf.plan` and `Buffer.plan`
    return plans; the class cannot be called.

    Notes
    -----
    Rules: docs/spec.md 1.1 to 1.33.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.plan((3, 4)) == gridbuf.allocate((3, 4)).plan
    True
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions. A `gridbuf.Dim` has a kind, too (docs/spec.md 1.7)."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def layout(self) -> tuple[int, ...]:
        """Layout map: entry i is the rank of dimension i, 0 for the largest stride (docs/spec.md
        1.2).
        """
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, per dimension."""
    @property
    def padded_shape(self) -> tuple[int, ...]:
        """Extents, in elements, with the contiguous one rounded up (docs/spec.md 1.19)."""
    @property
    def alignment_size(self) -> int:
        """Bytes; 1 means no constraint."""
    @property
    def aligned_index(self) -> tuple[int, ...]:
        """Index of the aligned element (docs/spec.md 1.18)."""
    @property
    def aligned_offset(self) -> int:
        """Bytes from element (0, ..., 0) to the one at `aligned_index`."""
    @property
    def size(self) -> int:
        """Number of elements, without padding."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
    @property
    def total_bytes(self) -> int:
        """Bytes from element (0, ..., 0) to the end, with padding."""
    def offset_rule(self) -> str:
        """Return the offset of an element as a formula of its index.

        Returns
        -------
        str
            The formula; the offset is in bytes.

        Notes
        -----
        Rules: docs/spec.md 1.33.

        Examples
        --------
        >>> import gridbuf
        >>> gridbuf.plan((3, 4)).offset_rule()
        'offset(i0, i1) = 32*i0 + 8*i1 bytes'
        """
    def draw(self, *, max_columns: int = 24, max_rows: int = 32) -> str:
        """Draw the memory as text, a line per row and a mark per element.

        Parameters
        ----------
        max_columns : int, default 24
            How many elements of a row to draw at most.
        max_rows : int, default 32
            How many rows to draw at most.

        Returns
        -------
        str
            The drawing: "o" is an element, "A" an aligned one, "." padding.

        Raises
        ------
        TypeError
            A number is not an integer.
        ValueError
            A number is below 1.

        Notes
        -----
        Rules: docs/spec.md 1.33.

        Examples
        --------
        >>> import gridbuf
        >>> print(gridbuf.plan((2, 3), alignment_size=32).draw())  # doctest: +ELLIPSIS
        shape (2, 3), itemsize 8 bytes, ...
        rows run along J: 3 elements and 1 of padding, 8 bytes apart
                +0  I=0 | A o o . |
               +32  I=1 | A o o . |
        o element   A address is a multiple of 32 bytes   . padding
        <BLANKLINE>
        """
    def difference(self, found: LayoutPlan, /) -> str:
        """Return what differs in another plan, a line per property.

        Parameters
        ----------
        found : gridbuf.LayoutPlan
            The other plan.

        Returns
        -------
        str
            The lines; "" if nothing differs.

        Raises
        ------
        TypeError
            `found` is not a plan.

        Notes
        -----
        Rules: docs/spec.md 1.33.

        Examples
        --------
        >>> import gridbuf
        >>> print(gridbuf.plan((3, 4)).difference(gridbuf.plan((3, 4), layout=(1, 0))))
        layout: wanted (0, 1), found (1, 0)
        strides_bytes: wanted (32, 8), found (8, 24)
        <BLANKLINE>
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle makes the plan from."""

@final
class Buffer:
    """A padded, aligned n-dimensional array in a layout of your choice.

    `gridbuf.allocate` and `gridbuf.as_buffer` make Buffers, in memory of the host or of a device.
    The class cannot be called, extended or changed. Integers, slices, None and `...` give views of
    the same memory. A full set of integers gives a NumPy scalar.

    A Buffer exports the array interface (dict and struct), the CUDA array interface, the buffer
    protocol, DLPack (capsules and the C exchange table), `__gt_data_interface__`, `__gt_dims__` and
    `__gt_origin__`.

    Notes
    -----
    Rules: docs/spec.md section 5.

    Examples
    --------
    >>> import gridbuf
    >>> buffer = gridbuf.allocate((3, 4), dims="KI")
    >>> buffer.to_numpy()[...] = 1
    >>> buffer[0].dims, float(buffer[0, 0])
    (('I',), 1.0)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, per dimension."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, a `numpy.dtype`."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
    @property
    def size(self) -> int:
        """Number of elements, without padding."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions. A `gridbuf.Dim` has a kind, too (docs/spec.md 1.7)."""
    @property
    def layout(self) -> tuple[int, ...]:
        """Layout map: entry i is the rank of dimension i, 0 for the largest stride (docs/spec.md
        1.2).
        """
    @property
    def aligned_index(self) -> tuple[int, ...]:
        """Index of the aligned element (docs/spec.md 1.18)."""
    @property
    def alignment_size(self) -> int:
        """Bytes. The address of every element whose index in the contiguous dimension is that of
        `aligned_index` is a multiple of it. 1 means no constraint. A view has the alignment
        that still holds for it (docs/spec.md 5.37).
        """
    @property
    def memory(self) -> _Memory:
        """Kind of memory: "host", "pinned", "managed" or "device" (docs/spec.md 8.1)."""
    @property
    def device(self) -> _Device:
        """Device: "gpu" for device and managed memory, None for host and pinned memory."""
    @property
    def stream(self) -> int | None:
        """CUDA stream that orders gridbuf's work on the memory, an int; None for host memory. 1
        is the legacy default stream (docs/spec.md 8.2).
        """
    @property
    def readonly(self) -> bool:
        """Whether exports forbid writing."""
    @property
    def base(self) -> Buffer | None:
        """Buffer of the whole allocation; None if this is it."""
    @property
    def plan(self) -> LayoutPlan | None:
        """LayoutPlan of the whole allocation; None where another library made the memory."""
    @property
    def T(self) -> Buffer:  # noqa: N802 (NumPy's name)
        """View with the dimensions in reverse order."""
    @property
    def default_origin(self) -> tuple[int, ...]:
        """Same as `__gt_origin__`."""
    @property
    def __gt_origin__(self) -> tuple[int, ...]:
        """Aligned index in the order horizontal, local, vertical, data, such as I, J, K, 0: the
        default origin of a stencil's call (docs/spec.md 5.33).
        """
    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        """Names of the dimensions, for GT4Py."""
    @property
    def __array_interface__(self) -> _ArrayInterface:
        """NumPy's array interface, version 3. Absent for device memory, and for element types
        that it cannot name (bfloat16, FP8; docs/spec.md 5.27 and 5.28).
        """
    @property
    def __array_struct__(self) -> CapsuleType:
        """NumPy's array interface as a C struct in a capsule. Absent for device memory, dates
        and narrow floats (docs/spec.md 5.50).
        """
    @property
    def __cuda_array_interface__(self) -> _CudaArrayInterface:
        """CUDA array interface, version 3, with `stream`. Absent for memory that a device does
        not reach (docs/spec.md 5.51).
        """
    @property
    def __gt_data_interface__(self) -> dict[Literal["gpu"] | None, _DataInterface]:
        """Interface for GT4Py: an entry under None for the host and under "gpu" for the device.
        Each is an array interface with `dims` and `halo`. Memory of both sides has both
        entries; `acquire` of the host's entry waits for the device (docs/spec.md 5.54).
        """
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    def to_numpy(self) -> npt.NDArray[Any]:
        """Return an ndarray over the same memory.

        Returns
        -------
        numpy.ndarray
            A view, which keeps the memory alive.

        Raises
        ------
        GTNoSuchBufferError
            The host cannot read the memory.

        Notes
        -----
        Rules: docs/spec.md 5.34.

        Examples
        --------
        >>> import gridbuf
        >>> gridbuf.allocate((2, 3)).to_numpy().shape
        (2, 3)
        """
    def transpose(self, *axes: SupportsIndex | str | _Axes | None) -> Buffer:
        """Return a view with its dimensions in another order.

        Parameters
        ----------
        *axes : int or str, or one sequence of them
            Dimension i of the result is dimension axes[i], by its index or its name. Without axes,
            the order is reversed.

        Returns
        -------
        gridbuf.Buffer
            Names, layout and aligned index follow the dimensions.

        Raises
        ------
        TypeError
            An axis is neither an integer nor a name, or the axes are both.
        IndexError
            An axis is out of bounds.
        ValueError
            The axes are not a permutation, or a name is not that of a dimension.

        Notes
        -----
        Rules: docs/spec.md 1.37, 5.36 and 5.71.

        Examples
        --------
        >>> import gridbuf
        >>> gridbuf.allocate((2, 3, 4)).transpose(2, 0, 1).dims
        ('K', 'I', 'J')
        """
    def broadcast_to(self, shape: _Shape, /) -> Buffer:
        """Return a read-only view that repeats the elements to a shape.

        Parameters
        ----------
        shape : int or sequence of int
            Extents in elements, as in `numpy.broadcast_to`.

        Returns
        -------
        gridbuf.Buffer
            A view with strides of 0 where it repeats.

        Raises
        ------
        TypeError
            `shape` is not a sequence of integers.
        ValueError
            The elements cannot be broadcast to `shape`.

        Notes
        -----
        Rules: docs/spec.md 1.38 and 5.38.

        Examples
        --------
        >>> import gridbuf
        >>> gridbuf.allocate((3,)).broadcast_to((2, 3)).strides
        (0, 8)
        """
    def toreadonly(self) -> Buffer:
        """Return a view whose exports forbid writing.

        Returns
        -------
        gridbuf.Buffer
            A view of the same memory.

        Notes
        -----
        Rules: docs/spec.md 5.38.

        Examples
        --------
        >>> import gridbuf
        >>> gridbuf.allocate((3,)).toreadonly().to_numpy().flags.writeable
        False
        """
    def copy(self, memory: _Memory | None = None) -> Buffer:
        """Return a new Buffer with the same elements and parameters.

        Parameters
        ----------
        memory : {"host", "pinned", "managed", "device"}, optional
            Kind of memory of the copy. Default: that of this Buffer.

        Returns
        -------
        gridbuf.Buffer
            It has the same dims, layout, alignment and aligned index.

        Raises
        ------
        TypeError
            `memory` is not a str.
        ValueError
            `memory` is unknown.
        MemoryError
            There is not enough memory.
        DeviceUnavailableError
            There is no device.

        Notes
        -----
        Rules: docs/spec.md 5.39 and 5.57.

        Examples
        --------
        >>> import gridbuf
        >>> buffer = gridbuf.allocate((2, 3), layout=(1, 0))
        >>> buffer.copy().layout
        (1, 0)
        """
    def synchronize(self) -> None:
        """Wait for the work that is pending on the Buffer's stream.

        Notes
        -----
        Returns at once for host memory.

        Examples
        --------
        >>> import gridbuf
        >>> gridbuf.allocate((3,)).synchronize()
        """
    def __copy__(self) -> Buffer:
        """Return the same as `copy()`."""
    def __deepcopy__(self, memo: object, /) -> Buffer:
        """Return the same as `copy()`."""
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        """Return elements and parameters, for pickle."""
    # A full set of integers gives a NumPy scalar, everything else a Buffer; types cannot tell.
    def __getitem__(self, key: _Index | tuple[_Index, ...] | Mapping[Any, _Index], /) -> Any: ...
    def __setitem__(self, key: Never, value: Never, /) -> None: ...  # raises TypeError
    def __delitem__(self, key: Never, /) -> None: ...  # raises TypeError
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __array__(
        self, /, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Return an ndarray of the elements, as NumPy 2 asks for it.

        Parameters
        ----------
        dtype : dtype_like, optional
            Element type. Default: that of this Buffer.
        copy : bool, optional
            True always copies, False never. Default: copy only to convert.

        Returns
        -------
        numpy.ndarray
            A view, or a copy.

        Raises
        ------
        ValueError
            `copy` is False and `dtype` needs a conversion.

        Notes
        -----
        Rules: docs/spec.md 5.32.

        Examples
        --------
        >>> import gridbuf
        >>> import numpy
        >>> numpy.asarray(gridbuf.allocate((2, 3), "int16"), "float32").dtype
        dtype('float32')
        """
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        /,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a DLPack capsule.

        Parameters
        ----------
        stream : int, optional
            Stream of the consumer. Pending work on the memory comes before it. Default: the legacy
            default stream.
        max_version : tuple of int, optional
            Highest DLPack version that the consumer reads. From (1, 0) on the capsule is versioned.
            Default: a legacy capsule.
        dl_device : tuple of int, optional
            Device of the export. (1, 0) gets memory of a device as a copy on the host. Default:
            where the memory is.
        copy : bool, optional
            True always copies, False never. Default: copy only if needed.

        Returns
        -------
        capsule
            It keeps the memory alive.

        Raises
        ------
        BufferError
            DLPack cannot describe the array, or the array is read-only and the capsule a legacy
            one.
        ValueError
            The device does not have this stream.

        Notes
        -----
        Rules: docs/spec.md 5.30 and 5.52.

        Examples
        --------
        >>> import gridbuf
        >>> import numpy
        >>> numpy.from_dlpack(gridbuf.allocate((2, 3))).shape
        (2, 3)
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device.

        Returns
        -------
        tuple of int
            (1, 0) for host, (3, 0) for pinned and (13, 0) for managed memory, (2, number) for a
            device.

        Notes
        -----
        Rules: docs/spec.md 5.30.

        Examples
        --------
        >>> import gridbuf
        >>> gridbuf.allocate((3,)).__dlpack_device__() == (1, 0)
        True
        """

def allocate(
    shape: _Shape, dtype: npt.DTypeLike | None = "float64", **keywords: Unpack[_ArrayKeywords]
) -> Buffer:
    """Allocate a Buffer whose elements are undefined.

    Parameters
    ----------
    shape : int or sequence of int
        Extents in elements, each 0 or more; at most 64. One integer is one dimension.
    dtype : dtype_like, default "float64"
        Element type: anything `numpy.dtype` takes, of fixed size and without objects.
    backend : str, optional
        Name of a preset, see `gridbuf.presets`. It gives `device`, `alignment_size` and an order of
        the dimensions by name. Default: no preset.
    device : {None, "gpu"}, optional
        None is the host. An explicit None overrides the preset. Default: from the preset, else
        None.
    layout : sequence of int or str, or callable, optional
        Layout map: entry i is the rank of dimension i. Rank 0 has the largest stride, rank ndim - 1
        is contiguous. Or the names of the dimensions, from the largest stride to the smallest. A
        callable gets the tuple of names and returns one of both. Default: from the preset, else C
        order.
    alignment_size : int, optional
        Bytes, from 1 to 1048576, not only powers of two. 1 means no constraint. Default: from the
        preset, else 1.
    aligned_index : sequence of int or dict, optional
        The index, in elements, whose address is a multiple of `alignment_size`. Every element with
        the same index in the contiguous dimension is aligned, too. A dict has integers by name, 0
        for the other dimensions. Default: zeros.
    dims : str or sequence of str, optional
        One name per dimension, without repeats: identifiers, and decimal numbers for data
        dimensions. A str has names of one character. `gridbuf.Dim` and objects with `value` and
        `kind`, as those of `gt4py.next`, are names with a kind. Default: I, J, K, 0, 1, ...
    populate : bool, default False
        Whether to commit the pages now, so that too little memory is a MemoryError here.
    memory : {"host", "shared", "pinned", "managed", "device"}, optional
        Kind of memory. `device="gpu"` means "device". "shared" is memory of the host that processes
        share: a pickle says where it is. Default: from `device`.

    Returns
    -------
    gridbuf.Buffer
        An array with names for its dimensions, in a layout of your choice.

    Raises
    ------
    TypeError
        A value has a wrong kind (bools are not integers here), or a parameter is unknown.
    ValueError
        A value is out of bounds, or the size exceeds 2**63 - 1 bytes.
    MemoryError
        There is not enough memory.
    DeviceUnavailableError
        There is no device.

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 5.1 to
    5.18.

    Examples
    --------
    >>> import gridbuf
    >>> buffer = gridbuf.allocate((3, 4), alignment_size=64, dims="IJ")
    >>> buffer.strides, buffer.dims
    ((64, 8), ('I', 'J'))
    """

def plan(
    shape: _Shape, dtype: npt.DTypeLike | None = "float64", **keywords: Unpack[_ArrayKeywords]
) -> LayoutPlan:
    """Return the layout that `allocate` would use, without memory.

    Parameters
    ----------
    shape, dtype, backend, device, layout, alignment_size, aligned_index, dims : as in `allocate`
    populate, memory : as in `allocate`

    Returns
    -------
    gridbuf.LayoutPlan
        Strides, padding and sizes of such an array.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 1.1 to
    1.33 and 5.2.

    Examples
    --------
    >>> import gridbuf
    >>> plan = gridbuf.plan((3, 4), layout=(1, 0), alignment_size=64)
    >>> plan.strides, plan.padded_shape, plan.total_bytes
    ((8, 64), (8, 4), 256)
    """

@overload
def empty(
    shape: _Shape, dtype: None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[np.float64]: ...
@overload
def empty(
    shape: _Shape, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def empty(
    shape: _Shape, dtype: npt.DTypeLike | None = "float64", **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[Any]:
    """Return a new array whose elements are undefined.

    Parameters
    ----------
    shape, dtype, backend, device, layout, alignment_size, aligned_index, dims : as in `allocate`
    populate, memory : as in `allocate`

    Returns
    -------
    numpy.ndarray
        The array; its padding is undefined, too. Its `base` is a `gridbuf.Buffer`. With
        `device="gpu"` it is a `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError : as in `allocate`
    DeviceUnavailableError
        There is no device, or no CuPy for a plain array on one.

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 5.1 to
    5.18.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.empty((3, 4), layout=(1, 0)).strides
    (8, 24)
    """

@overload
def zeros(
    shape: _Shape, dtype: None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[np.float64]: ...
@overload
def zeros(
    shape: _Shape, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def zeros(
    shape: _Shape, dtype: npt.DTypeLike | None = "float64", **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[Any]:
    """Return a new array of zeros.

    Parameters
    ----------
    shape, dtype, backend, device, layout, alignment_size, aligned_index, dims : as in `allocate`
    populate, memory : as in `allocate`

    Returns
    -------
    numpy.ndarray
        The array of zeros. Its `base` is a `gridbuf.Buffer`. With `device="gpu"` it is a
        `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `empty`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 5.1 to
    5.18 and 5.23.

    Examples
    --------
    >>> import gridbuf
    >>> field = gridbuf.zeros((3, 4, 5), backend="gt:cpu_ifirst", aligned_index=(1, 1, 0))
    >>> field.strides
    (8, 64, 256)
    >>> field[1, 1, 0:1].ctypes.data % 64
    0
    """

@overload
def ones(
    shape: _Shape, dtype: None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[np.float64]: ...
@overload
def ones(
    shape: _Shape, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def ones(
    shape: _Shape, dtype: npt.DTypeLike | None = "float64", **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[Any]:
    """Return a new array of ones.

    Parameters
    ----------
    shape, dtype, backend, device, layout, alignment_size, aligned_index, dims : as in `allocate`
    populate, memory : as in `allocate`

    Returns
    -------
    numpy.ndarray
        The array of ones. Its `base` is a `gridbuf.Buffer`. With `device="gpu"` it is a
        `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `empty`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 5.1 to
    5.18 and 5.23.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.ones((2, 3), "int32").sum()
    np.int64(6)
    """

@overload
def full(
    shape: _Shape, fill_value: object, dtype: None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[np.float64]: ...
@overload
def full(
    shape: _Shape, fill_value: object, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def full(
    shape: _Shape,
    fill_value: object,
    dtype: npt.DTypeLike | None = "float64",
    **keywords: Unpack[_ArrayKeywords],
) -> npt.NDArray[Any]:
    """Return a new array of `fill_value`.

    Parameters
    ----------
    shape : as in `allocate`
    fill_value : scalar or array_like
        The value of the elements, cast and broadcast as `numpy.full` does.
    dtype, backend, device, layout, alignment_size, aligned_index, dims, populate : as in `allocate`
    memory : as in `allocate`

    Returns
    -------
    numpy.ndarray
        The array of `fill_value`. Its `base` is a `gridbuf.Buffer`. With `device="gpu"` it is a
        `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `empty`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 5.21.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.full((2, 3), 7, "int32").tolist()
    [[7, 7, 7], [7, 7, 7]]
    """

@overload
def empty_like(
    data: npt.NDArray[_Scalar], dtype: None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def empty_like(
    data: object, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def empty_like(
    data: object, dtype: npt.DTypeLike | None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[Any]:
    """Return a new array whose elements are undefined, with the shape of `data`.

    Parameters
    ----------
    data : array_like
        A Buffer, an array of any library, or anything `numpy.asarray` takes. It gives the shape,
        and what you do not pass.
    dtype : dtype_like, optional
        Element type: anything `numpy.dtype` takes, of fixed size and without objects. Default: that
        of `data`.
    backend, device : as in `allocate`
    layout : as in `allocate`
        Default: from the preset, else from `data`, else C order.
    alignment_size : as in `allocate`
        Default: from the preset, else from `data`, else 1.
    aligned_index : as in `allocate`
        Default: from `data`, else zeros.
    dims : as in `allocate`
        Default: from `data`, else I, J, K, 0, 1, ...
    populate, memory : as in `allocate`

    Returns
    -------
    numpy.ndarray
        The array; its padding is undefined, too. Its `base` is a `gridbuf.Buffer`. With
        `device="gpu"` it is a `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `empty`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    5.17 and 5.19.

    Examples
    --------
    >>> import gridbuf
    >>> data = gridbuf.ones((3, 4), "float32", layout=(1, 0))
    >>> gridbuf.empty_like(data).strides
    (4, 12)
    """

@overload
def zeros_like(
    data: npt.NDArray[_Scalar], dtype: None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def zeros_like(
    data: object, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def zeros_like(
    data: object, dtype: npt.DTypeLike | None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[Any]:
    """Return a new array of zeros, with the shape of `data`.

    Parameters
    ----------
    data, dtype, backend, device, layout, alignment_size, aligned_index, dims : as in `empty_like`
    populate, memory : as in `empty_like`

    Returns
    -------
    numpy.ndarray
        The array of zeros. Its `base` is a `gridbuf.Buffer`. With `device="gpu"` it is a
        `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `empty`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    5.17 and 5.19.

    Examples
    --------
    >>> import gridbuf
    >>> data = gridbuf.ones((3, 4), "float32", layout=(1, 0))
    >>> gridbuf.zeros_like(data).strides
    (4, 12)
    """

@overload
def ones_like(
    data: npt.NDArray[_Scalar], dtype: None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def ones_like(
    data: object, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def ones_like(
    data: object, dtype: npt.DTypeLike | None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[Any]:
    """Return a new array of ones, with the shape of `data`.

    Parameters
    ----------
    data, dtype, backend, device, layout, alignment_size, aligned_index, dims : as in `empty_like`
    populate, memory : as in `empty_like`

    Returns
    -------
    numpy.ndarray
        The array of ones. Its `base` is a `gridbuf.Buffer`. With `device="gpu"` it is a
        `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `empty`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    5.17 and 5.19.

    Examples
    --------
    >>> import gridbuf
    >>> data = gridbuf.ones((3, 4), "float32", layout=(1, 0))
    >>> gridbuf.ones_like(data).strides
    (4, 12)
    """

@overload
def full_like(
    data: npt.NDArray[_Scalar],
    fill_value: object,
    dtype: None = None,
    **keywords: Unpack[_ArrayKeywords],
) -> npt.NDArray[_Scalar]: ...
@overload
def full_like(
    data: object, fill_value: object, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def full_like(
    data: object,
    fill_value: object,
    dtype: npt.DTypeLike | None = None,
    **keywords: Unpack[_ArrayKeywords],
) -> npt.NDArray[Any]:
    """Return a new array of `fill_value`, with the shape of `data`.

    Parameters
    ----------
    data : as in `empty_like`
    fill_value : as in `full`
    dtype, backend, device, layout, alignment_size, aligned_index, dims : as in `empty_like`
    populate, memory : as in `empty_like`

    Returns
    -------
    numpy.ndarray
        The array of `fill_value`. Its `base` is a `gridbuf.Buffer`. With `device="gpu"` it is a
        `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `empty`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    5.19 and 5.21.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.full_like([1.0, 2.0], 7).tolist()
    [7.0, 7.0]
    """

@overload
def from_array(
    data: npt.NDArray[_Scalar], dtype: None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def from_array(
    data: object, dtype: _DType[_Scalar], **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[_Scalar]: ...
@overload
def from_array(
    data: object, dtype: npt.DTypeLike | None = None, **keywords: Unpack[_ArrayKeywords]
) -> npt.NDArray[Any]:
    """Return a new array with a copy of `data`.

    Parameters
    ----------
    data, dtype, backend, device, layout, alignment_size, aligned_index, dims : as in `empty_like`
    populate, memory : as in `empty_like`

    Returns
    -------
    numpy.ndarray
        The copy. Elements are converted as `astype` does. Its `base` is a `gridbuf.Buffer`. With
        `device="gpu"` it is a `cupy.ndarray`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `empty`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    5.22, 5.65 and 7.17.

    Examples
    --------
    >>> import gridbuf
    >>> copy = gridbuf.from_array([[1, 2], [3, 4]], "float32", layout=(1, 0))
    >>> copy.tolist(), copy.strides
    ([[1.0, 2.0], [3.0, 4.0]], (4, 8))
    """

def register_preset(
    name: str,
    *,
    device: _Device = None,
    alignment_size: SupportsIndex = 1,
    layout: Sequence[SupportsIndex] | Literal["C", "F"] = (0, 1, 2),
) -> None:
    """Add a preset, which `backend` then accepts.

    Parameters
    ----------
    name : str
        The name of the preset.
    device : {None, "gpu"}, default None
        Where arrays of the preset are; None is the host.
    alignment_size : int, default 1
        Bytes, from 1 to 1048576. 1 means no constraint.
    layout : sequence of int or {"C", "F"}, default (0, 1, 2)
        The ranks of I, J and K, 0 for the largest stride; or an order by position. Other names
        follow their kinds (docs/spec.md 1.12).

    Raises
    ------
    TypeError
        A value has a wrong kind.
    ValueError
        The name has another preset, or a value is out of bounds.

    Notes
    -----
    Registering the same preset again has no effect. Rules: docs/spec.md 1.11 to 1.16 and 5.16.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.register_preset("my_model", alignment_size=32, layout=(2, 1, 0))
    >>> gridbuf.zeros((3, 4), backend="my_model").strides
    (8, 32)
    """

def presets() -> dict[str, _Preset]:
    """Return all presets.

    Returns
    -------
    dict of str to dict
        By name a dict with `device` (None or "gpu"), `alignment_size` (bytes) and `layout` (the
        ranks of I, J and K, or "C" or "F").

    Notes
    -----
    Rules: docs/spec.md 1.13 and 5.16.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.presets()["gt:cpu_ifirst"]
    {'device': None, 'alignment_size': 64, 'layout': (2, 1, 0)}
    """

def _dim(dim: object, kind: str | None) -> tuple[str, str]: ...
def _half(dim: object) -> tuple[str]: ...
def _common_points(array: Any, target: Any) -> tuple[slice, ...] | None: ...
def declare_dims(**kinds: Literal["horizontal", "vertical", "local", "data"] | Dim) -> None:
    """Declare the kinds of names, or staggered halves, for the whole process.

    Parameters
    ----------
    **kinds : {"horizontal", "vertical", "local", "data"} or Dim
        The kind of each name, which a plain str has from then on; or what `gridbuf.half` returned:
        the name is the staggered half of that dimension, and has its kind. A declaration can be
        repeated.

    Raises
    ------
    TypeError
        A kind is not a str.
    ValueError
        A name is not a name of a dimension or has another kind or half already, or a kind is not a
        kind. Then none of the kinds is declared.

    Notes
    -----
    Arrays that exist keep the kinds that they have. Rules: docs/spec.md 1.49 and 11.38.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.declare_dims(level="vertical", tracer="data")
    >>> gridbuf.allocate((4, 6), dims=("Cell", "level")).dims
    ('Cell', Dim('level', 'vertical'))
    """

def get_dims(obj: object, annotation: _Dims | None = None) -> tuple[str, ...] | None:
    """Return the names of the dimensions of an array.

    Parameters
    ----------
    obj : object
        An array of any library.
    annotation : str or sequence of str, optional
        Names for an array that declares none. Default: None.

    Returns
    -------
    tuple of str or None
        `obj.__gt_dims__`, else `obj.dims` if these are valid names, else those of the Buffer behind
        a plain array, else `annotation`.

    Raises
    ------
    TypeError
        The names have a wrong kind.
    ValueError
        `__gt_dims__` or `annotation` is not a valid list of names for `obj`.

    Notes
    -----
    Rules: docs/spec.md 5.20.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.get_dims(gridbuf.allocate((2, 3), dims="KI"))
    ('K', 'I')
    """

def get_origin(obj: object, /) -> tuple[int, ...] | None:
    """Return the default origin that an array declares.

    Parameters
    ----------
    obj : object
        An array of any library.

    Returns
    -------
    tuple of int or None
        `obj.__gt_origin__`, else `obj.default_origin`, else that of the Buffer behind a plain
        array. The order is horizontal, local, vertical, data, such as I, J, K, 0.

    Raises
    ------
    TypeError
        The declared origin is not a sequence of integers.
    ValueError
        An entry does not fit into 64 bits.

    Notes
    -----
    Rules: docs/spec.md 7.18.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.get_origin(gridbuf.zeros((4, 5), aligned_index=(1, 2)))
    (1, 2)
    """

def as_numpy(obj: object, /) -> npt.NDArray[Any]:
    """Return an ndarray over the memory of an array, without a copy.

    Parameters
    ----------
    obj : object
        An object with `__gt_data_interface__`, DLPack, the buffer protocol, or an array interface
        of NumPy or CUDA.

    Returns
    -------
    numpy.ndarray
        It keeps the memory of `obj` alive.

    Raises
    ------
    TypeError
        `obj` does not export memory, or a field of its interface has a wrong kind.
    ValueError
        A field of its interface is out of bounds. The message begins with the rule's id.
    BufferError
        The array has a mask, or an element type or device that gridbuf does not know, or its memory
        does not have its values: a tensor that is lazily conjugated or negated, or fake.
    GTNoSuchBufferError
        The host cannot read the memory.

    Notes
    -----
    Rules: docs/spec.md 7.1 to 7.15.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.as_numpy(bytearray(b"ab")).tolist()
    [97, 98]
    """

# A cupy.ndarray; CuPy is not a dependency.
def as_cupy(obj: object, sync: bool = True) -> Any:
    """Return a CuPy array over the memory of an array, without a copy.

    Parameters
    ----------
    obj : as in `as_numpy`
    sync : bool, default True
        Whether work that is pending on the memory comes before CuPy's current stream.

    Returns
    -------
    cupy.ndarray
        It keeps the memory of `obj` alive.

    Raises
    ------
    TypeError, ValueError, BufferError : as in `as_numpy`
    DeviceUnavailableError
        There is no CuPy, or no CUDA device.
    GTNoSuchBufferError
        The device cannot reach the memory.

    Notes
    -----
    Rules: docs/spec.md 7.1 and 7.13.

    Examples
    --------
    >>> import gridbuf
    >>> array = gridbuf.as_cupy(field)  # doctest: +SKIP
    """

def as_buffer(obj: object, *, dims: _Dims | None = None) -> Buffer:
    """Return a Buffer over the memory of an array, without a copy.

    Parameters
    ----------
    obj : as in `as_numpy`
    dims : str or sequence of str, optional
        Names of the dimensions. They override those that `obj` declares. Default: those of `obj`,
        else I, J, K, 0, 1, ...

    Returns
    -------
    gridbuf.Buffer
        It keeps the memory of `obj` alive.

    Raises
    ------
    TypeError, ValueError, BufferError : as in `as_numpy`
    DeviceUnavailableError
        The memory is on a device that is not there.

    Notes
    -----
    Rules: docs/spec.md 7.1 to 7.15.

    Examples
    --------
    >>> import gridbuf
    >>> import numpy
    >>> gridbuf.as_buffer(numpy.ones((2, 3)), dims="JK").dims
    ('J', 'K')
    """

def copyto(
    dst: object,
    src: object,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
    where: object = True,
) -> None:
    """Copy elements into an array, as `numpy.copyto` does.

    Parameters
    ----------
    dst : object
        An array of any library, in any memory, that can be written.
    src : array_like
        An array of any library, a number, text or a sequence. It is broadcast to the shape of
        `dst`; storages by the names of their dimensions.
    casting : {"no", "equiv", "safe", "same_kind", "unsafe"}, default "same_kind"
        Which conversions are allowed, as in `numpy.can_cast`.
    where : bool or array of bool, default True
        Elements of `dst` where it is False keep their values. It is broadcast to `dst`.

    Raises
    ------
    TypeError
        `dst` is not an array, `casting` forbids the conversion, or `where` is not bool.
    ValueError
        `dst` is read-only, the shapes do not broadcast, or `casting` is unknown.
    BufferError
        An interface of an array cannot be read.
    MemoryError
        Arrays overlap, and there is no memory for a copy in between.

    Notes
    -----
    Source and target may overlap. Padding of `dst` is not written. Long copies use all threads
    (`set_num_threads`) and let other Python threads run. After an error nothing has been written.
    Numbers that a conversion does not keep warn or raise as `numpy.errstate` says. Rules:
    docs/spec.md 5.59 to 5.66.

    Examples
    --------
    >>> import gridbuf
    >>> target = gridbuf.zeros((2, 3), layout=(1, 0))
    >>> gridbuf.copyto(target, [1, 2, 3])
    >>> target.tolist()
    [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
    """

def from_interface(
    descriptor: dict[Any, Any],
    owner: object = None,
    sync: bool = True,
    *,
    device: _Device = ...,
) -> Buffer:
    """Return a Buffer over the memory that a dict describes.

    Parameters
    ----------
    descriptor : dict
        An array interface, a CUDA array interface, or a dict of them under None and "gpu".
    owner : object, default None
        What keeps the memory alive. Without it, you keep the memory alive.
    sync : bool, default True
        Whether pending work on the stream in `descriptor` comes before gridbuf's work.
    device : {None, "gpu"}, optional
        Which interface a single one is. Default: CUDA's if it has a stream, else NumPy's.

    Returns
    -------
    gridbuf.Buffer
        An array over the memory, without a copy.

    Raises
    ------
    TypeError
        A field has a wrong kind.
    ValueError
        A field is out of bounds. The message begins with the rule's id.
    BufferError
        The descriptor has a mask, or an element type that gridbuf does not know.
    DeviceUnavailableError
        The memory is on a device that is not there.

    Notes
    -----
    Rules: docs/spec.md 7.16.

    Examples
    --------
    >>> import gridbuf
    >>> import numpy
    >>> array = numpy.arange(6.0)
    >>> gridbuf.from_interface(array.__array_interface__, array).shape
    (6,)
    """

# gridbuf.stream, gridbuf.testing and show_config are made of these.
_Operation: TypeAlias = Literal[
    "allocate", "copy", "fill", "launch", "synchronize", "order", "stream", "pointer_info"
]

def _device_current_stream() -> int: ...
def _device_exchange_stream(stream: SupportsIndex, /) -> int: ...
def _device_check_stream(stream: SupportsIndex, /) -> None: ...
def _device_create_stream(blocking: bool, /) -> int: ...
def _device_destroy_stream(stream: SupportsIndex, /) -> None: ...
def _device_synchronize(stream: SupportsIndex | None, /) -> None: ...
def _device_switch_emulated(on: bool, /) -> bool: ...
def _device_emulated_is_on() -> bool: ...
def _device_info() -> dict[str, str]: ...
def _device_table() -> CapsuleType: ...
def _device_inject(
    operation: _Operation | None,
    call: int,
    count: int,
    error: str | None,
    message: str,
    when_run: bool,
    milliseconds: int,
    /,
) -> int: ...
def _device_remove_fault(number: int, /) -> None: ...
def _device_calls(operation: _Operation | None, /) -> int: ...
def _device_live_bytes() -> dict[str, list[int]]: ...
def _device_statistics() -> dict[str, int]: ...
def _device_set_capacity(capacity_bytes: int | None, /) -> None: ...
def _memory_statistics() -> dict[str, int]: ...
def _memory_options() -> dict[str, Any]: ...
def _memory_configure(
    cache_limit_bytes: SupportsIndex | None,
    limit_bytes: SupportsIndex | None,
    huge_pages: str,
    poison: bool,
    /,
) -> None: ...
def _memory_trim(keep_bytes: SupportsIndex, /) -> int: ...
def _memory_pages() -> str: ...
def _shared_place(address: int, /) -> tuple[tuple[int, int, int, int], int] | None: ...
def _shared_bytes() -> int: ...
def _attach_shared(
    process_id: int, descriptor: int, inode: int, length_bytes: int, /
) -> Buffer: ...

@final
class _Workspace:
    def __init__(self, limit: SupportsIndex, /) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def committed(self) -> int: ...
    def push(self, total_bytes: int, /) -> int: ...
    def pop(self, block: int, /) -> None: ...
    def trim(self) -> int: ...

def _as_memoryview(object: object, /) -> memoryview: ...
def _as_ndarray(object: object, /) -> np.ndarray[Any, Any]: ...
def _block_info(buffer: Buffer, /) -> dict[str, Any] | None: ...
def _numpy_handler(alignment: SupportsIndex, huge_pages: bool, keep: bool, /) -> Any: ...
def _set_numpy_handler(handler: Any, /) -> Any: ...
def _memory_keeper(buffer: Buffer, /) -> Any: ...
def _numpy_block_info(array: object, /) -> dict[str, Any] | None: ...
def _memory_mapped_pages(
    address: int, length_bytes: SupportsIndex, /
) -> tuple[int, int] | None: ...
def _memory_threads() -> tuple[int, str]: ...
def _memory_simd() -> tuple[str, tuple[str, ...]]: ...
def _memory_set_simd(name: str, /) -> None: ...
def _memory_set_threads(n: SupportsIndex, /) -> None: ...

# ---- Storages: what gridbuf.storage is made of. ----

_Managed: TypeAlias = Literal["gt4py", "cuda"] | None
_Width: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Lower: TypeAlias = Sequence[SupportsIndex | None] | Mapping[Any, SupportsIndex | None]
_Halo: TypeAlias = Sequence[_Width] | Mapping[Any, _Width]
_Side: TypeAlias = Literal["host", "device"]

class SyncFlag(enum.IntFlag):
    """States of a SyncState: bits for the side that holds newer data."""

    SYNC_CLEAN = 0
    SYNC_HOST_DIRTY = 1
    SYNC_DEVICE_DIRTY = 2

@final
class SyncState:
    """Which of a storage's two buffers is current; all views of a storage share one.

    Make one only for two buffers that you pass to `as_storage` or `storage`. It then belongs to
    that storage.

    Parameters
    ----------
    state : SyncFlag or int, default SYNC_CLEAN
        SYNC_CLEAN: the buffers are equal. SYNC_HOST_DIRTY: the host's is current.
        SYNC_DEVICE_DIRTY: the device's is current.

    Raises
    ------
    TypeError
        `state` is not an integer.
    ValueError
        `state` is not one of the three.

    Notes
    -----
    Rules: docs/spec.md 9.12 and 10.1.

    Examples
    --------
    >>> import gridbuf.storage
    >>> gridbuf.storage.SyncState(1)
    SyncState(SYNC_HOST_DIRTY)
    """

    SYNC_CLEAN: ClassVar[SyncFlag]
    SYNC_HOST_DIRTY: ClassVar[SyncFlag]
    SYNC_DEVICE_DIRTY: ClassVar[SyncFlag]
    def __new__(cls, state: SupportsIndex = ...) -> SyncState: ...
    @property
    def state(self) -> SyncFlag:
        """State: SYNC_CLEAN, SYNC_HOST_DIRTY (the host is newer somewhere), SYNC_DEVICE_DIRTY,
        or both flags where there are regions of both kinds (docs/spec.md 10.1).
        """

@final
class DevicePointer:
    """The address of a storage's first element on its device.

    It keeps the memory alive. `Storage.device_data` returns it; the class cannot be called.

    Notes
    -----
    Rules: docs/spec.md 9.25.
    """

    @property
    def ptr(self) -> int:
        """Address, an int."""
    @property
    def mem(self) -> Buffer:
        """Buffer that keeps the memory alive."""
    @property
    def device_id(self) -> int:
        """Number of the device."""
    @property
    def size(self) -> int:
        """Bytes of the elements, without padding."""
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...

@disjoint_base
class StorageBase:
    """Common part of all storages; see `gridbuf.storage.Storage`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, per dimension. `strides`, `layout` and
        `alignment_size` are those of the host's elements, if there are any.
        """
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, a `numpy.dtype`."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements of one buffer, without padding."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions. A `gridbuf.Dim` has a kind, too (docs/spec.md 1.7)."""
    @property
    def layout(self) -> tuple[int, ...]:
        """Layout map: entry i is the rank of dimension i, 0 for the largest stride (docs/spec.md
        1.2).
        """
    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """Points around the domain: a pair (lower, upper) per dimension. You can set it, with an
        integer or a pair per dimension, or a dict of them by name. It belongs to this object and
        not to its views, and never re-aligns (docs/spec.md 9.21).
        """
    @halo.setter
    def halo(self, value: _Halo, /) -> None: ...
    @property
    def aligned_index(self) -> tuple[int, ...]:
        """Index of the aligned element (docs/spec.md 1.18)."""
    @property
    def alignment_size(self) -> int:
        """Bytes. The address of every element whose index in the contiguous dimension is that of
        `aligned_index` is a multiple of it. A view has the alignment that still holds for it.
        """
    @property
    def device_strides(self) -> tuple[int, ...] | None:
        """Bytes from one element to the next on the device; None without a device."""
    @property
    def device_layout(self) -> tuple[int, ...] | None:
        """Layout map of the device's elements; None without a device (docs/spec.md 9.47)."""
    @property
    def device_alignment_size(self) -> int | None:
        """Alignment of the device's elements in bytes, as `alignment_size`; None without a device."""
    @property
    def device(self) -> _Device:
        """Device: "gpu" if a device reaches the memory, else None."""
    @property
    def managed(self) -> _Managed:
        """What keeps host and device in step: "gt4py" (gridbuf), "cuda", or None."""
    @property
    def device_data(self) -> DevicePointer | None:
        """DevicePointer to the device's elements, brought up to date; None without a device
        buffer (docs/spec.md 9.25).
        """
    @property
    def lower(self) -> tuple[int | None, ...]:
        """Index of the first point of each dimension; None if it is not known.

        It comes from `lower=`, from a field of `gt4py.next` or from other storages. A slice begins at
        the index of its first point; with another step than 1 it is not known
        (docs/spec.md 12.97).
        """
    @property
    def valid_halo(self) -> tuple[tuple[int, int], ...]:
        """Valid points of the halo, next to the domain, as (lower, upper) per dimension.

        They have the values of the neighbours' domains. Of new memory none is valid, but of
        `zeros`, `ones`, and `full` with a scalar all are. An exchange makes them valid; a write
        that gridbuf sees makes those invalid that it overwrites, and, since all ranks write so,
        those that a neighbour has overwritten in its domain. It does not see writes through an
        exported array (docs/spec.md 9.81).
        """
    @property
    def domain_view(self) -> Self:
        """View without the halo: index (0, ..., 0) is the first point of the domain.

        `domain_view = value` assigns to its elements, as `domain_view[...] = value`.
        """
    @domain_view.setter
    def domain_view(self, value: object, /) -> None: ...
    @property
    def sync_state(self) -> SyncState | None:
        """SyncState that all views of a software-managed storage share; else None (docs/spec.md
        9.14).
        """
    @property
    def T(self) -> Self:  # noqa: N802 (NumPy's name)
        """View with the dimensions in reverse order."""
    @property
    def flags(self) -> Any:  # numpy.flagsobj, which has no public name
        """NumPy's flags of the memory: contiguity, alignment, writeable."""
    @property
    def default_origin(self) -> tuple[int, ...]:
        """Same as `__gt_origin__`."""
    @property
    def __gt_origin__(self) -> tuple[int, ...]:
        """Lower halo in the order horizontal, local, vertical, data, such as I, J, K, 0: the
        default origin of a stencil's call (docs/spec.md 9.23).
        """
    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        """Names of the dimensions, for GT4Py."""
    @property
    def __array_interface__(self) -> _ArrayInterface:
        """NumPy's array interface of the host's elements, version 3. Absent without them
        (docs/spec.md 9.26).
        """
    @property
    def __array_struct__(self) -> CapsuleType:
        """NumPy's array interface as a C struct in a capsule. Absent without a host buffer."""
    @property
    def __cuda_array_interface__(self) -> _CudaArrayInterface:
        """CUDA array interface of the device's elements, version 3. Absent without them
        (docs/spec.md 9.26).
        """
    @property
    def __gt_data_interface__(self) -> dict[Literal["gpu"] | None, _DataInterface]:
        """Interface for GT4Py: an entry per side with `dims`, `halo`, `acquire` and `touch`.
        Reading it copies nothing (docs/spec.md 9.27).
        """
    def to_numpy(self) -> npt.NDArray[Any]:
        """Return an ndarray over the host's elements, brought up to date.

        Returns
        -------
        numpy.ndarray
            A view; what you write to it counts as written on the host.

        Raises
        ------
        GTNoSuchBufferError
            The storage has no host buffer.

        Notes
        -----
        Rules: docs/spec.md 9.24 and 9.30.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).to_numpy().sum()
        np.float64(6.0)
        """
    # A cupy.ndarray; CuPy is not a dependency.
    def to_cupy(self) -> Any:
        """Return a CuPy array over the device's elements, brought up to date.

        Returns
        -------
        cupy.ndarray
            A view; what you write to it counts as written on the device.

        Raises
        ------
        GTNoSuchBufferError
            The storage has no device buffer.
        DeviceUnavailableError
            There is no CuPy.

        Notes
        -----
        Rules: docs/spec.md 9.24.

        Examples
        --------
        >>> import gridbuf.storage
        >>> array = field.to_cupy()  # doctest: +SKIP
        """
    def transpose(self, *axes: SupportsIndex | str | _Axes | None) -> Self:
        """Return a view with its dimensions in another order.

        Parameters
        ----------
        *axes : as in `Buffer.transpose`

        Returns
        -------
        Storage
            Names, halo and aligned index follow the dimensions.

        Raises
        ------
        TypeError, IndexError, ValueError : as in `Buffer.transpose`

        Notes
        -----
        Rules: docs/spec.md 9.34.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3, 4)).transpose(2, 0, 1).dims
        ('K', 'I', 'J')
        """
    def fill(self, value: object, /) -> None:
        """Write one value to every element.

        Parameters
        ----------
        value : scalar
            The value.

        Raises
        ------
        TypeError
            `value` is an array; assign it with `storage[...] = value`.
        ValueError
            The storage is read-only.

        Notes
        -----
        Rules: docs/spec.md 9.38.

        Examples
        --------
        >>> import gridbuf.storage
        >>> field = gridbuf.storage.zeros((2, 3))
        >>> field.fill(7)
        >>> float(field[1, 2])
        7.0
        """
    def astype(
        self,
        /,
        dtype: npt.DTypeLike,
        *,
        casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "unsafe",
        copy: bool = True,
    ) -> Self:
        """Return a storage with the elements converted.

        Parameters
        ----------
        dtype : dtype_like
            The new element type.
        casting : {"no", "equiv", "safe", "same_kind", "unsafe"}, default "unsafe"
            Which conversions are allowed, as in `numpy.can_cast`.
        copy : bool, default True
            False returns this storage where there is nothing to convert.

        Returns
        -------
        Storage
            All other parameters are those of this storage. For `object` a new ndarray, because no
            storage has Python objects.

        Raises
        ------
        TypeError
            `casting` forbids the conversion, or `dtype` has a shape.
        ValueError
            `casting` is unknown.
        MemoryError : as in `allocate`

        Notes
        -----
        Rules: docs/spec.md 9.38.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).astype("float32").dtype
        dtype('float32')
        """
    def copy(self) -> Self:
        """Return a new storage with the same elements and parameters.

        Returns
        -------
        Storage
            It has its own `sync_state`.

        Raises
        ------
        MemoryError : as in `allocate`

        Notes
        -----
        Rules: docs/spec.md 9.39.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3), halo=(0, 1)).copy().halo
        ((0, 0), (1, 1))
        """
    def __copy__(self) -> Self:
        """Return the same as `copy()`."""
    def __deepcopy__(self, memo: object, /) -> Self:
        """Return the same as `copy()`."""
    # A full set of integers gives a scalar, arrays give an ndarray, the rest a view; types cannot tell.
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __delitem__(self, key: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        /,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a DLPack capsule of the device's elements, else of the host's.

        Parameters
        ----------
        stream, max_version : as in `Buffer.__dlpack__`
        dl_device : tuple of int, optional
            Device of the export. (1, 0) is the host, with a copy if there is no host buffer.
            Default: the device if there is one.
        copy : as in `Buffer.__dlpack__`

        Returns
        -------
        capsule
            It keeps the memory alive.

        Raises
        ------
        BufferError, ValueError : as in `Buffer.__dlpack__`

        Notes
        -----
        Rules: docs/spec.md 9.26.

        Examples
        --------
        >>> import gridbuf.storage, numpy
        >>> numpy.from_dlpack(gridbuf.storage.ones((2, 3))).shape
        (2, 3)
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device that `__dlpack__` exports from.

        Returns
        -------
        tuple of int
            (1, 0) for host, (3, 0) for pinned and (13, 0) for managed memory, (2, number) for a
            device.

        Notes
        -----
        Rules: docs/spec.md 9.26.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((3,)).__dlpack_device__() == (1, 0)
        True
        """
    def device_to_host(self, /, *, force: bool = False) -> None:
        """Copy what is newer on the device to the host.

        Parameters
        ----------
        force : bool, default False
            Whether to copy everything, also what is not newer.

        Raises
        ------
        TypeError
            `force` is not a bool.
        DeviceUnavailableError : as in `allocate`

        Notes
        -----
        It acts on the whole storage that this is a view of. Other kinds of storages need no copy.
        Rules: docs/spec.md 10.7.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).device_to_host()
        """
    def host_to_device(self, /, *, force: bool = False) -> None:
        """Copy what is newer on the host to the device.

        Parameters
        ----------
        force : as in `StorageBase.device_to_host`

        Raises
        ------
        TypeError, DeviceUnavailableError : as in `StorageBase.device_to_host`

        Notes
        -----
        It acts on the whole storage that this is a view of. Other kinds of storages need no copy.
        Rules: docs/spec.md 10.7.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).host_to_device()
        """
    def synchronize(self) -> None:
        """Copy both ways what is newer on one side.

        Raises
        ------
        DeviceUnavailableError : as in `allocate`

        Notes
        -----
        It acts on the whole storage that this is a view of. Other kinds of storages need no copy.
        Rules: docs/spec.md 10.7.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).synchronize()
        """
    def set_host_modified(self) -> None:
        """Mark this view's elements as written on the host.

        Raises
        ------
        SyncConflictError
            The device holds newer data in the same region.

        Notes
        -----
        Rules: docs/spec.md 10.8.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).set_host_modified()
        """
    def set_device_modified(self) -> None:
        """Mark this view's elements as written on the device.

        Raises
        ------
        SyncConflictError
            The host holds newer data in the same region.

        Notes
        -----
        Rules: docs/spec.md 10.8.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).set_device_modified()
        """
    def set_synchronized(self) -> None:
        """Mark both buffers as equal, of the whole storage that this is a view of.

        Notes
        -----
        Rules: docs/spec.md 10.8.

        Examples
        --------
        >>> import gridbuf.storage
        >>> gridbuf.storage.ones((2, 3)).set_synchronized()
        """
    def mark_halo_valid(self, depth: _Halo | None = None) -> None:
        """Say that other code has filled the halo with the neighbours' values.

        Parameters
        ----------
        depth : sequence of int or of pair, or dict, optional
            Points next to the domain that are valid, as `halo`. Default: all of the halo.

        Raises
        ------
        ValueError
            The depth is more than the halo, or this is a view of a part of a storage.

        Notes
        -----
        Rules: docs/spec.md 9.81.

        Examples
        --------
        >>> import gridbuf.storage
        >>> field = gridbuf.storage.empty((8, 8), halo=(2, 2))
        >>> field.mark_halo_valid((1, 2))
        >>> field.valid_halo
        ((1, 1), (2, 2))
        """
    def mark_halo_stale(self) -> None:
        """Say that other code has written the field, so that no point of the halo is valid.

        Ends without a neighbour stay valid (`gridbuf.mpi.Decomposition.adopt`).

        Notes
        -----
        Rules: docs/spec.md 9.81.

        Examples
        --------
        >>> import gridbuf.storage
        >>> field = gridbuf.storage.zeros((8, 8), halo=(2, 2))
        >>> field.mark_halo_stale()
        >>> field.valid_halo
        ((0, 0), (0, 0))
        """
    def _digest(self, first: tuple[int | None, ...] | None, /) -> str: ...
    def _close_halo(self, ends: list[tuple[int, int]], check: int, /) -> None: ...
    def _expect_halo(self, depth: Any, /) -> None: ...
    def _expected_halo(self) -> tuple[tuple[int, int], ...]: ...
    def _halo_arrives(self, depth: Any, /) -> None: ...
    @property
    def _was_exported(self) -> bool: ...
    @property
    def _halo_check(self) -> int: ...
    @property
    def _stale_place(self) -> str: ...
    # For the array functions.
    @property
    def _parameters(self) -> Parameters: ...
    @property
    def _is_emulated(self) -> bool: ...
    @property
    def _readonly(self) -> bool: ...
    def _acquire_host(self) -> None: ...
    def _acquire_device(self) -> None: ...
    def _elements(self) -> Any: ...
    def _read_array(self, side: _Side, dims: tuple[str, ...] | None = None, /) -> Any: ...
    def _write_array(
        self, side: _Side, dims: tuple[str, ...] | None = None, whole: bool = True, /
    ) -> Any: ...
    def _written(self, side: _Side, /) -> None: ...
    def _current_sides(self) -> tuple[_Side, ...]: ...
    # For gridbuf.mpi.
    def _own_memory(self) -> Any: ...
    def _by_position(self) -> Self: ...

def _set_storage_types(*classes: type[StorageBase]) -> None: ...
def _run_kernel(function: Callable[..., _Result], *arrays: Any) -> _Result: ...

class _StorageKeywords(TypedDict, total=False):
    backend: str | None  # = None
    device: _Device  # = ...
    layout: _Layout | None  # = None
    alignment_size: SupportsIndex | None  # = None
    aligned_index: _AlignedIndex | None  # = None
    dims: _Dims | None  # = None
    populate: bool  # = False
    halo: _Halo | None  # = None
    lower: _Lower | None  # = None
    managed: _Managed  # = ...
    defaults: str | None  # = None
    device_layout: _Layout | None  # = None
    device_alignment_size: SupportsIndex | None  # = None
    device_defaults: str | None  # = None
    memory: Literal["shared"] | None  # = None

def _storage_empty(
    shape: _Shape, dtype: npt.DTypeLike | None = "float64", **keywords: Unpack[_StorageKeywords]
) -> Storage:
    """Return a new storage whose elements are undefined.

    Parameters
    ----------
    shape, dtype : as in `allocate`
    backend : str, optional
        Name of a preset, see `gridbuf.presets`. It gives `device`, `alignment_size` and an order of
        the dimensions by name. Default: no preset.
    device, layout, alignment_size : as in `allocate`
    aligned_index : as in `allocate`
        Default: the lower halo.
    dims, populate : as in `allocate`
    halo : sequence of int or of pair, or dict, optional
        Points around the domain, in elements: per dimension an integer for both ends, or a pair
        (lower, upper). A dict has them by name; the other dimensions have no halo. Default: no
        halo.
    lower : sequence of int or None, or dict, optional
        Index of the first point of each dimension, as a Fortran array's lower bound; None if it is
        not known. Arithmetic and assignments pair points of one index where both sides know it. A
        dict has them by name. Default: none is known.
    managed : {None, "gt4py", "cuda"}, optional
        With `device="gpu"`: "gt4py" is a buffer on each side, which gridbuf keeps in step. "cuda"
        is one memory for both sides. None is memory of the device only. Default: "gt4py".
    defaults : str, optional
        Alias of `backend`.
    device_layout : sequence of int or of str, or callable, optional
        Order of the dimensions in the device's buffer, as `layout`. A storage with this or one of
        the next two has `device="gpu", managed="gt4py"`. Default: from `device_defaults`, else
        `layout`.
    device_alignment_size : int, optional
        Alignment of the device's buffer in bytes, as `alignment_size`. Default: from
        `device_defaults`, else `alignment_size`.
    device_defaults : str, optional
        Name of a preset. It gives `device_layout` and `device_alignment_size`. Default: no preset.
    memory : {"shared"}, optional
        The buffer on the host is memory that processes share: a pickle says where it is. Default:
        memory of this process.

    Returns
    -------
    Storage
        The storage. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 9.1 to
    9.9.

    Examples
    --------
    >>> import gridbuf.storage
    >>> gridbuf.storage.empty((4, 4), halo=(1, 1)).aligned_index
    (1, 1)
    """

def _storage_zeros(
    shape: _Shape, dtype: npt.DTypeLike | None = "float64", **keywords: Unpack[_StorageKeywords]
) -> Storage:
    """Return a new storage of zeros.

    Parameters
    ----------
    shape, dtype, backend, device, layout, alignment_size, aligned_index : as in `_storage_empty`
    dims, populate, halo, lower, managed, defaults : as in `_storage_empty`
    device_layout, device_alignment_size, device_defaults, memory : as in `_storage_empty`

    Returns
    -------
    Storage
        The storage of zeros. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 9.1 to
    9.9.

    Examples
    --------
    >>> import gridbuf.storage
    >>> field = gridbuf.storage.zeros((12, 12, 8), backend="gt:cpu_ifirst", halo=(2, 2, 0))
    >>> field.aligned_index, field.domain_view.shape
    ((2, 2, 0), (8, 8, 8))
    """

def _storage_ones(
    shape: _Shape, dtype: npt.DTypeLike | None = "float64", **keywords: Unpack[_StorageKeywords]
) -> Storage:
    """Return a new storage of ones.

    Parameters
    ----------
    shape, dtype, backend, device, layout, alignment_size, aligned_index : as in `_storage_empty`
    dims, populate, halo, lower, managed, defaults : as in `_storage_empty`
    device_layout, device_alignment_size, device_defaults, memory : as in `_storage_empty`

    Returns
    -------
    Storage
        The storage of ones. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 9.1 to
    9.9.

    Examples
    --------
    >>> import gridbuf.storage
    >>> gridbuf.storage.ones((2, 3), dims="KI").dims
    ('K', 'I')
    """

def _storage_full(
    shape: _Shape,
    fill_value: object,
    dtype: npt.DTypeLike | None = "float64",
    **keywords: Unpack[_StorageKeywords],
) -> Storage:
    """Return a new storage of `fill_value`.

    Parameters
    ----------
    shape, fill_value, dtype : as in `full`
    backend, device, layout, alignment_size, aligned_index, dims, populate : as in `_storage_empty`
    halo, lower, managed, defaults : as in `_storage_empty`
    device_layout, device_alignment_size, device_defaults, memory : as in `_storage_empty`

    Returns
    -------
    Storage
        The storage of `fill_value`. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, default. Rules: docs/spec.md 9.3.

    Examples
    --------
    >>> import gridbuf.storage
    >>> float(gridbuf.storage.full((2, 3), 7)[1, 2])
    7.0
    """

def _storage_empty_like(
    data: object, dtype: npt.DTypeLike | None = None, **keywords: Unpack[_StorageKeywords]
) -> Storage:
    """Return a new storage whose elements are undefined, with the shape of `data`.

    Parameters
    ----------
    data : array_like
        A storage, a Buffer, an array of any library, or anything `numpy.asarray` takes. It gives
        the shape, and what you do not pass.
    dtype : as in `empty_like`
    backend : as in `_storage_empty`
    device : as in `allocate`
        Default: from the preset, else from the data, else None.
    layout, alignment_size : as in `empty_like`
    aligned_index : as in `allocate`
        Default: from `data`, else the lower halo.
    dims, populate : as in `empty_like`
    halo : as in `_storage_empty`
        Default: from `data`, else no halo.
    lower : as in `_storage_empty`
        Default: from `data`, else none is known.
    managed, defaults : as in `_storage_empty`
        Default: from `data`, else "gt4py".
    device_layout : as in `_storage_empty`
        Default: from `device_defaults`, else from `data` if its sides differ, else `layout`.
    device_alignment_size : as in `_storage_empty`
        Default: from `device_defaults`, else from `data` if its sides differ, else
        `alignment_size`.
    device_defaults, memory : as in `_storage_empty`

    Returns
    -------
    Storage
        The storage. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    9.4 and 9.6.

    Examples
    --------
    >>> import gridbuf.storage
    >>> data = gridbuf.storage.ones((4, 4), halo=(1, 1))
    >>> gridbuf.storage.empty_like(data).halo
    ((1, 1), (1, 1))
    """

def _storage_zeros_like(
    data: object, dtype: npt.DTypeLike | None = None, **keywords: Unpack[_StorageKeywords]
) -> Storage:
    """Return a new storage of zeros, with the shape of `data`.

    Parameters
    ----------
    data, dtype, backend, device, layout, alignment_size : as in `_storage_empty_like`
    aligned_index, dims, populate, halo, lower, managed, defaults : as in `_storage_empty_like`
    device_layout, device_alignment_size, device_defaults, memory : as in `_storage_empty_like`

    Returns
    -------
    Storage
        The storage of zeros. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    9.4 and 9.6.

    Examples
    --------
    >>> import gridbuf.storage
    >>> data = gridbuf.storage.ones((4, 4), halo=(1, 1))
    >>> gridbuf.storage.zeros_like(data).halo
    ((1, 1), (1, 1))
    """

def _storage_ones_like(
    data: object, dtype: npt.DTypeLike | None = None, **keywords: Unpack[_StorageKeywords]
) -> Storage:
    """Return a new storage of ones, with the shape of `data`.

    Parameters
    ----------
    data, dtype, backend, device, layout, alignment_size : as in `_storage_empty_like`
    aligned_index, dims, populate, halo, lower, managed, defaults : as in `_storage_empty_like`
    device_layout, device_alignment_size, device_defaults, memory : as in `_storage_empty_like`

    Returns
    -------
    Storage
        The storage of ones. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    9.4 and 9.6.

    Examples
    --------
    >>> import gridbuf.storage
    >>> data = gridbuf.storage.ones((4, 4), halo=(1, 1))
    >>> gridbuf.storage.ones_like(data).halo
    ((1, 1), (1, 1))
    """

def _storage_full_like(
    data: object,
    fill_value: object,
    dtype: npt.DTypeLike | None = None,
    **keywords: Unpack[_StorageKeywords],
) -> Storage:
    """Return a new storage of `fill_value`, with the shape of `data`.

    Parameters
    ----------
    data : as in `_storage_empty_like`
    fill_value, dtype : as in `full_like`
    backend, device, layout, alignment_size, aligned_index, dims : as in `_storage_empty_like`
    populate, halo, lower, managed, defaults : as in `_storage_empty_like`
    device_layout, device_alignment_size, device_defaults, memory : as in `_storage_empty_like`

    Returns
    -------
    Storage
        The storage of `fill_value`. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    9.3 and 9.6.

    Examples
    --------
    >>> import gridbuf.storage
    >>> float(gridbuf.storage.full_like([1.0, 2.0], 7)[0])
    7.0
    """

def _storage_as_storage(
    data: object = None,
    device_data: object = None,
    *,
    sync_state: SyncState | None = None,
    **keywords: Unpack[_StorageKeywords],
) -> Storage:
    """Return a storage over the memory of arrays, without a copy.

    Parameters
    ----------
    data : object, optional
        An array of any library, in memory of the host or of a device.
    device_data : object, optional
        An array of any library in memory of a device.
    sync_state : SyncState, optional
        Which of two buffers is current. For both buffers of one storage, pass the `sync_state` of
        that storage.
    backend, device, layout, alignment_size, aligned_index, dims : as in `_storage_empty_like`
    populate, halo, lower, managed, defaults : as in `_storage_empty_like`
    device_layout, device_alignment_size, device_defaults, memory : as in `_storage_empty_like`

    Returns
    -------
    Storage
        It keeps the memory alive. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `allocate`
    BufferError : as in `as_numpy`

    Notes
    -----
    Parameters that you pass, and those of the preset, must be those of the memory. `dims` and
    `halo` are free. A software-managed storage of one buffer gets the other buffer; the given one
    is current. Rules: docs/spec.md 9.10 to 9.19.

    Examples
    --------
    >>> import gridbuf.storage
    >>> import numpy
    >>> array = numpy.ones((4, 4))
    >>> field = gridbuf.storage.as_storage(array, halo=(1, 1))
    >>> field[0, 0] = 7
    >>> float(array[0, 0])
    7.0
    """

def _storage_from_c(capsule: CapsuleType) -> Storage:
    """Return a storage that C, C++ or Fortran made, of the same memory and synchronisation.

    Parameters
    ----------
    capsule : PyCapsule
        Holds a ``gridbuf_storage*`` of ``gridbuf.h`` and has the name ``GRIDBUF_STORAGE_CAPSULE``. It is not
        used up.

    Returns
    -------
    Storage
        Another handle: the memory lives while either side holds it. What one side writes through its
        access, the other sees at its next one.

    Raises
    ------
    TypeError
        For another object or capsule.
    ValueError
        For a handle of another build of gridbuf than this package's ``libgridbuf.so.0``.
    BufferError
        For element types that NumPy does not have.

    Notes
    -----
    C programs link the library of this package: ``python -m gridbuf --libdir``. Rules: docs/spec.md 13.11.

    Examples
    --------
    >>> import gridbuf.storage
    >>> field = gridbuf.storage.zeros((4, 4), halo=(1, 1))
    >>> same = gridbuf.storage.from_c(gridbuf.storage.to_c(field))
    >>> field[0, 0] = 5.0
    >>> float(same[0, 0]), same.halo
    (5.0, ((1, 1), (1, 1)))
    """

def _storage_to_c(storage: Storage) -> CapsuleType:
    """Return a capsule with a handle of a storage for C, C++ or Fortran.

    Parameters
    ----------
    storage : Storage
        Of an element type without fields.

    Returns
    -------
    PyCapsule
        Holds a ``gridbuf_storage*`` of ``gridbuf.h`` and has the name ``GRIDBUF_STORAGE_CAPSULE``. It releases
        the handle. So C uses the handle while the capsule lives, and does not release it; a view of it,
        ``gridbuf_storage_view(handle, NULL, 0, &own)``, is a handle that C keeps.

    Raises
    ------
    TypeError
        For another object, and for records.
    ValueError
        For memory whose producer is told of writes (``touch``).

    See Also
    --------
    from_c : the reverse.

    Notes
    -----
    Rules: docs/spec.md 13.11.

    Examples
    --------
    >>> import gridbuf.storage
    >>> capsule = gridbuf.storage.to_c(gridbuf.storage.zeros((4, 4)))
    >>> type(capsule).__name__
    'PyCapsule'
    """

def _storage_storage(
    data: object = None,
    device_data: object = None,
    *,
    dtype: npt.DTypeLike | None = None,
    copy: bool = True,
    sync_state: SyncState | None = None,
    shape: _Shape | None = None,
    **keywords: Unpack[_StorageKeywords],
) -> Storage:
    """Return a storage with a copy of an array.

    Parameters
    ----------
    data, device_data : as in `_storage_as_storage`
    dtype : dtype_like, optional
        Element type of the copy. Default: that of `data`.
    copy : bool, default True
        False is `as_storage`, or `empty` if there is a shape and no data.
    sync_state : as in `_storage_as_storage`
    shape : int or sequence of int, optional
        Extents in elements, each 0 or more; at most 64. Only with `copy=False` and without data.
    backend, device, layout, alignment_size, aligned_index, dims : as in `_storage_empty_like`
    populate, halo, lower, managed, defaults : as in `_storage_empty_like`
    device_layout, device_alignment_size, device_defaults, memory : as in `_storage_empty_like`

    Returns
    -------
    Storage
        The copy. Its class follows from `device` and `managed`.

    Raises
    ------
    TypeError, ValueError, MemoryError, DeviceUnavailableError : as in `_storage_as_storage`
    BufferError : as in `_storage_as_storage`

    Notes
    -----
    Each keyword is looked up in this order: passed, preset, `data`, default. Rules: docs/spec.md
    9.16.

    Examples
    --------
    >>> import gridbuf.storage
    >>> field = gridbuf.storage.storage([[1, 2], [3, 4]], dtype="float32", dims="JI")
    >>> field.dims, float(field[1, 0])
    (('J', 'I'), 3.0)
    """

# The array functions of storages are made of these: broadcasting by dimension names.
@final
class Parameters:
    """All of a storage but its elements; not a public API. Equal ones, with one dtype object, are one object."""

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
    @property
    def lower(self) -> tuple[int | None, ...]:
        """Index of the first point of each dimension; None if it is not known."""
    @property
    def stretchable(self) -> tuple[int, ...]:
        """Axes of extent 1 that stretch to the other operands' extent, ascending."""
    @property
    def unnamed(self) -> tuple[int, ...]:
        """Stretchable axes that None has added, ascending: they pair by place."""
    def empty(self, dtype: npt.DTypeLike | None = None) -> Any:
        """Return a storage with these parameters and undefined elements.

        Parameters
        ----------
        dtype : dtype_like, optional
            Element type. Default: that of the parameters.

        Returns
        -------
        Storage
            The storage.

        Raises
        ------
        MemoryError
            There is not enough memory.
        """
    def reduced(self, axes: tuple[int, ...], keep: bool) -> Parameters:
        """Return the parameters of a reduction over `axes`.

        Parameters
        ----------
        axes : tuple of int
            The reduced axes.
        keep : bool
            Whether they are kept, stretchable, with an extent of 1.

        Returns
        -------
        Parameters
            Those of the result, with the same element type.

        Raises
        ------
        ValueError
            An axis is out of bounds, or named twice.
        """
    def _resized(self, shape: tuple[int, ...]) -> Parameters: ...
    def _stretchable(self, axes: tuple[int, ...], unnamed: tuple[int, ...]) -> Parameters: ...

def _join(
    decider: Parameters,
    fields: list[Parameters],
    others: list[Any],
    order: tuple[str, ...] | None = None,
) -> Parameters: ...
def _align(
    dims: tuple[str, ...], shape: tuple[int, ...], target: tuple[str, ...], /
) -> tuple[tuple[int, ...], tuple[int, ...]]: ...

# The fields of a stencil and of its calls, for gridbuf.call.
@final
class StencilRules:
    """The declared fields of a stencil, for `gridbuf.stencil`; not a public API."""

    def add_field(
        self,
        *,
        name: str,
        dims: tuple[str, ...],
        dtype: npt.DTypeLike,
        data_shape: tuple[int, ...],
        layout: _Layout | None,
        alignment_size: int,
        preferred_layout: _Layout | None,
        preferred_alignment_size: int,
        reach: tuple[tuple[int, int], ...] | None,
        is_read: bool = False,
        is_written: bool,
        is_optional: bool,
    ) -> None:
        """Declare the next field.

        Parameters
        ----------
        name : str
            The parameter's name.
        dims : tuple of str
            Dimensions in the annotation's order.
        dtype : dtype_like
            Element type.
        data_shape : tuple of int
            Extents of the data dimensions in elements, -1 for any.
        layout : sequence of int or callable, optional
            Layout map that the stencil relies on.
        alignment_size : int
            Bytes that the stencil relies on.
        preferred_layout : sequence of int or callable, optional
            Layout map that is fast.
        preferred_alignment_size : int
            Bytes that are fast.
        reach : tuple of pair of int, optional
            Points that the stencil reads around the domain, per dimension.
        is_read : bool
            Whether the stencil reads the field, as far as `reach`.
        is_written : bool
            Whether the stencil writes the field.
        is_optional : bool
            Whether a call may leave the field out.

        Raises
        ------
        TypeError
            A value has a wrong kind.
        ValueError
            A value is out of bounds.
        """
    def bind_plain(self, fields: Sequence[Any], /) -> list[Any] | BoundStencil:
        """Return the arrays of a call that needs nothing before or after it.

        Parameters
        ----------
        fields : sequence of object
            The fields of the call, in the order of declaration.

        Returns
        -------
        list or BoundStencil
            The arrays. The call, as `bind` returns it, if it needs more.

        Raises
        ------
        TypeError
            A field is not an array, or has a wrong element type.
        ValueError
            A field, origin or domain does not fit the declaration.

        Notes
        -----
        Rules: docs/spec.md 12.11 to 12.16.
        """
    def bind(
        self,
        fields: Sequence[Any],
        origins: Sequence[Any] | None,
        origin: Any,
        domain: Any,
        *,
        mode: int = -1,
    ) -> BoundStencil:
        """Check the fields of a call and find its origin and domain.

        Parameters
        ----------
        fields : as in `StencilRules.bind_plain`
        origins : sequence of object or None
            An origin per field, or None.
        origin : object
            The origin of all other fields, or None.
        domain : object
            The domain, or None.
        mode : int, default -1
            What invalid points of halos mean; -1: what the field says.

        Returns
        -------
        BoundStencil
            The call. It is bound, unless fields of other libraries have to be acquired first.

        Raises
        ------
        TypeError, ValueError : as in `StencilRules.bind_plain`

        Notes
        -----
        Rules: docs/spec.md 12.11 to 12.16.
        """

@final
class BoundStencil:
    """The fields of one call of a stencil; not a public API."""

    @property
    def arrays(self) -> list[Any]:
        """Arrays of the fields, in the order of declaration."""
    @property
    def wrong(self) -> list[int]:
        """Positions of the fields that only the other side has."""
    @property
    def slow(self) -> list[str]:
        """Texts of warnings about slow memory."""
    @property
    def stale(self) -> list[tuple[int, int, int, int, int]]:
        """Field, axis, end (0 or 1), needed and valid depth of each halo that is read too deep."""
    @property
    def mode(self) -> int:
        """What invalid points of halos mean in this call; -1: what the field says."""
    has_failed: bool
    """Whether the function raised, so that any point may have been written."""
    def check_halos(self) -> None:
        """Compare again what is read of halos with what is valid: an exchange changes it."""
    @property
    def written(self) -> list[int]:
        """Positions of the fields that the stencil writes."""
    @property
    def origins(self) -> dict[str, tuple[int, ...]]:
        """Origin of each field, in elements, by name."""
    @property
    def domain(self) -> tuple[int, ...]:
        """Extents of the domain, in elements."""
    @property
    def is_foreign(self) -> bool:
        """Whether fields of other libraries take part: then the call is to be bound by `bind_acquired`."""
    @property
    def is_plain(self) -> bool:
        """Whether the function may be called at once; written fields are marked then."""
    def bind_acquired(self, hooks: Sequence[FieldHooks | None], /) -> None:
        """Check the fields of a call, as `StencilRules.bind` does, after they were acquired.

        Parameters
        ----------
        hooks : sequence of FieldHooks or None
            The hooks of each field, which the caller has acquired.

        Raises
        ------
        TypeError
            A field is not an array, or has a wrong element type.
        ValueError
            A field, origin or domain does not fit the declaration.
        """
    def begin_write(self, field: int, /) -> None:
        """Mark a field as about to be written.

        Parameters
        ----------
        field : int
            Position of the field.

        Raises
        ------
        SyncConflictError
            The other side holds newer data in the same region.
        """
    def end(self, field: int, was_called: bool, /) -> None:
        """End the access to a field.

        Parameters
        ----------
        field : as in `BoundStencil.begin_write`
        was_called : bool
            Whether the function was called.

        Raises
        ------
        Exception
            What a `touch` of the field raises.
        """

@final
class FieldHooks:
    """Hooks of a foreign field, each a callable or None; not a public API."""

    @property
    def acquire(self) -> Callable[[], object] | None:
        """Hook to call before the field is read, or None."""
    @property
    def release(self) -> Callable[[], object] | None:
        """Hook to call after the stencil, or None."""

def _make_rules(
    *,
    name: str,
    on_device: bool,
    writes_are_declared: bool,
    allow_alias: bool,
    knows_reach: bool = False,
) -> StencilRules: ...
def _set_halo_check(mode: int, /) -> int: ...
def _field_hooks(field: object, on_device: bool, /) -> FieldHooks | None: ...
def _array_of(buffer: Buffer, /) -> Any: ...
