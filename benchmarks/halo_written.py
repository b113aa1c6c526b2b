"""What it saves to send only what was written, and what it costs when everything was: docs/explanation/halo-exchange.md.

    mpiexec -n 2 python benchmarks/halo_written.py        # prints a table, with gridbuf on PYTHONPATH, on a quiet machine

Five float64 fields travel together between two ranks, with a halo of 3 along I, I first and 40 levels. Between two exchanges a part
of them is written; the table has the median time of an exchange, the writing not included, and the bytes that a rank sends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

HALO, LEVELS, FIELDS = 3, 40, 5
POINTS = (16, 128)
ROUNDS = 100


def writers() -> dict[str, Callable[[list[Any]], None]]:
    """What is written between two exchanges."""

    def everything(fields: list[Any]) -> None:
        for field in fields:
            field[...] = 1.0

    def one_field(fields: list[Any]) -> None:
        fields[0][...] = 1.0

    def one_column(fields: list[Any]) -> None:
        fields[0][HALO, 5] = 1.0

    return {
        "all fields": everything,
        "one field of five": one_field,
        "one column of one field": one_column,
        "nothing": lambda fields: None,
    }


def measure(points: int, engine: str, send: Any, write: Callable[[list[Any]], None]) -> Any:
    """The median time of an exchange in seconds over both ranks, and the bytes that this one sends in it."""
    import gridbuf.mpi
    import gridbuf.storage

    halo = ((HALO, HALO), (0, 0), (0, 0))
    with gridbuf.mpi.Decomposition({"I": 64}, periodic="I") as grid:
        shape = grid.local_shape((64, points, LEVELS), halo=halo)
        fields = [
            gridbuf.storage.zeros(shape, halo=halo, defaults="gt:cpu_ifirst") for _ in range(FIELDS)
        ]
        with gridbuf.mpi.HaloExchange(grid, *fields, engine=engine, send=send) as exchange:
            for _ in range(5):
                exchange(*fields)
            before = exchange.statistics
            times = []
            for _ in range(ROUNDS):
                write(fields)
                grid.comm.Barrier()
                begun = time.perf_counter()
                exchange(*fields)
                times.append(time.perf_counter() - begun)
            sent = (exchange.statistics.sent_bytes - before.sent_bytes) / ROUNDS
            return float(np.mean(grid.comm.allgather(np.median(times)))), sent


def main() -> None:
    """Measures all cases; rank 0 prints."""
    from mpi4py import MPI

    for engine in ("mpi4py", "ghex"):
        for points in POINTS:
            for name, write in writers().items():
                row = [measure(points, engine, send, write) for send in ("all", "written")]
                if MPI.COMM_WORLD.rank == 0:
                    cells = "  ".join(
                        f"{seconds * 1e6:7.1f} us {sent:9.0f} B" for seconds, sent in row
                    )
                    print(f"{engine:7} {points:4} points  {name:24} {cells}", flush=True)


if __name__ == "__main__":
    main()
