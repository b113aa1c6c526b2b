"""`gridbuf.copyto`: accepted operands, refusals, warnings, devices, threads. Bytes: test_copyto_random.py."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import gridbuf
import gridbuf.storage
import gridbuf.testing
import numpy as np
import pytest
from exporters import Tensor
from gridbuf import memory

NUMBERS = np.arange(12.0).reshape(3, 4)


# ---- Accepted operands. ----


def targets() -> dict[str, Callable[[], tuple[Any, Callable[[Any], np.ndarray]]]]:
    return {
        "ndarray": lambda: (np.zeros((3, 4)), np.asarray),
        "ndarray F": lambda: (np.zeros((3, 4), order="F"), np.asarray),
        "subclass": lambda: (np.zeros((3, 4)).view(np.recarray), np.asarray),
        "Buffer": lambda: (gridbuf.zeros((3, 4), alignment_size=64).base, gridbuf.as_numpy),
        "memoryview": lambda: (memoryview(np.zeros((3, 4))), np.asarray),
        "storage": lambda: (gridbuf.storage.zeros((3, 4), dims="IJ"), np.asarray),
        "ctypes": lambda: ((ctypes.c_double * 4 * 3)(), np.asarray),
    }


def sources() -> dict[str, Any]:
    return {
        "ndarray": NUMBERS,
        "reversed": NUMBERS[::-1, ::-1].copy()[::-1, ::-1],
        "swapped": NUMBERS.astype(">f8"),
        "list": NUMBERS.tolist(),
        "Buffer": gridbuf.from_array(NUMBERS, layout=(1, 0)).base,
        "memoryview": memoryview(NUMBERS),
        "storage": gridbuf.storage.storage(NUMBERS, dims="IJ"),
        "integers": NUMBERS.astype(np.int32),
    }


@pytest.mark.parametrize("source", sources())
@pytest.mark.parametrize("target", targets())
def test_any_array_into_any_other(target: str, source: str) -> None:
    array, read = targets()[target]()
    assert gridbuf.copyto(array, sources()[source]) is None  # type: ignore[func-returns-value]
    np.testing.assert_array_equal(read(array), NUMBERS)


@pytest.mark.parametrize("value", [7, 7.5, True, np.float32(2.5), np.int8(-3), "17", b"17"])
@pytest.mark.parametrize("target", targets())
def test_values_go_everywhere(target: str, value: Any) -> None:
    array, read = targets()[target]()
    gridbuf.copyto(array, value, "unsafe" if isinstance(value, (str, bytes)) else "same_kind")
    assert (read(array) == np.float64(value)).all()


def test_python_numbers_have_no_type_of_their_own() -> None:
    small = np.zeros(3, np.int8)
    gridbuf.copyto(small, 100)
    assert (small == 100).all()
    with pytest.raises(OverflowError):
        gridbuf.copyto(small, 300)
    with pytest.raises(TypeError, match="float64"):
        gridbuf.copyto(small, 1.5)
    assert (small == 100).all()


def test_the_data_interface_is_acquired_written_and_told() -> None:
    calls: list[str] = []
    array = np.zeros((3, 4))
    entry = dict(array.__array_interface__)
    entry |= {
        name: lambda name=name: calls.append(name) for name in ("acquire", "touch", "release")
    }

    class Foreign:
        @property
        def __gt_data_interface__(self) -> dict[Any, Any]:
            return {None: entry}

    gridbuf.copyto(Foreign(), NUMBERS)
    gc.collect()
    assert (array == NUMBERS).all()
    assert calls == ["acquire", "touch", "release"]
    calls.clear()
    read = np.zeros((3, 4))
    gridbuf.copyto(read, Foreign())
    assert (read == NUMBERS).all()
    assert calls == ["acquire", "release"]


def test_storages_join_by_the_names_of_dimensions() -> None:
    target = gridbuf.storage.zeros((3, 4), dims="IJ")
    gridbuf.copyto(target, gridbuf.storage.storage(NUMBERS.T.copy(), dims="JI"))
    np.testing.assert_array_equal(np.asarray(target), NUMBERS)
    profile = gridbuf.storage.storage(np.arange(3.0), dims="I")
    gridbuf.copyto(target, profile, where=gridbuf.storage.storage(np.ones(4, bool), dims="J"))
    np.testing.assert_array_equal(np.asarray(target), np.arange(3.0)[:, None].repeat(4, 1))
    array = np.zeros((3, 4))
    gridbuf.copyto(array, target)
    np.testing.assert_array_equal(array, np.asarray(target))


# ---- Masks. ----


@pytest.mark.parametrize(
    "where",
    [
        NUMBERS > 5,
        [True, False, True, True],
        np.array([[True], [False], [True]]),
        np.True_,
        np.False_,
        False,
        memoryview((NUMBERS > 3).copy()),
        gridbuf.from_array(NUMBERS > 7).base,
    ],
    ids=lambda where: type(where).__name__,
)
def test_masks_are_any_arrays_of_bool(where: Any) -> None:
    target, expected = np.zeros((3, 4)), np.zeros((3, 4))
    gridbuf.copyto(target, NUMBERS, where=where)
    np.copyto(expected, NUMBERS, where=np.asarray(where))
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("where", [1, 0.0, None, NUMBERS, "yes", [1, 0, 1, 1], np.uint8(1)])
def test_other_masks_are_refused(where: Any) -> None:
    with pytest.raises(TypeError, match="where's dtype .* must be bool"):
        gridbuf.copyto(np.zeros((3, 4)), NUMBERS, where=where)


# ---- Refusals. ----


def test_casts_that_are_not_allowed() -> None:
    target = np.zeros((3, 4), np.int32)
    with pytest.raises(
        TypeError, match=r"dtype\('float64'\).*casting='same_kind'.*'int32'.*unsafe"
    ):
        gridbuf.copyto(target, NUMBERS)
    with pytest.raises(TypeError, match="casting='no'"):
        gridbuf.copyto(np.zeros((3, 4)), NUMBERS.astype(">f8"), "no")
    with pytest.raises(TypeError, match="casting='safe'"):
        gridbuf.copyto(np.zeros((3, 4), "f4"), NUMBERS, casting="safe")
    assert not target.any()


@pytest.mark.parametrize(
    ("casting", "error"),
    [("same", ValueError), ("", ValueError), ("UNSAFE", ValueError), ("\ud800", ValueError),
     (None, TypeError), (4, TypeError), (b"unsafe", TypeError)],
)  # fmt: skip
def test_casting_is_one_of_numpys_words(casting: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        gridbuf.copyto(np.zeros(3), 1.0, casting=casting)


@pytest.mark.parametrize(
    "target",
    [
        np.broadcast_to(0.0, (3, 4)),
        gridbuf.zeros((3, 4)).base.toreadonly(),
        memoryview(bytes(12)),
        b"12",
        np.float64(3),
        gridbuf.storage.as_storage(np.broadcast_to(0.0, (3, 4)), dims="IJ"),
    ],
    ids=lambda target: type(target).__name__,
)
def test_memory_that_cannot_be_written(target: Any) -> None:
    with pytest.raises(ValueError, match="read-only"):
        gridbuf.copyto(target, 1)


@pytest.mark.parametrize(
    "target", [None, 3, [1.0, 2.0], (), "text", object(), {}, np.ma.masked_array([1.0], [True])]
)
def test_what_is_no_array_is_no_target(target: Any) -> None:
    with pytest.raises((TypeError, BufferError)):
        gridbuf.copyto(target, 1)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (3, 1, 4), (2, 3, 4), (0,), (3, 0)])
def test_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    target = np.zeros((3, 4))
    with pytest.raises(ValueError, match="src's shape is .* must be one that NumPy broadcasts to"):
        gridbuf.copyto(target, np.ones(shape))
    with pytest.raises(ValueError, match="src's shape"):
        gridbuf.copyto(target, np.ones(shape, "f4"))
    with pytest.raises(ValueError, match="where's shape"):
        gridbuf.copyto(target, 1.0, where=np.ones(shape, bool))
    assert not target.any()


def test_leading_extents_of_one_are_dropped_of_the_source_alone() -> None:
    target = np.zeros((3, 4))
    gridbuf.copyto(target, np.ones((1, 1, 3, 4)))
    assert target.all()
    with pytest.raises(ValueError, match="where's shape"):
        gridbuf.copyto(target, 0, where=np.ones((1, 3, 4), bool))


def test_parameters() -> None:
    for arguments in ((), (NUMBERS,), (NUMBERS, 1, "unsafe", True, 5)):
        with pytest.raises(TypeError, match="copyto"):
            gridbuf.copyto(*arguments)
    with pytest.raises(TypeError, match="banana"):
        gridbuf.copyto(np.zeros(3), 1, banana=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="dst"):
        gridbuf.copyto(np.zeros(3), 1, dst=2)  # type: ignore[misc]
    target = np.zeros(3)
    gridbuf.copyto(src=2.0, dst=target, where=True, casting="safe")
    assert (target == 2).all()


def test_hostile_operands() -> None:
    recursive: list[Any] = []
    recursive.append(recursive)
    deep: Any = 1.0
    for _ in range(5000):
        deep = [deep]
    bad = [recursive, deep, [1, [2, 3]], [NUMBERS, 3], Tensor(lanes=3), Tensor(device_type=99), "text", None,
           np.array([None]), {1: 2}, lambda: 3, type, np.dtype("f8"), iter([1, 2]), 10**400]  # fmt: skip
    for operand in bad:
        for call in (
            lambda operand=operand: gridbuf.copyto(np.zeros((3, 4)), operand),
            lambda operand=operand: gridbuf.copyto(operand, NUMBERS),
            lambda operand=operand: gridbuf.copyto(np.zeros((3, 4)), NUMBERS, where=operand),
        ):
            try:
                call()
            except (TypeError, ValueError, OverflowError, BufferError, RecursionError):
                continue
    try:
        gridbuf.copyto(np.zeros((1,) * 64), np.ones((1,) * 64))
        gridbuf.copyto(np.zeros(()), np.ones((1,) * 64))
    except ValueError as error:  # pragma: no cover (64 dimensions are within the bound)
        raise AssertionError from error


@pytest.mark.parametrize("copyto", [np.copyto, gridbuf.copyto])
def test_an_array_that_changes_its_type_meanwhile_is_written_as_by_numpy(copyto: Any) -> None:
    target = np.zeros(64, "f8")
    memory = target.view("f8")

    def show(*arguments: Any, **keywords: Any) -> None:
        target.dtype = np.dtype("u1")  # type: ignore[misc]

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        copyto(target, np.arange(64) + 1j, casting="unsafe")
    assert target.dtype == "u1"
    assert memory.tolist() == list(range(64))


# ---- Elements that only NumPy knows. ----


def test_objects_records_and_dates_are_numpys() -> None:
    objects = np.empty(3, object)
    gridbuf.copyto(objects, [1, "a", None])
    assert objects.tolist() == [1, "a", None]
    gridbuf.copyto(objects, np.arange(3))
    assert objects.tolist() == [0, 1, 2]
    numbers = np.zeros(3)
    gridbuf.copyto(numbers, objects, casting="unsafe")
    assert numbers.tolist() == [0, 1, 2]
    days = np.zeros(2, "M8[D]")
    gridbuf.copyto(days, np.array(["2026-11-22T10", "1970-01-02T03"], "M8[h]"))
    assert days.astype(str).tolist() == ["2026-11-22", "1970-01-02"]
    texts = np.zeros(2, "U5")
    gridbuf.copyto(texts, np.array([1, 22]), casting="unsafe")
    assert texts.tolist() == ["1", "22"]
    records = np.zeros(2, [("x", "f8"), ("y", "i4")])
    gridbuf.copyto(
        records, np.array([(1, 2), (3, 4)], [("a", "i2"), ("b", "i2")]), casting="unsafe"
    )
    assert records.tolist() == [(1.0, 2), (3.0, 4)]
    gridbuf.copyto(records["y"], 9)
    assert records["y"].tolist() == [9, 9]
    long = np.zeros(2, np.longdouble)
    gridbuf.copyto(long, [1.5, 2.5])
    assert long.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 0, 2), (0, 2, 1)])
def test_numpy_converts_between_layouts_in_blocks(order: tuple[int, int, int]) -> None:
    source = np.arange(60 * 500 * 251).reshape(60, 500, 251)
    target = gridbuf.empty(source.shape, "i2", layout=order)
    tracemalloc.start()
    gridbuf.copyto(target[:, ::-1], source, casting="unsafe")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (target == source[:, ::-1].astype("i2")).all()
    assert peak < source.nbytes / 3  # 60 MB; a block has 16 MiB


def test_equal_record_types_copy_their_fields() -> None:
    """The types are equal, and two objects; test_gaps.py tests the bytes between the fields."""
    padded = np.dtype([("a", "u1"), ("b", "f8")], align=True)
    source = np.zeros(3, padded)
    source["a"], source["b"] = [1, 2, 3], [4, 5, 6]
    target = np.zeros(3, np.dtype([("a", "u1"), ("b", "f8")], align=True))
    gridbuf.copyto(target, source)
    assert target.tolist() == source.tolist()


# ---- Warnings. ----


@pytest.mark.parametrize(
    ("to", "value", "message"),
    [("i4", np.nan, "invalid"), ("u1", 1e300, "invalid"), ("i8", np.inf, "invalid"),
     ("f4", 1e300, "overflow"), ("f2", 1e6, "overflow")],
)  # fmt: skip
def test_numbers_that_cannot_be_kept_warn_as_in_numpy(to: str, value: float, message: str) -> None:
    source = np.full((5, 6), 3.0)
    source[2, 3] = value
    for call in (np.copyto, gridbuf.copyto):
        target = np.zeros((5, 6), to)
        with pytest.warns(RuntimeWarning, match=f"{message} (value )?encountered in cast"):
            call(target, source, casting="unsafe")
        assert target[0, 0] == 3
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=message):
            call(target, source, casting="unsafe")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            call(target, source, casting="unsafe")
        # What the mask leaves out is not looked at.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(target, source, casting="unsafe", where=source == 3)


@pytest.mark.parametrize("copyto", [np.copyto, gridbuf.copyto])
def test_an_imaginary_part_that_is_lost_warns_as_in_numpy(copyto: Any) -> None:
    source = np.array([1 + 2j, 3 - 4j])
    target = np.zeros(2)
    for part in (slice(None), slice(0)):
        with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
            copyto(target[part], source[part], casting="unsafe")
    assert target.tolist() == [1, 3]
    target[:] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(np.exceptions.ComplexWarning):
            copyto(target, source, casting="unsafe")
        copyto(np.zeros(2, bool), source, casting="unsafe")
    assert not target.any()


# ---- Devices. ----


@pytest.fixture
def device() -> Any:
    with gridbuf.testing.emulated_device():
        yield


def on_host(array: Any) -> np.ndarray:
    return array.copy(memory="host").to_numpy()  # type: ignore[no-any-return]


KINDS = ("host", "pinned", "managed", "device")


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_between_all_kinds_of_memory(device: None, target: str, source: str) -> None:
    for layout in ((0, 1), (1, 0)):
        to = gridbuf.allocate((3, 4), memory=target, layout=layout, alignment_size=64)
        of = gridbuf.from_array(NUMBERS).base.copy(memory=source)
        gridbuf.copyto(to, 0)
        assert not on_host(to).any()
        gridbuf.copyto(to, of)
        np.testing.assert_array_equal(on_host(to), NUMBERS)
        gridbuf.copyto(to, of[::-1], where=NUMBERS > 6)
        np.testing.assert_array_equal(on_host(to), np.where(NUMBERS > 6, NUMBERS[::-1], NUMBERS))
        gridbuf.copyto(to, of[0])
        np.testing.assert_array_equal(on_host(to), np.broadcast_to(NUMBERS[0], (3, 4)))


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_conversions_between_all_kinds_of_memory(device: None, target: str, source: str) -> None:
    to = gridbuf.allocate((3, 4), "i2", memory=target)
    of = gridbuf.from_array(NUMBERS).base.copy(memory=source)
    with pytest.raises(TypeError, match="same_kind"):
        gridbuf.copyto(to, of)
    gridbuf.copyto(to, of, casting="unsafe")
    np.testing.assert_array_equal(on_host(to), NUMBERS)


def test_a_device_and_an_ndarray(device: None) -> None:
    buffer = gridbuf.allocate((3, 4), memory="device")
    gridbuf.copyto(buffer, NUMBERS)
    target = np.zeros((3, 4), order="F")
    gridbuf.copyto(target, buffer)
    np.testing.assert_array_equal(target, NUMBERS)
    small = np.zeros((3, 4), "f4")
    gridbuf.copyto(small, buffer, where=NUMBERS < 5)
    np.testing.assert_array_equal(small, np.where(NUMBERS < 5, NUMBERS, 0))
    mask = gridbuf.from_array(NUMBERS > 2).base.copy(memory="device")
    gridbuf.copyto(buffer, -1.0, where=mask)
    np.testing.assert_array_equal(on_host(buffer), np.where(NUMBERS > 2, -1, NUMBERS))
    with pytest.raises(ValueError, match="read-only"):
        gridbuf.copyto(buffer.toreadonly(), NUMBERS)
    with pytest.raises(ValueError, match="shape"):
        gridbuf.copyto(buffer, np.ones(5))


def elements_of(storage: Any) -> np.ndarray:
    return np.asarray(gridbuf.storage.storage(storage, device=None, managed=None))


def test_storages_of_a_device(device: None) -> None:
    for managed in (None, "gt4py", "cuda"):
        target = gridbuf.storage.zeros((3, 4), dims="IJ", device="gpu", managed=managed)
        source = gridbuf.storage.storage(NUMBERS, dims="IJ", device="gpu", managed=managed)
        gridbuf.copyto(target, source)
        np.testing.assert_array_equal(elements_of(target), NUMBERS)
        gridbuf.copyto(target, 3.0, where=source > 4)
        np.testing.assert_array_equal(elements_of(target), np.where(NUMBERS > 4, 3, NUMBERS))


# ---- Long copies. ----


def test_long_copies_let_other_threads_run() -> None:
    source, target = np.ones(1 << 24, "f4"), np.zeros(1 << 24)
    done = threading.Event()
    ran = 0

    def count() -> None:
        nonlocal ran
        while not done.is_set():
            ran += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = ran
        gridbuf.copyto(target, source)
        gridbuf.copyto(target, target[::-1])
        gridbuf.copyto(target, source, where=source > 0)
        after = ran
    finally:
        done.set()
        thread.join()
    assert after > before
    assert target.all()


def test_many_threads_copy_at_once() -> None:
    source = np.random.default_rng(1).random((64, 65, 66))
    results: list[bool] = []

    def work(number: int) -> None:
        target = np.zeros((64, 65, 66), "f4", order="F")
        for _ in range(5):
            gridbuf.copyto(target, source)
            gridbuf.copyto(target, number, where=source > 0.5)
        expected = np.where(source > 0.5, number, source).astype("f4")
        results.append(bool((target == expected).all()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_nothing_is_left_behind() -> None:
    target, source = np.zeros((30, 40)), np.ones((30, 40), "f4")
    before = memory.statistics()["live_bytes"]
    for _ in range(100):
        gridbuf.copyto(target, source)
        gridbuf.copyto(target, target[::-1])
        gridbuf.copyto(gridbuf.as_buffer(target), source, where=source > 0)
    gc.collect()
    assert memory.statistics()["live_bytes"] == before


# ---- Other functions that copy through it. ----


@pytest.mark.parametrize("to", ["f4", "i8", ">f8", "c8", "?"])
def test_from_array_and_storages_convert_like_astype(to: str) -> None:
    source = np.linspace(0, 9, 60).reshape(3, 4, 5)
    expected = source.astype(to)
    assert gridbuf.from_array(source, to, layout=(2, 1, 0)).tobytes() == expected.tobytes()
    storage = gridbuf.storage.storage(source, dtype=to, layout=(1, 2, 0))
    assert np.asarray(storage).tobytes() == expected.tobytes()
    assert np.asarray(gridbuf.storage.storage(source).astype(to)).tobytes() == expected.tobytes()
    storage[...] = 0
    storage[1:, ::2] = source[1:, ::2]
    assert np.asarray(storage)[1:, ::2].tobytes() == expected[1:, ::2].tobytes()


def test_storages_warn_of_numbers_that_they_cannot_keep() -> None:
    storage = gridbuf.storage.zeros((3,), "i4")
    with pytest.warns(RuntimeWarning, match="invalid value"):
        storage[...] = np.array([1.0, np.nan, 3.0])
    assert storage[0] == 1
    with pytest.raises(TypeError, match="casting='safe'"):
        gridbuf.storage.ones((3,)).astype("i4", casting="safe")
    with pytest.raises(ValueError, match="casting"):
        gridbuf.storage.ones((3,)).astype("i4", casting="wrong")
