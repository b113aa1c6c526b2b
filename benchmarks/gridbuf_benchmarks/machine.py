"""The properties of a machine that figures depend on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

_CPU = Path("/sys/devices/system/cpu/cpu0")


def describe() -> dict[str, Any]:
    """CPU, GPUs, cores, governor, caches, memory, kernel, huge-page policy, Python and load; None if unreadable."""
    cpu = dict(
        re.findall(r"^(.*?)\s*: (.*)$", _read("/proc/cpuinfo").split("\n\n")[0], re.MULTILINE)
    )
    flags = (cpu.get("flags") or cpu.get("Features") or "").split()  # Features: aarch64
    policy = re.search(r"\[(\w+)\]", _read("/sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "cpu_model": cpu.get("model name", platform.processor() or None),
        "cpu_family": f"family {cpu.get('cpu family', '?')} model {cpu.get('model', '?')}",
        "cpu_flags": [
            flag for flag in ("avx2", "avx512f", "asimd", "sve", "hypervisor") if flag in flags
        ],
        "virtual_machine": "hypervisor" in flags,
        "gpu_models": _gpu_models(),
        "cache_bytes": {
            # The caches of data of the first processor; shared ones as a whole.
            f"L{_read(index / 'level')}": int(_read(index / "size").rstrip("K") or 0) << 10
            for index in sorted((_CPU / "cache").glob("index*"))
            if _read(index / "type") != "Instruction"
        },
        "cores_online": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)),
        "governor": _read(_CPU / "cpufreq/scaling_governor") or None,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME"),
        "libc": " ".join(platform.libc_ver()),
        "huge_pages": policy[1] if policy else None,
        "python": platform.python_version(),
        "load_average_1min": round(os.getloadavg()[0], 2),
    }


def disturbances(info: dict[str, Any]) -> list[str]:
    """Properties that make the figures of this machine less reliable, each with a remedy."""
    found = []
    load, cores, governor = (info[key] for key in ("load_average_1min", "cores_usable", "governor"))
    if load > 0.5 * cores:
        found.append(
            f"the load average is {load} on {cores} cores: other work is running; stop it and run again"
        )
    if governor not in (None, "performance"):
        found.append(
            f"the CPU frequency governor is {governor!r}: times move with the clock; "
            "`cpupower frequency-set -g performance` fixes it"
        )
    return found


def _gpu_models() -> list[str]:
    """The names of the GPUs, each with its memory and driver; empty without NVIDIA's driver."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def _read(path: str | Path) -> str:
    """The text of a file, or nothing where the system does not have it."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
