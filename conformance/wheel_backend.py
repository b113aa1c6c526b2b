"""The build backend of this folder. PEP 517 wants it inside the project; the real one is tools/pep517."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools" / "pep517"))

from gridbuf_build import build_wheel, get_requires_for_build_wheel  # noqa: E402, F401
