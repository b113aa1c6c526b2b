"""The walks of docs/architecture.md are true: each call is made, and the files that it enters are those of the page, in order.

The call runs in a child process that has a breakpoint at each function of the extension. At a breakpoint the child stops, the
parent notes the function's source, and removes the breakpoint. The symbol tables of the object files name the source. Functions
that several objects have (templates, inline functions) are left out. Files of Python announce themselves by `sys.setprofile`.
"""

from __future__ import annotations

import collections
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gridbuf
import gridbuf.storage
import numpy as np
import pytest

DOCS = pathlib.Path(__file__).parent
OBJECTS = DOCS.parent / "modules"
PAGE = (DOCS / "architecture.md").read_text()

_TRACEME, _PEEKUSER, _POKEUSER, _CONT = 0, 3, 6, 7
_INSTRUCTION_POINTER = 16 * 8  # its offset in <sys/user.h>
_BREAKPOINT = b"\xcc"
_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

pytestmark = pytest.mark.skipif(
    os.uname().machine != "x86_64" or "GRIDBUF_EMULATED" in os.environ,
    reason="the breakpoints are those of x86-64",
)


# ---- The files of a call. ----


def functions(file: pathlib.Path) -> Iterator[tuple[str, int]]:
    """Name and address of the functions that are not in several objects: no templates, no inline functions."""
    command = ["nm", "--defined-only", str(file)]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in table.splitlines():
        address, kind, name = line.split(maxsplit=2)
        if kind in "tT":
            yield name, int(address, 16)


def source_of(file: pathlib.Path) -> str:
    """modules/python/_objs/bindings/array/type.pic.o is of modules/python/array/type.cc."""
    path = re.sub(r"/_objs/[^/]+", "", str(file.relative_to(OBJECTS.parent)))
    return path.removesuffix(".pic.o") + ".cc"


class Tracer:
    """Finds the files of modules/ that a call enters, in the order of their first functions."""

    def __init__(self) -> None:
        sources = collections.defaultdict(set)
        for file in OBJECTS.rglob("_objs/*/**/*.pic.o"):
            for name, _ in functions(file):
                sources[name].add(source_of(file))
        self.files = {
            address: min(sources[name])
            for name, address in functions(pathlib.Path(gridbuf._core.__file__))
            if len(sources[name]) == 1
        }
        lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
        self.start = next(int(line.split("-")[0], 16) for line in lines if "/_core.so" in line)

    def trace(self, call: Callable[[], Any]) -> list[str]:
        call()  # What is made by the first call is there.
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _make(call, writing)
        os.waitpid(child, 0)
        found: list[str] = []
        with open(f"/proc/{child}/mem", "r+b", buffering=0) as memory:
            kept = {}
            for address in self.files:
                memory.seek(self.start + address)
                kept[address] = memory.read(1)
                memory.seek(self.start + address)
                memory.write(_BREAKPOINT)
            while True:
                _ptrace(_CONT, child, None, None)
                _, status = os.waitpid(child, 0)
                if not os.WIFSTOPPED(status) or os.WSTOPSIG(status) == signal.SIGSTOP:
                    break
                if os.WSTOPSIG(status) == signal.SIGUSR1:
                    found.append(os.read(reading, 4096).decode())
                    continue
                at = _ptrace(_PEEKUSER, child, _INSTRUCTION_POINTER, None) - 1
                assert os.WSTOPSIG(status) == signal.SIGTRAP and at - self.start in kept
                memory.seek(at)
                memory.write(kept[at - self.start])
                _ptrace(_POKEUSER, child, _INSTRUCTION_POINTER, at)
                if self.files[at - self.start] not in found:
                    found.append(self.files[at - self.start])
        assert os.WIFSTOPPED(status), "the call ended the process"
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return found


def _make(call: Callable[[], Any], writing: int) -> None:
    """In the child: stops before the call and after it, and at each file of the package."""
    package = os.path.dirname(gridbuf.__file__)
    known: set[str] = set()

    def announce(frame: Any, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file not in known and file.startswith(package):
            known.add(file)
            os.write(writing, f"modules/python/gridbuf{file[len(package) :]}".encode())
            os.kill(os.getpid(), signal.SIGUSR1)

    _ptrace(_TRACEME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    sys.setprofile(announce)
    call()
    sys.setprofile(None)
    os.kill(os.getpid(), signal.SIGSTOP)


# ---- The calls. ----


def zeros() -> Callable[[], Any]:
    return lambda: gridbuf.zeros((3, 4, 5), backend="gt:cpu_ifirst")


def from_dlpack() -> Callable[[], Any]:
    buffer = gridbuf.allocate((3, 4))
    return lambda: np.from_dlpack(buffer)


def copyto() -> Callable[[], Any]:
    target, source = gridbuf.zeros((3, 4)), gridbuf.ones((3, 4), layout=(1, 0))
    return lambda: gridbuf.copyto(target, source)


def add() -> Callable[[], Any]:
    storage = gridbuf.storage.ones((3, 4))
    return lambda: storage + storage


def stencil() -> Callable[[], Any]:
    @gridbuf.stencil
    def double(field: gridbuf.Field[np.float64]) -> None:
        field *= 2

    storage = gridbuf.storage.ones((3, 4, 5))
    return lambda: double(storage)


CALLS = {
    '`gridbuf.zeros((3, 4, 5), backend="gt:cpu_ifirst")`': zeros,
    "`np.from_dlpack(buffer)`": from_dlpack,
    "`gridbuf.copyto(target, source)` for two arrays": copyto,
    "`storage + storage`": add,
    "A stencil call": stencil,
}


def walk(heading: str) -> list[str]:
    section = PAGE.partition(f"### {heading}\n")[2].partition("\n### ")[0]
    return re.findall(r"`(modules/[\w/.]+\.(?:py|cc))`", section)


@pytest.fixture(scope="module")
def tracer() -> Tracer:
    return Tracer()


@pytest.mark.parametrize("heading", CALLS)
def test_the_walk_is_what_the_call_does(heading: str, tracer: Tracer) -> None:
    found = tracer.trace(CALLS[heading]())
    assert len(found) > 2
    assert walk(heading) == found, "docs/architecture.md has to name:\n" + "\n".join(found)
