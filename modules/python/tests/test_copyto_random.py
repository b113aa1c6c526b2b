"""`gridbuf.copyto` against `numpy.copyto`: random arrays, bit for bit, on every instruction set that the processor has.

Both get the same bytes, at addresses with the same alignment; afterwards all of the memory around the target must be the same as
well, so that no byte of padding was touched. Where source, mask and target overlap, the definition is what counts: everything
is read first.
"""

from __future__ import annotations

import platform
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gridbuf
import ml_dtypes
import numpy as np
import pytest
from gridbuf import memory

CASES = 14_000
"""Per instruction set: more than 10^4, as some of them are refusals."""

NUMBERS = [np.dtype(code) for code in "?bhilqBHILQefdFD"]
SWAPPED = [dtype.newbyteorder(">") for dtype in NUMBERS if dtype.itemsize > 1]
OTHERS = [
    np.dtype(name)
    for name in ("g", "G", ">f16", "S1", "S3", "S17", "U2", ">U3", "V5", "V24", "M8[ns]", ">m8[s]")
]
RECORDS = [
    np.dtype([("a", "u1"), ("b", "f8")]),
    np.dtype([("a", "f4"), ("b", "i4", (3,)), ("c", "S2")]),
    np.dtype([("x", ">f8"), ("y", "<i2"), ("z", "c8")]),
]
GAPPED = [  # with bytes that belong to no field
    np.dtype([("a", "u1"), ("b", "f8"), ("c", "S3")], align=True),
    np.dtype([("a", "u1"), ("b", "f8"), ("c", "i2"), ("d", "u1")])[["a", "c", "d"]],
    np.dtype([("x", [("a", "u1"), ("b", "i4")], (3,)), ("y", "u1")], align=True),
    np.dtype([("x", np.dtype([("a", "u1"), ("b", "i4")], align=True), (2, 3)), ("y", "u1")]),
    np.dtype({"names": ["a", "b"], "formats": ["i4", "u2"], "offsets": [1, 3], "itemsize": 9}),
    np.dtype({"names": [], "formats": [], "itemsize": 5}),
]
SAME_TYPE = NUMBERS + SWAPPED + OTHERS + RECORDS + GAPPED
CASTABLE = NUMBERS + SWAPPED
TEXTS = [np.dtype("S30"), np.dtype("U30")]
CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
LINE = 64


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before, options = memory.get_simd(), memory.options()
    yield
    memory.set_simd(before)
    memory.configure(**options)


# ---- Memory, and arrays in it. ----


