"""Tells the conformance suite how to make a column. Only the suite imports this module."""

import gridbuf_conformance as gc

import tinygrid


class Producer(gc.Producer):
    name = "tinygrid"
    capabilities = gc.Capabilities(dtypes=("int32",), readonly=(False,), min_ndim=1, max_ndim=1)

    def version(self) -> str:
        return tinygrid.__version__

    def produce(self, plan):
        made = tinygrid.Column()
        made.frombytes(plan.content())
        return made
