"""Types of the compiled core. Shapes and indices are in elements, sizes of memory in bytes."""

import enum
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
)

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType, Self, disjoint_base

from .storage import Storage

_Scalar = TypeVar("_Scalar", bound=np.generic)
_Result = TypeVar("_Result")
_DType: TypeAlias = type[_Scalar] | np.dtype[_Scalar]
_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Layout: TypeAlias = Sequence[SupportsIndex] | Callable[[tuple[str, ...]], Sequence[SupportsIndex]]
_Dims: TypeAlias = str | Sequence[str]
_Device: TypeAlias = Literal["gpu"] | None
_Memory: TypeAlias = Literal["host", "pinned", "managed", "device"]
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

class GTNoSuchBufferError(BufferError): ...
class DeviceUnavailableError(RuntimeError): ...
class SyncConflictError(RuntimeError): ...

@final
class LayoutPlan:
    """Where the elements of an array lie: a value to print, compare, hash, pickle and draw."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def layout(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def padded_shape(self) -> tuple[int, ...]: ...
    @property
    def alignment_size(self) -> int: ...
    @property
    def aligned_index(self) -> tuple[int, ...]: ...
    @property
    def aligned_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...
    def offset_rule(self) -> str: ...
    def draw(self, *, max_columns: int = 24, max_rows: int = 32) -> str: ...
    def difference(self, found: LayoutPlan, /) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Buffer:
    """Memory with its meaning: a padded, aligned n-dimensional array in a layout of choice."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    @property
    def layout(self) -> tuple[int, ...]: ...
    @property
    def aligned_index(self) -> tuple[int, ...]: ...
    @property
    def alignment_size(self) -> int: ...
    @property
    def memory(self) -> _Memory: ...
    @property
    def device(self) -> _Device: ...
    @property
    def stream(self) -> int | None: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def base(self) -> Buffer | None: ...
    @property
    def plan(self) -> LayoutPlan | None: ...
    @property
    def T(self) -> Buffer: ...  # noqa: N802 (NumPy's name)
    @property
    def default_origin(self) -> tuple[int, ...]: ...
    @property
    def __gt_origin__(self) -> tuple[int, ...]: ...
    @property
    def __gt_dims__(self) -> tuple[str, ...]: ...
    @property
    def __array_interface__(self) -> _ArrayInterface: ...
    @property
    def __array_struct__(self) -> CapsuleType: ...
    @property
    def __cuda_array_interface__(self) -> _CudaArrayInterface: ...
    @property
    def __gt_data_interface__(self) -> dict[Literal["gpu"] | None, _DataInterface]: ...
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    def to_numpy(self) -> npt.NDArray[Any]: ...
    @overload
    def transpose(self, axes: Sequence[SupportsIndex] | None = None, /) -> Buffer: ...
    @overload
    def transpose(self, *axes: SupportsIndex) -> Buffer: ...
    def broadcast_to(self, shape: _Shape, /) -> Buffer: ...
    def toreadonly(self) -> Buffer: ...
    def copy(self, memory: _Memory | None = None) -> Buffer: ...
    def synchronize(self) -> None: ...
    def __copy__(self) -> Buffer: ...
    def __deepcopy__(self, memo: object, /) -> Buffer: ...
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]: ...
    # A full set of integers gives a NumPy scalar, everything else a Buffer; types cannot tell.
    def __getitem__(self, key: _Index | tuple[_Index, ...], /) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __array__(
        self, /, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        /,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def allocate(
    shape: _Shape,
    dtype: npt.DTypeLike | None = "float64",
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> Buffer: ...
def plan(
    shape: _Shape,
    dtype: npt.DTypeLike | None = "float64",
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> LayoutPlan: ...
@overload
def empty(
    shape: _Shape,
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[np.float64]: ...
@overload
def empty(
    shape: _Shape,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def empty(
    shape: _Shape,
    dtype: npt.DTypeLike | None = "float64",
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
@overload
def zeros(
    shape: _Shape,
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[np.float64]: ...
@overload
def zeros(
    shape: _Shape,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def zeros(
    shape: _Shape,
    dtype: npt.DTypeLike | None = "float64",
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
@overload
def ones(
    shape: _Shape,
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[np.float64]: ...
@overload
def ones(
    shape: _Shape,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def ones(
    shape: _Shape,
    dtype: npt.DTypeLike | None = "float64",
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
@overload
def full(
    shape: _Shape,
    fill_value: object,
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[np.float64]: ...
@overload
def full(
    shape: _Shape,
    fill_value: object,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def full(
    shape: _Shape,
    fill_value: object,
    dtype: npt.DTypeLike | None = "float64",
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
@overload
def empty_like(
    data: npt.NDArray[_Scalar],
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def empty_like(
    data: object,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def empty_like(
    data: object,
    dtype: npt.DTypeLike | None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
@overload
def zeros_like(
    data: npt.NDArray[_Scalar],
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def zeros_like(
    data: object,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def zeros_like(
    data: object,
    dtype: npt.DTypeLike | None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
@overload
def ones_like(
    data: npt.NDArray[_Scalar],
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def ones_like(
    data: object,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def ones_like(
    data: object,
    dtype: npt.DTypeLike | None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
@overload
def full_like(
    data: npt.NDArray[_Scalar],
    fill_value: object,
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def full_like(
    data: object,
    fill_value: object,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def full_like(
    data: object,
    fill_value: object,
    dtype: npt.DTypeLike | None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
@overload
def from_array(
    data: npt.NDArray[_Scalar],
    dtype: None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def from_array(
    data: object,
    dtype: _DType[_Scalar],
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[_Scalar]: ...
@overload
def from_array(
    data: object,
    dtype: npt.DTypeLike | None = None,
    *,
    backend: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    memory: _Memory | None = None,
) -> npt.NDArray[Any]: ...
def register_preset(
    name: str,
    *,
    device: _Device = None,
    alignment_size: SupportsIndex = 1,
    layout: Sequence[SupportsIndex] | Literal["C", "F"] = (0, 1, 2),
) -> None: ...
def presets() -> dict[str, _Preset]: ...
def get_dims(obj: object, annotation: _Dims | None = None) -> tuple[str, ...] | None: ...
def get_origin(obj: object, /) -> tuple[int, ...] | None: ...
def as_numpy(obj: object, /) -> npt.NDArray[Any]: ...

# A cupy.ndarray; CuPy is no dependency.
def as_cupy(obj: object, sync: bool = True) -> Any: ...
def as_buffer(obj: object, *, dims: _Dims | None = None) -> Buffer: ...
def copyto(
    dst: object,
    src: object,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
    where: object = True,
) -> None: ...
def from_interface(
    descriptor: dict[Any, Any],
    owner: object = None,
    sync: bool = True,
    *,
    device: _Device = ...,
) -> Buffer: ...
def _restore(*args: Any) -> Buffer: ...
def _restore_plan(*args: Any) -> LayoutPlan: ...

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
def _block_info(buffer: Buffer, /) -> dict[str, Any] | None: ...
def _memory_mapped_pages(
    address: int, length_bytes: SupportsIndex, /
) -> tuple[int, int] | None: ...
def _memory_threads() -> tuple[int, str]: ...
def _memory_simd() -> tuple[str, tuple[str, ...]]: ...
def _memory_set_simd(name: str, /) -> None: ...
def _memory_set_threads(n: SupportsIndex, /) -> None: ...

# ---- Storages: what gridbuf.storage is made of. ----

_Managed: TypeAlias = Literal["gt4py", "cuda"] | None
_Halo: TypeAlias = Sequence[SupportsIndex | Sequence[SupportsIndex]]
_Side: TypeAlias = Literal["host", "device"]

class SyncFlag(enum.IntFlag):
    SYNC_CLEAN = 0
    SYNC_HOST_DIRTY = 1
    SYNC_DEVICE_DIRTY = 2

@final
class SyncState:
    """Which of a storage's two buffers is current; all views of a storage share one."""

    SYNC_CLEAN: ClassVar[SyncFlag]
    SYNC_HOST_DIRTY: ClassVar[SyncFlag]
    SYNC_DEVICE_DIRTY: ClassVar[SyncFlag]
    def __new__(cls, state: SupportsIndex = ...) -> SyncState: ...
    @property
    def state(self) -> SyncFlag: ...

@final
class DevicePointer:
    """The address of a storage's first element on its device; keeps the memory."""

    @property
    def ptr(self) -> int: ...
    @property
    def mem(self) -> Buffer: ...
    @property
    def device_id(self) -> int: ...
    @property
    def size(self) -> int: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...

@disjoint_base
class StorageBase:
    """What all storages have in common; see gridbuf.storage.Storage."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    @property
    def layout(self) -> tuple[int, ...]: ...
    @property
    def halo(self) -> tuple[tuple[int, int], ...]: ...
    @halo.setter
    def halo(self, value: _Halo, /) -> None: ...
    @property
    def aligned_index(self) -> tuple[int, ...]: ...
    @property
    def alignment_size(self) -> int: ...
    @property
    def device(self) -> _Device: ...
    @property
    def managed(self) -> _Managed: ...
    @property
    def device_data(self) -> DevicePointer | None: ...
    @property
    def domain_view(self) -> Self: ...
    @property
    def sync_state(self) -> SyncState | None: ...
    @property
    def T(self) -> Self: ...  # noqa: N802 (NumPy's name)
    @property
    def flags(self) -> Any: ...  # numpy.flagsobj, which has no public name
    @property
    def default_origin(self) -> tuple[int, ...]: ...
    @property
    def __gt_origin__(self) -> tuple[int, ...]: ...
    @property
    def __gt_dims__(self) -> tuple[str, ...]: ...
    @property
    def __array_interface__(self) -> _ArrayInterface: ...
    @property
    def __array_struct__(self) -> CapsuleType: ...
    @property
    def __cuda_array_interface__(self) -> _CudaArrayInterface: ...
    @property
    def __gt_data_interface__(self) -> dict[Literal["gpu"] | None, _DataInterface]: ...
    def to_numpy(self) -> npt.NDArray[Any]: ...
    # A cupy.ndarray; CuPy is no dependency.
    def to_cupy(self) -> Any: ...
    @overload
    def transpose(self, axes: Sequence[SupportsIndex] | None = None, /) -> Self: ...
    @overload
    def transpose(self, *axes: SupportsIndex) -> Self: ...
    def fill(self, value: object, /) -> None: ...
    def astype(
        self,
        /,
        dtype: npt.DTypeLike,
        *,
        casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "unsafe",
        copy: bool = True,
    ) -> Self: ...
    def copy(self) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: object, /) -> Self: ...
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
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def device_to_host(self, /, *, force: bool = False) -> None: ...
    def host_to_device(self, /, *, force: bool = False) -> None: ...
    def synchronize(self) -> None: ...
    def set_host_modified(self) -> None: ...
    def set_device_modified(self) -> None: ...
    def set_synchronized(self) -> None: ...
    # For the array functions.
    @property
    def _parameters(self) -> tuple[Any, ...]: ...
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

def _set_storage_types(*classes: type[StorageBase]) -> None: ...
def _copy_arrays(dst: object, src: object, casting: str, where: object, /) -> None: ...
def _run_kernel(function: Callable[..., _Result], *arrays: Any) -> _Result: ...
def _restore_storage(*args: Any) -> Any: ...
def _storage_empty(
    shape: _Shape,
    dtype: npt.DTypeLike | None = "float64",
    *,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_zeros(
    shape: _Shape,
    dtype: npt.DTypeLike | None = "float64",
    *,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_ones(
    shape: _Shape,
    dtype: npt.DTypeLike | None = "float64",
    *,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_full(
    shape: _Shape,
    fill_value: object,
    dtype: npt.DTypeLike | None = "float64",
    *,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_empty_like(
    data: object,
    dtype: npt.DTypeLike | None = None,
    *,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_zeros_like(
    data: object,
    dtype: npt.DTypeLike | None = None,
    *,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_ones_like(
    data: object,
    dtype: npt.DTypeLike | None = None,
    *,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_full_like(
    data: object,
    fill_value: object,
    dtype: npt.DTypeLike | None = None,
    *,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_as_storage(
    data: object = None,
    device_data: object = None,
    *,
    sync_state: SyncState | None = None,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...
def _storage_storage(
    data: object = None,
    device_data: object = None,
    *,
    dtype: npt.DTypeLike | None = None,
    copy: bool = True,
    sync_state: SyncState | None = None,
    shape: _Shape | None = None,
    defaults: str | None = None,
    device: _Device = ...,
    layout: _Layout | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dims: _Dims | None = None,
    populate: bool = False,
    halo: _Halo | None = None,
    managed: _Managed = ...,
) -> Storage: ...

# The array functions of storages are made of these: broadcasting by dimension names.
_Field: TypeAlias = tuple[
    tuple[str, ...],  # dims
    tuple[int, ...],  # shape
    tuple[tuple[int, int], ...],  # halo
    tuple[int, ...],  # aligned_index
    tuple[int, ...],  # layout
    int,  # alignment_size
]

def _join(
    fields: tuple[tuple[Any, ...], ...],
    others: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...],
    /,
) -> _Field: ...
def _reduce(field: tuple[Any, ...], axes: tuple[int, ...], keep: bool, /) -> _Field: ...
def _align(
    dims: tuple[str, ...], shape: tuple[int, ...], target: tuple[str, ...], /
) -> tuple[tuple[int, ...], tuple[int, ...]]: ...

# The fields of a stencil and of its calls, for gridbuf.call.
@final
class StencilRules:
    """What was declared of a stencil."""

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
        is_written: bool,
        is_optional: bool,
    ) -> None: ...
    def bind_plain(self, fields: Sequence[Any], /) -> list[Any] | None: ...
    @overload
    def bind(
        self, fields: Sequence[Any], origins: Sequence[Any] | None, origin: Any, domain: Any
    ) -> BoundStencil | None: ...
    @overload
    def bind(
        self,
        fields: Sequence[Any],
        origins: Sequence[Any] | None,
        origin: Any,
        domain: Any,
        hooks: Sequence[FieldHooks | None],
    ) -> BoundStencil: ...

@final
class BoundStencil:
    """The fields of one call."""

    @property
    def arrays(self) -> list[Any]: ...
    @property
    def wrong(self) -> list[int]: ...
    @property
    def slow(self) -> list[str]: ...
    @property
    def written(self) -> list[int]: ...
    @property
    def origins(self) -> dict[str, tuple[int, ...]]: ...
    @property
    def domain(self) -> tuple[int, ...]: ...
    def begin_write(self, field: int, /) -> None: ...
    def end(self, field: int, was_called: bool, /) -> None: ...

@final
class FieldHooks:
    """What an object of another library wants to be called, or None."""

    @property
    def acquire(self) -> Callable[[], object] | None: ...
    @property
    def release(self) -> Callable[[], object] | None: ...

def _make_rules(*, name: str, on_device: bool, writes_are_declared: bool) -> StencilRules: ...
def _field_hooks(field: object, on_device: bool, /) -> FieldHooks | None: ...
def _array_of(buffer: Buffer, /) -> Any: ...
