"""Other libraries' call signatures over gridbuf's functions, so that a program switches by changing an import.

* `gridbuf.compat.gt4py`: that of `gt4py.storage`.
"""

from . import gt4py as gt4py
