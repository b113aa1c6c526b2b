"""Memory of other libraries: correct imports, and the rule of each refusal."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from reference import dense_strides
from exporters import Dict, Struct, Tensor, doubles, exporter, with_table

import gridbuf
import gridbuf.storage
from gridbuf.gt4py import cartesian

VALUES = np.arange(12.0).reshape(3, 4)
ABSENT = object()


def interface(**changes: Any) -> dict[str, Any]:
    """A right array interface over VALUES with some keys changed; ABSENT leaves a key out."""
    described = dict(VALUES.__array_interface__) | changes
    return {key: value for key, value in described.items() if value is not ABSENT}


def address(values: np.ndarray[Any, Any]) -> int:
    return values.__array_interface__["data"][0]


# ---- What comes in. ----


class OnlyDlpack:
    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.values.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


class OnlyStruct:
    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    @property
    def __array_struct__(self) -> Any:
        return self.values.__array_struct__


class OnlyDict:
    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.values.__array_interface__


class OnlyEntry:
    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    @property
    def __gt_data_interface__(self) -> dict[None, dict[str, Any]]:
        return {None: self.values.__array_interface__}


DOORS = [lambda values: values, memoryview, OnlyDlpack, OnlyStruct, OnlyDict, OnlyEntry]
VIEWS = {
    "whole": VALUES,
    "reversed": VALUES[::-1, ::-2],
    "transposed": VALUES.T,
    "0-d": VALUES[1, 2, ...],
    "empty": VALUES[:, 4:],
    "row": VALUES[1],
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("values", VIEWS.values(), ids=VIEWS.keys())
def test_every_door_gives_the_same_view(door, values):
    buffer = gridbuf.as_buffer(door(values))
    assert buffer.shape == values.shape
    assert buffer.dtype == values.dtype
    found = gridbuf.as_numpy(door(values))
    np.testing.assert_array_equal(found, values)
    assert buffer.readonly == (not values.flags.writeable)
    if values.size:
        assert np.shares_memory(found, values)
        assert address(buffer.to_numpy()) == address(values)
        meaningful = [axis for axis in range(values.ndim) if values.shape[axis] > 1]
        assert [buffer.strides[axis] for axis in meaningful] == [
            values.strides[axis] for axis in meaningful
        ]


@pytest.mark.parametrize("door", DOORS)
def test_the_producer_lives_as_long_as_what_was_made_of_it(door):
    values = np.arange(6.0)
    producer = door(values)
    dead = weakref.ref(values)
    view = gridbuf.as_buffer(producer)[1:3].to_numpy()
    del producer, values
    gc.collect()
    assert dead() is not None
    np.testing.assert_array_equal(view, [1.0, 2.0])
    del view
    gc.collect()
    assert dead() is None


def test_objects_of_the_standard_library():
    assert gridbuf.as_numpy(array.array("i", [1, 2])).tolist() == [1, 2]
    assert gridbuf.as_numpy((ctypes.c_long * 3)(1, 2, 3)).tolist() == [1, 2, 3]
    assert gridbuf.as_numpy((ctypes.c_float * 2 * 3)()).shape == (3, 2)
    data = bytearray(b"abcd")
    gridbuf.as_numpy(data)[0] = ord("x")
    assert data == b"xbcd"
    with mmap.mmap(-1, 4096) as memory:
        view = gridbuf.as_numpy(memory)
        assert view.shape == (4096,)
        del view


def test_read_only_memory_stays_so():
    constant = VALUES.copy()
    constant.flags.writeable = False
    for door in [*DOORS[:2], OnlyStruct, OnlyDict, OnlyEntry]:
        assert gridbuf.as_buffer(door(constant)).readonly
        assert not gridbuf.as_numpy(door(constant)).flags.writeable
    assert gridbuf.as_buffer(b"abc").readonly


LARGE = 2**62
JUNK = {
    "one of a slice": np.arange(16.0)[::3][:1],
    "one backwards": np.zeros((1, 10, 20))[::-1],
    "one of rows": np.arange(24.0).reshape(4, 6)[1:2, ::2],
    "nothing of a slice": np.zeros((4, 6))[::2, 6:],
    "nothing backwards": np.zeros((0, 5, 1))[::-1],
    "0-d": np.array(3.0),
    "large": np.lib.stride_tricks.as_strided(np.arange(3.0), (1, 3, 1), (LARGE, 8, -LARGE)),
    "large, of nothing": np.lib.stride_tricks.as_strided(np.zeros(1), (0, 3), (LARGE, LARGE)),
    "column-major": np.zeros((1, 3, 4), order="F"),
    "repeated": np.broadcast_to(np.arange(3.0), (1, 4, 3))[:, ::-1],
    "records": np.zeros((1, 4), [("a", "i4"), ("b", "f8")])[::-1, ::2],
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("values", JUNK.values(), ids=JUNK.keys())
def test_strides_without_meaning_are_those_of_a_dense_array(door, values):
    if door in (OnlyDlpack, OnlyStruct) and values.dtype.names:
        door = memoryview
    wanted = dense_strides(values)
    for made in [
        gridbuf.as_buffer(door(values)),
        gridbuf.as_numpy(door(values)),
        gridbuf.storage.as_storage(door(values)),
        gridbuf.storage.as_storage(door(values)).to_ndarray(),
        gridbuf.as_buffer(gridbuf.as_buffer(door(values))[...]),
    ]:
        assert made.strides == wanted
        np.testing.assert_array_equal(np.asarray(made), values)
    found = gridbuf.as_numpy(door(values))
    assert found.flags.writeable == values.flags.writeable
    assert np.shares_memory(found, values) or not values.size


def test_as_numpy_of_an_ndarray_is_itself():
    assert gridbuf.as_numpy(VALUES) is VALUES
    objects = np.array([[object()]])[::-1]
    assert gridbuf.as_numpy(objects)[0, 0] is objects[0, 0]
    assert gridbuf.as_numpy(objects).strides == (8, 8)
    buffer = gridbuf.allocate((2, 3))
    assert gridbuf.as_buffer(buffer) is buffer
    assert gridbuf.as_numpy(buffer).base is buffer


def test_big_endian_values_and_records_come_in():
    for dtype in [">f4", "<M8[ns]", "U3", "S5", [("a", "<i4"), ("b", ">f8", (2,))], "V7", "c16"]:
        values = np.zeros(3, dtype)
        assert gridbuf.as_buffer(OnlyDict(values)).dtype == values.dtype
        assert gridbuf.as_buffer(values).dtype == values.dtype


def test_records_of_every_shape_come_in():
    padded = np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"], "offsets": [3, 16]})
    titled = np.dtype([(("title", "name"), "f4"), ("x", "i2")])
    nested = np.dtype([("r", [("p", "i4"), ("q", "f4", (2, 2))], (3,))])
    for dtype in (padded, titled, nested):
        values = np.zeros(2, dtype)
        # NumPy's own array struct forgets to say that it has a descr, so its records come in as raw bytes.
        assert gridbuf.as_buffer(OnlyStruct(values)).dtype.itemsize == dtype.itemsize
        found = gridbuf.as_buffer(OnlyDict(values)).dtype
        assert found.itemsize == dtype.itemsize
        assert found.names == dtype.names
        assert gridbuf.as_buffer(memoryview(values)).dtype.itemsize == dtype.itemsize


def test_names_are_given_or_declared():
    assert gridbuf.as_buffer(VALUES).dims == ("I", "J")
    assert gridbuf.as_buffer(VALUES, dims="KI").dims == ("K", "I")

    class Named(OnlyDlpack):
        dims = ("K", "J")

    assert gridbuf.as_buffer(Named(VALUES)).dims == ("K", "J")
    buffer = gridbuf.allocate((2, 3), dims="JK")
    assert gridbuf.as_buffer(buffer, dims="KI").dims == ("K", "I")
    assert gridbuf.as_buffer(buffer.to_numpy()).shape == (2, 3)
    with pytest.raises(ValueError, match="dims"):
        gridbuf.as_buffer(VALUES, dims="II")


def test_an_import_knows_how_its_memory_lies():
    buffer = gridbuf.as_buffer(VALUES.T)
    assert buffer.layout == (1, 0)
    assert buffer.alignment_size == 1
    assert buffer.aligned_index == (0, 0)
    assert buffer.base is None
    copied = buffer.copy()
    np.testing.assert_array_equal(copied.to_numpy(), VALUES.T)


@pytest.mark.parametrize("thing", [None, 3, "abc", [1, 2], {}, object()])
def test_what_offers_nothing_is_a_type_error(thing):
    with pytest.raises(TypeError, match="array_interface__"):
        gridbuf.as_buffer(thing)
    with pytest.raises(TypeError):
        gridbuf.as_numpy(thing)


@pytest.mark.parametrize("door", [OnlyDlpack, OnlyStruct, OnlyDict, OnlyEntry])
def test_from_array_copies_from_every_door(door):
    copied = gridbuf.from_array(door(VALUES), layout=(1, 0))
    assert copied.strides == (8, 24)
    np.testing.assert_array_equal(copied, VALUES)
    assert not np.shares_memory(copied, VALUES)


def test_from_array_still_takes_values():
    assert gridbuf.from_array([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert gridbuf.from_array(3.5).shape == ()
    assert gridbuf.from_array(np.float32(2)).dtype == np.float32
    assert gridbuf.from_array(b"abc").dtype == "S3"


# ---- Bare dicts. ----


def test_from_interface_reads_bare_dicts():
    buffer = gridbuf.from_interface(VALUES.__array_interface__, VALUES)
    np.testing.assert_array_equal(buffer.to_numpy(), VALUES)
    both = {None: VALUES.__array_interface__ | {"dims": ("K", "I"), "halo": ((1, 1), (0, 0))}}
    assert gridbuf.from_interface(both, VALUES).dims == ("K", "I")
    with pytest.raises(TypeError, match="a dict"):
        gridbuf.from_interface(VALUES)
    with pytest.raises(ValueError, match="GT-01"):
        gridbuf.from_interface({None: VALUES.__array_interface__}, device="gpu")


def test_from_interface_reads_the_dict_it_was_given():
    producer = Recording()
    chosen = {None: {**VALUES.__array_interface__, "acquire": producer.acquire}}
    assert gridbuf.from_interface(chosen, producer).shape == VALUES.shape
    assert producer.calls == ["acquire"]


def test_from_interface_keeps_the_owner():
    values = np.arange(3.0)
    dead = weakref.ref(values)
    buffer = gridbuf.from_interface(values.__array_interface__, values)
    del values
    gc.collect()
    assert dead() is not None
    del buffer
    assert dead() is None


# ---- Array interface: each rule that a consumer must survive. ----

AI_CASES = {
    "AI-01 list": ([1, 2], TypeError),
    "AI-02 no version": (interface(version=ABSENT), ValueError),
    "AI-02 no shape": (interface(shape=ABSENT), ValueError),
    "AI-03 list": (interface(shape=[3, 4]), TypeError),
    "AI-03 negative": (interface(shape=(-4,), strides=None), ValueError),
    "AI-03 float": (interface(shape=(4.0,)), TypeError),
    "AI-03 bool": (interface(shape=(True, 3)), TypeError),
    "AI-04 65 dimensions": (interface(shape=(1,) * 65, strides=None), ValueError),
    "AI-04 1000 dimensions": (interface(shape=(1,) * 1000, strides=None), ValueError),
    "AI-05 wraps": (interface(shape=(2**62, 8), strides=None), ValueError),
    "AI-05 huge": (interface(shape=(2**64,), strides=None), ValueError),
    "AI-06 no order": (interface(typestr="f8"), ValueError),
    "AI-06 bytes": (interface(typestr=b"<f8"), TypeError),
    "AI-06 kind": (interface(typestr="<x4"), ValueError),
    "AI-06 no digits": (interface(typestr="<f"), ValueError),
    "AI-06 surrogate": (interface(typestr="<f\ud800"), TypeError),
    "AI-07 length": (interface(typestr="<i3"), ValueError),
    "AI-07 objects": (interface(typestr="|O8"), TypeError),
    "AI-10 bits": (interface(typestr="|t1"), TypeError),
    "AI-11 short": (interface(typestr="|V8", descr=[("a", "|V5")]), ValueError),
    "AI-11 no list": (interface(typestr="|V8", descr=(("a", "|V8"),)), TypeError),
    "AI-13 differs": (interface(descr=[("", "<f4")]), ValueError),
    "AI-14 None": (interface(data=(None, False)), TypeError),
    "AI-14 text": (interface(data=("0x10", False)), TypeError),
    "AI-14 three": (interface(data=(4096, False, 1)), TypeError),
    "AI-14 numpy": (interface(data=(np.int64(4096), False)), TypeError),
    "AI-14 negative": (interface(data=(-8, False)), ValueError),
    "AI-16 short": (interface(data=bytearray(8), strides=None), ValueError),
    "AI-16 no buffer": (interface(data=3.5), TypeError),
    "AI-16 offset": (interface(data=bytearray(96), offset=8, strides=None), ValueError),
    "AI-17 no buffer": (interface(data=None), TypeError),
    "AI-18 negative": (interface(data=bytearray(960), offset=-64, strides=None), ValueError),
    "AI-18 text": (interface(data=bytearray(960), offset="8", strides=None), TypeError),
    "AI-20 null": (interface(data=(0, False)), ValueError),
    "AI-21 list": (interface(strides=[32, 8]), TypeError),
    "AI-21 count": (interface(strides=(8,)), ValueError),
    "AI-21 None inside": (interface(strides=(None, 8)), TypeError),
    "AI-22 huge": (interface(strides=(2**62, 8)), ValueError),
    "AI-22 wraps": (interface(strides=(-(2**62), 8)), ValueError),
    "AI-26 mask": (interface(mask=np.zeros((3, 4), bool)), BufferError),
    "AI-27 text": (interface(version="3"), TypeError),
}


@pytest.mark.parametrize("case", AI_CASES, ids=lambda case: case.replace(" ", "-"))
@pytest.mark.parametrize("take", [gridbuf.as_numpy, gridbuf.as_buffer, gridbuf.from_array])
def test_array_interface_rule_is_named(case, take):
    described, exception = AI_CASES[case]
    with pytest.raises(exception, match=f"^{case.split()[0]}: .* but must be .*; "):
        take(Dict(described))


def test_array_interfaces_that_look_odd_and_are_right():
    odd = bytearray(25)
    described = {"shape": (3,), "typestr": "<f8", "version": 99, "data": odd, "offset": 1}
    buffer = gridbuf.as_buffer(Dict(described | {"extra": object()}))  # AI-27, AI-31, AI-32
    assert buffer.to_numpy().tolist() == [0.0, 0.0, 0.0]
    assert gridbuf.as_buffer(Dict(interface(strides=(32, 8)))).strides == (32, 8)  # AI-23
    assert gridbuf.as_buffer(Dict(interface(offset=-64))).shape == (3, 4)  # AI-15: ignored
    finer = interface(typestr=">c8", shape=(3,), strides=None, descr=[("re", ">f4"), ("im", ">f4")])
    assert gridbuf.as_buffer(Dict(finer)).dtype == ">c8"  # AI-13, AI-34
    empty = interface(shape=(0, 4), strides=(2**62, -(2**63)), data=(0, False))
    assert gridbuf.as_buffer(Dict(empty)).size == 0  # AI-24


def test_ai_16_a_lent_buffer_is_held_and_its_owner_cannot_resize():
    memory = bytearray(24)
    buffer = gridbuf.as_buffer(
        Dict({"shape": (3,), "typestr": "<f8", "version": 3, "data": memory})
    )
    with pytest.raises(BufferError):
        memory.extend(b"x")  # PB-24
    del buffer
    memory.extend(b"x")


def test_ai_17_an_object_may_lend_its_own_bytes():
    class Exporter(bytearray):
        __array_interface__ = {"shape": (3,), "typestr": "<i8", "version": 3, "data": None}

    # The buffer protocol is asked first; the dict is what from_interface gets.
    exporter = Exporter(24)
    assert gridbuf.from_interface(exporter.__array_interface__, exporter).dtype == np.int64


def test_ai_11_lists_of_lists_do_not_explode():
    descr: list[Any] = [("x", "|V1")]
    for _ in range(60):
        descr = [("a", descr), ("b", descr)]
    with pytest.raises(TypeError, match="AI-11"):
        gridbuf.as_buffer(Dict(interface(typestr="|V8", descr=descr)))
    descr = []
    descr.append(("self", descr))
    with pytest.raises(TypeError, match="AI-11"):
        gridbuf.as_buffer(Dict(interface(typestr="|V8", descr=descr)))


def test_ai_26_masked_arrays_are_refused_and_not_stripped():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for take in (gridbuf.as_numpy, gridbuf.as_buffer):
        with pytest.raises(BufferError, match="AI-26"):
            take(masked)
    assert gridbuf.as_numpy(np.ma.array([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_ai_28_numpy_31036_the_dict_is_kept_with_its_object():
    class Fresh:
        @property
        def __array_interface__(self):
            values = np.arange(1000.0)
            return dict(values.__array_interface__) | {"hidden owner": values}

    buffer = gridbuf.as_buffer(Fresh())
    gc.collect()
    assert buffer.to_numpy().tolist() == list(range(1000))


@pytest.mark.parametrize(
    "name",
    [
        "__array_interface__",
        "__array_struct__",
        "__dlpack__",
        "__cuda_array_interface__",
        "__gt_data_interface__",
    ],
)
@pytest.mark.parametrize("exception", [OSError, TypeError, KeyboardInterrupt])
def test_ai_29_numpy_11629_errors_of_getters_reach_the_caller(name, exception):
    def getter(_self: object) -> None:
        raise exception("from the getter")

    raising = type("Raising", (), {name: property(getter)})()
    with pytest.raises(exception, match="from the getter"):
        gridbuf.as_buffer(raising)


def test_a_producer_that_declines_is_asked_through_its_next_interface():
    class Declines(OnlyDict):
        def __dlpack__(self, **keywords: Any) -> Any:
            raise BufferError("no")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert gridbuf.as_buffer(Declines(VALUES)).shape == (3, 4)

    class DeclinesAll:
        __dlpack__ = Declines.__dlpack__
        __dlpack_device__ = Declines.__dlpack_device__

    with pytest.raises(BufferError, match="^no$"):
        gridbuf.as_buffer(DeclinesAll())


# ---- Array struct. ----


@pytest.mark.parametrize(
    ("rule", "producer"),
    [
        ("AS-01", lambda: Struct(name=b"named")),
        ("AS-02", lambda: Struct(two=3)),
        ("AS-03", lambda: Struct(nd=-1)),
        ("AS-03", lambda: Struct(nd=65)),
        ("AS-03", lambda: Struct(typekind=b"d")),
        ("AS-03", lambda: Struct(itemsize=0)),
        ("AS-04", lambda: Struct(shape=None)),
        ("AS-04", lambda: Struct(strides=None)),
        ("AS-04", lambda: Struct(data=None)),
    ],
)
def test_array_struct_rule_is_named(rule, producer):
    with pytest.raises((TypeError, ValueError), match=f"^{rule}: "):
        gridbuf.as_buffer(producer())


def test_as_01_no_capsule():
    with pytest.raises(TypeError, match="AS-01"):
        gridbuf.as_buffer(Dict(7, "__array_struct__"))


def test_as_07_numpy_20673_the_capsule_is_kept():
    class Temporary:
        @property
        def __array_struct__(self):
            return np.arange(1000.0).__array_struct__

    buffer = gridbuf.as_buffer(Temporary())
    gc.collect()
    assert buffer.to_numpy().tolist() == list(range(1000))


# ---- Pointers and counts that CPython and NumPy believe. ----


def _no_shape(**fields: Any) -> Any:
    return exporter(doubles(MEMORY, 3, **({"shape": None, "strides": None} | fields)))


UNREADABLE = {
    "AS-04 null shape": lambda: Dict(Struct(shape=None).__array_struct__, "__array_struct__"),
    "PB-01 no exception": lambda: exporter(lambda _: True),
    "PB-02 no item size": lambda: _no_shape(itemsize=0),
    "PB-02 negative item size": lambda: _no_shape(itemsize=-1, len=-(2**63)),
    "PB-03 negative length": lambda: _no_shape(len=-8),
    "PB-08 two dimensions": lambda: _no_shape(ndim=2),
    "PB-16 negative ndim": lambda: _no_shape(ndim=-5),
}
READERS = {
    "as_buffer": gridbuf.as_buffer,
    "empty_like": gridbuf.empty_like,
    "get_dims": gridbuf.get_dims,
    "full": lambda value: gridbuf.full((3,), value),
    "alloc_info": gridbuf.alloc_info,
    "cartesian": lambda value: cartesian.from_array(value, backend="numpy"),
    "operand": lambda value: gridbuf.storage.zeros((3,)) + value,
    "initial": lambda value: np.sum(gridbuf.storage.zeros((3,)), initial=value),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.replace(" ", "-"))
def test_no_front_end_follows_such_a_pointer(case, reader):
    with pytest.raises((BufferError, ValueError, TypeError)) as raised:
        READERS[reader](UNREADABLE[case]())
    has_own_message = reader == "alloc_info" or (reader == "initial" and case.startswith("AS"))
    assert has_own_message or str(raised.value).startswith(f"{case[:5]}: ")


def test_as_06_a_null_descr_is_none():
    struct = Dict(Struct(flags=0xF01).__array_struct__, "__array_struct__")
    assert gridbuf.as_numpy(struct).tolist() == [1.0, 2.0, 3.0]
    assert gridbuf.empty_like(struct).shape == (3,)


def test_a_shape_of_one_dimension_may_be_left_out():
    assert gridbuf.as_numpy(_no_shape()).tolist() == [0.0, 1.0, 2.0]
    assert gridbuf.empty_like(_no_shape()).shape == (3,)


# ---- Buffer protocol. ----

MEMORY = (ctypes.c_double * 12)(*range(12))

PB_CASES = {
    "PB-03 length": doubles(MEMORY, 3, len=8),
    "PB-04 format": doubles(MEMORY, 3, format=b"f"),
    "PB-02 itemsize": doubles(MEMORY, 3, itemsize=0),
    "PB-02 null": doubles(MEMORY, 3, buf=None),
    "PB-17 negative": doubles(MEMORY, 3, shape=(-3,)),
    "PB-18 huge stride": doubles(MEMORY, 3, strides=(2**62,)),
    "PB-20 format": doubles(MEMORY, 3, format=b"y"),
    "PB-20 objects": doubles(MEMORY, 3, format=b"O"),
    "PB-32 suboffsets": doubles(MEMORY, 3, suboffsets=(0,)),
}


@pytest.mark.parametrize("case", PB_CASES, ids=lambda case: case.replace(" ", "-"))
def test_buffer_rule_is_named_and_the_buffer_released(case):
    released = []
    producer = exporter(PB_CASES[case], lambda: released.append(1))
    with pytest.raises(BufferError, match=f"^{case.split()[0]}: "):
        gridbuf.as_buffer(producer)
    gc.collect()
    assert released == [1]


def test_pb_16_64_dimensions_come_in_and_65_do_not():
    fill = doubles(MEMORY, 1, ndim=64, shape=(1,) * 64, strides=(8,) * 64)
    assert gridbuf.as_buffer(exporter(fill)).ndim == 64
    fill = doubles(MEMORY, 1, ndim=65, shape=(1,) * 65, strides=(8,) * 65)
    with pytest.raises((BufferError, ValueError), match="64"):
        gridbuf.as_buffer(exporter(fill))  # Python's own memoryview refuses it.


def test_pb_32_negative_and_zero_strides_come_in():
    start = ctypes.addressof(MEMORY) + 3 * 8
    fill = doubles(MEMORY, 6, ndim=2, shape=(2, 3), strides=(0, -8), buf=start, len=48)
    assert gridbuf.as_numpy(exporter(fill)).tolist() == [[3.0, 2.0, 1.0]] * 2


def test_pb_35_the_buffer_is_released_with_the_last_view():
    released = []
    buffer = gridbuf.as_buffer(exporter(doubles(MEMORY, 3), lambda: released.append(1)))
    view = buffer.to_numpy()[1:]
    del buffer
    gc.collect()
    assert released == []
    assert view.tolist() == [1.0, 2.0]
    del view
    gc.collect()
    assert released == [1]


# ---- DLPack. ----

DL_CASES: dict[str, dict[str, Any]] = {
    "DL-07 null shape": {"shape": None, "ndim": 1, "strides": None},
    "DL-07 negative": {"shape": (-3,)},
    "DL-07 ndim": {"ndim": -1},
    "DL-07 65 dimensions": {"shape": (1,) * 65, "strides": (1,) * 65},
    "DL-08 null strides": {"strides": None, "minor": 2},
    "DL-14 huge stride (cupy 10172)": {"strides": (2**62 - 1,)},
    "DL-14 wraps": {"shape": (2**62, 8), "strides": (8, 1)},
    "DL-15 no lanes": {"lanes": 0},
    "DL-17 host 1": {"device_id": 1},
    "DL-22 major 2": {"major": 2, "ndim": 64, "shape": None, "strides": None},
    "DL-22 major 0": {"major": 0},
    "DL-23 code": {"code": 200},
    "DL-23 bits": {"bits": 48},
    "DL-23 bool of a bit": {"code": 6, "bits": 1},
    "DL-24 negative offset (tenferro 474)": {"byte_offset": 2**64 - 40},
    "DL-25 packed": {"code": 17, "bits": 4},
    "DL-23 FP4 of 8 bits (DL-26)": {"code": 17, "bits": 8},
    "DL-27 null": {"data": None},
    "DL-30 lanes": {"lanes": 4, "bits": 16},
}


@pytest.mark.parametrize("case", DL_CASES, ids=lambda case: case.replace(" ", "-"))
@pytest.mark.parametrize("take", [gridbuf.as_numpy, gridbuf.as_buffer, gridbuf.from_array])
def test_dlpack_rule_is_named_and_the_tensor_given_back_once(case, take):
    producer = Tensor(**DL_CASES[case])
    with pytest.raises(BufferError, match=f"^{case.split()[0]}: "):  # DP-09: the right type
        take(producer)
    gc.collect()
    assert producer.deleted == 1


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"versioned": False},
        {"versioned": False, "strides": None},  # cupy #2095
        {"minor": 1, "strides": None},
        {"minor": 99, "flags": 2**40},  # DL-23
        {"strides": (1,), "byte_offset": 0, "has_deleter": False},  # DL-19
    ],
)
def test_dlpack_forms_that_are_right_give_the_values(fields):
    producer = Tensor(**fields)
    view = gridbuf.as_numpy(producer)
    assert view.tolist() == [1.0, 2.0, 3.0]
    assert view.flags.writeable
    del view
    gc.collect()
    assert producer.deleted == (1 if fields.get("has_deleter", True) else 0)


def test_dl_10_pytorch_168177_the_offset_counts():
    assert gridbuf.as_numpy(Tensor(shape=(2,), byte_offset=8)).tolist() == [2.0, 3.0]


def test_dp_32_pytorch_188023_negative_strides_come_in():
    producer = Tensor(byte_offset=16, strides=(-1,))
    assert gridbuf.as_numpy(producer).tolist() == [3.0, 2.0, 1.0]
    assert gridbuf.as_numpy(Tensor(shape=(2, 3), strides=(0, 1))).tolist() == [[1.0, 2.0, 3.0]] * 2


def test_dp_32_zero_dimensions_and_no_elements_come_in():
    assert gridbuf.as_numpy(Tensor(shape=(), strides=None)).tolist() == 1.0
    assert gridbuf.as_numpy(Tensor(shape=(0, 3), strides=(3, 1), data=None)).shape == (0, 3)


def test_dp_32_odd_addresses_come_in():
    memory = ctypes.create_string_buffer(32)
    producer = Tensor(data=ctypes.addressof(memory) + 1)
    np.testing.assert_array_equal(gridbuf.as_numpy(producer), [0.0, 0.0, 0.0])


def test_dp_33_drjit_122_junk_strides_come_in():
    producer = Tensor(shape=(1, 3), strides=(-(2**63), 1))
    assert gridbuf.as_numpy(producer).tolist() == [[1.0, 2.0, 3.0]]


def test_dp_28_read_only_is_kept_and_not_made_up():
    assert not gridbuf.as_numpy(Tensor(flags=1)).flags.writeable
    assert gridbuf.as_numpy(Tensor(flags=0)).flags.writeable
    assert gridbuf.as_numpy(Tensor(versioned=False)).flags.writeable


def test_dp_05_cupy_3611_a_capsule_is_consumed_once():
    producer = Tensor()
    capsule = producer.capsule()
    producer.__dlpack__ = lambda capsule=capsule, **_: capsule  # type: ignore[method-assign]
    first = gridbuf.as_buffer(producer)
    with pytest.raises(BufferError, match="^DP-05: "):
        gridbuf.as_buffer(producer)
    del first
    del capsule
    producer.__dlpack__ = None  # type: ignore[method-assign]
    gc.collect()
    assert producer.deleted == 1


def test_dp_07_numpy_32697_the_capsule_does_not_free_again():
    producer = Tensor(code=200)
    capsule = producer.capsule()
    producer.__dlpack__ = lambda capsule=capsule, **_: capsule  # type: ignore[method-assign]
    with pytest.raises(BufferError, match="DL-23"):
        gridbuf.as_buffer(producer)
    assert producer.deleted == 1
    del capsule
    producer.__dlpack__ = None  # type: ignore[method-assign]
    gc.collect()
    assert producer.deleted == 1


def test_dp_03_other_capsules_are_no_tensors():
    producer = Tensor()
    for wrong in [7, None, np.arange(3.0).__array_struct__]:
        producer.__dlpack__ = lambda wrong=wrong, **_: wrong  # type: ignore[method-assign]
        with pytest.raises(TypeError, match="^DP-03: "):
            gridbuf.as_buffer(producer)


def test_dp_14_producers_of_the_first_standard_are_asked_again():
    class Old(Tensor):
        def __dlpack__(self, stream: int | None = None) -> Any:
            return self.capsule()

    assert gridbuf.as_numpy(Old(versioned=False)).tolist() == [1.0, 2.0, 3.0]


def test_dp_02_and_dp_04_the_device_is_checked():
    producer = Tensor()
    for wrong in [[1, 0], (1,), ("cpu", 0), 1]:
        producer.__dlpack_device__ = lambda wrong=wrong: wrong  # type: ignore[method-assign]
        with pytest.raises(TypeError, match="^DP-02: "):
            gridbuf.as_buffer(producer)
    producer.__dlpack_device__ = lambda: (3, 0)  # type: ignore[method-assign]
    with pytest.raises(BufferError, match="^DP-04: "):
        gridbuf.as_buffer(producer)
    assert producer.deleted == 1

    class Lonely:
        def __dlpack__(self, **_: Any) -> Any:
            return producer.capsule()

    with pytest.raises(TypeError, match="^DP-01: "):
        gridbuf.as_buffer(Lonely())


def test_dp_21_a_copy_is_no_view():
    producer = Tensor(flags=2)
    with pytest.raises(BufferError, match="^DP-21: "):
        gridbuf.as_buffer(producer)
    assert producer.deleted == 1
    assert producer.calls[0]["copy"] is False
    assert gridbuf.from_array(producer).tolist() == [1.0, 2.0, 3.0]
    assert producer.deleted == 2


def test_dp_31_the_tensor_goes_on_any_thread():
    producer = Tensor()
    box = [gridbuf.as_buffer(producer)]
    worker = threading.Thread(target=box.clear)
    worker.start()
    worker.join()
    gc.collect()
    assert producer.deleted == 1


def test_dp_31_pytorch_117273_nothing_is_left_of_10000_imports():
    for fields in ({}, {"shape": (0,), "data": None}, {"code": 200}):
        producer = Tensor(**fields)
        for _ in range(1000):
            if "code" in fields:
                with pytest.raises(BufferError):
                    gridbuf.as_buffer(producer)
            else:
                gridbuf.as_buffer(producer)
        gc.collect()
        assert producer.deleted == 1000


def test_an_import_may_live_at_the_end_of_the_interpreter():
    program = """
