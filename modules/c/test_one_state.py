"""A process with Python's gridbuf and libgridbuf has one state: memory, threads, devices, names; and storages of both."""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest

import c_library as c  # First: the extension finds this library by its name.
import gridbuf
import gridbuf.memory
import gridbuf.storage as gs
from c_library import access, call, c_lib, make, options

CAPSULE = b"gridbuf_storage.0"
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
pointer_in.restype = ctypes.c_void_p
pointer_in.argtypes = [ctypes.py_object, ctypes.c_char_p]


def c_storage(extents: tuple[int, ...], **fields: object) -> ctypes.c_void_p:
    return make("storage_create", ctypes.byref(options(extents, flags=c.ZEROED, **fields)))


def capsule_of(handle: ctypes.c_void_p) -> object:
    """Without a destructor: the test releases the handle."""
    return new_capsule(handle, CAPSULE, None)


def handle_in(capsule: object) -> ctypes.c_void_p:
    return ctypes.c_void_p(pointer_in(capsule, CAPSULE))


def c_statistics() -> c.MemoryInfo:
    found = c.MemoryInfo(struct_bytes=ctypes.sizeof(c.MemoryInfo))
    call("memory_statistics", ctypes.byref(found))
    return found


def test_memory() -> None:
    gc.collect()
    options = gridbuf.memory.options()
    call("set_cache_limit", ctypes.c_int64(64 << 20))
    assert gridbuf.memory.options()["cache_limit_bytes"] == 64 << 20
    call("trim_memory", ctypes.c_int64(0), None)
    before = gridbuf.memory.statistics()
    handle = c_storage((1 << 20,))
    now = gridbuf.memory.statistics()
    assert now["live_bytes"] - before["live_bytes"] >= 8 << 20
    address = access(handle, c.HOST, c.READ).ctypes.data
    call("storage_release", handle)
    cached = c_statistics().cached_bytes
    assert gridbuf.memory.statistics()["cached_bytes"] == cached
    assert cached >= 8 << 20
    again = gs.empty((1 << 20,))  # the block that C released
    assert abs(again.to_numpy().ctypes.data - address) < 1 << 21
    assert c_statistics().hits == gridbuf.memory.statistics()["hits"] == before["hits"] + 1
    del again
    gridbuf.memory.trim()
    assert c_statistics().cached_bytes == 0
    gridbuf.memory.configure(**options)


def test_threads() -> None:
    before = gridbuf.memory.get_num_threads()
    call("set_thread_count", 3)
    assert gridbuf.memory.get_num_threads() == 3
    gridbuf.memory.set_num_threads(before)
    assert c_lib.gridbuf_thread_count() == before


def test_devices_and_streams(emulated: None) -> None:
    field = gs.zeros((4, 5), device="gpu")
    handle = handle_in(capsule := gs.to_c(field))
    exported = make("storage_array", handle, c.DEVICE, 1)
    call("array_fill", exported, ctypes.byref(ctypes.c_double(3.0)))
    call("array_release", exported)
    assert field.to_numpy().tolist() == [[3.0] * 5] * 4
    before = ctypes.c_uint64()
    call("set_stream", ctypes.c_uint64(2), ctypes.byref(before))
    assert gridbuf.allocate((3,), device="gpu").stream == 2
    call("set_stream", before, None)
    del capsule


def test_names_and_kinds() -> None:
    handle = c_storage((5, 3), dims=["OneStateCell", "OneStateLevel"], dim_kinds=[0, 2])
    dims = gs.from_c(capsule_of(handle)).dims
    assert [(dim, dim.kind) for dim in dims] == [
        ("OneStateCell", "horizontal"),
        ("OneStateLevel", "vertical"),
    ]
    call("storage_release", handle)
    declared = gridbuf.Dim("OneStateEdge", kind="local")
    handle = handle_in(capsule := gs.to_c(gs.zeros((2,), dims=[declared])))
    name, kind = ctypes.create_string_buffer(64), ctypes.c_int32()
    call("storage_dim", handle, 0, name, ctypes.byref(kind))
    assert (name.value, kind.value) == (b"OneStateEdge", 1)
    del capsule