def aligned_bytes(count: int) -> np.ndarray:
    """Bytes that begin on a line: what NumPy does may depend on addresses."""
    block = np.empty(count + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    return block[start : start + count]


def twin(block: np.ndarray) -> np.ndarray:
    copied = aligned_bytes(block.size)
    copied[...] = block
    return copied


@dataclass
class Layout:
    """An array in a block of bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: np.dtype[Any]

    def of(self, block: np.ndarray) -> np.ndarray:
        return np.ndarray(self.shape, self.dtype, block, self.offset, self.strides)


def random_shape(draw: random.Random, large: bool = False) -> tuple[int, ...]:
    ndim = draw.choice((0, 1, 1, 2, 2, 3, 3, 3, 4, 5))
    if draw.random() < 0.03:
        return tuple(draw.randint(0, 3) for _ in range(ndim))
    largest = ((1, 400_000, 700, 80, 26, 14) if large else (1, 300, 24, 11, 6, 4))[ndim]
    return tuple(draw.randint(1, largest) for _ in range(ndim))


def random_layout(
    draw: random.Random, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[Layout, int]:
    """An array without overlaps in itself: any order of dimensions, padded, with steps, reversed, at any address; and the
    length of the block that it needs."""
    strides = [0] * len(shape)
    unit = dtype.itemsize + draw.choice((0, 0, 0, 0, 1, 3, 8))
    offset = draw.choice((0, 0, 0, 8, 1, 24, 63))
    for axis in draw.sample(range(len(shape)), len(shape)):
        step = draw.choice((1, 1, 1, 1, 2, 3))
        strides[axis] = unit * step
        unit *= max(shape[axis], 1) * step + draw.choice((0, 0, 0, 1, 2, 5))
    for axis, extent in enumerate(shape):
        if draw.random() < 0.2 and extent > 0:
            offset += strides[axis] * (extent - 1)
            strides[axis] = -strides[axis]
    return Layout(shape, tuple(strides), offset, dtype), unit + offset + 2 * LINE


def narrowed(draw: random.Random, layout: Layout) -> Layout:
    """The same, to be broadcast: extents become 1 or 0 strides, leading ones go, or one too many is there."""
    shape, strides = list(layout.shape), list(layout.strides)
    for axis in range(len(shape)):
        if shape[axis] > 0 and draw.random() < 0.3:
            if draw.random() < 0.5:
                shape[axis] = 1
            strides[axis] = 0
    while shape and draw.random() < 0.3 and shape[0] == 1:
        del shape[0], strides[0]
    return Layout(tuple(shape), tuple(strides), layout.offset, layout.dtype)


def fill(draw: random.Random, block: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Any bytes for elements of any type; for casts mostly numbers that the other types can hold."""
    generator = np.random.Generator(np.random.SFC64(draw.getrandbits(32)))
    if dtype == np.bool_:
        block[...] = generator.integers(0, 2, block.size, np.uint8)
    else:
        block[...] = generator.integers(0, 256, block.size, np.uint8)


# Where the C language does not define the integer of a float, NumPy on aarch64 has different results for different strides.
# And it makes signalling NaN of float16 quiet, with a warning.
ON_AARCH64 = platform.machine() == "aarch64"


def put_numbers(draw: random.Random, array: np.ndarray, lowest: int = -100) -> None:
    """Numbers of an ordinary size: what a cast gives is defined, but for negative floats as unsigned integers."""
    generator = np.random.Generator(np.random.SFC64(draw.getrandbits(32)))
    values = generator.integers(lowest if array.dtype.kind != "u" else 0, 120, array.shape)
    with np.errstate(all="ignore"):
        array[...] = values / (1 if array.dtype.kind in "iub" else 4)


# ---- One case. ----


@dataclass
class Case:
    """What is copied where: layouts in blocks of which target, source and mask may share one."""

    blocks: list[np.ndarray]
    target: Layout
    source: Layout
    mask: Layout | bool
    casting: str
    where_source: int
    where_mask: int

    def arrays(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, Any]:
        blocks = [twin(block) for block in self.blocks]
        mask = self.mask if isinstance(self.mask, bool) else self.mask.of(blocks[self.where_mask])
        return blocks, self.target.of(blocks[0]), self.source.of(blocks[self.where_source]), mask


def random_types(draw: random.Random) -> tuple[np.dtype[Any], np.dtype[Any]]:
    kind = draw.random()
    if kind < 0.55:
        dtype = draw.choice(SAME_TYPE)
        return dtype, dtype
    if kind < 0.65:  # The other byte order; records on the fly are equal, and not the same.
        dtype = draw.choice(SWAPPED + OTHERS + RECORDS)
        swap = dtype.fields is None and draw.random() < 0.7
        return dtype, dtype.newbyteorder() if swap else np.dtype(dtype.descr)
    if kind < 0.97:
        return draw.choice(CASTABLE), draw.choice(CASTABLE)
    return draw.choice(TEXTS), draw.choice([np.dtype(c) for c in "?bhilBHIL"])


def random_case(draw: random.Random, large: bool = False) -> Case:
    to, of = random_types(draw)
    shape = random_shape(draw, large)
    target, length = random_layout(draw, shape, to)
    source, source_length = random_layout(draw, shape, of)
    source = narrowed(draw, source) if draw.random() < 0.25 else source
    mask, mask_length = random_layout(draw, shape, np.dtype("?"))
    mask = narrowed(draw, mask) if draw.random() < 0.25 else mask
    masked = draw.random() < 0.3
    overlaps = draw.random() < 0.2
    # Any byte is a bool to NumPy only if it is 0 or 1.
    mask_overlaps = masked and to.itemsize == 1 and draw.random() < 0.2
    overlaps = overlaps and (of != np.bool_ or to == np.bool_)
    blocks = [aligned_bytes(max(length, source_length, mask_length))]
    fill(draw, blocks[0], np.dtype("?") if mask_overlaps else of if overlaps else to)
    is_widened_half = of.kind == "f" and of.itemsize == 2 and to.kind in "fc" and to.itemsize > 2
    if overlaps and (of.kind in "fc" and to.kind in "iu" or ON_AARCH64 and is_widened_half):
        # What an integer cannot hold becomes one thing or another, as strides have it: not here.
        put_numbers(draw, source.of(blocks[0]), lowest=0)
    where_source = where_mask = 0
    if not overlaps:
        where_source = len(blocks)
        blocks.append(aligned_bytes(source_length))
        fill(draw, blocks[-1], of)
        if ON_AARCH64 and (of.kind in "fc" and to.kind in "iu" or is_widened_half):
            put_numbers(draw, source.of(blocks[-1]), lowest=0)
        elif of != to and of in CASTABLE and draw.random() < 0.7:
            put_numbers(draw, source.of(blocks[-1]))
    if masked and not mask_overlaps:
        where_mask = len(blocks)
        blocks.append(aligned_bytes(mask_length))
        fill(draw, blocks[-1], mask.dtype)
    casting = "same_kind" if of == to else draw.choice(("unsafe", "unsafe", *CASTINGS))
    return Case(blocks, target, source, mask if masked else True, casting, where_source, where_mask)


def expected_of(case: Case) -> list[np.ndarray] | None:
    """What NumPy makes of the blocks; None if it refuses."""
    blocks, target, source, mask = case.arrays()
    if case.where_source == 0:
        source = case.source.of(twin(blocks[0]))  # The definition: everything is read first.
    if not isinstance(mask, bool) and case.where_mask == 0:
        assert not isinstance(case.mask, bool)
        mask = case.mask.of(twin(blocks[0]))
    try:
        np.copyto(target, source, casting=case.casting, where=mask)
    except TypeError:
        return None
    return blocks


def check(case: Case, name: str) -> bool:
    """Whether it was a copy and no refusal."""
    expected = expected_of(case)
    blocks, target, source, mask = case.arrays()
    try:
        gridbuf.copyto(target, source, casting=case.casting, where=mask)
    except TypeError:
        assert expected is None, f"{name}: refused: {case}"
        return False
    assert expected is not None, f"{name}: NumPy refuses {case}"
    for found, wanted in zip(blocks, expected):
        assert np.array_equal(found, wanted), f"{name}: {case}"
    return True


# ---- The tests. ----


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("simd", memory.supported_simd())
def test_every_byte_is_what_numpy_makes_of_it(simd: Any, part: int) -> None:
    memory.set_simd(simd)
    copies = 0
    for number in range(part, CASES, 4):
        name = f"{simd} {number}"
        copies += check(random_case(random.Random(name)), name)
    assert copies > 10_000 // 4


NUMBERS_AND_BFLOAT16 = [np.dtype(code) for code in "?bhilBHILefdFD"] + [
    np.dtype(ml_dtypes.bfloat16)
]


def special_numbers(dtype: np.dtype[Any]) -> np.ndarray:
    """Numbers at which casts break: all of 8 and 16 bits; else limits, halves, NaN of both kinds, and random bits."""
    if dtype == np.bool_:
        return np.array([False, True] * 50)
    if dtype.kind == "c":
        part = special_numbers(np.dtype(f"f{dtype.itemsize // 2}"))
        return np.concatenate([part, np.roll(part, 1001)]).view(dtype)
    if dtype.itemsize <= 2:
        bits = np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}")
        if ON_AARCH64 and dtype == np.float16:
            bits[np.isnan(bits.view(dtype))] |= 0x200
        return bits.view(dtype)
    generator = np.random.Generator(np.random.SFC64(dtype.num))
    bits = generator.integers(0, 256, 3000 * dtype.itemsize, np.uint8).view(dtype)
    powers = 2.0 ** np.arange(-30, 66)
    values = np.concatenate(
        [sign * powers * factor for sign in (1, -1) for factor in (1, 1 + 2**-11, 1 - 2**-12, 1.5)]
        + [[0.0, -0.0, 65504, 65519.99, 65520, 127.5, 2**31 - 1, 1e39, -1e300, 1e-46, 1e-320]]
    )
    if dtype.kind != "f":
        values = np.clip(values, np.iinfo(dtype).min, float(np.iinfo(dtype).max) / 2)
        limits = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
        return np.concatenate([bits, values.astype(dtype), limits])
    with np.errstate(all="ignore"):
        plain = values.astype(dtype)
    infinity = np.array([np.inf, -np.inf], dtype).view(f"u{dtype.itemsize}")
    payloads = infinity[:, None] + np.array([0, 1, 5, 1 << 13, 1 << 20], infinity.dtype)
    return np.concatenate([bits, plain, payloads.ravel().view(dtype)])


