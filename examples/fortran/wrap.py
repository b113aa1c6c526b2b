"""Fortran's memory in Python, and gridbuf's memory in Fortran, without copies.

gfortran -O2 -shared -fPIC -o libdiffusion.so diffusion.f90 && python wrap.py
"""

# [descriptor]
import ctypes
import pathlib
import weakref

import numpy as np

import gridbuf
import gridbuf.storage

fortran = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libdiffusion.so")))

# The attribute of an array, with gfortran's numbers (ISO_Fortran_binding.h).
POINTER, OTHER = 0, 2
REAL64 = 3 + (8 << 8)


class Dimension(ctypes.Structure):
    """CFI_dim_t; the stride is in bytes."""

    _fields_ = [(name, ctypes.c_ssize_t) for name in ("lower_bound", "extent", "stride_bytes")]


class Descriptor(ctypes.Structure):
    """CFI_cdesc_t of an array with three dimensions."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("itemsize_bytes", ctypes.c_size_t),
        ("version", ctypes.c_int),
        ("rank", ctypes.c_int8),
        ("attribute", ctypes.c_int8),
        ("type", ctypes.c_int16),
        ("dim", Dimension * 3),
    ]


# [/descriptor]


# [wrap]
class Model:
    """The Fortran model. It owns its memory, and stops when the last view is gone."""

    def __init__(self, ni, nj, nk):
        if fortran.model_start(ni, nj, nk) != 0:
            raise RuntimeError("the model runs already, or there is no memory for it")
        weakref.finalize(self, fortran.model_stop)

    @property
    def temperature(self):
        """The field as a storage. Fortran's first index is I; the lower bounds give the halo."""
        found = Descriptor(itemsize_bytes=8, version=1, rank=3, attribute=POINTER, type=REAL64)
        fortran.model_temperature(ctypes.byref(found))
        interface = {
            "version": 3,
            "typestr": "<f8",
            "shape": tuple(d.extent for d in found.dim),
            "strides": tuple(d.stride_bytes for d in found.dim),
            "data": (found.address, False),
        }
        width = 1 - found.dim[0].lower_bound
        memory = gridbuf.from_interface(interface, owner=self)
        return gridbuf.storage.as_storage(memory, halo=(width, width, 0))


model = Model(16, 12, 5)
temperature = model.temperature
assert temperature.shape == (18, 14, 5) and temperature.layout == (2, 1, 0)
assert temperature.domain_view[0, 0, 0] == 111.0  # temperature(1, 1, 1)

fortran.model_total.restype = ctypes.c_double
before = fortran.model_total()
temperature.domain_view[...] += 1.0  # writes Fortran's memory
assert fortran.model_total() == before + 16 * 12 * 5
# [/wrap]


# [stencil]
@gridbuf.stencil(writes="field")
def cool(field: gridbuf.Field[np.float64], rate: float, *, origin, domain):
    inner = tuple(slice(o, o + n) for o, n in zip(origin["field"], domain, strict=True))
    field[inner] -= rate


cool(temperature, 1.0)  # inside Fortran's halo, in Fortran's memory
assert fortran.model_total() == before
# [/stencil]


# [export]
def exported(field):
    """The C descriptor of a storage of any layout. Valid while the storage lives."""
    view = field.to_numpy()
    dim = [Dimension(0, *pair) for pair in zip(view.shape, view.strides, strict=True)]
    address = view.ctypes.data
    return Descriptor(address, view.itemsize, 1, view.ndim, OTHER, REAL64, (Dimension * 3)(*dim))


fortran.diffuse.argtypes = [ctypes.POINTER(Descriptor)] * 2 + [ctypes.c_double]

# Padded and aligned with I contiguous, as in Fortran; then with K contiguous.
for backend in ("gt:cpu_ifirst", "gt:cpu_kfirst"):
    field = gridbuf.storage.storage(temperature, backend=backend)
    out = gridbuf.storage.zeros_like(field)
    fortran.diffuse(ctypes.byref(exported(field)), ctypes.byref(exported(out)), 0.1)

    inner, values = np.s_[1:-1, 1:-1], field.to_numpy()
    neighbours = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:]
    expected = values[inner] + 0.1 * (neighbours - 4 * values[inner])
    assert np.allclose(out.to_numpy()[inner], expected, rtol=1e-14)
# [/export]

# [lifetime]
fortran.model_is_running.restype = ctypes.c_bool
del model
assert fortran.model_is_running()  # The storage keeps the model alive.
del temperature
assert not fortran.model_is_running()
# [/lifetime]