@pytest.mark.parametrize(
    "dtype", ["q", "Q", "M8[s]", ">m8[ns]", "S3", "U2", ">f8", ">c8", "V5", "?", "g", "G", "f2"]
)
def test_every_type_without_fields_goes_to_c_and_back(dtype: str) -> None:
    field = gs.storage(np.arange(6 * np.dtype(dtype).itemsize, dtype="u1").view(dtype))
    back = gs.from_c(gs.to_c(field))
    assert back.dtype == field.dtype
    assert back.to_numpy().tobytes() == field.to_numpy().tobytes()
    assert np.shares_memory(back.to_numpy(), field.to_numpy())


def test_memory_lives_while_either_side_holds_it() -> None:
    handle = c_storage((300, 2), halo=[(1, 1), (0, 0)])
    access(handle, c.HOST, c.READ_WRITE)[7, 1] = 5.0
    capsule = capsule_of(handle)
    field = gs.from_c(capsule)
    call("storage_release", handle)
    del capsule
    assert field[7, 1] == 5.0 and field.halo == ((1, 1), (0, 0)) and field.dtype == np.float64

    given = gs.to_c(field)
    kept = make("storage_view", handle_in(given), None, 0)
    address = field.to_numpy().ctypes.data
    del field, given
    gc.collect()
    seen = access(kept, c.HOST, c.READ)
    assert seen.ctypes.data == address and seen[7, 1] == 5.0
    call("storage_release", kept)


def test_the_other_side_knows_what_was_written(emulated: None) -> None:
    field = gs.zeros((6, 5), device="gpu", managed="gt4py", device_layout=(0, 1))
    capsule = gs.to_c(field)
    handle = handle_in(capsule)
    access(handle, c.HOST, c.WRITE)[...] = 2.0
    assert field.sync_state.state == gs.SyncState.SYNC_HOST_DIRTY
    field.synchronize()
    assert field.sync_state.state == gs.SyncState.SYNC_CLEAN
    field[1] = 4.0
    current = ctypes.c_int32()
    call("storage_is_current", handle, c.DEVICE, ctypes.byref(current))
    assert not current.value


@pytest.mark.parametrize("given", [None, 3, object(), np.zeros(3), gs.zeros((2,))])
def test_from_c_refuses_what_is_no_capsule(given: object) -> None:
    with pytest.raises(TypeError, match=r"capsule is .* a PyCapsule of a gridbuf_storage"):
        gs.from_c(given)


def test_from_c_refuses_other_capsules_and_handles() -> None:
    array = make("array_create", ctypes.byref(options((3,))))
    with pytest.raises(TypeError, match="name 'gridbuf_storage.0'"):
        gs.from_c(new_capsule(array, b"dltensor", None))
    with pytest.raises(ValueError, match="storage"):
        gs.from_c(capsule_of(array))
    call("array_release", array)
    wrong = (ctypes.c_uint64 * 8)()
    with pytest.raises(ValueError, match="of this build"):
        gs.from_c(new_capsule(ctypes.addressof(wrong), CAPSULE, None))


def test_to_c_refuses_arrays_records_and_memory_with_touch() -> None:
    with pytest.raises(TypeError, match=r"storage is .* a gridbuf.storage.Storage"):
        gs.to_c(np.zeros(3))
    with pytest.raises(TypeError, match="fields"):
        gs.to_c(gs.zeros((3,), dtype=[("a", "i4"), ("b", "f8")]))

    class Producer:
        def __init__(self) -> None:
            self.data = np.zeros(3)

        @property
        def __gt_data_interface__(self) -> object:
            return {None: dict(self.data.__array_interface__, touch=lambda: None, acquire=None)}

    field = gs.as_storage(Producer())
    with pytest.raises(ValueError, match="told of every write"):
        gs.to_c(field)


