"""The facts about a machine without which its figures mean nothing."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["describe", "disturbances"]

_THP = Path("/sys/kernel/mm/transparent_hugepage")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_NOTABLE_FLAGS = ("avx2", "avx512f", "hypervisor")


def describe() -> dict[str, Any]:
    """CPU, GPUs, cores, governor, caches, memory, kernel, huge-page policy, Python and load; None if unreadable."""
    cpu = _cpu_info()
    flags = cpu.get("flags", "").split()
    return {
        "cpu_model": cpu.get("model name", platform.processor() or None),
        "cpu_family": f"family {cpu.get('cpu family', '?')} model {cpu.get('model', '?')}",
        "cpu_flags": [flag for flag in _NOTABLE_FLAGS if flag in flags],
        "virtual_machine": "hypervisor" in flags,
        "gpu_models": _gpu_models(),
        "cache_bytes": _cache_bytes(),
        "cores_online": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)),
        "governor": _read(_GOVERNOR),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "system": _distribution(),
        "libc": " ".join(platform.libc_ver()),
        "huge_pages": _chosen(_read(_THP / "enabled")),
        "huge_pages_defrag": _chosen(_read(_THP / "defrag")),
        "python": platform.python_version(),
        "python_implementation": platform.python_implementation(),
        "python_compiler": platform.python_compiler(),
        "python_gil": bool(getattr(sys, "_is_gil_enabled", lambda: True)()),
        "load_average_1min": round(os.getloadavg()[0], 2),
    }


def disturbances(facts: dict[str, Any]) -> list[str]:
    """What on this machine makes the figures less trustworthy, each with what to do."""
    found = []
    load, cores = facts["load_average_1min"], facts["cores_usable"]
    if load > 0.5 * cores:
        found.append(
            f"the load average is {load} on {cores} cores: other work is running; stop it and run again"
        )
    governor = facts["governor"]
    if governor not in (None, "performance"):
        found.append(
            f"the CPU frequency governor is {governor!r}: times move with the clock; "
            "`cpupower frequency-set -g performance` fixes it"
        )
    return found


def _cpu_info() -> dict[str, str]:
    """The first processor's block of /proc/cpuinfo."""
    block = (_read(Path("/proc/cpuinfo")) or "").split("\n\n")[0]
    pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _gpu_models() -> list[str]:
    """The names of the GPUs, each with its memory and driver; empty without NVIDIA's driver."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def _cache_bytes() -> dict[str, int]:
    """The caches of data that the first processor sees, by level; shared ones as a whole."""
    found = {}
    for index in sorted(_CACHES.glob("index*")):
        if _read(index / "type") != "Instruction":
            size = _read(index / "size") or "0K"
            found[f"L{_read(index / 'level')}"] = int(size.rstrip("K")) * 1024
    return found


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _chosen(policy: str | None) -> str | None:
    """`madvise` from `always [madvise] never`."""
    if policy is None or "[" not in policy:
        return policy
    return policy.partition("[")[2].partition("]")[0]


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