def copied(
    copyto: Any, target: np.ndarray, source: np.ndarray, **options: Any
) -> list[tuple[type, str]]:
    """What the copy warns of."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        copyto(target, source, casting="unsafe", **options)
    return [(warning.category, str(warning.message)) for warning in record]


@pytest.mark.parametrize("to", NUMBERS_AND_BFLOAT16, ids=str)
@pytest.mark.parametrize("of", NUMBERS_AND_BFLOAT16, ids=str)
def test_every_pair_of_types_is_what_numpy_makes_of_it(
    to: np.dtype[Any], of: np.dtype[Any]
) -> None:
    """Values and warnings, whether gridbuf converts or NumPy does; dense, apart, reversed and with a mask."""
    numbers = special_numbers(of)
    block = aligned_bytes(2 * numbers.nbytes)
    for step in (1, 2, -1):
        source = block.view(of)[: 2 * numbers.size : abs(step)][: numbers.size][
            :: step // abs(step)
        ]
        source[...] = numbers
        for options in ({}, {"where": np.arange(numbers.size) % 3 == 0}):
            targets = [aligned_bytes(2 * numbers.size * to.itemsize) for _ in range(2)]
            views = []
            for memory_of_target in targets:
                memory_of_target[...] = 1 if to == np.bool_ else 7
                views.append(memory_of_target.view(to)[:: abs(step)][: numbers.size])
            expected = copied(np.copyto, views[0], source, **options)
            assert copied(gridbuf.copyto, views[1], source, **options) == expected, (
                f"{step} {options}"
            )
            assert np.array_equal(targets[0], targets[1]), f"{step} {options}"


def large_layouts(dtype: np.dtype[Any]) -> Iterator[tuple[Layout, int]]:
    """Arrays of some 5 MiB: beyond the near caches, for several threads, written past the caches."""
    elements = (5 << 20) // dtype.itemsize
    plane = int((elements // 80) ** 0.5)
    shape = (plane, plane + 1, 80)
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)):
        for padding, offset in ((0, 0), (3, 0), (8, dtype.itemsize)):
            strides, unit = [0, 0, 0], dtype.itemsize
            for axis in reversed(order):
                strides[axis] = unit
                unit *= shape[axis] + (padding if axis == order[-1] else 0)
            yield Layout(shape, tuple(strides), offset, dtype), unit + offset + LINE


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("to", "of"),
    [("f8", "f8"), ("f4", "f4"), ("i2", "i2"), ("u1", "u1"), ("c16", "c16"), ("V12", "V12"),
     (">f8", "<f8"), ("f4", "f8"), ("f8", "f4"), ("f8", "i4"), ("f2", "f4"), ("i4", "f8"),
     ("f4", "i2"), ("i8", "u1"), ("c8", ">u2"), ("?", "i4")],
)  # fmt: skip
@pytest.mark.parametrize("simd", memory.supported_simd())
def test_large_arrays(simd: Any, to: str, of: str, masked: bool) -> None:
    memory.set_simd(simd)
    draw = random.Random(f"{simd} {to} {of} {masked}")
    targets = list(large_layouts(np.dtype(to)))
    target, length = draw.choice(targets)
    # In the target's shape, which is that of its item size.
    sources = [layout for layout in large_layouts(np.dtype(of)) if np.dtype(of) == np.dtype(to)]
    source, source_length = (
        draw.choice(sources) if sources else random_layout(draw, target.shape, np.dtype(of))
    )
    mask, mask_length = random_layout(draw, target.shape, np.dtype("?"))
    blocks = [aligned_bytes(length), aligned_bytes(source_length), aligned_bytes(mask_length)]
    for block, layout in zip(blocks, (target, source, mask)):
        fill(draw, block, layout.dtype)
    if to != of:
        put_numbers(draw, source.of(blocks[1]))
    check(Case(blocks, target, source, mask if masked else True, "unsafe", 1, 2), f"{simd} {to}")


@pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (1, 0, 2)])
def test_integers_between_layouts_go_in_blocks(order: tuple[int, int, int]) -> None:
    source = np.arange(33 * 701 * 499, dtype="i8").astype("i2").reshape(33, 701, 499)  # 22 MiB
    target = np.zeros([source.shape[axis] for axis in order], "f4").transpose(np.argsort(order))
    gridbuf.copyto(target, source)
    assert np.array_equal(target, source)
    gridbuf.copyto(target[::-1, 1:, ::3], source[:, 1:, ::3] // 2)
    assert np.array_equal(target[::-1, 1:, ::3], source[:, 1:, ::3] // 2)
    assert np.array_equal(target[:, 0], source[:, 0])
    assert np.array_equal(target[:, :, 1::3], source[:, :, 1::3])


@pytest.mark.parametrize("simd", memory.supported_simd())
def test_large_arrays_that_overlap(simd: Any) -> None:
    memory.set_simd(simd)
    for to, of in (("f8", "f8"), ("f4", "f4"), ("f4", "i4"), (">i8", "<f8")):
        shape = (70, 90, 110)
        size = np.dtype(to).itemsize
        target = Layout(shape, (90 * 110 * size, 110 * size, size), 0, np.dtype(to))
        turned = Layout(shape, (size, 70 * size, 90 * 70 * size), 64, np.dtype(of))
        block = aligned_bytes(70 * 90 * 110 * size + 128)
        fill(random.Random(to), block, np.dtype(of))
        put_numbers(random.Random(of), turned.of(block))
        assert check(Case([block], target, turned, True, "unsafe", 0, 0), f"{simd} {to} {of}")


@pytest.mark.parametrize("simd", memory.supported_simd())
def test_numbers_that_cannot_be_kept_spoil_no_others(simd: Any) -> None:
    """NumPy warns of them and does it all again, although source and mask are partly overwritten by then."""
    memory.set_simd(simd)
    for shift in (-8, 0, 4, 8, 400):
        block = aligned_bytes(4000)
        Layout((400,), (8,), 400, np.dtype("f8")).of(block)[...] = np.arange(400) / 4
        source = Layout((399,), (8,), 408, np.dtype("f8")).of(block)
        target = Layout((399,), (8,), 408 + shift, np.dtype("i4")).of(block)
        source[[7, 390]] = np.nan, 1e300
        expected = np.trunc(np.arange(1, 400) / 4)
        with pytest.warns(RuntimeWarning, match="invalid value encountered in cast"):
            gridbuf.copyto(target, source, casting="unsafe")
        kept = np.delete(np.arange(399), [7, 390])
        np.testing.assert_array_equal(target[kept], expected[kept])
    mask = np.zeros((300, 4), np.bool_)
    mask[::3] = True
    target = mask.view("i1")[:, :]
    floats = np.full((300, 4), 5.0)
    floats[0, 0] = np.nan
    with pytest.warns(RuntimeWarning, match="invalid value"):
        gridbuf.copyto(target, floats, casting="unsafe", where=mask.view("?"))
    assert (target[3::3] == 5).all()
    assert not target[1::3].any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("simd", memory.supported_simd())
def test_poisoned_padding_is_not_touched(simd: Any) -> None:
    """With the address sanitizer a byte between the rows that is read or written ends the process."""
    memory.set_simd(simd)
    memory.configure(poison=True)
    draw = random.Random(simd)
    for _ in range(300):
        ndim = draw.randint(1, 4)
        shape = tuple(draw.randint(1, (0, 99, 20, 9, 5)[ndim]) for _ in range(ndim))
        arrays = []
        for dtype in (draw.choice(NUMBERS), draw.choice(NUMBERS), np.dtype("?")):
            array = gridbuf.empty(
                shape,
                dtype,
                layout=draw.sample(range(ndim), ndim),
                alignment_size=draw.choice((1, 16, 64, 128)),
            )
            put_numbers(draw, array, lowest=0 if ON_AARCH64 else -100)
            arrays.append(array)
        target, source, mask = arrays
        where: Any = mask if draw.random() < 0.3 else True
        expected = target.copy()
        np.copyto(expected, source, casting="unsafe", where=where)
        gridbuf.copyto(target, source, casting="unsafe", where=where)
        np.testing.assert_array_equal(target, expected)
