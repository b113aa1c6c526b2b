"""The modules of GT4Py that `gridbuf.gt4py.next` uses; importing this one imports them."""

from __future__ import annotations

import importlib
from typing import Any

# By name, so that type checkers need no GT4Py: Python 3.11 and 3.12 have different versions of it.
try:
    allocators: Any = importlib.import_module("gt4py.next.custom_layout_allocators")
except ModuleNotFoundError as error:
    raise ImportError(
        f"gridbuf.gt4py.next needs GT4Py 1.1.5 or newer (missing: {error.name}): pip install gt4py"
    ) from error
common: Any = importlib.import_module("gt4py.next.common")
constructors: Any = importlib.import_module("gt4py.next.constructors")
definitions: Any = importlib.import_module("gt4py._core.definitions")
nd_array_field: Any = importlib.import_module("gt4py.next.embedded.nd_array_field")
tensors: Any = importlib.import_module("gt4py.storage.allocators")
