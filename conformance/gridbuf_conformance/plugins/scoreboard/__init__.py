"""The scoreboard: which library passes which array to which other, and what arrives.

`arrays` has the fixed set of arrays, as plans. `cells` runs in a worker with two libraries and
observes one array at a time. `run` starts the workers, survives them, and makes the record.
`records` reads and compares records. Nothing is judged there: an outcome is an observation, and a
crash is one of them. `score` says which arrays count, and which library loses them by what cause;
`scripts` repeat an exchange.
"""

from .arrays import ARRAYS, Array
from .records import OUTCOMES, RecordError, differences, load, save
from .run import Selection, run
from .scripts import repeat, standalone

__all__ = [
    "ARRAYS",
    "OUTCOMES",
    "Array",
    "RecordError",
    "Selection",
    "differences",
    "load",
    "repeat",
    "run",
    "save",
    "standalone",
]
