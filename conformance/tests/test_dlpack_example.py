"""examples/dlpack_exporter: its page builds it as printed, the suite finds nothing, and a refused
capsule frees its memory.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import command_line
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/export-with-dlpack.md"
FILES = ("dlarray.c", "grid.py", "producer.py")


def commands(start: str) -> list[str]:
    """The commands of the page that begin so."""
    return re.findall(rf"^\$ ({start}.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The example as a user has it, with the extension made by the printed command."""
    made = tmp_path_factory.mktemp("dlpack_exporter")
    for name in FILES:
        shutil.copy(ROOT / "examples/dlpack_exporter" / name, made)
    (command,) = commands("cc ")
    # `python` is this Python, and warnings are errors.
    tools = made / "tools"
    tools.mkdir()
    (tools / "python").symlink_to(sys.executable)
    path = os.pathsep.join([str(tools), os.environ.get("PATH", ""), "/usr/bin", "/bin"])
    strict = command.replace("cc ", "cc -Wall -Wextra -Wpedantic -Werror ", 1)
    done = subprocess.run(
        strict,
        shell=True,
        cwd=made,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def array(folder: Path) -> type:
    spec = importlib.util.spec_from_file_location("dlarray", folder / "dlarray.so")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Array


def test_the_class_in_python_runs(folder: Path) -> None:
    done = subprocess.run([sys.executable, "grid.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("producer", "advisories"),
    [
        ("GridProducer", {"DL-12"}),
        pytest.param("ArrayProducer", set(), marks=pytest.mark.thorough),
    ],
)
def test_the_suite_finds_nothing(folder: Path, producer: str, advisories: set[str]) -> None:
    """NumPy's exports of arrays without elements have an address, which is an advisory; the page
    says so.
    """
    (command,) = commands(f"gridbuf-conformance check producer.py:{producer}")
    done = command_line.run(*command.split()[1:], "--report", f"{producer}.json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    rules = json.loads((folder / f"{producer}.json").read_text())["rules"]
    outcomes = {rule["id"]: rule["outcome"] for rule in rules}
    assert {r for r, o in outcomes.items() if o in ("ADVISORY", "FRAGILE")} == advisories
    judged = {r for r, o in outcomes.items() if o == "PASS" and r.startswith(("DL-", "DP-"))}
    assert len(judged) + len(advisories) > 30


class Changed:
    """Exports the tensor of another array with a version that consumers refuse."""

    def __init__(self, exporter) -> None:
        self.exporter = exporter

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **keywords):
        capsule = self.exporter.__dlpack__(**keywords)
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        major = ctypes.c_uint32.from_address(address(capsule, b"dltensor_versioned"))
        major.value = 2
        return capsule


def is_resizable(memory: bytearray) -> bool:
    try:
        memory.append(0)
    except BufferError:
        return False
    memory.pop()
    return True


def test_the_memory_is_kept_as_long_as_an_export_of_it(array: type) -> None:
    memory = bytearray(range(8))
    tensor = np.from_dlpack(array(memory))
    memory[0] = 7
    assert tensor.tolist() == [7, *range(1, 8)] and not is_resizable(memory)
    del tensor
    assert is_resizable(memory)


def test_a_refused_capsule_frees_its_memory_and_keeps_the_error(array: type) -> None:
    memory = bytearray(8)
    with pytest.raises(BufferError, match="version is too high"):
        np.from_dlpack(Changed(array(memory)))
    assert is_resizable(memory)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_destructor_in_python_loses_the_error() -> None:
    """Why the page does not show a class made with ctypes."""
    api = ctypes.PyDLL(None)
    destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, destructor]
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = (
        ctypes.c_char_p,
        [ctypes.c_void_p],
    )
    name, struct, freed = b"dltensor_versioned", (ctypes.c_uint64 * 10)(), []

    @destructor
    def destroy(capsule: int) -> None:
        if api.PyCapsule_GetName(capsule) == name:
            freed.append(capsule)

    class Exporter:
        def __dlpack__(self, **keywords):
            return api.PyCapsule_New(ctypes.addressof(struct), name, destroy)

    with pytest.raises(SystemError):  # not the BufferError of NumPy
        np.from_dlpack(Changed(Exporter()))
    assert not freed


def test_what_dlpack_cannot_describe_is_a_buffer_error(array: type) -> None:
    records = np.zeros((3, 4), [("a", "f8"), ("b", "f4")])
    for wrong, message in [
        (records, "no type"),
        (records["a"], "stride 12 is not a multiple of the item size 8"),
        (np.zeros(2, ">f8"), "no type"),
        (b"constant", "read-only"),
    ]:
        with pytest.raises(BufferError, match=message):
            array(wrong).__dlpack__()
    dense = np.from_dlpack(array(np.arange(12.0).reshape(3, 4).T), copy=True)
    assert dense.strides == (24, 8) and dense.tolist() == np.arange(12.0).reshape(3, 4).T.tolist()
