"""Digests: equal for equal values, whatever the layout; different for every change."""

from __future__ import annotations

import numpy as np
import pytest

import gridbuf
from gridbuf import digest
from gridbuf.storage import as_storage, storage

TYPES = (
    "bool",
    "int8",
    "uint16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "longdouble",
)

WORD = 2**64 - 1


def _values(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (random.standard_normal(shape) * 50).astype(dtype)


@pytest.mark.parametrize("seed", range(500))
def test_no_layout_changes_a_digest(seed: int):
    random = np.random.default_rng(seed)
    ndim = int(random.integers(0, 5))
    shape = tuple(int(n) for n in random.integers(1, 7, ndim))
    values = _values(random, shape, TYPES[seed % len(TYPES)])
    expected = digest(values)
    halo = tuple((int(a), int(b)) for a, b in random.integers(0, 3, (ndim, 2)))
    padded = storage(
        np.pad(values, halo, constant_values=1) if ndim else values,
        layout=tuple(int(k) for k in random.permutation(ndim)),
        alignment_size=int(random.choice([1, 8, 64, 100])),
        halo=halo,
    )
    assert digest(padded) == expected
    assert digest(padded.copy()) == expected
    axes = tuple(int(k) for k in random.permutation(ndim))
    names = padded.dims
    assert digest(values.transpose(axes), dims=[names[k] for k in axes]) == expected
    assert digest(values.astype(values.dtype.newbyteorder())) == expected


def test_a_slice_has_the_indices_of_its_points():
    whole = storage(np.arange(20.0).reshape(4, 5), lower=(3, -2))
    part = np.arange(20.0).reshape(4, 5)[1:3, 2:]
    assert digest(whole[1:3, 2:]) == digest(part, lower=(4, 0))
    assert digest(whole[1:3, 2:]) != digest(part)


def test_types_and_bits_decide():
    zeros = np.zeros(3)
    assert digest(zeros) != digest(-zeros)
    assert digest(zeros) != digest(zeros.astype("int64")) != digest(zeros.astype("float32"))
    assert digest(zeros) != digest(np.zeros(4))
    assert digest(zeros) != digest(zeros, dims="J") != digest(zeros, lower=(1,))
    assert digest(np.array([np.nan])) == digest(np.array([np.nan]))


def test_bytes_without_a_value_do_not_count():
    record = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    one, other = np.zeros((2, 5), record)
    other.view("u1").reshape(5, -1)[:, 1:8] = 7
    assert digest(one) == digest(other)
    other["b"][3] = 1
    assert digest(one) != digest(other)
    long = np.zeros((2, 4), "longdouble")
    if np.finfo("longdouble").nmant == 63:
        long.view("u1").reshape(2, 4, 16)[1, :, 10:] = 9
        assert digest(long[0]) == digest(long[1])


def test_a_device_is_read():
    with gridbuf.testing.emulated_device():
        values = np.arange(12.0).reshape(3, 4)
        both = storage(values, device="gpu", halo=(1, 0))
        both.host_to_device(force=True)
        assert digest(both) == digest(values[1:-1])


def test_what_names_its_dimensions():
    xarray = pytest.importorskip("xarray")
    values = np.arange(6.0).reshape(2, 3)
    named = xarray.DataArray(values, dims=("y", "x"))
    assert digest(named) == digest(named.transpose()) == digest(values, dims=("y", "x"))


def test_a_field_of_gt4py_next_has_its_range():
    next_ = pytest.importorskip("gt4py.next")
    dim = next_.Dimension("Cell")
    field = next_.as_field({dim: (2, 7)}, np.arange(5.0))
    assert digest(field) == digest(np.arange(5.0), dims=("Cell",), lower=(2,))


def test_each_change_of_a_bit_and_each_swap_shows():
    random = np.random.default_rng(1)
    values = random.integers(0, 2**63, (6, 7, 8)).astype("u8").transpose(1, 2, 0)
    wrapped = as_storage(values)
    seen = {digest(wrapped)}
    for _ in range(2000):
        at = tuple(int(k) for k in random.integers(0, values.shape))
        values[at] ^= np.uint64(1) << np.uint64(random.integers(0, 64))
        seen.add(digest(wrapped))
    assert len(seen) == 2001
    before = digest(wrapped)
    for _ in range(2000):
        one, other = (tuple(int(k) for k in random.integers(0, values.shape)) for _ in range(2))
        if one == other or values[one] == values[other]:
            continue
        values[one], values[other] = values[other], values[one]
        assert digest(wrapped) != before
        values[one], values[other] = values[other], values[one]


def test_errors_say_what_to_pass():
    with pytest.raises(ValueError, match="dims"):
        digest(np.zeros((2, 2)), dims="I")
    with pytest.raises(TypeError):
        digest(object())


def mixed(bits: int) -> int:
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & WORD
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & WORD
    return bits ^ bits >> 31


def hash_of(text: str) -> int:
    found = mixed(len(text) + 0x9E3779B97F4A7C15 & WORD)
    for letter in text.encode():
        found = mixed(found ^ letter)
    return found


def test_the_definition_written_again():
    values = np.random.default_rng(1).random((3, 4))
    kind = hash_of("float64[('', '<f8')]")
    of_type = kind | 1, mixed(kind) | 1
    of_low, of_high = (mixed(1) | 1, mixed(2) | 1), (mixed(3) | 1, mixed(4) | 1)
    sums = [0, 0]
    for index, value in np.ndenumerate(values):
        bits = int(value.view(np.uint64))
        places = [mixed(hash_of(name) + n & WORD) for name, n in zip("IJ", index, strict=True)]
        for k in range(2):
            weight = 1
            for place in places:
                weight *= place >> 32 * k & 0xFFFFFFFF | 1
            element = of_type[k] + of_low[k] * (bits & 0xFFFFFFFF) + of_high[k] * (bits >> 32)
            sums[k] = sums[k] + weight * element & WORD
    assert gridbuf.digest(values) == f"{sums[0]:016x}{sums[1]:016x}"
