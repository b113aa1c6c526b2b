"""How the conformance suite makes arrays of both classes.

gridbuf-conformance check producer.py:GridProducer
gridbuf-conformance check producer.py:ArrayProducer
"""

# [producer]
import ctypes

import gridbuf_conformance as gc
import numpy as np
from grid import Grid

NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 float32 float64 complex64 complex128".split()


class GridProducer(gc.Producer):
    name = "grid"
    capabilities = gc.Capabilities(dtypes=(*NUMBERS, *FLOATS, "longdouble"))

    def produce(self, plan):
        content = plan.content()
        made = Grid(plan["shape"], plan["dtype"], plan["readonly"])
        ctypes.memmove(made.__array_interface__["data"][0], content, len(content))
        return made


# [/producer]


class ArrayProducer(gc.Producer):
    """The class in C, over memory of NumPy in any order and byte order."""

    name = "dlarray"
    capabilities = gc.Capabilities(
        dtypes=(*NUMBERS, *FLOATS), layouts="any", byteorders=("native", "swapped")
    )

    def produce(self, plan):
        from dlarray import Array

        dtype = np.dtype(plan["dtype"]).newbyteorder("S" if plan["byteorder"] == "swapped" else "=")
        content = np.frombuffer(plan.content(), dtype).reshape(plan["shape"])
        order = np.argsort(plan["layout"]) if plan["layout"] else range(content.ndim)
        made = content.transpose(order).copy().transpose(np.argsort(order))
        made.flags.writeable = not plan["readonly"]
        return Array(made)
