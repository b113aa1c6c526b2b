"""What alignment is worth to GT4Py's stencils: as they are compiled, and if GridTools knew that rows are dense.

    ./bazelw run //benchmarks:unit_strides                  # some eight minutes; prints Markdown
    ./bazelw run //benchmarks:unit_strides -- --cases all   # every domain of gt:cpu_ifirst, some fifteen

GT4Py's bindings hand all strides to GridTools as numbers that are known when a stencil runs. What the compiler makes of that is read
from the machine code: for each access to memory in the loops how many bytes it moves. (The stack and constants do not count. GridTools
knows the strides of its own temporary fields, which vertical advection has.) An access of one element is aligned wherever a field
begins; only wider ones can gain by alignment.

Then the cases of the chapter `stencil` are measured for each way to compile. GridTools can be told that a dimension's stride is 1
(`UnitStrideDim` of its python_sid_adapter.hpp); GT4Py does not, and has no setting for it. Here it is done with a copy of GridTools'
headers in which that is the default for the first dimension, named by GT4Py's GT_INCLUDE_PATH. That is for this measurement: with
such headers a stencil refuses fields in any other order. Needs GT4Py (./bazelw --peers), g++ and objdump.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gridbuf_benchmarks.processes import run_module

__all__ = ["accesses", "headers_with_unit_strides", "main"]

_ADAPTER = Path("gridtools/storage/adapter/python_sid_adapter.hpp")
_UNKNOWN, _FIRST = "size_t UnitStrideDim = size_t(-1)", "size_t UnitStrideDim = 0"
_CASES = {"some": ("ifirst/cached", "ifirst/large"), "all": ("ifirst/",)}


class Way(NamedTuple):
    """A way to compile: whether GridTools is told of unit strides, and what the compiler is told besides."""

    title: str
    unit_strides: bool
    flags: str


WAYS = (
    Way("as GT4Py does", unit_strides=False, flags=""),
    Way("-march=native", unit_strides=False, flags="-march=native"),
    Way("unit strides", unit_strides=True, flags=""),
    Way("unit strides, -march=native", unit_strides=True, flags="-march=native"),
)

_DESCRIPTION = """\
What alignment is worth to GT4Py's compiled stencils, by how they are compiled: as GT4Py
does, with -march=native, and with GridTools told that rows are dense. Prints, in
Markdown, how wide the accesses of their loops are, the time on gridbuf's fields, and the
speed there in units of that on GT4Py's own (above 1: gridbuf's fields are faster).
Some eight minutes, with --cases all some fifteen; on a quiet machine, please.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="./bazelw run //benchmarks:unit_strides --",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--cases",
        choices=sorted(_CASES),
        default="some",
        help="which domains (some: 64×64×60 in the caches, and 128×128×80)",
    )
    asked = parser.parse_args(arguments)
    if platform.machine() != "x86_64":
        parser.error(f"this machine is {platform.machine()}; only code for x86_64 can be read here")
    if shutil.which("objdump") is None:
        parser.error("objdump is not installed; Debian has it in the package binutils")
    if importlib.util.find_spec("gt4py") is None:
        parser.error("GT4Py is not installed; `./bazelw --peers` installs it")
    print(
        "| case | compiled | bytes of an access: how many | time on gridbuf's fields | speed ÷ on GT4Py's |"
    )
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="gridbuf-strides-") as folder:
        for number, way in enumerate(WAYS):
            print(
                f"compiling and measuring: {way.title} ({number + 1} of {len(WAYS)})",
                file=sys.stderr,
                flush=True,
            )
            cache = Path(folder, str(number))
            cases = _measured(way, cache, Path(folder, "include"), _CASES[asked.cases])
            widths = {kernel: _widths_of(cache, kernel) for kernel in ("hdiff", "vadv")}
            for case in cases:
                print(
                    f"| {case['title']} | {way.title} | {widths[_kernel(case)]} | {_figures(case)} |",
                    flush=True,
                )
    return 0


def _measured(way: Way, cache: Path, include: Path, filters: Iterable[str]) -> list[dict[str, Any]]:
    """The cases' results, their stencils compiled that way into that cache."""
    settings = {"GT_CACHE_ROOT": str(cache), "GT4PY_EXTRA_COMPILE_ARGS": way.flags}
    if way.unit_strides:
        settings["GT_INCLUDE_PATH"] = str(headers_with_unit_strides(include))
    result = cache.with_suffix(".json")
    options = [word for text in filters for word in ("--filter", text)]
    run_module(
        "gridbuf_benchmarks",
        *("--only", "stencil", *options, "--json", str(result)),
        what=way.title,
        settings=settings,
    )
    cases: list[dict[str, Any]] = json.loads(result.read_text())["cases"]
    return cases


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


def _kernel(case: Mapping[str, Any]) -> str:
    return str(case["id"]).split("/")[1]


def _figures(case: Mapping[str, Any]) -> str:
    milliseconds = (
        next(one for one in case["contenders"] if one["library"] == "gridbuf")["nanoseconds"][
            "median"
        ]
        / 1e6
    )
    ratio = case["ratios"]["gt4py"]
    spread = (ratio["upper_quartile"] - ratio["lower_quartile"]) / 2 / ratio["median"]
    return f"{milliseconds:.3g} ms | {1 / ratio['median']:.3f} ±{100 * spread:.0f}%"


if __name__ == "__main__":
    sys.exit(main())
