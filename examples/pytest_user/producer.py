"""Tells the conformance suite how to make an `Image`."""

# [producer]
import gridbuf_conformance as gc
from image import Image


class Producer(gc.Producer):
    name = "image"
    capabilities = gc.Capabilities(dtypes=("uint8",), readonly=(False,), min_ndim=2, max_ndim=2)

    def produce(self, plan):
        height, width = plan["shape"]
        pixels, made = plan.content(), Image(height, width)
        for row in range(height):
            made.set_row(row, pixels[row * width : (row + 1) * width])
        return made


# [/producer]
