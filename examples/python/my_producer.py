"""The class that tells the suite how to make the arrays of a library. Run it with

gridbuf-conformance check examples/python/my_producer.py:Producer
"""

# [producer]
import array

import gridbuf_conformance as gc


class Producer:
    """My library makes one-dimensional arrays of float64. It declines other plans with a reason."""

    name = "mylib"

    def produce(self, plan):
        if (
            len(plan["shape"]) != 1
            or plan["dtype"] != "float64"
            or plan["byteorder"] != "native"
            or plan["readonly"]
        ):
            return gc.Unsupported("mylib makes writable 1-d arrays of float64")
        if plan["fill"] is None:
            return gc.Unsupported("mylib writes every byte it makes")
        made = array.array("d", bytes(8 * plan["shape"][0]))
        memoryview(made).cast("B")[:] = plan.content()
        return made


# [/producer]
