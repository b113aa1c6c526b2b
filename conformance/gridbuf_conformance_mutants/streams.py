"""Defects of the CUDA stream protocol (CS rules): streams of the zoo's device.

A producer makes a stream for each plan, and no array.
"""

from __future__ import annotations

import weakref
from typing import ClassVar

from gridbuf_conformance.plan import Plan

from .device import DEVICE, DeviceReference
from .mutant import DeviceMutant
from .plans import on_device
from .table import rows

row = rows(__name__)


class Stream:
    """A stream of the device, which lives as long as this object."""

    def __init__(self) -> None:
        self.handle = DEVICE.create_stream()
        weakref.finalize(self, DEVICE.destroy_stream, self.handle)

    def __cuda_stream__(self) -> object:
        return 0, self.handle


class StreamReference(DeviceReference):
    """The right producer of streams."""

    name = "stream reference"
    stream: ClassVar[type] = Stream

    def produce(self, plan: Plan) -> object:
        return self.stream()


def _stream(*breaks: str, advises: tuple[str, ...] = ()):
    """Turns a faulty stream into the mutant that makes it."""

    def as_producer(kind: type) -> type[DeviceMutant]:
        members = {
            "__doc__": kind.__doc__,
            "__module__": kind.__module__,
            "__qualname__": kind.__qualname__,
            "stream": kind,
            "breaks": frozenset(breaks),
            "advises": frozenset(advises),
            "plans": on_device("gpu")[:2],
        }
        return type(kind.__name__, (StreamReference, DeviceMutant), members)

    return as_producer


# fmt: off
row(_stream(advises=("CS-01",)), Stream, "StreamIsAnAttribute",
    "`__cuda_stream__` is a property.", __cuda_stream__=property(lambda self: (0, self.handle)))
row(_stream(advises=("CS-01",)), Stream, "StreamOfVersionOne",
    "The version of the protocol is 1.", __cuda_stream__=lambda self: (1, self.handle))
row(_stream(advises=("CS-01",)), Stream, "StreamPairIsAList",
    "The pair is a list.", __cuda_stream__=lambda self: [0, self.handle])
row(_stream("CS-02"), Stream, "StreamHandleIsNegative",
    "The handle is -1.", __cuda_stream__=lambda self: (0, -1))
row(_stream("CS-02"), Stream, "StreamHandleIsAnId",
    "The handle is the id of a Python object.", __cuda_stream__=lambda self: (0, id(self)))
row(_stream(advises=("CS-03",)), Stream, "StreamOfEachCall",
    "Each call creates a stream.", __cuda_stream__=lambda self: (0, DEVICE.create_stream()))
# fmt: on


@_stream("CS-03")
class StreamOfTheLastCall(Stream):
    """Each call creates a stream, and destroys that of the last call."""

    def __cuda_stream__(self) -> object:
        self.last = Stream()
        return 0, self.last.handle
