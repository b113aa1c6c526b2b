"""The descriptor of a granted `Py_buffer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from ...abi import elements
from ...abi.descriptors import Descriptor, Rejected, c_strides
from ...abi.elements import Element
from ...info import ArrayInfo, RequestInfo, ViewInfo
from . import pep3118

_BEST_FIRST = ("FULL_RO", "RECORDS_RO", "INDIRECT", "STRIDES", "ND|FORMAT", "ND", "SIMPLE")


def best_buffer(requests: Mapping[str, RequestInfo]) -> tuple[str, ViewInfo] | None:
    """The most telling request that was granted: (its name, the view's info)."""
    for name in _BEST_FIRST:
        request = requests.get(name)
        if request is not None and request.view is not None:
            return name, request.view
    return None


def simple_view(requests: Mapping[str, RequestInfo] | None) -> ViewInfo | None:
    """The view of plain bytes, if that request was granted."""
    request = (requests or {}).get("SIMPLE")
    return None if request is None else request.view


def of_buffer(view: ViewInfo) -> Descriptor:
    """The descriptor of one granted view; raises `Rejected` naming the PB rule that it breaks."""
    if not 0 <= view.ndim <= 64:
        raise Rejected("PB-16", "ndim out of range")
    if view.itemsize < 0 or view.len < 0:
        raise Rejected("PB-17", "negative len or itemsize")
    shape = _buffer_shape(view)
    if isinstance(view.strides, str):
        raise Rejected("PB-25", "strides is not mapped")
    strides = c_strides(shape, view.itemsize) if view.strides is None else tuple(view.strides)
    if not view.buf and prod(shape) * view.itemsize:
        raise Rejected("XA-10", "buf is NULL")
    indirect = isinstance(view.suboffsets, list) and any(s >= 0 for s in view.suboffsets)
    return Descriptor(
        "PB",
        view.buf,
        shape,
        strides,
        view.itemsize,
        _buffer_element(view),
        bool(view.readonly),
        is_indirect=indirect,
    )


def _buffer_shape(view: ViewInfo) -> tuple[int, ...]:
    shape = view.shape
    if isinstance(shape, str):
        raise Rejected("PB-25", "shape is not mapped")
    if shape is None:
        if view.ndim == 0 and view.itemsize == view.len:
            return ()
        return (view.len // view.itemsize if view.itemsize else 0,)
    if any(extent < 0 for extent in shape):
        raise Rejected("PB-17", "negative extent")
    return tuple(shape)


def _buffer_element(view: ViewInfo) -> Element | None:
    if not isinstance(view.format, str):
        return None
    try:
        return elements.of_format(pep3118.parse(view.format), view.itemsize)
    except pep3118.BadFormat:
        return None


def readers(info: ArrayInfo) -> dict[str, Callable[[], Descriptor]]:
    """The interface, if the object has it, with the function that reads or rejects what it says."""
    granted = best_buffer(info.pb)
    return {} if granted is None else {"PB": lambda: of_buffer(granted[1])}
