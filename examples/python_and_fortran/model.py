"""Steps of one model in Fortran and in Python, on the same storages. See README.md for how to build it."""

# [model]
import ctypes
import pathlib
from collections.abc import Callable

import numpy as np

import gridbuf.storage

fortran = ctypes.CDLL(str(pathlib.Path(__file__).with_name("librelax.so")))
pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
pointer_in.restype, pointer_in.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def relax(*storages: gridbuf.storage.Storage) -> None:
    capsules = [gridbuf.storage.to_c(storage) for storage in storages]  # keep the handles
    fortran.relax(
        *(ctypes.c_void_p(pointer_in(capsule, b"gridbuf_storage.0")) for capsule in capsules)
    )


def step(field: gridbuf.storage.Storage, result: gridbuf.storage.Storage) -> None:
    """The same step in Python."""
    f = field.to_numpy()
    sides = f[:-2, 1:-1] + f[2:, 1:-1] + f[1:-1, :-2] + f[1:-1, 2:]
    result.domain_view[...] = f[1:-1, 1:-1] + 0.125 * (sides - 4 * f[1:-1, 1:-1])


def run(steps: int, in_python: Callable = step, **options: object) -> gridbuf.storage.Storage:
    """Fortran and Python take turns."""
    field, result = (
        gridbuf.storage.zeros((34, 18), halo=(1, 1), layout=(1, 0), **options) for _ in range(2)
    )
    field[16, 8] = 1000.0
    for number in range(steps):
        (relax if number % 2 == 0 else in_python)(field, result)
        field, result = result, field
    return field


# [/model]

if __name__ == "__main__":
    print(np.round(run(20).to_numpy()[14:19, 6:11], 2))
