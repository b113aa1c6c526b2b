"""Copies and casts in threads with small stacks, and at a limit of the address space."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

SANITIZED = "libclang_rt" in os.environ.get("LD_PRELOAD", "")
pytestmark = pytest.mark.skipif(
    SANITIZED or platform.machine() != "x86_64",
    reason="sanitizers and the emulator need larger stacks, and address space",
)

PROGRAM = """
import resource, sys, threading
import gridbuf, numpy as np

stack, limited = int(sys.argv[1]), sys.argv[2] == "limited"
large = np.ones((64, 200, 100))
source, mask = np.arange(120_000.0).reshape(300, 400), np.arange(400) % 3 == 0
casted, copied, masked = (np.zeros((400, 300), dtype).T for dtype in ("f4", "f8", "f8"))
turned = np.zeros(large.shape[::-1]).T
begin, failures, done = threading.Event(), [], []

def work():
    # Unoptimised builds of pybind11 count references in a thread-local variable, which takes memory once.
    gridbuf.memory.get_simd()
    begin.wait()
    try:
        gridbuf.copyto(copied, source)
        gridbuf.copyto(casted, source)
        gridbuf.copyto(masked, source, where=mask)
        if not limited:
            gridbuf.copyto(turned, large)
            gridbuf.from_array(large, "f4", layout=(2, 1, 0))
            gridbuf.full((50, 60, 70), 2.5)
        done.append(True)
    except BaseException as error:
        failures.append(error)

threading.stack_size(stack * 1024)
thread = threading.Thread(target=work)
thread.start()
rest = []
if limited:
    pages = int(open("/proc/self/statm").read().split()[0])
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), most))
    try:  # Less is left than the scratch memory of a cast.
        while True:
            rest.append(bytearray(1 << 16))
    except MemoryError:
        pass
begin.set()
thread.join()
del rest
if limited:
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
assert done and not failures, failures
assert np.array_equal(casted, source) and np.array_equal(copied, source)
assert np.array_equal(masked, np.where(mask, source, 0))
"""


def run(stack_kib: int, memory: str) -> None:
    # Without separate arenas, a thread cannot take memory from a new one.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    arguments = [sys.executable, "-c", PROGRAM, str(stack_kib), memory]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"


@pytest.mark.parametrize("stack_kib", [64, 96, 160])
def test_threads_with_small_stacks(stack_kib: int) -> None:
    run(stack_kib, "as much as there is")


def test_without_memory_for_scratch_copies_are_only_slower() -> None:
    run(128, "limited")
