"""The libraries that are compared: how to import each, and how to install it."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import NamedTuple

BASELINE = "gridbuf"
"""The numerator of every ratio: time of gridbuf / time of the peer."""

MEMORY = "memory"
"""Not a library: the key of the ratio to the faster yardstick of a case, the speed of the memory."""


class Library(NamedTuple):
    """One contender: the module that its cases use, and the command that installs it."""

    title: str
    module: str
    install: str = "./bazelw --peers"


_OWN, _LOOPS = "it comes with gridbuf", "gridbuf_benchmarks._loops"

LIBRARIES: Mapping[str, Library] = {
    "gridbuf": Library("gridbuf", "gridbuf", "./bazelw run //benchmarks builds it"),
    "gridbuf_dlpack": Library("gridbuf's __dlpack__()", "gridbuf", _OWN),
    "numpy": Library("NumPy", "numpy", "./bazelw --setup"),
    "torch": Library("PyTorch", "torch"),
    "hptt": Library(
        "HPTT", "hptt", "build springer13/hptt from GitHub; HPTT_ROOT and PYTHONPATH name it"
    ),
    "gt4py": Library("GT4Py", "gt4py.storage"),
    "ghex": Library("GHEX", "ghex", "./bazelw --ghex"),
    "gridbuf_mpi4py": Library("gridbuf with mpi4py alone", "gridbuf", _OWN),
    "gridbuf_shared": Library("gridbuf in shared memory", "gridbuf", _OWN),
    "mpi4py": Library("mpi4py by hand", "mpi4py"),
    # Yardsticks: they copy bytes in order, for every layout.
    "memcpy": Library("memcpy", _LOOPS, _OWN),
    "memcpy_halves": Library("memcpy in halves on 2 threads", _LOOPS, _OWN),
    "memset": Library("memset", _LOOPS, _OWN),
    "memset_halves": Library("memset in halves on 2 threads", _LOOPS, _OWN),
    "memcpy_loop": Library("memcpy in a loop of C", _LOOPS, _OWN),
    "torch_copy": Library("torch.copy_ of flat arrays", "torch"),
    "torch_fill": Library("torch.fill_ of flat arrays", "torch"),
}

PEERS = (
    *(
        "numpy",
        "torch",
        "hptt",
        "gt4py",
        "gridbuf_dlpack",
        "ghex",
        "mpi4py",
        "gridbuf_mpi4py",
        "gridbuf_shared",
    ),
    "memcpy",
)
"""The libraries whose ratios are in results and tables, in this order."""


def title_of(key: str) -> str:
    """The name of a contender, or of the fastest yardstick, in texts."""
    return "the memory" if key == MEMORY else LIBRARIES[key].title


def load(keys: Iterable[str]) -> tuple[dict[str, ModuleType], dict[str, str]]:
    """The modules of the named libraries that can be imported, and for the others the reason, by key."""
    wanted = set(keys)
    modules, missing = {}, {}
    for key in LIBRARIES:
        if key in wanted:
            try:
                modules[key] = importlib.import_module(LIBRARIES[key].module)
            except ImportError as error:
                missing[key] = f"{type(error).__name__}: {error}"
    return modules, missing


def version(key: str) -> str:
    """The version that an imported library states itself: under Bazel, gridbuf is not an installed distribution."""
    module = LIBRARIES[key].module
    if module == _LOOPS:
        return platform.libc_ver()[1]
    return str(getattr(importlib.import_module(module.partition(".")[0]), "__version__", "unknown"))
