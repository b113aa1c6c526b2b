"""The example of the README: a small library with a bug, and the producer that makes its arrays."""

# [library]
import numpy as np


class Grid:
    """A padded grid that exports its memory. The bug: its strides leave out the padding."""

    def __init__(self, values):
        rows, columns = values.shape
        self._memory = np.zeros((rows, columns + 2), values.dtype)
        self._memory[:, :columns] = values
        self._shape = values.shape

    @property
    def __array_interface__(self):
        return dict(self._memory.__array_interface__, shape=self._shape, strides=None)


# [/library]


# [producer]
import gridbuf_conformance as gc


class Producer(gc.Producer):
    name = "mylib"
    capabilities = gc.Capabilities(dtypes=("float64",), readonly=(False,), min_ndim=2, max_ndim=2)

    def produce(self, plan):
        if plan["readonly"] or plan["fill"] is None:
            return gc.Unsupported("mylib makes writable grids, and always fills them")
        return Grid(np.frombuffer(plan.content()).reshape(plan["shape"]))


# [/producer]
