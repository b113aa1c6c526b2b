"""Whether the system shows a CUDA device."""

from __future__ import annotations

import os


def has_gpu() -> bool:
    """Whether the system shows a CUDA device; no driver is loaded."""
    return any(os.path.exists(device) for device in ("/dev/nvidiactl", "/dev/dxg"))
