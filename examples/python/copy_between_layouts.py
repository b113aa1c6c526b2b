"""Copies between layouts, with casts and masks, between arrays of any two libraries."""

# [turn]
import numpy as np

import gridbuf

# A Fortran array, and a field in the layout of `gt:cpu_kfirst`.
fortran = np.asfortranarray(np.random.default_rng(1).random((64, 64, 80)))
field = gridbuf.zeros((64, 64, 80), backend="gt:cpu_kfirst")

gridbuf.copyto(field, fortran)
assert (field == fortran).all()
# [/turn]

# [cast]
single = gridbuf.empty((64, 64, 80), "float32", backend="gt:cpu_ifirst")
gridbuf.copyto(single, field)  # "same_kind", the default, allows float64 to float32

levels = np.zeros((64, 64, 80), "int16")
gridbuf.copyto(levels, field * 100, casting="unsafe")  # loses fractions, so `casting` must allow it

gridbuf.copyto(field, 0.0, where=field < 0.5)  # other elements keep their values
assert field[field > 0].min() >= 0.5
# [/cast]

# [any]
import array  # noqa: E402

samples = array.array("d", bytes(8 * 80))
gridbuf.copyto(samples, field[10, 10])  # into the memory of any library that exports it
assert samples[7] == field[10, 10, 7]

gridbuf.copyto(field, samples)  # broadcast: one profile for all columns
assert (field == np.asarray(samples)).all()
# [/any]

# [overlap]
row = np.arange(8.0)
gridbuf.copyto(row[2:], row[:-2])  # as if gridbuf read the whole source first
assert row.tolist() == [0, 1, 0, 1, 2, 3, 4, 5]
# [/overlap]

# [settings]
before = gridbuf.memory.get_simd()
gridbuf.memory.set_simd("portable")  # all instruction sets give the same results
gridbuf.copyto(field, fortran)
gridbuf.memory.set_simd(before)
# [/settings]
