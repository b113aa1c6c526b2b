"""What a consumer is to the suite: a function that is given an exporter and returns an array.

`numpy.from_dlpack` is one, and so is any function of one argument. A `Consumer` is the function
with the name and the version that reports show, and with the interfaces that it is documented to
take, if anybody said so: their refusal is then judged. What else it takes is found out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

__all__ = ["Consumer", "version_of"]


@dataclass(frozen=True)
class Consumer:
    """A function of one exporter, its name, its library's version, and what it says it takes.

    `takes`: names of `exports.interfaces()`; None says nothing.
    """

    function: Callable[[Any], Any]
    name: str
    version: str = ""
    takes: tuple[str, ...] | None = None


def version_of(function: Callable[[Any], Any], top: str | None = None) -> str:
    """The version of the package that a function comes from, or an empty string.

    `top` names the package where the function's own module does not tell.
    """
    name = top or (getattr(function, "__module__", None) or "").partition(".")[0]
    if not name or name in ("builtins", "__main__"):
        return ""
    version = getattr(sys.modules.get(name), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return ""
