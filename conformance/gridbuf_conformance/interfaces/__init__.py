"""The interfaces that the suite judges, each in one folder.

Such a folder may have
- `rules.toml` and, in `producer` and `consumer`, the checks of its rules;
- `descriptor`: what the interface says of an array, as a `Descriptor`;
- `measure`: what is asked of an object that has the interface;
- `exports`: the exports that consumers are called with;
- the interface's forms in memory or text.

Further interfaces come from plug-ins (`plugins`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, util
from types import ModuleType

from .. import plugins

__all__ = ["CORE", "modules", "packages"]

CORE = (
    *("array_interface", "array_struct", "buffer_protocol"),
    *("dlpack_structs", "dlpack_protocol", "dlpack_exchange", "agreement"),
)
"""The folders of this package."""


def packages() -> tuple[str, ...]:
    """The packages of all interfaces: those of this package, then those of plug-ins."""
    return (*(f"{__name__}.{folder}" for folder in CORE), *plugins.packages())


@cache
def modules(name: str) -> tuple[ModuleType, ...]:
    """The module of that name of each interface that has one."""
    names = (f"{package}.{name}" for package in packages())
    return tuple(import_module(one) for one in names if util.find_spec(one) is not None)
