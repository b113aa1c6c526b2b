"""The contenders: which libraries take part, how each is imported, and what to say when one is absent."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType

__all__ = [
    "BASELINE",
    "LIBRARIES",
    "MEMORY",
    "PEERS",
    "Library",
    "Loaded",
    "Missing",
    "load",
    "title_of",
]

BASELINE = "gridbuf"
"""The library that every ratio has on top: ratio = time of gridbuf / time of the peer."""

MEMORY = "memory"
"""No library: the key of the ratio to the faster yardstick of a case, which is what the memory can do."""


@dataclass(frozen=True)
class Library:
    """One contender.

    `module` is what its cases use; `distribution` the package whose version is reported; `install` the
    command that brings it into the project's environment.
    """

    key: str
    title: str
    module: str
    distribution: str
    install: str


LIBRARIES: Mapping[str, Library] = {
    library.key: library
    for library in (
        Library(
            "gridbuf",
            "gridbuf",
            "gridbuf",
            "gridbuf",
            "./bazelw run //benchmarks builds it and puts it on the path",
        ),
        Library(
            "gridbuf_dlpack",
            "gridbuf's __dlpack__()",
            "gridbuf",
            "gridbuf",
            "it comes with gridbuf",
        ),
        Library("numpy", "NumPy", "numpy", "numpy", "./bazelw --setup"),
        Library("torch", "PyTorch", "torch", "torch", "./bazelw --peers"),
        Library("gt4py", "GT4Py", "gt4py.storage", "gt4py", "./bazelw --peers"),
        Library("ghex", "GHEX", "ghex", "ghex", "./bazelw --peers"),
        Library(
            "gridbuf_mpi4py",
            "gridbuf with mpi4py alone",
            "gridbuf",
            "gridbuf",
            "it comes with gridbuf",
        ),
        Library("mpi4py", "mpi4py by hand", "mpi4py", "mpi4py", "./bazelw --peers"),
        # Yardsticks: what moves bytes without minding where elements lie.
        *(
            Library(
                key, title, "gridbuf_benchmarks._loops", "glibc", "it comes with the benchmarks"
            )
            for key, title in (
                ("memcpy", "memcpy"),
                ("memcpy_halves", "memcpy in halves on 2 threads"),
                ("memset", "memset"),
                ("memset_halves", "memset in halves on 2 threads"),
                ("memcpy_loop", "memcpy in a loop of C"),
            )
        ),
        Library("torch_copy", "torch.copy_ of flat arrays", "torch", "torch", "./bazelw --peers"),
        Library("torch_fill", "torch.fill_ of flat arrays", "torch", "torch", "./bazelw --peers"),
    )
}


PEERS = ("gridbuf_dlpack", "numpy", "torch", "gt4py", "ghex", "mpi4py", "gridbuf_mpi4py")
"""Those with a column of ratios where a table has them, in this order."""


def title_of(key: str) -> str:
    """How people call a contender, or the fastest yardstick."""
    return "the memory" if key == MEMORY else LIBRARIES[key].title


@dataclass(frozen=True)
class Loaded:
    """A contender that is here."""

    library: Library
    module: ModuleType
    version: str


@dataclass(frozen=True)
class Missing:
    """A contender that could not be imported, and why."""

    library: Library
    reason: str


def load(keys: Iterable[str]) -> tuple[dict[str, Loaded], dict[str, Missing]]:
    """Imports the named libraries; returns those that are here and those that are not, by key."""
    loaded: dict[str, Loaded] = {}
    missing: dict[str, Missing] = {}
    for key in LIBRARIES:
        if key not in set(keys):
            continue
        library = LIBRARIES[key]
        try:
            module = importlib.import_module(library.module)
        except ImportError as error:
            missing[key] = Missing(library, f"{type(error).__name__}: {error}")
        else:
            loaded[key] = Loaded(library, module, _version(library, module))
    return loaded, missing


def _version(library: Library, module: ModuleType) -> str:
    """The version a library states itself: under Bazel, gridbuf is no installed distribution."""
    if library.distribution == "glibc":
        return platform.libc_ver()[1]
    top = importlib.import_module(library.distribution) if "." in module.__name__ else module
    return str(getattr(top, "__version__", "unknown"))
