"""What pickles call. Their content is checked like any arguments, as it may come from anywhere."""

from __future__ import annotations

import os
import pickle
from typing import Any, cast

import numpy as np

from . import _core


def restore_plan(shape: Any, itemsize: Any, parameters: dict[str, Any]) -> _core.LayoutPlan:
    """The plan of elements of `itemsize` bytes; `parameters` are keywords of `gridbuf.plan`."""
    return _core.plan(shape, f"V{itemsize}", **parameters)


def restore_buffer(
    elements: Any, shape: Any, dtype: Any, memory: Any, readonly: bool, parameters: dict[str, Any]
) -> _core.Buffer:
    """A Buffer with `elements`, which are bytes in row-major order."""
    if not isinstance(readonly, bool):
        raise TypeError(f"readonly is {readonly!r}, but must be a bool; pickle the buffer again")
    on_host: Any = "host" if memory == "device" else memory  # plain arrays of a device are CuPy's
    array: Any = _core.zeros(shape, dtype, memory=on_host, **parameters)
    buffer: _core.Buffer = array.base
    raw = np.dtype((np.void, buffer.itemsize))  # so that bytes between fields are copied, too
    buffer.to_numpy().view(raw)[...] = _elements(buffer, raw, elements)
    if memory == "device":
        buffer = buffer.copy(memory=memory)
    return buffer.toreadonly() if readonly else buffer


def reduce_shared(buffer: Any) -> tuple[Any, ...]:
    """What pickles have of a Buffer or a storage in shared memory: where it is."""
    array = np.asarray(buffer)
    interface = array.__array_interface__
    handle, offset = cast("tuple[Any, int]", _core._shared_place(interface["data"][0]))
    place = (handle, offset, array.shape, array.strides, array.dtype, not array.flags.writeable)
    if isinstance(buffer, _core.Buffer):
        return restore_shared, (*place, {"dims": buffer.dims})
    names = ("dims", "halo", "aligned_index")
    parameters = {name: getattr(buffer, name) for name in names}
    if buffer.lower.count(None) < buffer.ndim:
        parameters["lower"] = buffer.lower
    return restore_shared, (*place, parameters, True)


def restore_shared(
    handle: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    dtype: Any,
    readonly: Any,
    parameters: Any,
    as_storage: Any = False,
) -> Any:
    """The Buffer or storage over shared memory of another process."""
    teach_multiprocessing()
    segment = _core._attach_shared(*handle)
    array: Any = np.ndarray(shape, dtype, segment.to_numpy(), offset, strides)
    array.flags.writeable = not readonly
    if as_storage:
        return _core._storage_as_storage(array, **parameters)
    return _core.as_buffer(array, **parameters)


def teach_multiprocessing() -> None:
    """Makes multiprocessing send descriptors, which keep the memory until a process has it. Called for shared memory."""
    from multiprocessing.reduction import ForkingPickler

    from . import storage

    for kind in (_core.Buffer, storage.CPUStorage, storage.SoftwareManagedGPUStorage):
        ForkingPickler.register(kind, _reduce_sent)


def _reduce_sent(array: Any) -> Any:
    reduced = array.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if reduced[0] is not restore_shared:
        return reduced
    from multiprocessing.reduction import DupFd

    (_, descriptor, *identity), *others = reduced[1]
    return _restore_sent, (DupFd(descriptor), identity, *others)


def _restore_sent(sent: Any, identity: list[int], *others: Any) -> Any:
    descriptor = sent.detach()
    try:
        return restore_shared((os.getpid(), descriptor, *identity), *others)
    finally:
        os.close(descriptor)


def restore_storage(
    elements: Any, shape: Any, dtype: Any, parameters: dict[str, Any], *stretchable: Any
) -> Any:
    """A storage with `elements`; `parameters` are keywords of `gridbuf.storage.zeros`.

    `stretchable` are the stretchable axes, and those of them without a name.
    """
    parameters = dict(parameters)
    valid_halo = parameters.pop("valid_halo", None)
    storage = _core._storage_zeros(shape, dtype, **parameters)
    if stretchable:
        storage = _core._storage_zeros_like(storage._parameters._stretchable(*stretchable).empty())
    storage[...] = _elements(storage, storage.dtype, elements)
    if valid_halo is not None:
        storage.mark_halo_valid(valid_halo)
    return storage


def _elements(array: Any, dtype: np.dtype[Any], elements: Any) -> np.ndarray[Any, Any]:
    """The elements as an array like `array`, of `dtype`."""
    length = memoryview(elements).nbytes
    if length != array.nbytes:
        raise ValueError(
            f"the pickled elements' length is {length} bytes, but must be {array.nbytes} bytes for shape {array.shape} of "
            f"{array.dtype}; pickle the array again"
        )
    return np.ndarray(array.shape, dtype, elements)
