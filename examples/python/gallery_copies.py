"""The speed of copies between layouts. docs/gallery.md shows the chart of a recorded run with more libraries and sizes."""

# [data]
import timeit

import numpy as np

import gridbuf

source = np.random.default_rng(1).random((192, 192, 192))  # in C order

for layout in [(0, 1, 2), (2, 1, 0), (2, 0, 1), (0, 2, 1)]:
    target = gridbuf.empty(source.shape, layout=layout)
    for library in (gridbuf, np):
        times = timeit.repeat(lambda: library.copyto(target, source), number=1, repeat=5)  # noqa: B023
        speed = 2 * source.nbytes / min(times) / 1e9  # bytes read and bytes written
        print(f"into layout {layout}: {library.__name__:8}{speed:6.1f} GB/s")
    assert (target == source).all()
# [/data]
