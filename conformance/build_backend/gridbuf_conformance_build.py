"""The PEP 517 backend of this distribution: the repository's own, found two folders up.

pip wants a backend inside the project's folder; the code is in tools/pep517 for both distributions.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "pep517"))

from gridbuf_build import build_wheel, get_requires_for_build_wheel  # noqa: E402

__all__ = ["build_wheel", "get_requires_for_build_wheel"]
