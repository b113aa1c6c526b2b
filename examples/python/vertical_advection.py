"""Implicit vertical advection of a wind component, as in the COSMO model: a tridiagonal system in each column; NumPy and GT4Py.

    python vertical_advection.py [BACKEND]

takes 12 steps with NumPy and with GT4Py's BACKEND (`gt:cpu_kfirst` if left out; it is compiled once), holds one against the other and
one column against a dense solver, and draws `vertical_advection.png` in the current folder if there is matplotlib.
"""

# No `from __future__ import annotations`: GT4Py evaluates a stencil's annotations.
import importlib.util
import sys
from typing import Any

import numpy as np
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import BACKWARD, FORWARD, Field, computation, interval

import gridbuf.storage

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "gt:cpu_kfirst"
SHAPE, HALO, STEPS = (96, 24, 60), 3, 12
DTR = 3.0 / 20.0  # 1 / length of a time step, in 1/s

# Weights of the new and the old time level (Crank-Nicolson, a little off the centre).
NEW, OLD = 0.5 * (1.0 + 0.2), 0.5 * (1.0 - 0.2)


# [numpy]
def advect_numpy(u, wcon, tendency) -> None:
    """Replaces `tendency` by that of `u` with advection; `wcon` is on half levels, staggered in I. One plane after another."""
    levels = u.shape[2]
    upper, right = np.empty_like(u), np.empty_like(u)  # the diagonal is divided out
    for k in range(levels):
        # Half of what enters through the upper and the lower face of a cell of u.
        above = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k]) if k > 0 else 0.0
        below = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1]) if k < levels - 1 else 0.0
        explicit = 0.0
        if k > 0:
            explicit = explicit - above * OLD * (u[:, :, k - 1] - u[:, :, k])
        if k < levels - 1:
            explicit = explicit - below * OLD * (u[:, :, k + 1] - u[:, :, k])
        diagonal = DTR - above * NEW - below * NEW
        value = DTR * u[:, :, k] + tendency[:, :, k] + explicit
        if k > 0:
            diagonal = diagonal - upper[:, :, k - 1] * above * NEW
            value = value - right[:, :, k - 1] * above * NEW
        upper[:, :, k] = below * NEW / diagonal
        right[:, :, k] = value / diagonal
    for k in range(levels - 2, -1, -1):
        right[:, :, k] -= upper[:, :, k] * right[:, :, k + 1]
    tendency[...] = DTR * (right - u)


# [/numpy]


# [gt4py]
@gtscript.stencil(backend=BACKEND, externals={"DTR": DTR, "NEW": NEW, "OLD": OLD})
def advect_gt4py(u: Field[np.float64], wcon: Field[np.float64], tendency: Field[np.float64]):
    """The Thomas algorithm: down the column to eliminate, and up again to substitute."""
    from __externals__ import DTR, NEW, OLD

    with computation(FORWARD):
        with interval(0, 1):
            below = 0.25 * (wcon[1, 0, 1] + wcon[0, 0, 1])
            diagonal = DTR - below * NEW
            value = DTR * u + tendency - below * OLD * (u[0, 0, 1] - u)
            upper = below * NEW / diagonal
            right = value / diagonal
        with interval(1, -1):
            above = -0.25 * (wcon[1, 0, 0] + wcon[0, 0, 0])
            below = 0.25 * (wcon[1, 0, 1] + wcon[0, 0, 1])
            diagonal = DTR - above * NEW - below * NEW - upper[0, 0, -1] * above * NEW
            explicit = -above * OLD * (u[0, 0, -1] - u) - below * OLD * (u[0, 0, 1] - u)
            value = DTR * u + tendency + explicit
            upper = below * NEW / diagonal
            right = (value - right[0, 0, -1] * above * NEW) / diagonal
        with interval(-1, None):
            above = -0.25 * (wcon[1, 0, 0] + wcon[0, 0, 0])
            diagonal = DTR - above * NEW - upper[0, 0, -1] * above * NEW
            value = DTR * u + tendency - above * OLD * (u[0, 0, -1] - u)
            right = (value - right[0, 0, -1] * above * NEW) / diagonal
    with computation(BACKWARD):
        with interval(-1, None):
            tendency = DTR * (right - u)
        with interval(0, -1):
            right = right - upper * right[0, 0, 1]
            tendency = DTR * (right - u)  # noqa: F841


# [/gt4py]