import sys; sys.path[:0] = {path!r}
import numpy, gridbuf
from exporters import Tensor
sys.kept = [gridbuf.as_buffer(Tensor()), gridbuf.as_buffer(numpy.arange(3.)), gridbuf.as_buffer(bytearray(8))]
""".format(path=sys.path)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr


# ---- __gt_data_interface__. ----


class Recording:
    """Counts the calls of its hooks, in order."""

    def __init__(self, **changes: Any) -> None:
        self.values = np.arange(3.0)
        self.calls: list[str] = []
        self.changes = changes

    def acquire(self) -> None:
        self.calls.append("acquire")

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        hooks = {
            name: (lambda name=name: self.calls.append(name))
            for name in ("acquire", "release", "touch")
        }
        return {None: {**self.values.__array_interface__, **hooks, "dims": ["K"], **self.changes}}


def test_gt_07_acquire_comes_first_and_release_when_the_memory_goes():
    producer = Recording()
    buffer = gridbuf.as_buffer(producer)
    assert producer.calls == ["acquire"]
    assert buffer.dims == ("K",)
    del buffer
    gc.collect()
    assert producer.calls == ["acquire", "release"]
    gridbuf.from_array(producer)
    gc.collect()
    assert producer.calls == ["acquire", "release"] * 2


def test_gt_07_the_interface_is_read_again_after_acquire():
    class Moving(Recording):
        @property
        def __gt_data_interface__(self) -> dict[Any, Any]:
            def acquire() -> None:
                self.values = np.full(3, 7.0)

            return {None: {**self.values.__array_interface__, "acquire": acquire}}

    assert gridbuf.as_numpy(Moving()).tolist() == [7.0, 7.0, 7.0]


def test_gt_07_release_comes_also_if_the_entry_is_wrong():
    producer = Recording(typestr="f8")
    with pytest.raises(ValueError, match="^AI-06: "):
        gridbuf.as_buffer(producer)
    gc.collect()
    assert producer.calls == ["acquire", "release"]


@pytest.mark.parametrize(
    ("rule", "changes", "exception"),
    [
        ("GT-03", {"acquire": 7}, TypeError),
        ("GT-03", {"touch": "x"}, TypeError),
        ("GT-04", {"dims": ("I", "J")}, ValueError),
        ("GT-04", {"dims": 7}, TypeError),
        ("GT-05", {"halo": ((2, 2),)}, ValueError),
        ("GT-05", {"halo": (1,)}, TypeError),
        ("AI-14", {"data": (None, False)}, TypeError),
    ],
)
def test_data_interface_rule_is_named(rule, changes, exception):
    with pytest.raises(exception, match=f"^{rule}: "):
        gridbuf.as_buffer(Recording(**changes))


def test_gt_01_an_entry_is_under_none_or_gpu():
    for wrong in ({}, {"cpu": {}}, {0: {}}, [1]):
        with pytest.raises((TypeError, ValueError), match="^GT-01: "):
            gridbuf.as_buffer(Dict(wrong, "__gt_data_interface__"))


def test_gt_02_an_entry_needs_no_version():
    class Unversioned(Recording):
        @property
        def __gt_data_interface__(self) -> dict[Any, Any]:
            entry = super().__gt_data_interface__[None]
            del entry["version"]
            return {None: entry}

    producer = Unversioned()
    buffer = gridbuf.as_buffer(producer)
    assert np.shares_memory(np.asarray(buffer), producer.values)
    assert gridbuf.from_array(Unversioned()).tolist() == [0.0, 1.0, 2.0]
    del buffer
    gc.collect()
    assert producer.calls == ["acquire", "release"]


def test_gt_06_other_keys_have_no_effect():
    assert gridbuf.as_buffer(Recording(colour="red")).shape == (3,)


def test_names_are_taken_and_what_is_no_name_needs_dims():
    assert gridbuf.as_buffer(Recording(dims=("lat",))).dims == ("lat",)
    producer = Recording(dims=("along track",))
    with pytest.raises(ValueError, match="pass dims="):
        gridbuf.as_buffer(producer)
    assert gridbuf.as_buffer(producer, dims="J").dims == ("J",)
    assert gridbuf.from_array(producer, dims="J").shape == (3,)
    assert gridbuf.as_numpy(producer).shape == (3,)


def test_errors_of_hooks_reach_the_caller():
    def acquire() -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        gridbuf.as_buffer(Recording(acquire=acquire))


# ---- Origins. ----


def test_get_origin():
    buffer = gridbuf.allocate((3, 4), aligned_index=(1, 2), dims="JI")
    assert gridbuf.get_origin(buffer) == (2, 1)
    assert gridbuf.get_origin(buffer.to_numpy()) == (2, 1)
    assert gridbuf.get_origin(VALUES) is None
    assert gridbuf.get_origin(Dict((1, 2), "default_origin")) == (1, 2)
    assert gridbuf.get_origin(Dict(lambda: (3,), "__gt_origin__")) == (3,)
    with pytest.raises(TypeError, match="__gt_origin__"):
        gridbuf.get_origin(Dict((1.5,), "__gt_origin__"))


# ---- Hostile objects. ----


def test_dicts_that_change_while_they_are_read():
    class Hostile:
        def __init__(self, described: dict[str, Any]) -> None:
            self.described = described

        def __repr__(self) -> str:
            self.described.clear()
            gc.collect()
            return "hostile"

        def __bool__(self) -> bool:
            self.described.clear()
            gc.collect()
            return True

    # What was read before the dict was emptied counts.
    described = interface()
    described["data"] = (described["data"][0], Hostile(described))
    assert gridbuf.as_buffer(Dict(described)).readonly
    for key in ("strides", "shape", "typestr", "version"):
        described = interface()
        described[key] = Hostile(described)
        with pytest.raises((TypeError, ValueError)):
            gridbuf.as_buffer(Dict(described))


def test_flags_that_cannot_be_told():
    class Unknown:
        def __bool__(self) -> bool:
            raise OSError("unknown")

    with pytest.raises(OSError, match="unknown"):
        gridbuf.as_buffer(Dict(interface(data=(VALUES.ctypes.data, Unknown()))))


def test_arguments_are_checked():
    with pytest.raises(TypeError):
        gridbuf.as_buffer()
    with pytest.raises(TypeError):
        gridbuf.as_buffer(VALUES, "IJ")
    with pytest.raises(TypeError, match="sync"):
        gridbuf.from_interface(VALUES.__array_interface__, VALUES, sync="no")
    with pytest.raises(ValueError, match="device"):
        gridbuf.from_interface(VALUES.__array_interface__, VALUES, device="cpu")


# ---- Devices. ----


def test_as_cupy_without_cupy_says_what_is_missing():
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(gridbuf.DeviceUnavailableError, match="cupy"):
            gridbuf.as_cupy(VALUES)
    else:
        pytest.skip("CuPy is installed here: see test_imports_on_cuda")


# ---- The exchange table. ----


def test_the_exchange_table_is_not_asked():
    """PyTorch's says what `__dlpack__` refuses."""

    def export(*_: object) -> int:
        raise AssertionError("called")

    kind = type(with_table(export))
    with pytest.raises(TypeError, match="must be an ndarray, or have the buffer protocol"):
        gridbuf.as_buffer(kind())
    kind.__dlpack__ = lambda _, **options: VALUES.__dlpack__(**options)
    kind.__dlpack_device__ = lambda _: (1, 0)
    assert np.shares_memory(gridbuf.as_numpy(kind()), VALUES)
