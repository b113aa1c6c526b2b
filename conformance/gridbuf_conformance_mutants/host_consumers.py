"""Wrong consumers of the array interface, the array struct, buffers and the data interface."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from gridbuf_conformance.abi.descriptors import c_strides
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer

from .consumer import wrong
from .host_consumer import (
    ArrayInterfaceConsumer,
    ArrayStructConsumer,
    BufferConsumer,
    DataInterfaceConsumer,
    ProxyConsumer,
    Taken,
    View,
    capsule_pointer,
)
from .table import rows

row = rows(__name__)

_slot_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(
    ("PyType_GetSlot", ctypes.pythonapi)
)
_GETBUFFER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)


_api = ctypes.PyDLL(None)
_api.Py_IncRef.argtypes = _api.Py_DecRef.argtypes = [ctypes.py_object]


class ReleasesTwice:
    """Keeps objects, and releases its reference to the first of them twice."""

    def __init__(self, *kept: object) -> None:
        self._kept = kept

    def __del__(self) -> None:
        _api.Py_DecRef(self._kept[0])


class _TakesArrayInterface(ArrayInterfaceConsumer):
    interfaces = ("array-interface",)


class _TakesArrayStruct(ArrayStructConsumer):
    interfaces = ("array-struct",)


class _TakesBuffer(BufferConsumer):
    interfaces = ("buffer",)


class _TakesDataInterface(DataInterfaceConsumer):
    interfaces = ("data-interface",)


# -- the array interface -------------------------------------------------------------------------


@wrong(weakens=("AI-02",))
class GuessesTheType(_TakesArrayInterface):
    """Takes elements without a type for float64."""

    def typestr(self, entries):
        return super().typestr({"typestr": "<f8", **entries})


@wrong("AI-04")
class DiesOfManyDimensions(_TakesArrayInterface):
    """Copies any number of extents into an array of 64."""

    def refuse_shape(self, shape, itemsize):
        if len(shape) > 64:
            os.abort()
        super().refuse_shape(shape, itemsize)


@wrong(weakens=("AI-05",))
class BelievesAnySize(_TakesArrayInterface):
    """Computes the size with 64 bits, where it wraps."""

    def refuse_shape(self, shape, itemsize):
        super().refuse_shape(shape[:65] if len(shape) > 64 else (), itemsize)


# fmt: off
row(wrong("AI-10"), _TakesArrayInterface, "TakesBitsForBytes",
    "Reads packed bits as one byte each.",
    typestr=lambda self, entries: entries["typestr"].replace("t1", "b1"))
# fmt: on


class _Proxy(ProxyConsumer):
    """Hands on the dict with one change."""

    interfaces = ("array-interface",)

    def take(self, exporter):
        super().take(exporter)
        entries = exporter.__array_interface__
        return Taken({**entries, **self.edit(entries)}, exporter)

    def edit(self, entries):
        return {}


@wrong("AI-10")
class HandsOnOneBitOfEach(_Proxy):
    """Hands packed bits on as such, and counts one bit for each byte."""

    def edit(self, entries):
        is_bits = entries["typestr"][1] == "t"
        return {"shape": (entries["shape"][0] // 8,)} if is_bits else {}


@wrong(advises=("AI-26",))
class HandsOnAnEmptyMask(_Proxy):
    """Hands a mask on that has no elements."""

    def edit(self, entries):
        if entries.get("mask") is None:
            return {}
        form = {"version": 3, "shape": (0,), "typestr": "|b1", "data": (0, True)}
        return {"mask": Taken(form, None)}


@wrong("AI-15")
class AddsOffsetToTheAddress(_TakesArrayInterface):
    """Adds the key offset to an address, too."""

    def memory(self, entries, nbytes):
        address, readonly, owner = super().memory(entries, nbytes)
        is_address = isinstance(entries["data"], tuple)
        return address + (entries.get("offset", 0) if is_address else 0), readonly, owner


# fmt: off
row(wrong(weakens=("AI-16",)), _TakesArrayInterface, "TakesSmallBuffers",
    "Never asks how long the buffer behind data is.",
    refuse_size=lambda self, length, offset, nbytes: None)
row(wrong(weakens=("AI-18",)), _TakesArrayInterface, "TakesNegativeOffsets",
    "Steps back before the buffer.", refuse_offset=lambda self, offset: None)
# fmt: on


@wrong("AI-16")
class SkipsAHeader(_TakesArrayInterface):
    """Takes the first 8 bytes of the buffer behind data for a header, if there is no offset."""

    def memory(self, entries, nbytes):
        address, readonly, owner = super().memory(entries, nbytes)
        has_header = not isinstance(entries["data"], tuple) and "offset" not in entries
        return address + 8 * has_header, readonly, owner


@wrong("AI-18")
class IgnoresOffset(_TakesArrayInterface):
    """Checks the key offset, and takes the start of the buffer for the first element."""

    def memory(self, entries, nbytes):
        address, readonly, owner = super().memory(entries, nbytes)
        is_address = isinstance(entries["data"], tuple)
        return address - (0 if is_address else entries.get("offset", 0)), readonly, owner


@wrong("PB-35")
class ReleasesLentBuffers(_TakesArrayInterface):
    """Takes the address out of the buffer behind data, and releases it."""

    def held(self, view):
        view.release()
        return view


@wrong("AI-24")
class TouchesEmptyArrays(_TakesArrayInterface):
    """Looks at the first element, of an array that has none as well."""

    def look(self, address, shape, readonly):
        if 0 in shape:
            ctypes.string_at(address, 1)


@wrong(weakens=("AI-20",))
class DiesOfAddressZero(_TakesArrayInterface):
    """Treats address 0 as an error of the consumer."""

    def look(self, address, shape, readonly):
        if not address:
            os.abort()


@wrong(weakens=("AI-21",))
class TakesShortStrides(_TakesArrayInterface):
    """Fills up strides that are too few."""

    def strides(self, entries, shape, itemsize):
        strides = entries.get("strides")
        return None if strides is None else (*strides, *(itemsize,) * len(shape))[: len(shape)]


@wrong("AI-22")
class IgnoresStrides(_TakesArrayInterface):
    """Reads everything in a straight line."""

    def strides(self, entries, shape, itemsize):
        return super().strides(entries, shape, itemsize) and None


@wrong("AI-22")
class CountsWholeElements(_TakesArrayInterface):
    """Divides strides by the item size, and drops the rest."""

    def strides(self, entries, shape, itemsize):
        return _whole_elements(super().strides(entries, shape, itemsize), itemsize)


@wrong("AI-23")
class NeedsTheKeyStrides(_TakesArrayInterface):
    """Looks the key up without asking whether it is there."""

    def strides(self, entries, shape, itemsize):
        entries["strides"]
        return super().strides(entries, shape, itemsize)


@wrong("AI-24")
class HasNoScalars(_TakesArrayInterface):
    """Is sure that there is a first extent."""

    def refuse_shape(self, shape, itemsize):
        if not shape:
            os.abort()
        super().refuse_shape(shape, itemsize)


@wrong("AI-25")
class ForgetsReadOnly(_TakesArrayInterface):
    """Drops the read-only flag."""

    def memory(self, entries, nbytes):
        address, _, owner = super().memory(entries, nbytes)
        return address, False, owner


# fmt: off
row(wrong(advises=("AI-26",)), _TakesArrayInterface, "DropsTheMask",
    "Takes an array and leaves its mask.", refuse_keys=lambda self, entries: None)
# fmt: on


@wrong(advises=("AI-27",))
class KnowsVersionThreeOnly(_TakesArrayInterface):
    """Compares the version with == 3."""

    def refuse_keys(self, entries):
        super().refuse_keys(entries)
        if entries["version"] != 3:
            raise ValueError(f"version {entries['version']}, this consumer knows 3")


# fmt: off
row(wrong("AI-28"), _TakesArrayInterface, "KeepsNothing",
    "Keeps the address and lets the object go.", kept=lambda self, exporter, owner: owner)
row(wrong("AI-28"), _TakesArrayInterface, "ReleasesTheObjectTwice",
    "With the result ends a reference to the object that it did not take.",
    kept=lambda self, exporter, owner: ReleasesTwice(exporter, owner))
# fmt: on


@wrong(advises=("AI-28",))
class NeverReleasesTheObject(_TakesArrayInterface):
    """Takes two references to the object, and releases one."""

    def kept(self, exporter, owner):
        _api.Py_IncRef(exporter)
        return exporter, owner


@wrong(advises=("AI-29",))
class SwallowsErrors(_TakesArrayInterface):
    """Takes every error of the property for "not supported"."""

    def take(self, exporter):
        try:
            return super().take(exporter)
        except (OSError, RuntimeError):
            raise ValueError("no array") from None


@wrong("AI-31")
class RoundsAddressesDown(_TakesArrayInterface):
    """Is sure that addresses are multiples of the item size."""

    def memory(self, entries, nbytes):
        address, readonly, owner = super().memory(entries, nbytes)
        return address - address % 8 if address % 2 else address, readonly, owner


@wrong(advises=("AI-32",))
class RefusesUnknownKeys(_TakesArrayInterface):
    """Wants to know every key."""

    def refuse_keys(self, entries):
        super().refuse_keys(entries)
        known = {"version", "shape", "strides", "typestr", "data", "descr", "offset", "mask"}
        unknown = set(entries) - known
        if unknown:
            raise KeyError(min(unknown))


@wrong("AI-34")
class IgnoresByteOrder(_TakesArrayInterface):
    """Takes all numbers for native ones."""

    def typestr(self, entries):
        return super().typestr(entries).replace(">", "<")


@wrong("XA-15")
class TakesFloatsForIntegers(_TakesArrayInterface):
    """Has one type of 4 bytes."""

    def typestr(self, entries):
        return super().typestr(entries).replace("f4", "i4")


@wrong("XA-15")
class WritesIntoTheArray(_TakesArrayInterface):
    """Tries whether the memory can be written, and does not put back what it found."""

    def look(self, address, shape, readonly):
        if not readonly and shape == (3,):
            ctypes.memset(address + 1024 // 8, 0x55, 1)


# -- the array struct ----------------------------------------------------------------------------


# fmt: off
row(wrong(weakens=("AS-01",)), _TakesArrayStruct, "TakesAnyCapsule",
    "Opens a capsule by its present name.", pointer=lambda self, capsule: capsule_pointer(capsule))
# fmt: on


@wrong(weakens=("AS-02",))
class TakesAnyStruct(_TakesArrayStruct):
    """Does not look at the first int."""

    def refuse(self, struct):
        if struct.nd > 64:
            raise ValueError("too many dimensions")


def _whole_elements(strides, itemsize):
    return strides and tuple(stride // itemsize * itemsize for stride in strides)


# fmt: off
row(wrong("AS-04"), _TakesArrayStruct, "IgnoresTheStructsStrides",
    "Reads everything in a straight line.", strides=lambda self, struct: None)
row(wrong("AS-04"), _TakesArrayStruct, "CountsWholeElementsOfAStruct",
    "Divides strides by the item size, and drops the rest.",
    strides=lambda self, struct: _whole_elements(
        ArrayStructConsumer.strides(self, struct), struct.itemsize))
# fmt: on


@wrong("AS-04")
class DiesOfManyDimensionsInAStruct(_TakesArrayStruct):
    """Copies any number of extents into an array of 64."""

    def refuse(self, struct):
        if struct.nd > 64:
            os.abort()
        super().refuse(struct)


@wrong(weakens=("AS-04",))
class FollowsNullInAStruct(_TakesArrayStruct):
    """The arrays of a struct are read whether there are any."""

    def numbers(self, struct, field):
        pointer = getattr(struct, field)
        if struct.nd:
            ctypes.string_at(ctypes.cast(pointer, ctypes.c_void_p).value or 8, 8)
        return super().numbers(struct, field)


# fmt: off
row(wrong(weakens=("AS-04",)), _TakesArrayStruct, "TakesNullForMemory",
    "Elements at address 0 are taken.", refuse_null=lambda self, struct, shape: None)
# fmt: on


@wrong("AS-05")
class NeedsTheContiguousFlag(_TakesArrayStruct):
    """Takes a clear flag for a claim."""

    def refuse(self, struct):
        super().refuse(struct)
        in_c = c_strides(self.shape(struct), struct.itemsize) == self.strides(struct)
        if in_c and not struct.flags & 0x1:
            raise ValueError("the strides contradict the flags")


@wrong("AS-05")
class IgnoresTheSwapFlag(_TakesArrayStruct):
    """Takes all numbers for native ones."""

    def typestr(self, struct):
        return super().typestr(struct).replace(">", "<")


# fmt: off
row(wrong("AS-05"), _TakesArrayStruct, "ForgetsTheWritableFlag", "Takes all memory for writable.",
    is_readonly=lambda self, struct: False)
# fmt: on


@wrong("AS-06")
class ReadsUnannouncedDescr(_TakesArrayStruct):
    """Follows descr whenever it is not NULL."""

    def read_descr(self, struct):
        return ctypes.cast(struct.descr, ctypes.py_object).value if struct.descr else None


# fmt: off
row(wrong("AS-07"), _TakesArrayStruct, "DropsTheCapsule",
    "Keeps the object, and lets the capsule go.", kept=lambda self, exporter, capsule: exporter)
row(wrong("AS-07"), _TakesArrayStruct, "ReleasesTheExporterTwice",
    "With the result ends a reference to the exporter that it did not take.",
    kept=lambda self, exporter, capsule: ReleasesTwice(exporter, capsule))
# fmt: on


# -- buffers -------------------------------------------------------------------------------------


@wrong(advises=("PB-07",))
class NeedsAFormat(_TakesBuffer):
    """Has no answer to a format that is NULL."""

    def format(self, view):
        if not view.struct.format:
            raise TypeError("no format")
        return super().format(view)


@wrong("PB-07")
class TakesNoFormatForSigned(_TakesBuffer):
    """Takes bytes without a format for signed ones."""

    def format(self, view):
        return super().format(view) if view.struct.format else "b"


@wrong("PB-32")
class CountsWholeElementsOfABuffer(_TakesBuffer):
    """Divides strides by the item size, and drops the rest."""

    def strides(self, view):
        return _whole_elements(super().strides(view), view.struct.itemsize)


@wrong(advises=("XA-06",))
class MakesReadOnly(_TakesBuffer):
    """Copies can be written; results that share memory cannot."""

    def __call__(self, exporter, copy=None):
        taken = self.take(exporter)
        return DataInterfaceConsumer().copied(taken.__array_interface__) if copy else taken

    def is_readonly(self, view):
        return True


@wrong(weakens=("PB-09",))
class FollowsNullStrides(_TakesBuffer):
    """Strides that were requested are read whether there are any."""

    def strides(self, view):
        if view.struct.ndim:
            address = ctypes.cast(view.struct.strides, ctypes.c_void_p).value
            ctypes.string_at(address or 8, 8)
        return super().strides(view)


@wrong("PB-10")
class FollowsNegativeSuboffsets(_TakesBuffer):
    """Takes any suboffsets for pointers to follow, and is lost."""

    def refuse_suboffsets(self, suboffsets):
        super().refuse_suboffsets(suboffsets)
        if suboffsets is not None:
            os.abort()


@wrong("PB-15")
class HasNoZeroDimensions(_TakesBuffer):
    """Is sure that shape is there."""

    def shape(self, view):
        if not view.struct.shape:
            os.abort()
        return super().shape(view)


@wrong(weakens=("PB-16",))
class DiesOf65Dimensions(_TakesBuffer):
    """Copies any number of extents into an array of 64."""

    def refuse(self, view):
        if view.struct.ndim > 64:
            os.abort()
        super().refuse(view)


@wrong("PB-16")
class DiesOf64Dimensions(_TakesBuffer):
    """Copies any number of extents into an array of 63."""

    def refuse(self, view):
        if view.struct.ndim > 63:
            os.abort()
        super().refuse(view)


@wrong(weakens=("PB-17",))
class DiesOfNull(_TakesBuffer):
    """A buffer without bytes needs an address."""

    def look(self, view):
        if not view.struct.buf:
            os.abort()


@wrong("PB-17")
class TouchesEmptyBuffers(_TakesBuffer):
    """Looks at the first byte of a buffer that has none."""

    def look(self, view):
        if not view.struct.len:
            ctypes.string_at(view.struct.buf or 0, 1)


@wrong(weakens=("PB-18",))
class NeedsAlignedBuffers(_TakesBuffer):
    """Asserts that addresses are even."""

    def look(self, view):
        assert not (view.struct.buf or 0) % 2, "an odd address"


@wrong("PB-20")
class IgnoresTheFormatsOrder(_TakesBuffer):
    """Takes all numbers for native ones."""

    def typestr(self, view):
        return super().typestr(view).replace(">", "<")


@wrong("PB-20")
class KnowsBareLetters(_TakesBuffer):
    """Refuses a format that begins with its byte order."""

    def format(self, view):
        written = super().format(view)
        if written[0] in "@=<>" and written[-1] not in "FD":
            raise ValueError(f"{written!r} is not a letter")
        return written


@wrong("PB-21")
class HasLongsOfFourBytes(_TakesBuffer):
    """Has a table of sizes from another platform."""

    def format(self, view):
        written = super().format(view)
        if written in ("l", "L") and view.struct.itemsize != 4:
            raise ValueError("a long has 4 bytes")
        return written


@wrong("PB-22")
class TakesComplexForFloats(_TakesBuffer):
    """Reads complex numbers as opaque bytes of half their size."""

    def typestr(self, view):
        typestr = super().typestr(view)
        return f"<f{view.struct.itemsize // 2}" if typestr[1] == "c" else typestr


@wrong(advises=("PB-22",))
class KnowsOneSpellingOfComplex(_TakesBuffer):
    """Knows Zf and Zd, not F and D."""

    def format(self, view):
        written = super().format(view)
        if written[-1] in "FD":
            raise ValueError(f"{written!r} is not a letter")
        return written


@wrong("PB-24")
class NeverReleases(_TakesBuffer):
    """Gets a buffer, and never releases it."""

    forgotten: list[View] = []

    def kept(self, exporter, view):
        self.forgotten.append(view)
        return view


@wrong("PB-24")
class NeverReleasesTheExporter(_TakesBuffer):
    """Takes a reference to the exporter in addition to the view's, and never releases it."""

    def kept(self, exporter, view):
        _api.Py_IncRef(exporter)
        return view


