"""Temporaries of DaCe programs in a workspace: GT4Py's mode EXTERNAL."""

from __future__ import annotations

import threading
from inspect import signature
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "gt4py.next.custom_layout_allocators",
    reason="gt4py is not installed; install the peers with `./bazelw --peers`",
)

import gridbuf.gt4py.next as gb_next
from gt4py import next as gtx

dace_backends: Any = pytest.importorskip(
    "gt4py.next.program_processors.runners.dace.workflow.backend", reason="dace is not installed"
)
OWNS = (
    hasattr(dace_backends, "make_dace_toolchain")
    or "external_workspace" in signature(dace_backends.make_dace_backend).parameters
)
needs_external = pytest.mark.skipif(not OWNS, reason="GT4Py is older than 1.2.1")
I, K = gtx.Dimension("I"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)  # noqa: E741
SHAPE = (64, 20)


@gtx.field_operator
def forward(phi: gtx.Field[[I, K], gtx.float64]) -> gtx.Field[[I, K], gtx.float64]:
    return phi(I + 1) * 2.0 - phi


@gtx.field_operator
def twice(phi: gtx.Field[[I, K], gtx.float64]) -> gtx.Field[[I, K], gtx.float64]:
    a = forward(phi)
    b = forward(a)
    return a(I + 1) + b


def run(backend: Any, values: np.ndarray) -> np.ndarray:
    phi = gb_next.as_field({I: (0, SHAPE[0]), K: SHAPE[1]}, values)
    out = gb_next.zeros({I: (0, SHAPE[0] - 2), K: SHAPE[1]})
    twice.with_backend(backend)(phi, out=out, offset_provider={})
    return out.ndarray


def expected(values: np.ndarray) -> np.ndarray:
    a = values[1:] * 2.0 - values[:-1]
    b = a[1:] * 2.0 - a[:-1]
    return a[1:] + b


@pytest.mark.skipif(OWNS, reason="GT4Py is 1.2.1 or newer")
def test_an_older_gt4py_is_named() -> None:
    with pytest.raises(ImportError, match=r"1\.2\.1"):
        gb_next.dace_backend(gb_next.workspace())


@needs_external
def test_programs_use_one_workspace() -> None:
    spaces = gb_next.workspace(2**30)
    (space,) = spaces.values()
    backend = gb_next.dace_backend(spaces)
    values = np.random.default_rng(1).random(SHAPE)
    np.testing.assert_array_equal(run(backend, values), expected(values))
    assert 0 < space.peak <= 2**20
    assert 0 < space.committed <= 2**23
    with (
        pytest.raises(ValueError, match="in use by 'another program'"),
        space.taken_by("another program"),
    ):
        run(backend, values)
    again = run(backend, values + 1)
    np.testing.assert_array_equal(again, expected(values + 1))


@needs_external
def test_a_workspace_that_is_too_small_is_an_error() -> None:
    backend = gb_next.dace_backend(gb_next.workspace(8))
    with pytest.raises(ValueError, match="8 bytes"):
        run(backend, np.zeros(SHAPE))


@needs_external
def test_threads_take_turns_or_are_refused() -> None:
    backend = gb_next.dace_backend(gb_next.workspace(2**30))
    values = np.random.default_rng(2).random(SHAPE)
    run(backend, values)
    wrong: list[object] = []

    def work(seed: int) -> None:
        mine = np.random.default_rng(seed).random(SHAPE)
        for _ in range(50):
            try:
                if not np.array_equal(run(backend, mine), expected(mine)):
                    wrong.append(seed)
            except ValueError as error:
                if "in use by" not in str(error):
                    wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
