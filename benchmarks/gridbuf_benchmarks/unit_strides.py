"""What alignment is worth to GT4Py's stencils: as they are compiled, and if GridTools knew that rows are dense.

GT4Py's bindings pass all strides to GridTools as numbers that are known when a stencil runs. The machine code shows what
the compiler makes of that: for each access to memory in the loops, how many bytes it moves. (The stack and constants do
not count. GridTools knows the strides of its temporary fields, which vertical advection has.) An access of one
element is aligned wherever a field begins; only wider accesses can gain by alignment.

Then the cases of the chapter `stencil` are measured for each way to compile. GridTools can be told that a dimension's
stride is 1 (`UnitStrideDim` of its python_sid_adapter.hpp); GT4Py does not do so and has no setting for it. Here GT4Py's
GT_INCLUDE_PATH names a copy of GridTools' headers in which that is the default for the first dimension. This is for the
measurement only: with such headers a stencil refuses fields in any other order.

The table has the accesses of the loops, the time on gridbuf's fields, and the speed there relative to GT4Py's own (above 1:
gridbuf's fields are faster). It takes some eight minutes, with `--cases all` some fifteen, on a quiet machine, and needs
GT4Py (./bazelw --peers), g++ and objdump.
"""

from __future__ import annotations

import collections
import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gridbuf_benchmarks.runner import run_module

_ADAPTER = Path("gridtools/storage/adapter/python_sid_adapter.hpp")
_UNKNOWN, _FIRST = "size_t UnitStrideDim = size_t(-1)", "size_t UnitStrideDim = 0"
_CASES = {"some": ("ifirst/cached", "ifirst/large"), "all": ("ifirst/",)}

WAYS = {
    "as GT4Py does": (False, ""),
    "-march=native": (False, "-march=native"),
    "unit strides": (True, ""),
    "unit strides, -march=native": (True, "-march=native"),
}
"""The ways to compile: whether GridTools is told of unit strides, and further flags of the compiler."""


def run(which: str) -> int:
    """Measures `all` domains or `some`, and prints a table in Markdown; returns the exit code.

    Raises:
      ValueError: when this machine lacks what the measurement needs.
    """
    if platform.machine() != "x86_64":
        raise ValueError(f"this machine is {platform.machine()}; only x86_64 code can be read here")
    if shutil.which("objdump") is None:
        raise ValueError("objdump is not installed; Debian has it in the package binutils")
    if importlib.util.find_spec("gt4py") is None:
        raise ValueError("GT4Py is not installed; `./bazelw --peers` installs it")
    columns = "case", "compiled", "bytes of an access: how many", "time on gridbuf's fields"
    print(f"| {' | '.join(columns)} | speed ÷ on GT4Py's |\n|---|---|---|---|---|")
    filters = [word for text in _CASES[which] for word in ("--filter", text)]
    with tempfile.TemporaryDirectory(prefix="gridbuf-strides-") as folder:
        for number, (title, (unit_strides, flags)) in enumerate(WAYS.items()):
            print(f"{title} ({number + 1} of {len(WAYS)})", file=sys.stderr, flush=True)
            cache, result = Path(folder, str(number)), Path(folder, f"{number}.json")
            settings = {"GT_CACHE_ROOT": str(cache), "GT4PY_EXTRA_COMPILE_ARGS": flags}
            if unit_strides:
                include = headers_with_unit_strides(Path(folder, "include"))
                settings["GT_INCLUDE_PATH"] = str(include)
            command = ("run", "--only", "stencil", *filters, "--json", str(result))
            run_module("gridbuf_benchmarks", *command, what=title, settings=settings)
            for case in json.loads(result.read_text())["cases"]:
                widths = _widths_of(cache, case["id"].split("/")[1])
                print(f"| {case['title']} | {title} | {widths} | {_figures(case)} |", flush=True)
    return 0


def headers_with_unit_strides(folder: Path) -> Path:
    """A copy of GridTools' headers that takes the first dimension's stride to be 1.

    Raises:
      RuntimeError: when these headers have no such default to change.
    """
    if not folder.exists():
        import gridtools_cpp

        shutil.copytree(gridtools_cpp.get_include_dir(), folder)
        adapter = folder / _ADAPTER
        text = adapter.read_text()
        if _UNKNOWN not in text:
            raise RuntimeError(
                f"{_ADAPTER} of this GridTools has no {_UNKNOWN!r}; this program knows no other way"
            )
        adapter.write_text(text.replace(_UNKNOWN, _FIRST))
    return folder


def _widths_of(cache: Path, kernel: str) -> str:
    """8: 90, 16: 3 for the library of that kernel in GT4Py's cache."""
    libraries = sorted(cache.rglob(f"m_{kernel}_*ifirst*.so"))
    if not libraries:
        raise RuntimeError(f"GT4Py left no compiled {kernel} in {cache}")
    counted = accesses(libraries[0])
    return ", ".join(f"{width}: {count}" for width, count in sorted(counted.items()))


def accesses(library: Path) -> Mapping[int, int]:
    """How many instructions in OpenMP's loops (x86-64) move doubles from or to memory, by the bytes that each moves at once."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: collections.Counter[int] = collections.Counter()
    for function in text.split("\n\n"):
        head, *lines = function.split("\n")
        if "_omp_fn" in head:
            found.update(filter(None, map(_bytes_moved, lines)))
    return found


def _bytes_moved(line: str) -> int | None:
    """The bytes that one access through a pointer moves at once; None for any other instruction."""
    parts = re.match(r"\s*[0-9a-f]+:\t(\S+)\s+(.*)", line)
    if parts is None:
        return None
    operation, operands = parts.groups()
    pointer = re.search(r"\(,?%(r\w+)", operands)
    register = re.search(r"%([xyz])mm", operands)
    if pointer is None or register is None or pointer[1] in ("rsp", "rip"):
        return None
    # Scalars, halves of a vector, one element for all lanes, an address for each lane.
    if re.search(r"sd$|^v?mov[hl]pd$|ddup$|gather|scatter", operation) or "{1to" in operands:
        return 8
    # Parts of a longer register.
    if part := re.search(r"(128|64x2|32x4|64x4|32x8)$", operation):
        return 32 if part[1] in ("64x4", "32x8") else 16
    return {"x": 16, "y": 32, "z": 64}[register[1]]


def _figures(case: Mapping[str, Any]) -> str:
    nanoseconds = case["contenders"][0]["nanoseconds"]["median"]
    ratio = case["ratios"]["gt4py"]
    spread = (ratio["upper_quartile"] - ratio["lower_quartile"]) / 2 / ratio["median"]
    return f"{nanoseconds / 1e6:.3g} ms | {1 / ratio['median']:.3f} ±{100 * spread:.0f}%"