@wrong("PB-24")
class ReleasesACopyToo(_TakesBuffer):
    """Copies the struct, and releases the copy after the view."""

    def kept(self, exporter, view):
        return _WithCopy(view)


class _WithCopy:
    def __init__(self, view: View) -> None:
        self._view = view
        self._copy = PyBuffer.from_buffer_copy(view.struct)

    def __del__(self) -> None:
        self._view.release()
        _api.PyBuffer_Release(ctypes.byref(self._copy))


@wrong("PB-25")
class WritesIntoTheMetadata(_TakesBuffer):
    """Converts the strides to elements in place."""

    def strides(self, view):
        strides = super().strides(view)
        if strides:
            view.struct.strides[0] += 1
        return strides


@wrong("PB-31")
class AsksToRead(_TakesBuffer):
    """Asks with memoryview's own flag."""

    def view(self, exporter):
        # By the exporter's slot: PyObject_GetBuffer refuses the flag from Python 3.13 on.
        struct = PyBuffer()
        _GETBUFFER(_slot_of(type(exporter), 1))(exporter, ctypes.byref(struct), 0x200)
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(struct))
        return super().view(exporter)


# fmt: off
row(wrong("PB-32"), _TakesBuffer, "IgnoresTheBuffersStrides",
    "Reads everything in a straight line.", strides=lambda self, view: None)
