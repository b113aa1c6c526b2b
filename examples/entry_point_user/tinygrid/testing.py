"""How the conformance suite makes a column. Imported by the suite alone: the library does not depend on it."""

import gridbuf_conformance as gc

import tinygrid


class Producer(gc.Producer):
    name = "tinygrid"
    capabilities = gc.Capabilities(
        dtypes=("int32",), byteorders=("native",), readonly=(False,), min_ndim=1, max_ndim=1
    )

    def version(self) -> str:
        return tinygrid.__version__

    def produce(self, plan):
        made = tinygrid.Column()
        made.frombytes(plan.content())
        return made
