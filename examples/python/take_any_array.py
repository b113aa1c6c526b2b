"""A function that takes arrays of any library and works on their memory."""

# [smooth]
import numpy as np

import gridbuf


def smooth(field) -> None:
    """Replaces each inner point along I by the mean of its neighbours, in the caller's own memory."""
    buffer = gridbuf.as_buffer(field)  # No copy. TypeError if `field` exports no memory.
    if buffer.readonly:
        raise ValueError("field is read-only; pass a copy")
    axis = buffer.dims.index("I")
    values = np.moveaxis(buffer.to_numpy(), axis, 0)
    values[1:-1] = (values[:-2] + values[2:]) / 2


# [/smooth]

# [use]
import array  # noqa: E402

signal = array.array("d", [0.0, 0.0, 8.0, 0.0, 0.0])
smooth(signal)
assert signal.tolist() == [0.0, 4.0, 0.0, 4.0, 0.0]
# [/use]


# [refused]
class Broken:
    """States four numbers in memory for one."""

    __array_interface__ = {"version": 3, "typestr": "<i8", "shape": (4,), "data": bytearray(8)}


try:
    smooth(Broken())
except ValueError as error:
    message = str(error)
assert message.startswith(
    "AI-16: the array within the memory that was exported is in bytes 0 to 32"
)
# [/refused]
