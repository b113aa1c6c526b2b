"""GT4Py multiplies extents at 32 bits: arrays and fields of 4 GiB have a few bytes of memory."""

import subprocess
import sys

import gt4py.storage
import numpy as np
from gt4py import next as gtx


def array():
    return gt4py.storage.empty((32769, 16384), np.float64, backend="numpy")


def field():
    return gtx.empty({gtx.Dimension("Cell"): 32769, gtx.Dimension("C2E"): 16384}).ndarray


if len(sys.argv) < 2:
    ends = {
        f.__name__: subprocess.run([sys.executable, __file__, f.__name__]).returncode
        for f in (array, field)
    }
    died = [f"{name}: the process died of signal {-end}" for name, end in ends.items() if end < 0]
    sys.exit("defect: " + ", ".join(died) if died else 2 * any(ends.values()))

made = {"array": array, "field": field}[sys.argv[1]]()
print("it has", made.nbytes, "bytes; reading its last element", flush=True)
print(made[-1, -1])
