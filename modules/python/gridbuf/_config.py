"""`show_config`: what a bug report should say about the machine and the build."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import Literal, overload

import numpy as np

from . import _core
from ._version import __version__

Config = dict[str, dict[str, str]]

# The instruction sets that copies and fills use, with the kernel's names.
_CPU_FLAGS = ("sse2", "avx", "avx2", "avx512f", "avx512bw", "asimd", "sve")


def _read(path: str) -> str:
    """The file's text; "unknown" where the system has no such file or hides it."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "unknown"


def _cpu() -> dict[str, str]:
    lines = [line.partition(":") for line in _read("/proc/cpuinfo").splitlines()]
    facts = {key.strip(): value.strip() for key, _, value in reversed(lines)}
    flags = (facts.get("flags") or facts.get("Features") or "").split()
    return {
        "model": facts.get("model name", os.uname().machine),
        "instruction sets": " ".join(flag for flag in _CPU_FLAGS if flag in flags) or "unknown",
        "count": str(os.cpu_count()),
    }


def _memory() -> dict[str, str]:
    options = _core._memory_options()
    limit = options["limit_bytes"]
    threads, origin = _core._memory_threads()
    simd, supported = _core._memory_simd()
    return {
        "page size": f"{os.sysconf('SC_PAGE_SIZE')} bytes",
        "transparent huge pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "blocks below 2 MiB": "C library, aligned by offset",
        "blocks from 2 MiB on": _core._memory_pages(),
        "kept for reuse": _kept(),
        "limit": "none" if limit is None else f"{limit} bytes",
        "poison": "on" if options["poison"] else "off",
        "threads": f"{threads} ({origin})",
        "vector instructions": f"{simd} (this processor has {', '.join(supported)})",
    }


def _kept() -> str:
    limit = _core._memory_options()["cache_limit_bytes"]
    found = _core._memory_statistics()
    rule = "follows the program and the machine" if limit is None else f"{limit} bytes"
    return (
        f"{found['cached_bytes']} bytes in {found['cached_blocks']} blocks; limit: {rule};"
        f" {found['hits']} hits, {found['misses']} misses"
    )


def _devices() -> dict[str, str]:
    cupy = importlib.util.find_spec("cupy")
    return {
        "host": "yes",
        **_core._device_info(),
        "cupy": "not installed" if cupy is None else f"installed: {cupy.origin}",
    }


def _platform() -> str:
    """System, kernel, processor and C library.

    As `platform.platform()`, which before Python 3.12 takes a lock that a child of `fork` may never get.
    """
    system, _, release, _, machine = os.uname()
    return f"{system}-{release}-{machine}-with-{''.join(platform.libc_ver())}"


def _config() -> Config:
    return {
        "versions": {
            "gridbuf": __version__,
            "python": sys.version.split()[0],
            "numpy": np.__version__,
            "platform": _platform(),
        },
        "build": dict(_core._build_info),
        "cpu": _cpu(),
        "memory": _memory(),
        "devices": _devices(),
    }


@overload
def show_config(mode: Literal["print"] = "print") -> None: ...
@overload
def show_config(mode: Literal["dict"]) -> Config: ...
def show_config(mode: str = "print") -> Config | None:
    """Show versions, build, CPU, memory and devices, for bug reports (docs/spec.md 5.47).

    Parameters
    ----------
    mode : {"print", "dict"}, default "print"
        Whether to print the configuration, or to return it.

    Returns
    -------
    dict of str to dict of str, or None
        With "dict" the texts by section and key.

    Raises
    ------
    ValueError
        `mode` is unknown.
    """
    if mode not in ("print", "dict"):
        raise ValueError(f"mode is {mode!r}, but must be 'print' or 'dict'; leave it out to print")
    config = _config()
    if mode == "dict":
        return config
    for section, facts in config.items():
        print(f"{section}:")
        for key, value in facts.items():
            print(f"  {key}: {value}")
    return None
