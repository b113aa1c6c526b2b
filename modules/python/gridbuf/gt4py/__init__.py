"""GT4Py's models on gridbuf's memory.

* `gridbuf.gt4py.cartesian`: the functions of `gt4py.storage`. It works where GT4Py is not installed.
* `gridbuf.gt4py.next`: the allocator and the constructors of fields of `gt4py.next`.
* `gridbuf.gt4py.as_field`: a field of `gt4py.next` over an array, without a copy.

Each module is imported at its first use; `next` and `as_field` import GT4Py.
"""

import importlib
from typing import TYPE_CHECKING

__all__ = ["cartesian"]  # the others need GT4Py

if TYPE_CHECKING:
    from . import cartesian as cartesian
    from . import next as next  # noqa: A004 (GT4Py's name)
    from ._fields import as_field as as_field
else:
    _LAZY = ("as_field", "cartesian", "next")

    def __dir__():
        return _LAZY

    def __getattr__(name):
        if name not in _LAZY:
            raise AttributeError(f"module 'gridbuf.gt4py' has no attribute {name!r}")
        try:
            if name == "as_field":
                return importlib.import_module(f"{__name__}._fields").as_field
            return importlib.import_module(f"{__name__}.{name}")
        except ImportError as error:  # `hasattr`, `inspect` and `help` expect an AttributeError
            raise AttributeError(str(error)) from error
