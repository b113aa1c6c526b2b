"""The address map and the reads that rely on it: memory that is not there is never touched."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from gridbuf_conformance.abi.maps import AddressMap
from gridbuf_conformance.abi.memory import Memory
from hypothesis import given
from hypothesis import strategies as st

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_READ, _WRITE, _PRIVATE_ANONYMOUS = 1, 2, 0x22


@pytest.fixture
def pages():
    """Eight pages: readable and writable, but the third is read-only, the fifth forbidden, the
    seventh gone.
    """
    start = _libc.mmap(None, 8 * PAGE, _READ | _WRITE, _PRIVATE_ANONYMOUS, -1, 0)
    _libc.mprotect(start + 2 * PAGE, PAGE, _READ)
    _libc.mprotect(start + 4 * PAGE, PAGE, 0)
    _libc.munmap(start + 6 * PAGE, PAGE)
    yield start
    _libc.munmap(start, 6 * PAGE)
    _libc.munmap(start + 7 * PAGE, PAGE)


def test_accesses_of_pages(pages: int) -> None:
    covers = AddressMap().covers
    assert covers(pages, pages + 4 * PAGE, "r")
    assert covers(pages, pages + 2 * PAGE, "w")
    assert not covers(pages, pages + 2 * PAGE + 1, "w")
    assert not covers(pages, pages + 4 * PAGE + 1, "r")
    assert not covers(pages + 6 * PAGE, pages + 6 * PAGE + 1, "r")
    assert not covers(pages, pages + 1, "x")
    assert covers(pages + 6 * PAGE, pages + 6 * PAGE, "r"), "an empty range is covered anywhere"


@pytest.mark.parametrize("address", [0, 1, -8, 2**47, 2**63, 2**64 - 8, 2**70])
def test_odd_addresses_are_not_mapped(address: int) -> None:
    memory = Memory()
    assert memory.read(address, 8) is None
    assert not memory.write(address, b"x")
    assert memory.text(address) is None


def test_map_notices_what_was_mapped_after_the_snapshot() -> None:
    addresses = AddressMap()
    start = _libc.mmap(None, 3 * PAGE, _READ, _PRIVATE_ANONYMOUS, -1, 0)
    assert addresses.covers(start, start + 3 * PAGE)
    _libc.munmap(start, 3 * PAGE)
    assert not addresses.refresh().covers(start, start + 1)


def test_reads_and_writes_stop_at_forbidden_pages(pages: int) -> None:
    memory = Memory()
    assert memory.write(pages, b"gridbuf\0")
    assert memory.read(pages, 8) == b"gridbuf\0"
    assert memory.text(pages) == b"gridbuf"
    assert memory.integers(pages, 1) == [int.from_bytes(b"gridbuf\0", "little")]
    assert memory.read(pages + 4 * PAGE - 4, 8) is None
    assert not memory.write(pages + 2 * PAGE - 4, b"12345678")
    assert memory.read(pages + 2 * PAGE - 4, 4) == bytes(4), "nothing was written"


def test_text_that_runs_into_a_forbidden_page_is_none(pages: int) -> None:
    memory = Memory()
    memory.write(pages + 3 * PAGE, b"x" * PAGE)
    assert memory.text(pages + 3 * PAGE) is None


@given(st.lists(st.integers(0, 31), min_size=1, max_size=6), st.booleans())
def test_elements_are_read_in_the_order_asked(indices: list[int], far: bool) -> None:
    block = bytes(range(256)) * (1024 if far else 1)
    held = ctypes.create_string_buffer(block, len(block))
    step = 4096 if far else 8
    offsets = [index * step for index in indices]
    got = Memory().elements(ctypes.addressof(held), (min(offsets), max(offsets) + 4), offsets, 4)
    assert got == b"".join(block[offset : offset + 4] for offset in offsets)


def test_elements_of_an_empty_array() -> None:
    assert Memory().elements(0, None, [], 8) == b""


def test_elements_need_their_whole_hull(pages: int) -> None:
    assert Memory().elements(pages, (0, 5 * PAGE), [0], 8) is None


def test_without_a_map_only_the_first_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = AddressMap()
    addresses.known = False
    assert not addresses.covers(8, 16)
    assert addresses.covers(2**40, 2**40 + 8)
