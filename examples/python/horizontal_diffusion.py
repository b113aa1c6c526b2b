"""Horizontal diffusion as weather models have it: fourth order, flux-limited, on storages with a halo; NumPy and GT4Py.

    python horizontal_diffusion.py [BACKEND]

takes 60 steps with NumPy and with GT4Py's BACKEND (`gt:cpu_ifirst` if left out; it is compiled once), holds one against the other, and
draws `horizontal_diffusion.png` in the current folder if there is matplotlib.
"""

# No `from __future__ import annotations`: GT4Py evaluates a stencil's annotations.
import importlib.util
import sys
from typing import Any

import numpy as np

# [imports]
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, K, computation, interval
# [/imports]

import gridbuf.storage

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "gt:cpu_ifirst"
SHAPE, HALO, STEPS = (128, 128, 40), 2, 60


# [numpy]
def diffuse_numpy(phi, coefficient, out):
    """One step on plain arrays, a halo of 2 around the columns: the limiter forbids fluxes up the gradient."""
    laplacian = -4.0 * phi[1:-1, 1:-1] + (
        phi[2:, 1:-1] + phi[:-2, 1:-1] + phi[1:-1, 2:] + phi[1:-1, :-2]
    )
    flux_i = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
    flux_i[flux_i * (phi[2:-1, 2:-2] - phi[1:-2, 2:-2]) > 0.0] = 0.0
    flux_j = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
    flux_j[flux_j * (phi[2:-2, 2:-1] - phi[2:-2, 1:-2]) > 0.0] = 0.0
    out[2:-2, 2:-2] = phi[2:-2, 2:-2] - coefficient * (
        flux_i[1:] - flux_i[:-1] + flux_j[:, 1:] - flux_j[:, :-1]
    )


# [/numpy]


# [gt4py]
@gtscript.stencil(backend=BACKEND)
def diffuse_gt4py(
    phi: Field[np.float64], coefficient: Field[K, np.float64], out: Field[np.float64]
):
    """The same, point by point. The fields give the origin and the domain."""
    with computation(PARALLEL), interval(...):
        laplacian = -4.0 * phi + (phi[1, 0, 0] + phi[-1, 0, 0] + phi[0, 1, 0] + phi[0, -1, 0])
        flux_i = laplacian[1, 0, 0] - laplacian
        flux_i = 0.0 if flux_i * (phi[1, 0, 0] - phi) > 0.0 else flux_i
        flux_j = laplacian[0, 1, 0] - laplacian
        flux_j = 0.0 if flux_j * (phi[0, 1, 0] - phi) > 0.0 else flux_j
        out = phi - coefficient * (flux_i - flux_i[-1, 0, 0] + flux_j - flux_j[0, -1, 0])  # noqa: F841


# [/gt4py]


# [halo]
def wrap(field) -> None:
    """Fills the halo of a periodic domain."""
    for edge in (field, field.transpose(1, 0, 2)):
        edge[:HALO] = edge[-2 * HALO : -HALO]
        edge[-HALO:] = edge[HALO : 2 * HALO]


# [/halo]


def initial(i, j, k):
    """A warm disc with a sharp edge above a wave, and noise of the shortest wavelength, which diffusion is there to remove."""
    x, y = 2.0 * np.pi * i / SHAPE[0], 2.0 * np.pi * j / SHAPE[1]
    disc = np.hypot(i - SHAPE[0] / 2, j - SHAPE[1] / 2) < SHAPE[0] / 4
    noise = 0.5 * (-1.0) ** (i + j)
    return 280.0 + 3.0 * np.sin(2.0 * x) * np.cos(y) + 6.0 * disc + noise - 0.1 * k


# [fields]
def make_fields() -> dict[str, Any]:
    """Storages laid out for the backend, aligned at the first inner point."""
    halo = (HALO, HALO, 0)
    shape = tuple(extent + 2 * width for extent, width in zip(SHAPE, halo))
    phi = gridbuf.storage.zeros(shape, backend=BACKEND, halo=halo)
    phi.domain_view[...] = initial(*np.indices(SHAPE))
    wrap(phi)
    # Stronger towards the top, as in a damping layer: one number a level.
    coefficient = gridbuf.storage.storage(
        np.linspace(0.002, 0.006, SHAPE[2]), backend=BACKEND, dims="K"
    )
    return {"phi": phi, "coefficient": coefficient, "out": gridbuf.storage.zeros_like(phi)}


# [/fields]


# [run]
def run(stencil, phi, coefficient, out):
    """Some steps of one of the two stencils above. Returns the storage with the last result."""
    for _ in range(STEPS):
        stencil(phi, coefficient, out)
        wrap(out)
        phi, out = out, phi
    return phi


def on_arrays(phi, coefficient, out) -> None:
    diffuse_numpy(phi.to_numpy(), coefficient.to_numpy(), out.to_numpy())


before = make_fields()["phi"]
by_numpy = run(on_arrays, **make_fields())
by_gt4py = run(diffuse_gt4py, **make_fields())
# [/run]

# [validate]
np.testing.assert_allclose(by_gt4py.to_numpy(), by_numpy.to_numpy(), rtol=1e-12)

inner_before, inner = before.domain_view.to_numpy(), by_gt4py.domain_view.to_numpy()
assert np.isclose(inner.sum(), inner_before.sum(), rtol=1e-12)  # what leaves a cell enters another
assert inner.max() <= inner_before.max() and inner.min() >= inner_before.min()  # no new extremes
assert inner.std() < inner_before.std()
# [/validate]
print(f"{STEPS} steps on {SHAPE}: NumPy and {BACKEND} agree within 1e-12")


def draw() -> None:
    """The field before and after in one level, and a row through both."""
    import matplotlib.pyplot as plt

    level = SHAPE[2] - 1
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.9), layout="constrained")
    limits = {"vmin": inner_before[:, :, level].min(), "vmax": inner_before[:, :, level].max()}
    for ax, field, title in (
        (axes[0], inner_before, "before"),
        (axes[1], inner, f"after {STEPS} steps"),
    ):
        image = ax.imshow(field[:, :, level].T, origin="lower", cmap="RdYlBu_r", **limits)
        ax.set(title=f"temperature, {title}", xlabel="I", ylabel="J")
    figure.colorbar(image, ax=axes[:2], label="kelvin", shrink=0.9)
    row = SHAPE[1] // 2
    axes[2].plot(inner_before[:, row, level], lw=0.8, color="0.6", label="before")
    axes[2].plot(by_numpy.domain_view.to_numpy()[:, row, level], color="tab:blue", label="NumPy")
    axes[2].plot(inner[:, row, level], ":", lw=2.5, color="tab:orange", label=f"GT4Py, {BACKEND}")
    axes[2].set(title=f"along J = {row}", xlabel="I", ylabel="kelvin", xlim=(0, SHAPE[0] - 1))
    axes[2].legend(frameon=False, fontsize="small", loc="lower center")
    figure.savefig("horizontal_diffusion.png", dpi=110)


if importlib.util.find_spec("matplotlib"):
    draw()
else:
    print("no picture without matplotlib: pip install matplotlib")
