"""gridbuf_conformance: do arrays follow the published texts for exchanging n-dimensional memory?

```python
import gridbuf_conformance as gc

print(gc.check(obj))                             # one live object
print(gc.check_producer("numpy"))                # a library, on many plans, in a separate process
print(gc.check_consumer("numpy.from_dlpack"))    # a function that takes arrays
```

The names in `__all__` are the public API of the suite. The judge is pure Python and needs neither
NumPy nor a compiler. It never imports the library under test; a worker process does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .outcomes import ExitCode, Outcome
from .plan import Plan
from .plan.producer import Capabilities, Producer, Unsupported
from .version import __version__

if TYPE_CHECKING:
    from .api import check, check_consumer, check_producer
    from .render.report import Report
    from .targets import CannotLoad

__all__ = [
    "CannotLoad",
    "Capabilities",
    "ExitCode",
    "Outcome",
    "Plan",
    "Producer",
    "Report",
    "Unsupported",
    "__version__",
    "check",
    "check_consumer",
    "check_producer",
]

_HOMES = {
    "CannotLoad": "targets",
    "Report": "render.report",
    "check": "api",
    "check_consumer": "api",
    "check_producer": "api",
}


def __getattr__(name: str) -> Any:
    """Imports names that only a driver needs, on first use: workers start in half the time."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