# [fields]
def make_fields() -> dict[str, Any]:
    """A jet, and a flow that rises and sinks through it; the halos of the three differ on purpose."""
    i, j, k = np.indices(SHAPE)
    height = k / SHAPE[2]
    u = gridbuf.storage.zeros(
        tuple(extent + width for extent, width in zip(SHAPE, (2 * HALO, 2 * HALO, 0))),
        backend=BACKEND,
        halo=(HALO, HALO, 0),
    )
    u.domain_view[...] = 30.0 * np.exp(-(((height - 0.5) / 0.12) ** 2)) + 0.05 * np.cos(j)
    # Staggered: one point more to the right, which is a halo of one point on that side only.
    wcon = gridbuf.storage.zeros(
        (SHAPE[0] + 1, SHAPE[1], SHAPE[2]), backend=BACKEND, halo=((0, 1), (0, 0), (0, 0))
    )
    wcon[:-1] = 0.12 * np.sin(6.0 * np.pi * i / SHAPE[0]) * np.sin(np.pi * height)
    wcon[-1:] = wcon[:1]
    tendency = gridbuf.storage.zeros(SHAPE, backend=BACKEND)
    return {"u": u, "wcon": wcon, "tendency": tendency}


# [/fields]


# [run]
def run(stencil, u, wcon, tendency):
    """Some steps: the tendency of the wind by advection, and the new wind."""
    for _ in range(STEPS):
        tendency[...] = 0.0
        stencil(u, wcon, tendency)
        u.domain_view[...] += tendency / DTR
    return u


def on_arrays(u, wcon, tendency) -> None:
    advect_numpy(u.domain_view.to_numpy(), wcon.to_numpy(), tendency.to_numpy())


before = make_fields()["u"]
by_numpy = run(on_arrays, **make_fields())
by_gt4py = run(advect_gt4py, **make_fields())
# [/run]

# [validate]
np.testing.assert_allclose(by_gt4py.to_numpy(), by_numpy.to_numpy(), rtol=1e-11, atol=1e-11)
# [/validate]


def solve_densely(u, wcon, tendency):
    """The new wind of one column: the same system as a full matrix, from the definition of the scheme."""
    levels = len(u)
    face = 0.25 * (wcon[0] + wcon[1])  # between the levels k - 1 and k
    matrix, right = DTR * np.eye(levels), DTR * u + tendency
    for k in range(levels):
        for neighbour, strength in ((k - 1, -face[k]), (k + 1, face[(k + 1) % levels])):
            if 0 <= neighbour < levels:
                matrix[k, k] -= strength * NEW
                matrix[k, neighbour] += strength * NEW
                right[k] -= strength * OLD * (u[neighbour] - u[k])
    return np.linalg.solve(matrix, right)


fields = make_fields()
wanted = solve_densely(
    fields["u"].domain_view[5, 7].to_numpy(),
    fields["wcon"][5:7, 7].to_numpy(),
    np.zeros(SHAPE[2]),
)
advect_gt4py(**fields)
found = fields["u"].domain_view[5, 7].to_numpy() + fields["tendency"][5, 7].to_numpy() / DTR
np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)
print(f"{STEPS} steps on {SHAPE}: NumPy, {BACKEND} and a dense solver agree within 1e-11")


def draw() -> None:
    """A section through the jet before and after, and one column by both."""
    import matplotlib.pyplot as plt

    row, column = SHAPE[1] // 2, SHAPE[0] // 12
    first, last = (field.domain_view.to_numpy() for field in (before, by_gt4py))
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.9), layout="constrained")
    limits = {"vmin": 0.0, "vmax": 30.0}
    for ax, field, title in ((axes[0], first, "before"), (axes[1], last, f"after {STEPS} steps")):
        image = ax.imshow(field[:, row].T, origin="lower", aspect="auto", cmap="viridis", **limits)
        ax.set(title=f"wind, {title}", xlabel="I", ylabel="K")
    figure.colorbar(image, ax=axes[:2], label="m/s", shrink=0.9)
    levels = np.arange(SHAPE[2])
    axes[2].plot(first[column, row], levels, lw=0.8, color="0.6", label="before")
    by_both = by_numpy.domain_view.to_numpy()[column, row]
    axes[2].plot(by_both, levels, color="tab:blue", label="NumPy")
    axes[2].plot(
        last[column, row], levels, ":", lw=2.5, color="tab:orange", label=f"GT4Py, {BACKEND}"
    )
    axes[2].set(title=f"the column I = {column}", xlabel="m/s", ylabel="K")
    axes[2].legend(frameon=False, fontsize="small")
    figure.savefig("vertical_advection.png", dpi=110)


if importlib.util.find_spec("matplotlib"):
    draw()
else:
    print("no picture without matplotlib: pip install matplotlib")
