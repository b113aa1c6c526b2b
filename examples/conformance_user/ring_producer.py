"""Tells the conformance suite how to make the exports of `ring`."""

import array

import gridbuf_conformance as gc
from ring import Ring


class Producer(gc.Producer):
    name = "ring"
    capabilities = gc.Capabilities(dtypes=("float64",), readonly=(False,), min_ndim=1, max_ndim=1)

    def produce(self, plan):
        made = Ring(plan["shape"][0])
        for value in reversed(array.array("d", plan.content())):
            made.push(value)
        return made.newest_first()
