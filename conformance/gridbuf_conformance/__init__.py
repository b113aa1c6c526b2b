"""gridbuf_conformance: do your arrays keep the published rules for exchanging n-dimensional memory?

```python
import gridbuf_conformance as gc

print(gc.check(obj))                  # one live object
print(gc.check_producer("numpy"))     # a library, on many drawn plans, in a process of its own
```

The names below are the suite's public interface. The judge is pure Python: it never imports the library it
judges (a worker process does), and it needs neither NumPy nor a compiler.
"""

from .api import check, check_producer
from .outcomes import ExitCode, Outcome
from .plan import Plan
from .producer import Capabilities, Producer, Unsupported
from .report import Report
from .targets import CannotLoad

__version__ = "0.1.0"
"""Of the suite; `pyproject.toml` has the same, and a test holds them together."""

__all__ = [
    "CannotLoad",
    "Capabilities",
    "ExitCode",
    "Outcome",
    "Plan",
    "Producer",
    "Report",
    "Unsupported",
    "check",
    "check_producer",
]
