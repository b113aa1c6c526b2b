"""The plans of the kill matrix: few, and together enough to show every defect of the zoo.

A real run draws its plans; here they are fixed, so that the whole matrix takes about a minute.
"""

from __future__ import annotations

from gridbuf_conformance.plan import Plan

_TURNED = (1, 2, 0)  # a 3-cycle: it differs from its inverse

PLANS: tuple[Plan, ...] = (
    Plan(),
    Plan(shape=(), dtype="int16", fill=1),
    Plan(shape=(4,), dtype="int64", fill=2, views=(("reverse", 0),)),
    Plan(shape=(2, 3), dtype="bool", fill=3),
    Plan(shape=(2, 4), dtype="float32", fill=4, layout=(1, 0)),
    Plan(shape=(2, 3), dtype="complex64", fill=5, views=(("slice", 1, 1, 3, 1),)),
    Plan(shape=(2, 3, 4), fill=6, layout=_TURNED, dims=("K", "0", "I")),
    Plan(shape=(3, 5), dtype="int32", fill=7, byteorder="swapped"),
    Plan(shape=(3,), dtype="int32", fill=8),
    Plan(shape=(5,), fill=9, readonly=True),
    Plan(shape=(3, 2), dtype="float16", fill=10, views=(("transpose", (1, 0)),)),
    Plan(shape=(3, 0), fill=11),
    Plan(shape=(2,), dtype="struct", fill=12),
    Plan(shape=(1, 3), fill=13, views=(("broadcast", 0, 2), ("newaxis", 1))),
    Plan(shape=(3, 5), fill=14, alignment_size=64, aligned_index=(1, 2), dims=("Cell", "Edge")),
    Plan(shape=(4, 3, 5), dtype="float32", fill=15, alignment_size=24, halo=((1, 1),) * 3),
    Plan(shape=(1024, 1024, 1024), fill=None),
    Plan(shape=(2**31 + 4096,), dtype="int8", fill=None),
)


def on_device(kind: str) -> tuple[Plan, ...]:
    """The same plans for memory of another kind."""
    return tuple(plan.replaced(device=kind) for plan in PLANS)
