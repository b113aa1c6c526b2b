"""The mutant zoo: deliberately wrong producers that test the suite itself.

Each mutant is a whole producer with one defect. A run of the suite on it must break exactly the
rules that the mutant names, and a run on the reference producer, made of the same parts, must break
none. `tests/test_kill_matrix.py` proves each. `python -m gridbuf_conformance_mutants` prints them
as a table.

This package is test material: it is not part of the distribution.
"""

from __future__ import annotations

import importlib
from typing import Any

from .consumer import consumers_of
from .mutant import Mutant, can_be_shown, mutants_of

__all__ = ["CONSUMER_MODULES", "MODULES", "Mutant", "consumer_zoo", "target", "zoo"]

MODULES = (
    "array_interface",
    "array_struct",
    "buffer_protocol",
    "dlpack",
    "packed",
    "cuda_interface",
    "streams",
    "device_dlpack",
    "exchange",
    "data_interface",
    "mirrors",
    "agreement",
    "racing",
    "allocation",
    "dying",
)
"""The modules of the zoo, by what their defects are about."""

CONSUMER_MODULES = (
    "consume_dlpack",
    "consume_exchange",
    "host_consumers",
    "consume_several",
    "own_values",
    "consume_streams",
)
"""The same for consumers (`consumer`): functions that take arrays wrongly."""


def zoo(*, every_python: bool = False) -> list[type[Mutant]]:
    """All mutants whose defect can be shown here; with `every_python`, all there are."""
    found = []
    for name in MODULES:
        module = importlib.import_module(f"{__name__}.{name}")
        found += [
            kind for kind in mutants_of(module.__name__) if every_python or can_be_shown(kind)
        ]
    return found


def target(mutant: Any) -> str:
    """What names a mutant to the suite: `package.module:Name`."""
    return f"{mutant.__module__}:{mutant.__qualname__}"


def consumer_zoo() -> list[Any]:
    """All wrong consumers."""
    found = []
    for name in CONSUMER_MODULES:
        module = importlib.import_module(f"{__name__}.{name}")
        found += consumers_of(module.__name__)
    return found
