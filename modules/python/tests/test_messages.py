"""The errors of common mistakes: one short sentence with the remedy. MemoryError is longer: it has all facts of the request."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest

LONGEST = 200
HOST = gs.zeros((4, 5), halo=(1, 1))
PROFILE = gs.zeros(3, dims="K")


@gridbuf.stencil(writes="out")
def double(
    field: gridbuf.Field[np.float64, gridbuf.IJ], out: gridbuf.Field[np.float64, gridbuf.IJ]
) -> None:
    out[...] = field * 2


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: gridbuf.zeros((2, 3), backend="gt:cpu_ifrst"), 'did you mean "gt:cpu_ifirst"'),
    (lambda: gridbuf.zeros((2, 3), backend="zzzz"), "there are debug, numpy, gt:cpu_kfirst"),
    (lambda: gridbuf.zeros(20, 20), "one tuple, such as (20, 20)"),
    (lambda: gs.zeros(20, 20), "one tuple, such as (20, 20)"),
    (lambda: gs.zeros((20, 20), periodic=True), 'gridbuf.storage.fill_halo(field, "periodic")'),
    (lambda: gs.fill_halo(HOST, "wrap"), '"periodic", "edge"'),
    (lambda: gs.fill_halo(np.zeros((4, 4)), "edge"), "as_storage(field, halo=...)"),
    (lambda: gs.fill_halo(HOST, "edge", dims="K"), "('I', 'J')"),
    (lambda: gridbuf.zeros((2, 3), order="F"), 'backend="C" or "F"'),
    (lambda: gridbuf.zeros((2, 3), layout=(0, 2)), "0"),
    (lambda: gridbuf.zeros((2, 3), alignment_size=0), "1"),
    (lambda: gridbuf.zeros((2, 3), aligned_index=(2, 0)), "aligned_index"),
    (lambda: gridbuf.zeros((-1, 3)), "shape"),
    (lambda: gridbuf.zeros((2**40, 2**40)), "smaller"),
    (lambda: gridbuf.zeros(3, "object"), "dtype"),
    (lambda: gridbuf.allocate(3, device="cpu"), "None"),
    (lambda: gridbuf.empty(3, memory="gpu"), "memory"),
    (lambda: gridbuf.zeros(3, device="gpu"), "device=None"),
    (lambda: gs.zeros((2, 3), layout="F"), 'backend="F"'),
    (lambda: gs.zeros((2, 3), dims=("lat", "1st")), "an identifier"),
    (lambda: gs.zeros((2, 3), dims="Cell"), "one per dimension"),
    (lambda: gs.zeros((2, 3), dims="IJK"), "dims"),
    (lambda: gs.zeros((2, 3), halo={"K": 1}), "one of ('I', 'J')"),
    (
        lambda: gs.zeros(4, dims=("L",)) + gs.zeros(4, dims=(gridbuf.Dim("L", "data"),)),
        "two meanings two names",
    ),
    (lambda: gridbuf.Dim("I", "vertical"), "use another name"),
    (lambda: HOST[{"K": 1}], "one of ('I', 'J')"),
    (lambda: gridbuf.declare_dims(level="upwards"), '"vertical"'),
    (lambda: gs.zeros((8, 8), halo=(-1, 0)), "0 for none"),
    (lambda: gs.zeros((2, 2), halo=(2, 2)), "narrower"),
    (lambda: gs.zeros((2, 3), managed="numa"), "gt4py"),
    (lambda: gs.as_storage([1, 2]), "numpy.asarray"),
    (lambda: gs.as_storage(HOST.to_numpy(), backend="F"), "copy"),
    (lambda: operator.setitem(gridbuf.allocate(3), 0, 1), "to_numpy()[...] = value"),
    (lambda: gridbuf.as_buffer(3), "numpy.asarray"),
    (lambda: gridbuf.copyto(None, 3), "numpy.asarray"),
    (lambda: gridbuf.copyto(gridbuf.zeros(3), np.zeros(4)), "broadcast"),
    (lambda: HOST[4, 0], "4"),
    (lambda: HOST[0, 0, 0], "dimension"),
    (lambda: operator.setitem(HOST, ..., np.zeros((7, 9))), "(7, 9)"),
    (lambda: HOST + np.zeros((7, 9)), "(7, 9)"),
    (lambda: HOST.sum(axis="Q"), "Q"),
    (lambda: HOST.sum(axis=5), "5"),
    (lambda: bool(HOST), "numpy.any"),
    (lambda: HOST.transpose(0, 0), "axes"),
    (lambda: double(HOST, out=1.5), "import gridbuf.xarray"),
    (lambda: double(HOST, out=PROFILE), "('I', 'J')"),
    (lambda: double(HOST, out=gs.zeros((4, 5), "f4")), "astype"),
    (lambda: gridbuf.Field[np.float64, "I-"], "rename"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_common_mistakes_are_answered_in_one_sentence_with_the_remedy(number: int) -> None:
    mistake, remedy = MISTAKES[number]
    with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)) as caught:
        mistake()
    text = str(caught.value)
    assert remedy in text
    assert len(text) <= LONGEST
