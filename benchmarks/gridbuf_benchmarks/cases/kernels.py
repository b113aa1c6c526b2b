"""The stencils of the chapter `stencil`: two kernels of weather models, as GT4Py's users write them.

Horizontal diffusion reads neighbours in I and J and is bound by the memory; vertical advection solves a tridiagonal system in each
column, one level after another. `examples/python` has both next to a version in NumPy.
"""

# No `from __future__ import annotations`: GT4Py evaluates a stencil's annotations. And gtscript is not typed Python.
# mypy: disable-error-code="no-untyped-call, no-untyped-def, valid-type, operator, index, misc"
import atexit
import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

HALO = 3
"""Points on every side of I and J that the fields have beyond the domain, as models allocate them."""

KERNELS: Mapping[str, tuple[str, ...]] = {
    "hdiff": ("phi", "coefficient", "out"),
    "vadv": ("u", "wcon", "tendency", "out"),
}
"""The fields of each, the written one last."""


FIVE = ("a", "b", "c", "d", "e")
"""The fields of `mean`, the written one last: its result is 1 where all of them are, for the cost of a call on a few points."""


@functools.cache
def keep_cache() -> None:
    """What GT4Py compiles goes to GT_CACHE_ROOT if that is set, else to a folder that ends with the process."""
    if "GT_CACHE_ROOT" not in os.environ:
        folder = tempfile.mkdtemp(prefix="gridbuf-benchmarks-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["GT_CACHE_ROOT"] = folder
    os.environ["GT_CACHE_ROOT"] = os.path.abspath(os.environ["GT_CACHE_ROOT"])


@functools.cache
def compiled(name: str, backend: str) -> Any:
    """The stencil, compiled once for all contenders: what differs is the fields.

    It is compiled in an empty folder: setuptools, which GT4Py calls, obeys a pyproject.toml of the working directory.
    """
    keep_cache()
    from gt4py.cartesian import gtscript

    with tempfile.TemporaryDirectory(prefix="gridbuf-benchmarks-") as folder:
        with contextlib.chdir(folder):
            return gtscript.stencil(backend=backend, definition=_definition(name), name=name)


def _definition(name: str) -> Any:
    """The function that GT4Py reads; its names are GT4Py's, which is why it is made here."""
    from gt4py.cartesian.gtscript import BACKWARD, FORWARD, PARALLEL, Field, computation, interval

    def hdiff(phi: Field[np.float64], coefficient: Field[np.float64], out: Field[np.float64]):
        with computation(PARALLEL), interval(...):
            laplacian = -4.0 * phi + (phi[1, 0, 0] + phi[-1, 0, 0] + phi[0, 1, 0] + phi[0, -1, 0])
            flux_i = laplacian[1, 0, 0] - laplacian
            flux_i = 0.0 if flux_i * (phi[1, 0, 0] - phi) > 0.0 else flux_i
            flux_j = laplacian[0, 1, 0] - laplacian
            flux_j = 0.0 if flux_j * (phi[0, 1, 0] - phi) > 0.0 else flux_j
            out = phi - coefficient * (  # noqa: F841
                flux_i - flux_i[-1, 0, 0] + flux_j - flux_j[0, -1, 0]
            )

    def vadv(
        u: Field[np.float64],
        wcon: Field[np.float64],
        tendency: Field[np.float64],
        out: Field[np.float64],
    ):
        with computation(FORWARD):
            with interval(0, 1):
                below = 0.15 * (wcon[1, 0, 1] + wcon[0, 0, 1])
                diagonal = 0.15 - below
                upper = below / diagonal
                right = (0.15 * u + tendency - 0.7 * below * (u[0, 0, 1] - u)) / diagonal
            with interval(1, -1):
                above = -0.15 * (wcon[1, 0, 0] + wcon[0, 0, 0])
                below = 0.15 * (wcon[1, 0, 1] + wcon[0, 0, 1])
                diagonal = 0.15 - above - below - upper[0, 0, -1] * above
                explicit = -0.7 * above * (u[0, 0, -1] - u) - 0.7 * below * (u[0, 0, 1] - u)
                upper = below / diagonal
                right = (0.15 * u + tendency + explicit - right[0, 0, -1] * above) / diagonal
            with interval(-1, None):
                above = -0.15 * (wcon[1, 0, 0] + wcon[0, 0, 0])
                diagonal = 0.15 - above - upper[0, 0, -1] * above
                explicit = -0.7 * above * (u[0, 0, -1] - u)
                right = (0.15 * u + tendency + explicit - right[0, 0, -1] * above) / diagonal
        with computation(BACKWARD):
            with interval(-1, None):
                out = 0.15 * (right - u)
            with interval(0, -1):
                right = right - upper * right[0, 0, 1]
                out = 0.15 * (right - u)  # noqa: F841

    def mean(
        a: Field[np.float64],
        b: Field[np.float64],
        c: Field[np.float64],
        d: Field[np.float64],
        e: Field[np.float64],
    ):
        with computation(PARALLEL), interval(...):
            e = 0.25 * (a + b + c + d)  # noqa: F841

    return {"hdiff": hdiff, "vadv": vadv, "mean": mean}[name]


def frozen(name: str, backend: str, domain: tuple[int, int, int]) -> Any:
    """The stencil with origin and domain fixed: the timed part is its loops, not GT4Py's checks of a call."""
    origin = {field: (HALO, HALO, 0) for field in KERNELS[name]}
    return compiled(name, backend).freeze(origin=origin, domain=domain)


def values_of(name: str, shape: tuple[int, int, int]) -> dict[str, npt.NDArray[np.float64]]:
    """The fields before a run, in C order; weights small enough for both kernels to be stable."""
    scales = {"coefficient": 0.006, "wcon": 0.01}
    made = {
        field: np.random.default_rng(seed).random(shape) * scales.get(field, 1.0)
        for seed, field in enumerate(KERNELS[name])
    }
    return made | {"out": np.zeros(shape)}


@functools.lru_cache(maxsize=2)
def _wanted(name: str, shape: tuple[int, int, int]) -> npt.NDArray[np.float64]:
    """The result by GT4Py's backend that computes with NumPy."""
    fields = values_of(name, shape)
    domain = shape[0] - 2 * HALO, shape[1] - 2 * HALO, shape[2]
    frozen(name, "numpy", domain)(**fields)
    return fields["out"]


def agreement(name: str, field: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """1 where the written field agrees with GT4Py's NumPy backend within 1e-12, and is still 0 in the halo."""
    out = np.asarray(field)
    shape = (out.shape[0], out.shape[1], out.shape[2])
    agrees: npt.NDArray[np.bool_] = np.isclose(out, _wanted(name, shape), rtol=1e-12, atol=1e-12)
    return agrees.astype(np.float64)
