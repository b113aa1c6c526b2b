"""The C interface by ctypes: arrays, storages, DLPack, errors, and its border."""

from __future__ import annotations

import ctypes
import gc
import re
import subprocess
import threading
from collections.abc import Callable

import numpy as np
import pytest

import c_library as c
from c_library import CError, access, call, c_lib, info, items, make, options

capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype = ctypes.py_object
capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsule_rename = ctypes.pythonapi.PyCapsule_SetName
capsule_rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
VERSIONED, USED = b"dltensor_versioned", b"used_dltensor_versioned"


class Exported:
    """An array of C as NumPy's producer."""

    def __init__(self, array: ctypes.c_void_p) -> None:
        self.array = array

    def __dlpack__(self, **_: object) -> object:
        return capsule_new(make("array_to_dlpack", self.array), VERSIONED, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def numpy_of(array: ctypes.c_void_p) -> np.ndarray:
    return np.from_dlpack(Exported(array))


def from_numpy(array: np.ndarray, **fields: object) -> ctypes.c_void_p:
    capsule = array.__dlpack__(max_version=(1, 0))
    pointer = capsule_pointer(capsule, VERSIONED)
    capsule_rename(capsule, USED)
    given = ctypes.byref(options(array.shape, **fields)) if fields else None
    return make("array_from_dlpack", ctypes.c_void_p(pointer), given)


def release(*handles: ctypes.c_void_p) -> None:
    for handle, kind in zip(handles[::2], handles[1::2], strict=True):
        call(f"{kind}_release", handle)


def test_an_array_has_the_layout_of_its_backend() -> None:
    array = make(
        "array_create",
        ctypes.byref(
            options(
                (20, 20, 8), backend="gt:cpu_kfirst", halo=[(2, 2), (2, 2), (0, 0)], flags=c.ZEROED
            )
        ),
    )
    found = info("array", array)
    assert (
        found.ndim,
        found.dtype,
        found.dlpack_code,
        found.dlpack_bits,
        found.itemsize_bytes,
    ) == (3, b"float64", 2, 64, 8)
    assert (
        list(found.shape[:3]) == [20, 20, 8]
        and list(found.lower_halo[:3]) == [2, 2, 0]
        and list(found.layout[:3]) == [0, 1, 2]
    )
    assert found.nbytes == 20 * 20 * 8 * 8 and found.memory == 1 and found.kind == 0
    element = found.data + sum(
        i * s for i, s in zip(found.aligned_index[:3], found.strides_bytes[:3], strict=True)
    )
    assert element % found.alignment_bytes == 0
    seen = numpy_of(array)
    assert (
        seen.shape == (20, 20, 8)
        and not seen.any()
        and seen.strides == tuple(found.strides_bytes[:3])
    )
    name, kind = ctypes.create_string_buffer(64), ctypes.c_int32()
    call("array_dim", array, 2, name, ctypes.byref(kind))
    assert (name.value, kind.value) == (b"K", 2)
    release(array, "array")
    seen[...] = 1.0  # the export keeps the memory
    assert seen.sum() == 20 * 20 * 8


def test_names_with_kinds() -> None:
    array = make(
        "array_create",
        ctypes.byref(options((5, 3), dims=["Cell", "Level"], dim_kinds=[0, 2], dtype="int32")),
    )
    name, kind = ctypes.create_string_buffer(64), ctypes.c_int32()
    for axis, expected in enumerate([(b"Cell", 0), (b"Level", 2)]):
        call("array_dim", array, axis, name, ctypes.byref(kind))
        assert (name.value, kind.value) == expected
    with pytest.raises(CError, match="axis is 2, but must be 0 to 1") as error:
        call("array_dim", array, 2, name, None)
    assert error.value.status == c.INDEX
    release(array, "array")


@pytest.mark.parametrize(
    "subscript", [(0,), (slice(1, None, 2), ..., -1), (None, slice(None, None, -1)), ()]
)
def test_views_are_those_of_numpy(subscript: tuple[object, ...]) -> None:
    source = np.arange(60.0).reshape(3, 4, 5)
    array = from_numpy(source)
    view = make("array_view", array, *items(*subscript))
    turned = make("array_transpose", view, None)
    np.testing.assert_array_equal(numpy_of(turned), source[subscript].T)
    assert np.shares_memory(numpy_of(turned), source)
    release(array, "array", view, "array", turned, "array")


def test_wrapped_memory_is_released_once() -> None:
    released = []
    callback = c.RELEASE(lambda context: released.append(context))
    memory = np.arange(12, dtype=np.int16)
    given = options((3, 4), dtype="int16", layout=(1, 0), flags=c.READONLY)
    array = make(
        "array_wrap",
        ctypes.c_void_p(memory.ctypes.data),
        None,
        ctypes.byref(given),
        callback,
        ctypes.c_void_p(7),
    )
    seen = numpy_of(array)
    np.testing.assert_array_equal(seen, memory.reshape(4, 3).T)
    assert not seen.flags.writeable
    with pytest.raises(CError, match="read-only"):
        call("array_fill", array, ctypes.byref(ctypes.c_int16(1)))
    release(array, "array")
    assert not released
    del seen
    gc.collect()
    assert released == [7]
    wrong = options((2, 4), dtype="int16", alignment_bytes=4)
    with pytest.raises(CError, match="whose address is 2 modulo"):
        make(
            "array_wrap",
            ctypes.c_void_p(memory.ctypes.data + 2),
            None,
            ctypes.byref(wrong),
            callback,
            ctypes.c_void_p(8),
        )
    strides = (ctypes.c_int64 * 2)(-2, 6)
    ends = make(
        "array_wrap",
        ctypes.c_void_p(memory.ctypes.data + 4),
        strides,
        ctypes.byref(options((3, 4), dtype="int16")),
        None,
        None,
    )
    np.testing.assert_array_equal(numpy_of(ends), memory.reshape(4, 3).T[::-1])
    release(ends, "array")
    assert released == [7], "release was called after an error"


def test_copies_and_fills() -> None:
    array = make(
        "array_create",
        ctypes.byref(options((4, 6), dtype="float32", alignment_bytes=64, halo=[(1, 1), (1, 1)])),
    )
    call("array_fill", array, ctypes.byref(ctypes.c_float(2.5)))
    domain, copy = make("array_domain", array), make("array_copy", array, 0)
    call("array_fill", domain, ctypes.byref(ctypes.c_float(-1)))
    expected = np.full((4, 6), 2.5, np.float32)
    np.testing.assert_array_equal(numpy_of(copy), expected)
    expected[1:-1, 1:-1] = -1
    np.testing.assert_array_equal(numpy_of(array), expected)
    call("array_copy_from", copy, from_numpy(np.arange(6, dtype=np.float32)))
    np.testing.assert_array_equal(numpy_of(copy), np.tile(np.arange(6, dtype=np.float32), (4, 1)))
    call("array_wait", copy)
    release(array, "array", domain, "array", copy, "array")


NUMBERS = ("int32", "int64", "float16", "float32", "float64")
TYPES = {
    **{name: name for name in ("bool", *NUMBERS)},
    **{name: name for name in ("int8", "int16", "uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("complex64", "complex128", "longdouble")},
    **{name: name for name in (">f4", ">f8", ">i8", ">i4", ">u2", "<M8[ns]", "<M8[s]", "<m8[s]")},
    **{"|S8": "S8", "<U2": "U2", "|V8": "V8", "|V16": "V16"},
    **{"bfloat16": "u2", "float8_e4m3fn": "u1"},
}


def is_converted(to: str, source: str) -> bool:
    """Whether a copy between these types has a meaning that gridbuf knows."""
    to, source = (np.dtype(n).name if TYPES[n] == n else n for n in (to, source))
    if to == source:  # NumPy's names have no byte order
        return True
    target, read = (NUMBERS.index(n) if n in NUMBERS else -1 for n in (to, source))
    return read >= 0 and (target >= 3 or (target >= 2 and read >= 2))


def bfloat16_of(values: np.ndarray) -> np.ndarray:
    return (values.astype("f4").view("u4") >> 16).astype("u2")


def typed(name: str, values: np.ndarray) -> np.ndarray:
    """The values as elements of a type. Small integers, which every number type has."""
    if name == "bfloat16":
        return bfloat16_of(values)
    if np.dtype(TYPES[name]).kind in "SUV":
        return values.astype("i1").astype("S2").astype(TYPES[name])
    return values.astype(TYPES[name])


def wrapped(memory: np.ndarray, name: str) -> ctypes.c_void_p:
    given = ctypes.byref(options(memory.shape, dtype=name))
    return make("array_wrap", ctypes.c_void_p(memory.ctypes.data), None, given, None, None)


def host_storage(array: ctypes.c_void_p) -> ctypes.c_void_p:
    return make("storage_wrap", array, None, c.ON_HOST, None)


@pytest.mark.parametrize("to", TYPES)
def test_copies_convert_or_are_errors(to: str) -> None:
    """Every pair of element types, in both functions that copy between two objects."""
    values = np.arange(6) % 2
    for source in TYPES:
        read = typed(source, values)
        for kind, handle in (("array", lambda array: array), ("storage", host_storage)):
            written = typed(to, 1 - values)
            before = written.tobytes()
            arrays = wrapped(written, to), wrapped(read, source)
            objects = [handle(array) for array in arrays]
            if is_converted(to, source):
                call(f"{kind}_copy_from", *objects)
                assert written.tolist() == typed(to, values).tolist(), (kind, to, source)
            else:
                with pytest.raises(CError, match="the source's element type is .*, but") as error:
                    call(f"{kind}_copy_from", *objects)
                assert error.value.status == c.TYPE
                names = [info("array", array).dtype.decode() for array in arrays]
                assert all(name in str(error.value) for name in names), (names, error.value)
                assert written.tobytes() == before
            release(*[x for array in arrays for x in (array, "array")])
            if kind == "storage":
                release(*[x for made in objects for x in (made, "storage")])


def test_conversions_are_those_of_numpy(emulated: None) -> None:
    """On both sides of storages, with another layout, and in arrays of every memory."""
    values = np.array([[1, -(2**53) - 1, 2**62], [0, 3, 2**31 - 1]])
    places = [
        *({"kind": kind} for kind in (c.ON_HOST, c.ON_DEVICE, c.ON_BOTH, c.CUDA_MANAGED)),
        {"kind": c.ON_BOTH, "layout": (0, 1)},
    ]
    for source_place in places:
        for target_place in places:
            source = make(
                "storage_create", ctypes.byref(options((2, 3), dtype="int64", **source_place))
            )
            side = c.DEVICE if source_place["kind"] == c.ON_DEVICE else c.HOST
            exported = make("storage_array", source, side, 1)
            call("array_copy_from", exported, wrapped(values, "int64"))
            release(exported, "array")
            target = make(
                "storage_create", ctypes.byref(options((2, 3), dtype="float32", **target_place))
            )
            call("storage_copy_from", target, source)
            side = c.DEVICE if target_place["kind"] == c.ON_DEVICE else c.HOST
            seen = make("storage_array", target, side, 0)
            back = make("array_copy", seen, 1)
            np.testing.assert_array_equal(numpy_of(back), values.astype("f4"))
            release(seen, "array", back, "array", source, "storage", target, "storage")
    for memory in (1, 2, 3, 13):
        array = make("array_create", ctypes.byref(options((2, 3), memory=memory)))
        call("array_copy_from", array, wrapped(values[1], "int64"))  # broadcast
        back = make("array_copy", array, 1)
        np.testing.assert_array_equal(numpy_of(back), np.tile(values[1].astype("f8"), (2, 1)))
        single = make("array_create", ctypes.byref(options((2, 3), dtype="float32", memory=1)))
        call("array_copy_from", single, array)
        np.testing.assert_array_equal(numpy_of(single), numpy_of(back).astype("f4"))
        release(array, "array", back, "array", single, "array")


def test_a_storage_of_two_arrays_has_one_type(emulated: None) -> None:
    for to in TYPES:
        for source in TYPES:
            host = make("array_create", ctypes.byref(options((3,), dtype=to)))
            device = make("array_create", ctypes.byref(options((3,), dtype=source, memory=2)))
            if to == source:
                release(make("storage_wrap", host, device, 0, None), "storage")
            else:
                with pytest.raises(CError, match="the device buffer's dtype") as error:
                    make("storage_wrap", host, device, 0, None)
                assert error.value.status == c.VALUE
            release(host, "array", device, "array")


def is_current(storage: ctypes.c_void_p, side: int) -> int:
    out = ctypes.c_int32(-1)
    call("storage_is_current", storage, side, ctypes.byref(out))
    return out.value


def test_a_storage_copies_what_has_changed(emulated: None) -> None:
    given = options(
        (6, 5),
        backend="gt:gpu",
        halo=[(1, 1), (0, 0)],
        flags=c.ZEROED,
        device_layout=(0, 1),
        device_alignment_bytes=64,
    )
    storage = make("storage_create", ctypes.byref(given))
    assert info("storage", storage, c.HOST).kind == c.ON_BOTH
    assert info("storage", storage, c.DEVICE).memory == 2
    access(storage, c.HOST, c.WRITE)[...] = np.arange(30.0).reshape(6, 5)
    assert (is_current(storage, c.HOST), is_current(storage, c.DEVICE)) == (1, 0)
    # The emulated device's memory is the host's.
    copied = make("storage_array", storage, c.DEVICE, 0)
    host = make("array_copy", copied, 1)
    np.testing.assert_array_equal(numpy_of(host), np.arange(30.0).reshape(6, 5))
    domain = make("storage_domain", storage)
    access(domain, c.HOST, c.READ_WRITE)[...] *= 2
    call("storage_synchronize", storage)
    assert is_current(storage, c.DEVICE) == 1
    call("storage_set_modified", domain, c.DEVICE)
    with pytest.raises(CError) as error:
        call("storage_set_modified", storage, c.HOST)
    assert error.value.status == c.SYNC_CONFLICT
    call("storage_update", storage, c.HOST, 0)
    expected = np.arange(30.0).reshape(6, 5)
    expected[1:-1] *= 2
    np.testing.assert_array_equal(access(storage, c.HOST, c.READ), expected)
    call("storage_set_halo", storage, (ctypes.c_int64 * 4)(0, 0, 2, 1))
    assert info("storage", storage, c.HOST).lower_halo[1] == 2
    depths = (ctypes.c_int64 * 4)()
    call("storage_mark_halo", storage, None)
    call("storage_valid_halo", storage, depths)
    assert list(depths) == [0, 0, 2, 1]
    access(storage, c.HOST, c.READ_WRITE)
    call("storage_valid_halo", storage, depths)
    assert list(depths) == [0, 0, 0, 0]
    call("storage_mark_halo", storage, (ctypes.c_int64 * 4)(0, 0, 1, 1))
    call("storage_valid_halo", storage, depths)
    assert list(depths) == [0, 0, 1, 1]
    for handle, wrong in ((storage, (0, 0, 3, 0)), (storage, (0, 0, -1, 0)), (domain, (0,) * 4)):
        with pytest.raises(CError) as error:
            call("storage_mark_halo", handle, (ctypes.c_int64 * 4)(*wrong))
        assert error.value.status == c.VALUE
    with pytest.raises(CError) as error:
        call("storage_valid_halo", storage, None)
    assert error.value.status == c.VALUE
    copy = make("storage_copy", storage)
    access(copy, c.HOST, c.READ_WRITE)[...] += 1
    call("storage_copy_from", storage, copy)
    np.testing.assert_array_equal(access(storage, c.HOST, c.READ), expected + 1)
    row = make("storage_view", storage, *items(2))
    turned = make("storage_transpose", storage, None)
    np.testing.assert_array_equal(access(row, c.HOST, c.READ), expected[2] + 1)
    np.testing.assert_array_equal(access(turned, c.HOST, c.READ), (expected + 1).T)
    release(copied, "array", host, "array")
    release(*[x for handle in (storage, domain, copy, row, turned) for x in (handle, "storage")])


def test_a_storage_of_existing_memory(emulated: None) -> None:
    model = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    host = from_numpy(model, halo=[(1, 1), (0, 0)])
    second = options((), device_alignment_bytes=64)
    storage = make("storage_wrap", host, None, c.ON_BOTH, ctypes.byref(second))
    release(host, "array")
    assert info("storage", storage, c.DEVICE).alignment_bytes == 64
    device = make("storage_array", storage, c.DEVICE, 1)
    call("array_fill", device, ctypes.byref(ctypes.c_double(5)))
    release(device, "array")
    access(storage, c.HOST, c.READ)
    assert (model == 5).all()
    plain = make("storage_wrap", from_numpy(model), None, 0, None)
    with pytest.raises(CError, match="side is the device") as error:
        access(plain, c.DEVICE, c.READ)
    assert error.value.status == c.NO_SUCH_BUFFER
    release(storage, "storage", plain, "storage")


def delayed(*extents: int, **fields: object) -> ctypes.c_void_p:
    given = ctypes.byref(options(extents, flags=c.DELAYED | c.ZEROED, **fields))
    return make("storage_create", given)


def statistics() -> c.MemoryInfo:
    found = c.MemoryInfo(struct_bytes=ctypes.sizeof(c.MemoryInfo))
    call("memory_statistics", ctypes.byref(found))
    return found


def test_a_delayed_storage_is_allocated_once(emulated: None) -> None:
    before = statistics().live_bytes
    call("storage_release", delayed(1 << 20))
    assert statistics().live_bytes == before
    for _ in range(20):
        storage = delayed(1 << 20, kind=3)
        assert statistics().live_bytes == before
        barrier, found = threading.Barrier(4), []

        def use(barrier=barrier, storage=storage, found=found) -> None:
            barrier.wait()
            found.append(access(storage, c.HOST, c.READ).ctypes.data)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1
        assert access(storage, c.HOST, c.READ_WRITE).sum() == 0.0
        call("storage_release", storage)
        assert statistics().live_bytes == before


@pytest.mark.parametrize(
    "use",
    [
        lambda storage: info("storage", storage, c.HOST),
        lambda storage: call("storage_synchronize", storage),
        lambda storage: call("storage_release", make("storage_domain", storage)),
        lambda storage: call("storage_release", make("storage_copy", storage)),
        lambda storage: call("storage_copy_from", storage, storage),
    ],
)
def test_every_use_of_a_delayed_storage_allocates(use: Callable[[ctypes.c_void_p], object]) -> None:
    before = statistics().live_bytes
    storage = delayed(1 << 20)
    call("set_memory_limit", ctypes.c_int64(before + (1 << 20)))
    for _ in range(2):
        with pytest.raises(CError, match="limit") as error:
            use(storage)
        assert error.value.status == c.MEMORY
    call("set_memory_limit", ctypes.c_int64(2**63 - 1))
    use(storage)
    assert statistics().live_bytes >= before + (8 << 20)
    call("storage_release", storage)
    with pytest.raises(CError, match="options->flags is GRIDBUF_READONLY or DELAYED"):
        make("array_create", ctypes.byref(options((3,), flags=c.DELAYED)))
    given = ctypes.byref(options((0,), flags=c.DELAYED))
    with pytest.raises(CError, match="flags is 8, but must be 0 or GRIDBUF_READONLY"):
        make("array_wrap", ctypes.c_char_p(b""), None, given, None, None)


def test_a_random_sequence_follows_the_model(emulated: None) -> None:
    """3,000 random accesses of views on both sides, against one NumPy array."""
    random = np.random.default_rng(45)
    shape = (7, 6, 5)
    storage = make(
        "storage_create",
        ctypes.byref(
            options(
                shape, kind=c.ON_BOTH, flags=c.ZEROED, layout=(2, 0, 1), device_alignment_bytes=32
            )
        ),
    )
    model = np.zeros(shape)
    for step in range(3_000):
        subscript = tuple(slice(*sorted(random.integers(0, n + 1, 2).tolist())) for n in shape)
        view = make("storage_view", storage, *items(*subscript))
        side, mode = int(random.integers(2)), int(random.integers(3))
        if side == c.HOST:
            seen = access(view, side, mode)
            if mode == c.WRITE:
                seen[...] = step
            elif mode == c.READ_WRITE:
                seen += 1
            if mode != c.READ:
                model[subscript] = step if mode == c.WRITE else model[subscript] + 1
            np.testing.assert_array_equal(seen, model[subscript], f"step {step}")
        else:
            exported = make("storage_array", view, side, int(mode != c.READ))
            if mode != c.READ:
                call("array_fill", exported, ctypes.byref(ctypes.c_double(step)))
                model[subscript] = step
            copy = make("array_copy", exported, 1)
            np.testing.assert_array_equal(numpy_of(copy), model[subscript], f"step {step}")
            release(copy, "array", exported, "array")
        release(view, "storage")
    np.testing.assert_array_equal(access(storage, c.HOST, c.READ), model)
    release(storage, "storage")


@pytest.mark.parametrize(
    ("fields", "shape", "status", "text"),
    [
        ({"dtype": "float65"}, (3,), c.VALUE, "float65"),
        ({"dtype": "|O8"}, (3,), c.TYPE, "O8"),
        ({"backend": "gt:gpuu"}, (3,), c.VALUE, "gt:gpuu"),
        ({"ndim": 65}, (3,), c.VALUE, "options->ndim is 65, but must be 0 to 64"),
        ({"ndim": -1}, (3,), c.VALUE, "options->ndim is -1"),
        ({"shape": None}, (3,), c.VALUE, "options->shape is NULL"),
        ({}, (3, -1), c.VALUE, "-1"),
        ({}, (2**40, 2**40), c.VALUE, "1099511627776"),
        ({}, (2**59,), c.MEMORY, "EiB"),
        ({"halo": [(2, 2)]}, (3,), c.VALUE, "halo"),
        ({"layout": (1, 1)}, (3, 3), c.VALUE, "layout"),
        ({"alignment_bytes": -1}, (3, 3), c.VALUE, "alignment"),
        ({"dims": ["I", "I"]}, (3, 3), c.VALUE, "I"),
        ({"dims": ["I", None]}, (3, 3), c.VALUE, r"options->dims\[1\] is NULL"),
        ({"dims": ["Cell", "K"], "dim_kinds": [9, 0]}, (3, 3), c.VALUE, "dim_kinds"),
        ({"flags": 16}, (3,), c.VALUE, "flags"),
        ({"memory": 5}, (3,), c.VALUE, "memory is 5"),
        ({"struct_bytes": 3}, (3,), c.VALUE, "struct_bytes is 3, but must be at least 120"),
    ],
)
def test_wrong_options(
    fields: dict[str, object], shape: tuple[int, ...], status: int, text: str
) -> None:
    wrong = options(shape, **fields)
    for kind in ("array", "storage"):
        with pytest.raises(CError, match=text) as error:
            make(f"{kind}_create", ctypes.byref(wrong))
        assert error.value.status == status


def test_a_longer_struct_is_read_if_what_is_unknown_is_zero() -> None:
    class Longer(ctypes.Structure):
        _fields_ = [("options", c.Options), ("later", ctypes.c_int64)]

    longer = Longer(options=options((3,)))
    longer.options.struct_bytes = ctypes.sizeof(Longer)
    release(make("array_create", ctypes.byref(longer)), "array")
    longer.later = 256
    with pytest.raises(CError, match="byte 121 of options is 1, but must be 0"):
        make("array_create", ctypes.byref(longer))


def test_wrong_handles() -> None:
    array = make("array_create", ctypes.byref(options((3,))))
    storage = make("storage_create", ctypes.byref(options((3,))))
    for wrong in (None, storage, ctypes.create_string_buffer(64)):
        with pytest.raises(CError, match="array is"):
            info("array", wrong)
        with pytest.raises(CError, match="out is NULL"):
            call("array_domain", array, None)
    with pytest.raises(CError, match="storage is"):
        access(array, c.HOST, c.READ)
    call("array_release", None)
    release(array, "array", storage, "storage")


def test_memory_and_threads_of_the_process() -> None:
    before = c.MemoryInfo(struct_bytes=ctypes.sizeof(c.MemoryInfo))
    call("memory_statistics", ctypes.byref(before))
    array = make("array_create", ctypes.byref(options((1 << 20,))))
    after = c.MemoryInfo(struct_bytes=ctypes.sizeof(c.MemoryInfo))
    call("memory_statistics", ctypes.byref(after))
    assert after.live_blocks == before.live_blocks + 1
    release(array, "array")
    freed = ctypes.c_int64(-1)
    call("trim_memory", ctypes.c_int64(0), ctypes.byref(freed))
    assert freed.value >= 0
    with pytest.raises(CError, match="keep_bytes is -1"):
        call("trim_memory", ctypes.c_int64(-1), None)
    count = c_lib.gridbuf_thread_count()
    call("set_thread_count", 1)
    assert c_lib.gridbuf_thread_count() == 1
    call("set_thread_count", count)
    with pytest.raises(CError):
        call("set_thread_count", 0)
    with pytest.raises(CError):
        call("set_cache_limit", ctypes.c_int64(-1))
    call("set_memory_limit", ctypes.c_int64(4 << 20))
    with pytest.raises(CError, match="limit") as error:
        make("array_create", ctypes.byref(options((1 << 20,))))
    assert error.value.status == c.MEMORY
    call("set_memory_limit", ctypes.c_int64(2**63 - 1))


def test_without_a_device() -> None:
    call("use_emulated_device", 0, None)
    with pytest.raises(CError) as error:
        make("storage_create", ctypes.byref(options((3,), backend="gt:gpu")))
    assert error.value.status == c.DEVICE_UNAVAILABLE
    with pytest.raises(CError):
        call("check_device")


def test_the_library_shows_the_functions_of_its_header_only() -> None:
    declared = set(
        re.findall(
            r"\b(gridbuf_\w+)\(", re.sub(r"/\*.*?\*/", "", c.HEADER.read_text(), flags=re.DOTALL)
        )
    )
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", c.LIBRARY], check=True, capture_output=True, text=True
    ).stdout
    assert {line.split()[-1] for line in listed.splitlines()} == declared | {
        "gridbuf_private_object"
    }
    assert len(declared) == 55
    needed = subprocess.run(
        ["readelf", "-d", c.LIBRARY], check=True, capture_output=True, text=True
    ).stdout
    assert "[libgridbuf.so.0]" in needed
    assert c_lib.gridbuf_abi() == 0 and re.fullmatch(rb"\d+\.\d+\.\d+.*", c_lib.gridbuf_version())


def test_a_workspace_is_a_stack() -> None:
    space = make("workspace_create", ctypes.c_int64(1 << 30))
    blocks = []
    for nbytes, alignment in ((100, 0), (1 << 20, 4096), (0, 1)):
        block = ctypes.c_void_p()
        call(
            "workspace_push",
            space,
            ctypes.c_int64(nbytes),
            ctypes.c_int64(alignment),
            ctypes.byref(block),
        )
        assert block.value is not None and block.value % (alignment or 64) == 0
        ctypes.memset(block, 1, nbytes)
        blocks.append(block)
    with pytest.raises(CError, match="opposite order") as error:
        call("workspace_pop", space, blocks[0])
    assert error.value.status == c.VALUE
    with pytest.raises(CError) as error:
        call(
            "workspace_push", space, ctypes.c_int64(1 << 30), ctypes.c_int64(0), ctypes.byref(block)
        )
    assert error.value.status == c.MEMORY
    peak = ctypes.c_int64()
    call("workspace_peak", space, ctypes.byref(peak))
    assert 1 << 20 < peak.value < 1 << 21
    for block in reversed(blocks):
        call("workspace_pop", space, block)
    freed = ctypes.c_int64()
    call("workspace_trim", space, ctypes.byref(freed))
    assert freed.value >= 1 << 20
    release(space, "workspace")
    for wrong in (None, make("array_create", ctypes.byref(options((1,))))):
        with pytest.raises(CError):
            call("workspace_pop", wrong, None)
    call("workspace_release", None)


def test_no_layout_changes_a_digest() -> None:
    def digest(storage: object) -> tuple[int, ...]:
        found = (ctypes.c_uint64 * 2)()
        call("storage_digest", storage, found)
        return tuple(found)

    storage = make("storage_create", ctypes.byref(options((4, 5), halo=[(1, 1), (0, 0)])))
    access(storage, c.HOST, c.WRITE)[...] = np.arange(20.0).reshape(4, 5)
    other = make("storage_create", ctypes.byref(options((2, 5), layout=(1, 0))))
    access(other, c.HOST, c.WRITE)[...] = np.arange(5.0, 15.0).reshape(2, 5)
    assert digest(storage) == digest(other)
    access(other, c.HOST, c.READ_WRITE)[1, 4] = 14.5
    assert digest(storage) != digest(other)
    with pytest.raises(CError):
        call("storage_digest", storage, None)
