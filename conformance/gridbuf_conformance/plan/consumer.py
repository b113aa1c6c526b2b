"""Consumers: functions that take an exporter and return an array, such as `numpy.from_dlpack`.

A `Consumer` adds the name and the version for reports, and the interfaces that the function is
documented to take. If it refuses one of those, a rule fails. The suite finds out which other
interfaces it takes.
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
    """A function that takes an exporter and returns an array.

    Parameters
    ----------
    function : callable
        The function, with one argument. It is also called with each of the keywords `copy`,
        `device` and `dtype` that its signature has.
    name : str
        The name in reports.
    version : str, optional
        The version of its library.
    takes : tuple of str, optional
        The interfaces that it is documented to take: names of `exports.interfaces()`.
    """

    function: Callable[[Any], Any]
    name: str
    version: str = ""
    takes: tuple[str, ...] | None = None


def version_of(function: Callable[[Any], Any], top: str | None = None) -> str:
    """The version of the package of a function.

    Parameters
    ----------
    function : callable
        The function.
    top : str, optional
        The name of the package, if the module of the function does not tell.

    Returns
    -------
    str
        The version, or an empty string.
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
