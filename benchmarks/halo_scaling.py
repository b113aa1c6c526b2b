"""What an exchange of halos costs by its bytes, and what that means for many ranks: docs/explanation/halo-exchange.md.

    mpiexec -n 2 python benchmarks/halo_scaling.py halo.json        # measures, with gridbuf on PYTHONPATH, on a quiet machine
    python benchmarks/halo_scaling.py --draw halo.json halo.png     # fits and draws; needs matplotlib

Measured: the time of an exchange between two ranks, for growing fields, by engine, and how long a step of diffusion in NumPy
takes for a point. Fitted: time = alpha per message + beta per byte, by least squares of relative errors.
Drawn: the measurements with their lines, and the share of a step that is computing, for a field of a fixed size on more
and more ranks, cut along one dimension and along two.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HALO, LEVELS = 3, 40
POINTS = (4, 8, 16, 32, 64, 128, 256)
ENGINES = ("ghex", "mpi4py")
WHOLE = 1024  # points along I and J of the field that the drawing scales
MESSAGES = 2  # of each rank in the measurement


def measure() -> dict[str, Any]:
    """Medians in seconds, by engine and bytes that a rank sends; the same program on two ranks."""
    import gridbuf.mpi
    import gridbuf.storage

    found: dict[str, Any] = {engine: [] for engine in ENGINES}
    halo = ((HALO, HALO), (0, 0), (0, 0))
    for points in POINTS:
        grid = gridbuf.mpi.Decomposition({"I": 64}, periodic="I")
        shape = grid.local_shape((64, points, LEVELS), halo=halo)
        field = gridbuf.storage.zeros(shape, halo=halo, defaults="gt:cpu_ifirst")
        for engine in ENGINES:
            exchange = gridbuf.mpi.HaloExchange(grid, field, engine=engine)
            times = []
            for _ in range(15):
                grid.comm.Barrier()
                begun = time.perf_counter()
                for _ in range(20):
                    exchange(field)
                times.append(grid.comm.allreduce(time.perf_counter() - begun) / grid.size / 20)
            found[engine].append((exchange.sent_bytes, float(np.median(times))))
    return {**found, "point_seconds": _seconds_per_point()}


def _seconds_per_point() -> float:
    """Of one step of diffusion in NumPy, both ranks at work."""
    u = np.random.default_rng(1).random((130, 130, LEVELS))
    v = np.zeros_like(u)
    times = []
    for _ in range(9):
        begun = time.perf_counter()
        inner = u[1:-1, 1:-1]
        v[1:-1, 1:-1] = inner + 0.1 * (
            (u[2:, 1:-1] + u[:-2, 1:-1]) + (u[1:-1, 2:] + u[1:-1, :-2]) - 4.0 * inner
        )
        times.append(time.perf_counter() - begun)
    return float(np.median(times)) / (128 * 128 * LEVELS)


def fit(points: list[tuple[int, float]]) -> tuple[float, float]:
    """alpha in seconds per message, beta in seconds per byte."""
    sent, seconds = np.array(points, float).T
    columns = np.stack([np.full_like(sent, MESSAGES), sent], axis=1)
    (alpha, beta), *_ = np.linalg.lstsq(columns / seconds[:, None], np.ones_like(sent), rcond=None)
    return float(alpha), float(beta)


def efficiency(alpha: float, beta: float, point_seconds: float, cut: tuple[int, int]) -> float:
    """The share of a step that is computing, for the whole field cut into so many parts along I and J."""
    local = [WHOLE / parts for parts in cut]
    compute = local[0] * local[1] * LEVELS * point_seconds
    faces = [8 * HALO * LEVELS * local[1 - axis] for axis in (0, 1) if cut[axis] > 1]
    corners = 8 * HALO * HALO * LEVELS if min(cut) > 1 else 0
    messages = 2 * len(faces) + (4 if corners else 0)
    sent = 2 * sum(faces) + 4 * corners
    return compute / (compute + messages * alpha + sent * beta)


def draw(result: dict[str, Any], path: Path) -> None:
    """Draws the measurements and the model, and prints both."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    ranks = [4**n for n in range(8)]
    for engine, colour in zip(ENGINES, ("C0", "C1"), strict=True):
        alpha, beta = fit(result[engine])
        sent, seconds = np.array(result[engine]).T
        left.loglog(sent, seconds * 1e6, "o", color=colour)
        label = f"{engine}: {alpha * 1e6:.1f} µs per message + 1 byte at {1e-9 / beta:.1f} GB/s"
        left.loglog(sent, (MESSAGES * alpha + sent * beta) * 1e6, color=colour, label=label)
        print(label, *(f"  {n} bytes: {s * 1e6:.1f} µs" for n, s in result[engine]), sep="\n")
        for cut, style in (("1-D", ":"), ("2-D", "-")):
            parts = [(n, 1) if cut == "1-D" else (int(n**0.5),) * 2 for n in ranks]
            shares = [
                efficiency(alpha, beta, result["point_seconds"], one)
                if WHOLE // max(one) >= HALO
                else np.nan
                for one in parts
            ]
            right.semilogx(ranks, shares, style, color=colour, label=f"{engine}, {cut}")
    print(f"a point: {result['point_seconds'] * 1e9:.2f} ns")
    left.set(xlabel="bytes that a rank sends", ylabel="µs per exchange", title="measured, 2 ranks")
    title = f"model, {WHOLE} × {WHOLE} × {LEVELS}"
    right.set(
        xlabel="ranks", ylabel="share of a step that is computing", title=title, ylim=(0, 1.02)
    )
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    if sys.argv[1] == "--draw":
        draw(json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3]))
        return
    result = measure()
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
