"""What a worker measures, as dataclasses that survive JSON: the measurer fills, the judge reads.

`to_json` leaves out fields that are None, `from_json` restores the defaults, so that a field that
was not measured costs nothing on the wire. A field named `error` has the exception that was raised
instead of an answer. `Entries` are the integers behind a pointer: None for NULL, `UNMAPPED` where
no memory is mapped.
"""

from . import arrays, consumption, observations, wire
from .arrays import *  # noqa: F403
from .consumption import *  # noqa: F403
from .observations import *  # noqa: F403
from .wire import *  # noqa: F403

__all__ = []
__all__ += arrays.__all__
__all__ += consumption.__all__
__all__ += observations.__all__
__all__ += wire.__all__
