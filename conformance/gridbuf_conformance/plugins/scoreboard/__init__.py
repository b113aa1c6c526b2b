"""The scoreboard: which library passes which array to which other, and what arrives.

`arrays` has the fixed set of arrays, as plans. `cells` runs in a worker with two libraries and
observes one array at a time. `run` starts the workers, survives them, and makes the record.
`records` reads and compares records, and has the score. Nothing is judged here: an outcome is an
observation, and a crash is one of them.
"""

from .arrays import ARRAYS, Array
from .records import OUTCOMES, RecordError, differences, load, save, standalone
from .run import Selection, run

__all__ = [
    "ARRAYS",
    "OUTCOMES",
    "Array",
    "RecordError",
    "Selection",
    "differences",
    "load",
    "run",
    "save",
    "standalone",
]
