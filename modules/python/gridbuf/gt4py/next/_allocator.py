"""The allocator of fields, and where GT4Py gets it from: its constructors, backends, and the default of the process."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ... import _core
from .._library import allocators, constructors, definitions, tensors

_CPU, _CUDA = definitions.DeviceType.CPU, definitions.DeviceType.CUDA
_ALIGNMENT_SIZES = {_CPU: 64, _CUDA: 128}
"""Bytes, as in GT4Py's allocators. The keys are the devices that gridbuf has."""


def vertical_contiguous_layout_mapper(dims: Sequence[Any]) -> tuple[int, ...]:
    """Return the layout map with the vertical dimension contiguous, and the others in their order.

    It is for `FieldAllocator` and fields of the embedded and the DaCe backend.
    Rules: docs/spec.md 12.90.

    Parameters
    ----------
    dims : sequence of Dimension
        The dimensions of a field.

    Returns
    -------
    tuple of int
        The rank of each dimension: 0 for the largest stride.

    Examples
    --------
    >>> import gridbuf
    >>> from gt4py import next as gtx
    >>> Cell, K = gtx.Dimension("Cell"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    >>> gridbuf.gt4py.next.vertical_contiguous_layout_mapper([K, Cell])
    (1, 0)
    """
    vertical = type(dims[0].kind).VERTICAL if dims else None
    order = sorted(range(len(dims)), key=lambda axis: dims[axis].kind == vertical)
    return tuple(order.index(axis) for axis in range(len(dims)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class FieldAllocator:
    """An allocator of fields of `gt4py.next` with memory of gridbuf (docs/spec.md 12.90 and 12.91).

    GT4Py takes it as `allocator=` of its constructors and of backends. It can be compared, hashed
    and pickled.

    Parameters
    ----------
    device_type : gt4py.next.DeviceType, default DeviceType.CPU
        CPU, or CUDA, whose arrays are CuPy's.
    layout_mapper : callable, default GT4Py's horizontal_first_layout_mapper
        It gets the dimensions and returns a layout map: the rank of each, where the last rank is
        contiguous. It must return the same map for the same dimensions. To be pickled it must be a
        function of a module.
    byte_alignment : int, optional
        Bytes, from 1 to 1048576. The address of the aligned element, and of all elements with its
        index in the contiguous dimension, is a multiple of it. Default: 64, on devices 128.
    populate : bool, default False
        Whether to commit the pages now, so that too little memory is a MemoryError here.

    Raises
    ------
    ValueError
        gridbuf has no memory of this type of device, or `byte_alignment` is out of bounds.

    Examples
    --------
    >>> import gridbuf
    >>> from gt4py import next as gtx
    >>> K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    >>> large = gridbuf.gt4py.next.FieldAllocator(byte_alignment=4096)
    >>> gtx.empty({K: 80}, allocator=large).ndarray.ctypes.data % 4096
    0
    """

    device_type: Any = _CPU
    layout_mapper: Callable[[Sequence[Any]], Sequence[int]] = dataclasses.field(
        default_factory=lambda: allocators.horizontal_first_layout_mapper
    )
    byte_alignment: int | None = None
    populate: bool = False

    def __post_init__(self) -> None:
        if self.device_type not in _ALIGNMENT_SIZES:
            known = ", ".join(device.name for device in _ALIGNMENT_SIZES)
            raise ValueError(f"device_type is {self.device_type!r}, but must be one of {known}")
        if self.byte_alignment is not None:
            _core.plan((1,), alignment_size=self.byte_alignment)

    @property
    def __gt_device_type__(self) -> Any:
        """GT4Py's name of `device_type`."""
        return self.device_type

    @property
    def __gt_allocator__(self) -> FieldAllocator:
        """This allocator: GT4Py asks backends for theirs by this name."""
        return self

    def __gt_allocate__(
        self,
        domain: Any,
        dtype: Any,
        device_id: int = 0,
        aligned_index: Sequence[Any] | None = None,
    ) -> Any:
        """Return a new `TensorBuffer` of GT4Py, whose elements are undefined."""
        return allocate(self, _core.empty, domain, dtype, device_id, aligned_index)


def allocate(
    allocator: FieldAllocator,
    function: Callable[..., Any],
    domain: Any,
    dtype: Any,
    device_id: int = 0,
    aligned_index: Sequence[Any] | None = None,
) -> Any:
    """A `TensorBuffer` of GT4Py, whose array one of gridbuf's functions makes."""
    on_host = allocator.device_type == _CPU
    if device_id != 0:
        used = "the host is device 0" if on_host else "select CUDA's by cupy.cuda.Device"
        raise ValueError(f"device_id is {device_id}, but must be 0: {used}")
    if dtype.tensor_shape:
        raise ValueError(
            f"dtype {dtype} has the shape {dtype.tensor_shape}; use a local dimension for it"
        )
    layout = _layout_of(allocator.layout_mapper, domain.dims)
    alignment = allocator.byte_alignment or _ALIGNMENT_SIZES[allocator.device_type]
    index = _relative_index(domain, aligned_index) if aligned_index else None
    array = function(
        domain.shape,
        dtype.scalar_type,
        layout=layout,
        alignment_size=alignment,
        aligned_index=index,
        device=None if on_host else "gpu",
        populate=allocator.populate,
    )
    interface = getattr(array, "__array_interface__", None) or array.__cuda_array_interface__
    return tensors.TensorBuffer(
        buffer=array if array.base is None else array.base,
        memory_address=interface["data"][0],
        device=definitions.Device(allocator.device_type, 0 if on_host else array.device.id),
        dtype=dtype,
        shape=array.shape,
        strides=array.strides,
        layout_map=layout,
        byte_offset=0,
        byte_alignment=alignment,
        aligned_index=index or (0,) * array.ndim,
        ndarray=array,
    )


@functools.lru_cache
def _layout_of(
    mapper: Callable[[Sequence[Any]], Sequence[int]], dims: tuple[Any, ...]
) -> tuple[int, ...]:
    """The layout map of these dimensions, checked by the core."""
    return _core.plan((1,) * len(dims), layout=tuple(mapper(dims))).layout


def _relative_index(domain: Any, aligned_index: Sequence[Any]) -> tuple[int, ...]:
    """The aligned index in elements from the start of the domain.

    Raises:
      ValueError: it is outside of the domain.
    """
    values = {index.dim: int(index.value) for index in aligned_index}
    relative = []
    for dim, points in zip(domain.dims, domain.ranges):
        value = values.get(dim, points.start)
        if dim in values and not points.start <= value < points.stop:
            raise ValueError(
                f"aligned_index of {dim.value} is {value}, which is outside the domain range "
                f"[{points.start}, {points.stop})"
            )
        relative.append(value - points.start)
    return tuple(relative)


HOST = FieldAllocator()


def with_allocator(backend: Any, allocator: FieldAllocator = HOST) -> Any:
    """Return a backend of GT4Py whose fields are allocated by gridbuf (docs/spec.md 12.93).

    Parameters
    ----------
    backend : gt4py.next.backend.Backend
        A backend, as `gtx.gtfn_cpu`.
    allocator : FieldAllocator, optional
        Its new allocator. Default: `gridbuf.gt4py.next.allocator`.

    Returns
    -------
    gt4py.next.backend.Backend
        A copy, which compiles the same programs.

    Raises
    ------
    TypeError
        `backend` is not a backend. For the embedded one (None) there is `use`.
    ValueError
        The backend is for another type of device.

    Examples
    --------
    >>> import gridbuf
    >>> from gt4py import next as gtx
    >>> backend = gridbuf.gt4py.next.with_allocator(gtx.gtfn_cpu)
    >>> backend.allocator == gridbuf.gt4py.next.allocator
    True
    """
    carried = getattr(backend, "allocator", None)
    if carried is None:
        raise TypeError(
            f"backend is {backend!r}, but must be a backend of gt4py.next, as gtx.gtfn_cpu; "
            "for GT4Py's default allocator use gridbuf.gt4py.next.use()"
        )
    wanted = carried.__gt_device_type__
    if wanted != allocator.device_type:
        raise ValueError(
            f"backend {backend.name} is for {wanted!r}, but allocator is for {allocator.device_type!r}"
        )
    return dataclasses.replace(backend, allocator=allocator)


@contextlib.contextmanager
def use(allocator: FieldAllocator = HOST) -> Iterator[FieldAllocator]:
    """Make an allocator the default of GT4Py's constructors while a `with` block runs.

    Parameters
    ----------
    allocator : FieldAllocator, optional
        The default for its type of device. Default: `gridbuf.gt4py.next.allocator`.

    Yields
    ------
    FieldAllocator
        `allocator`.

    Notes
    -----
    It is for the whole process, not for a thread. Fields made before stay where they are. Backends
    keep the allocator that they carry: see `with_allocator`. Rules: docs/spec.md 12.93.

    Examples
    --------
    >>> import gridbuf
    >>> from gt4py import next as gtx
    >>> Cell = gtx.Dimension("Cell")
    >>> with gridbuf.gt4py.next.use():
    ...     field = gtx.zeros({Cell: 10})
    >>> gridbuf.owns(field), gridbuf.owns(gtx.zeros({Cell: 10}))
    (True, False)
    """
    registry = allocators.device_allocators
    missing = object()
    before = registry.get(allocator.device_type, missing)
    with _fresh_constructors():
        registry[allocator.device_type] = allocator
        try:
            yield allocator
        finally:
            if before is missing:
                del registry[allocator.device_type]
            else:
                registry[allocator.device_type] = before


@contextlib.contextmanager
def _fresh_constructors() -> Iterator[None]:
    """GT4Py keeps the default constructors that it made: it gets new ones, and the old ones back."""
    kept = constructors._field_constructor
    constructors._field_constructor = constructors.eve.utils.optional_lru_cache(kept.__wrapped__)
    try:
        yield
    finally:
        constructors._field_constructor = kept