row(wrong("PB-32"), _TakesBuffer, "ReadsPointersAsElements",
    "Asks for suboffsets and never looks at them.", refuse_suboffsets=lambda self, suboffsets: None)
# fmt: on


@wrong(advises=("PB-26",))
class TakesARefusalForNothing(_TakesBuffer):
    """Makes an array without elements if the exporter refuses."""

    def view(self, exporter):
        try:
            return super().view(exporter)
        except BufferError:
            return super().view(b"")


@wrong("PB-35")
class ReleasesTooEarly(_TakesBuffer):
    """Takes the address, releases the buffer and keeps the object."""

    def kept(self, exporter, view):
        view.release()
        return exporter


# fmt: off
row(wrong(advises=("XA-06",)), _TakesBuffer, "ForgetsTheReadOnlyBuffer",
    "Takes all memory for writable.", is_readonly=lambda self, view: False)
# fmt: on


# -- the data interface --------------------------------------------------------------------------


@wrong("GT-02")
class WantsAVersion(_TakesDataInterface):
    """Reads an entry as an array interface, whose version it has to have."""

    def refuse(self, entry):
        entry["version"]


@wrong("GT-02")
class DropsOtherNames(_TakesDataInterface):
    """Keeps the dimensions that are named I, J or K."""

    def copied(self, entry):
        kept = [axis for axis, name in enumerate(entry.get("dims", ())) if name in "IJK"]
        parts = {key: tuple(entry[key][axis] for axis in kept) for key in ("shape", "strides")}
        return super().copied({**entry, **parts} if "dims" in entry else entry)