PROCESS_WIDE = [
    *("fork", "helpers", "thread count", "host", "dimension names", "presets"),
    *("exiting", "stream of this thread", "CUDA driver", "emulated device", "emulated driver"),
    *("last queues", "thread queues", "work depth"),
]
"""The names that the sources pass to process_wide."""


def test_the_state_is_made_when_the_library_is_loaded() -> None:
    """Later a child of fork could find the lock of the names taken by a thread that it does not have."""
    handle = c_storage((1,))
    build = ctypes.c_uint64.from_address(handle.value).value ^ 0x6762_7566_5374_6F31
    call("storage_release", handle)
    program = f"""
import ctypes, c_library
make = ctypes.CFUNCTYPE(ctypes.c_void_p)
find = c_library.c_lib.gridbuf_private_object
find.restype = ctypes.c_void_p
find.argtypes = [ctypes.c_uint64, ctypes.c_char_p, make]
made = make(lambda: 1)
print([name for name in {[*PROCESS_WIDE, "unknown"]} if find({build}, name.encode(), made) == 1])
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, capture_output=True, text=True
    )
    assert done.stdout == "['unknown']\n"


def test_a_child_of_a_fork_has_a_whole_state(emulated: None) -> None:
    """While threads of both allocate, copy and declare names."""
    stop = threading.Event()

    def work(by_c: bool) -> None:
        while not stop.is_set():
            if by_c:
                call("storage_release", c_storage((300_000,)))
            else:
                gs.zeros((300_000,))[...] = 1.0

    threads = [threading.Thread(target=work, args=(by_c,)) for by_c in (True, False)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                handle = c_storage((300_000,))
                field = gs.from_c(capsule_of(handle))
                field[...] = 2.0
                right = bool((access(handle, c.HOST, c.READ) == 2.0).all())
                os._exit(0 if right and c_statistics().live_bytes > 0 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("first", ["c", "python"])
def test_order_of_loading_and_exit(first: str, tmp_path: pathlib.Path) -> None:
    """The package's library by its path, before and after the package; and storages that live at the exit."""
    folder = pathlib.Path(gridbuf.__file__).parent
    load = f"library = ctypes.CDLL({str(folder / 'lib/libgridbuf.so.0')!r})"
    lines = [load, "import gridbuf"] if first == "c" else ["import gridbuf", load]
    program = "\n".join(
        [
            "import ctypes",
            *lines,
            "import gridbuf.storage, gridbuf.memory",
            "library.gridbuf_set_thread_count(7)",
            "assert gridbuf.memory.get_num_threads() == 7",
            "kept = gridbuf.storage.from_c(gridbuf.storage.to_c(gridbuf.storage.zeros((1 << 20,))))",
            "import sys; sys.kept = kept, gridbuf.storage.to_c(kept)",
        ]
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_handles_of_another_build_are_refused(tmp_path: pathlib.Path) -> None:
    """A copy of the library in which the number of the build is another one."""
    array = make("storage_create", ctypes.byref(options((3,))))
    magic = ctypes.c_uint64.from_address(array.value).value
    number = (magic ^ 0x6762756653746F31).to_bytes(8, "little")
    call("storage_release", array)
    code = c.LIBRARY.read_bytes()
    assert code.count(number) >= 1
    other = tmp_path / "libgridbuf.so.0"
    other.write_bytes(code.replace(number, bytes(8 - len(b"another!")) + b"another!"))
    program = f"""
import ctypes, pathlib
import gridbuf, gridbuf.storage, gridbuf.memory
library = ctypes.CDLL({str(other)!r})
library.gridbuf_set_thread_count(7)
assert gridbuf.memory.get_num_threads() != 7, "two builds share objects"
import c_library as c
handle = ctypes.c_void_p()
given = c.options((3,))
assert library.gridbuf_storage_create(ctypes.byref(given), ctypes.byref(handle)) == 0
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
try:
    gridbuf.storage.from_c(new(handle, {CAPSULE!r}, None))
except ValueError as error:
    assert "of this build" in str(error), error
else:
    raise AssertionError("a handle of another build was taken")
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.fixture
def fortran(tmp_path: pathlib.Path) -> ctypes.CDLL:
    """one_state_test.f90, which uses the libgridbuf that the process has."""
    here = pathlib.Path(__file__).parent
    target = subprocess.run(
        ["gfortran", "-dumpmachine"], check=True, capture_output=True, text=True
    )
    if target.stdout.partition("-")[0] != platform.machine():
        pytest.skip(
            f"NOT run: gfortran makes programs for {target.stdout.strip()}, not for {platform.machine()}"
        )
    link = [f"-L{here}", "-l:libgridbuf.so.0", "-Wl,--allow-shlib-undefined"]
    c_file, *sources = (
        here / f for f in ("gridbuf_fortran.c", "gridbuf.f90", "one_state_test.f90")
    )
    for command in (
        ["gcc", "-fPIC", "-g", f"-I{here}", "-c", c_file],
        ["gfortran", "-std=f2018", "-shared", "-fPIC", "-g", *sources, "gridbuf_fortran.o", *link, "-o", "f.so"],
    ):  # fmt: skip
        subprocess.run(command, cwd=tmp_path, check=True)
    return ctypes.CDLL(str(tmp_path / "f.so"))


def test_a_random_life_from_three_languages(emulated: None, fortran: ctypes.CDLL) -> None:
    """10,000 accesses of views, from C, Fortran and Python in turns, on both sides, against one NumPy array."""
    random = np.random.default_rng(4545)
    shape = (7, 6, 5)
    handle = c_storage(shape, kind=c.ON_BOTH, layout=(2, 0, 1), device_alignment_bytes=32)
    field = gs.from_c(capsule_of(handle))
    model = np.zeros(shape)
    for step in range(10_000):
        subscript = tuple(slice(*sorted(random.integers(0, n + 1, 2).tolist())) for n in shape)
        wanted = model[subscript]
        writes, on_host, swaps = (bool(bit) for bit in random.integers(2, size=3))
        language = ("C", "Fortran", "Python")[random.integers(3)]
        if swaps:  # each side takes the other's handle
            fresh = make("storage_view", handle_in(_capsule := gs.to_c(field)), None, 0)
            call("storage_release", handle)
            handle, field = fresh, gs.from_c(capsule_of(fresh))
        if language == "Fortran":
            ends = [(part.start + 1, part.stop) for part in subscript]
            first, last = (c.list_of(ctypes.c_int, bounds) for bounds in zip(*ends, strict=True))
            total = ctypes.c_double()
            fortran.add_to_section(
                handle, first, last, writes, ctypes.c_double(step), ctypes.byref(total)
            )
            if writes:
                wanted += step
            assert total.value == wanted.sum(), f"step {step}"
        elif language == "C":
            view = make("storage_view", handle, *c.items(*subscript))
            if on_host:
                seen = access(view, c.HOST, c.READ_WRITE if writes else c.READ)
                if writes:
                    seen += step
                    wanted += step
            else:
                exported = make("storage_array", view, c.DEVICE, int(writes))
                if writes:
                    call("array_fill", exported, ctypes.byref(ctypes.c_double(step)))
                    wanted[...] = step
                call("array_release", exported)
                seen = access(view, c.HOST, c.READ)
            np.testing.assert_array_equal(seen, wanted, f"step {step}")
            call("storage_release", view)
        else:
            view = field[subscript]
            if writes and on_host:
                view[...] = step
                wanted[...] = step
            elif writes:
                view += step  # NumPy's inner loop, or the device's
                wanted += step
            elif not on_host:
                view.host_to_device()
            np.testing.assert_array_equal(view.to_numpy(), wanted, f"step {step}")
    call("storage_release", handle)
    np.testing.assert_array_equal(field.to_numpy(), model)