@wrong(weakens=("GT-02",))
class GuessesTheEntrysType(_TakesDataInterface):
    """An entry without a type holds float64."""

    def copied(self, entry):
        return super().copied({"typestr": "<f8", **entry})


@wrong("GT-06")
class WantsKnownKeys(_TakesDataInterface):
    """Refuses an entry with a key that it does not know."""

    def refuse(self, entry):
        known = {"shape", "typestr", "data", "strides", "acquire", "touch", "release"}
        known |= {"version"}
        if set(entry) - known:
            raise KeyError(min(set(entry) - known))


# fmt: off
row(wrong("GT-07"), _TakesDataInterface, "NeverAcquires",
    "Reads the bytes at the address without a check.", call=lambda self, entry, hook: None)
# fmt: on


@wrong("GT-07")
class TouchesInputs(_TakesDataInterface):
    """Calls touch of every field."""

    def call(self, entry, hook):
        super().call(entry, hook)
        if hook == "acquire":
            super().call(entry, "touch")


@wrong("GT-07")
class ForgetsToRelease(_TakesDataInterface):
    """Acquires, and that was it."""

    def call(self, entry, hook):
        if hook == "acquire":
            super().call(entry, hook)


@wrong("GT-08")
class NeedsTheDataInterface(_TakesDataInterface):
    """Takes no plain arrays."""

    def entry(self, exporter):
        if not hasattr(exporter, "__gt_data_interface__"):
            raise TypeError("no __gt_data_interface__")
        return super().entry(exporter)


@wrong(advises=("GT-10",))
class TakesDeviceMemoryForTheHosts(_TakesDataInterface):
    """Takes any entry, and reads its address later."""

    def entry(self, exporter):
        entries = getattr(exporter, "__gt_data_interface__", {None: None})
        return entries["gpu"] if None not in entries else super().entry(exporter)

    def copied(self, entry) -> Any:
        if entry["data"][0] % 4096:
            return super().copied(entry)
        return Taken(
            {key: entry[key] for key in ("shape", "typestr", "data")} | {"version": 3}, None
        )
