"""Random calls of NumPy's functions on storages, against the same calls on plain arrays.

Each operand has a twin: an ndarray that went through the same steps (slices, transposes) as the storage. What a call must return
follows from the rule of the function's row: the twins are brought into one order of dimensions, NumPy computes, and the names follow.
Outputs are compared with everything around them, as whole bases are compared, and so are the inputs.
"""

from __future__ import annotations

import io
import math
import operator
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import gridbuf.storage
import numpy as np
from foreign import KINDS
from gridbuf.storage import _table

# ---- What is drawn. ----

NAMES = ("I", "J", "K", "0", "1", "lat")
KIND_ORDER = {name: (kind, name) for name, kind in zip(NAMES, (0, 0, 1, 2, 2, 0))}
EXTENTS = (0, 1, 1, 2, 2, 3, 3, 5, 8)
LARGEST = 400
DTYPES = {
    "?": ["?"],
    "I": ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u2"],
    "F": ["f2", "f4", "f8", "f8", "g", ">f8", ">f4"],
    "C": ["c8", "c16", "c16", "G", ">c16"],
    "M": ["M8[s]", "m8[s]", "M8[ns]", "m8[D]", ">m8[s]"],
    "S": ["S3", "U2", ">U2"],
}
CLASSES = {  # by the letter in SPECS: what the function mostly takes
    "A": "?IIFFCMS",
    "N": "?IIFFFC",
    "R": "?IIFFF",
    "I": "I",
    "F": "FFFC",
    "B": "?",
}


def _pool(dtype: str, special: bool) -> np.ndarray:
    """4,096 values. Sums of those that are not special are exact, so that they do not depend on the order of the sum."""
    generator = np.random.default_rng(7)
    kind = np.dtype(dtype).kind
    numbers = generator.integers(-4, 10, 4096)
    if kind == "b":
        return numbers > 2
    if kind in "iu":
        values = np.abs(numbers).astype(dtype) if kind == "u" else numbers.astype(dtype)
        if special:
            limits = np.iinfo(dtype)
            values[::5], values[1::7] = limits.max, limits.min
        return values
    if kind in "fc":
        values = (numbers / 2).astype(dtype)
        if kind == "c":
            values += (generator.integers(-3, 4, 4096) * 1j).astype(dtype)
        if special:
            for step, value in ((11, np.nan), (13, np.inf), (17, -np.inf), (5, -0.0), (23, 1e-5)):
                values[::step] = value
        return values
    if kind in "mM":
        values = numbers.astype("i8").astype(dtype)
        if special:
            values[::9] = "NaT"
        return values
    return np.array(["", "a", "b", "ab", "B", "ba", "1", "0"])[numbers % 8].astype(dtype)


POOLS = {
    (d, special): _pool(d, special)
    for group in DTYPES.values()
    for d in group
    for special in (False, True)
}


class Field:
    """An operand, and its twin. A number or a list has no base."""

    __slots__ = ("given", "plain", "dims", "kind", "base", "plain_base")

    def __init__(
        self,
        given: Any,
        plain: Any,
        dims: tuple[str, ...] | None = None,
        kind: str = "number",
        base: Any = None,
        plain_base: Any = None,
    ) -> None:
        self.given, self.plain, self.dims, self.kind = given, plain, dims, kind
        self.base, self.plain_base = base, plain_base

    def __repr__(self) -> str:
        if self.kind in ("number", "list"):
            return repr(self.given)
        shown = f"{self.kind}({self.plain.dtype.str}, {self.plain.shape}, {self.dims})"
        return f"{shown}={self.plain.tolist()}" if self.plain.size < 10 else shown

    @property
    def is_storage(self) -> bool:
        return self.dims is not None

    @property
    def is_array(self) -> bool:
        return self.kind != "number"


class Refused(Exception):  # noqa: N818  (not raised by gridbuf)
    """What gridbuf must refuse where NumPy may not, with one of `classes`."""

    def __init__(self, why: str, *classes: type[Exception]) -> None:
        super().__init__(why)
        self.classes = classes


class Skip(Exception):  # noqa: N818
    """Nothing to compare."""


class Draw:
    """The random numbers of one call, the extents of its dimensions, and the arrays drawn so far."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.chance = lambda p: random_.random() < p
        self.choice = random_.choice
        self.extents = {name: random_.choice(EXTENTS) for name in NAMES}
        self.main_kind = random_.choices(list(KINDS), (60, 8, 20, 8))[0]
        self.special = self.chance(0.2)
        self.has_new_axes = False  # axes of None
        self.fields: list[Field] = []
        self.log: list[str] = []

    # Arrays.

    def dtype(self, letter: str) -> str:
        if self.chance(0.04):
            letter = "A"
        return self.choice(DTYPES[self.choice(CLASSES[letter])])

    def values(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        count = math.prod(shape)
        if count > 3000:
            return np.resize(POOLS[dtype, self.special], shape)
        start = self.random.randrange(1000)
        return POOLS[dtype, self.special][start : start + count].reshape(shape).copy()

    def dims(self, most: int = 4, least: int = 0) -> tuple[str, ...]:
        count = min(most, max(least, self.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))))
        names = self.random.sample(NAMES, count)
        while math.prod(self.extents[name] for name in names) > LARGEST // 4:
            name = max(names, key=lambda n: self.extents[n])
            self.extents[name] = 2
        return tuple(names)

    def kind(self) -> str:
        return self.main_kind if self.chance(0.9) else self.choice(list(KINDS))

    def storage(
        self,
        dims: tuple[str, ...],
        dtype: str,
        shape: Any = None,
        values: Any = None,
        kind: str = "",
    ) -> Field:
        """A storage, or a view of one."""
        shape = tuple(self.extents[name] for name in dims) if shape is None else shape
        order = list(range(len(dims)))
        is_view = self.chance(0.4)
        if is_view:
            self.random.shuffle(order)
        names, extents, index = [], [], []
        for axis in order:
            extent = shape[axis]
            step = self.choice((1, 1, 2, -1, -1, -2)) if is_view else 1
            low, high = (self.choice((0, 0, 1)), self.choice((0, 0, 2))) if is_view else (0, 0)
            names.append(dims[axis])
            reach = max(0, (extent - 1) * abs(step) + 1) if extent else 0
            extents.append(low + reach + high)
            if extent == 0:
                index.append(slice(low, low))
            elif step > 0:
                index.append(slice(low, low + reach, step))
            else:
                stop = low - 1
                index.append(slice(low + reach - 1, stop if stop >= 0 else None, step))
        if is_view and self.chance(0.3):
            extra = next(name for name in ("99", "98") if name not in names)
            names.insert(0, extra)
            extents.insert(0, 2)
            index.insert(0, self.choice((0, 1, -1)))
        plain_base = self.values(tuple(extents), dtype)
        back = [order.index(axis) for axis in range(len(dims))]
        plain = plain_base[(..., *index)].transpose(back) if is_view else plain_base
        if values is not None:
            plain[...] = values
        kind = kind or self.kind()
        options: dict[str, Any] = {"dims": names}
        if self.chance(0.4):
            options["layout"] = self.random.sample(range(len(names)), len(names))
        if self.chance(0.3):
            options["halo"] = [
                self.choice((0, 1, (0, 1))) if extent > 2 else 0 for extent in extents
            ]
        if self.chance(0.3):
            options["alignment_size"] = self.choice((16, 64))
        if kind == "synced" and self.chance(0.2):
            options["device_layout"] = self.random.sample(range(len(names)), len(names))
        base = self.synced(plain_base, options) if kind == "synced" else gridbuf.storage.storage(
            plain_base, **options, **KINDS[kind]
        )  # fmt: skip
        given = base[(..., *index)].transpose(back) if is_view else base
        made = Field(given, plain, dims, kind, base, plain_base)
        self.fields.append(made)
        return made

    def synced(self, values: np.ndarray, options: dict[str, Any]) -> Any:
        """A storage with two sides, of which one, both, or each in a part is current."""
        state = self.choice(("host", "host", "both", "device", "parts"))
        if state in ("host", "both"):
            made = gridbuf.storage.storage(values, **options, **KINDS["synced"])
            if state == "both":
                made.host_to_device()
            return made
        stale = np.roll(values, 1) if values.ndim else values
        made = gridbuf.storage.storage(stale, **options, **KINDS["synced"])
        on_device = gridbuf.storage.storage(values, dims=options["dims"], **KINDS["gpu"])
        if state == "device" or values.ndim == 0 or not len(values):
            np.copyto(made, on_device)
            return made
        half = (len(values) + 1) // 2
        np.copyto(made[:half], on_device[:half])
        made[half:] = values[half:]
        return made

    def first(self, letter: str, most: int = 4, least: int = 0) -> Field:
        made = self.storage(self.dims(most, least), self.dtype(letter))
        dims = made.dims or ()
        if self.has_new_axes and len(dims) < most and self.chance(0.06):
            axis = self.random.randint(0, len(dims))
            index = (*(slice(None),) * axis, None)
            name = next(name for name in map(str, range(9)) if name not in dims)
            made.given, made.plain = made.given[index], made.plain[index]
            made.dims = (*dims[:axis], name, *dims[axis:])
        return made

    def array(self, shape: tuple[int, ...], dtype: str) -> Field:
        plain = self.values(shape, dtype)
        given = plain.copy(order=self.choice("CF"))
        if plain.ndim and self.chance(0.2):
            given = np.repeat(given, 2, axis=-1)[..., ::2]
        made = Field(given, plain, None, "ndarray", given, plain)
        self.fields.append(made)
        return made

    def number(self, letter: str) -> Field:
        if self.chance(0.5):
            value = self.choice(
                (0, 1, 2, 3, -1, 2.5, -0.5, True, 1 + 2j)
                if letter != "I"
                else (0, 1, 2, 3, -1, 300)
            )
        else:
            value = self.choice(POOLS[self.dtype(letter), self.special])
        if self.chance(0.1):
            value = np.asarray(value)
        return Field(value, value)

    def operand(self, letter: str) -> Field:
        """An operand that is paired with the storages so far: by names, by its shape, or as a number."""
        choice = self.random.random()
        storages = [field for field in self.fields if field.is_storage]
        if not storages:
            return self.first(letter) if choice < 0.7 else self.number(letter)
        if choice < 0.55:
            known = self.choice(storages).dims or ()
            if self.chance(0.15):
                names = self.dims(2)
            elif self.chance(0.3):
                names = tuple(self.random.sample(known, self.random.randint(0, len(known))))
            else:
                names = tuple(self.random.sample(known, len(known)))
            shape = [self.extents[name] for name in names]
            if names and self.chance(0.04):
                shape[0] = self.choice((1, 2, 4))
            if math.prod(self.extents[n] for n in {*names, *known}) > LARGEST * 4:
                names, shape = (), []
            return self.storage(names, self.dtype(letter), tuple(shape))
        if choice < 0.75:
            shape = list(self.choice(storages).plain.shape)
            if shape and self.chance(0.3):
                shape[self.random.randrange(len(shape))] = 1
            if self.chance(0.04):
                shape.append(2)
            made = self.array(tuple(shape), self.dtype(letter))
            if (
                made.plain.size < 20
                and self.chance(0.15)
                and made.plain.dtype.kind in "biufc"
                and made.plain.ndim
            ):
                as_list = made.plain.tolist()
                self.fields.remove(made)
                return Field(as_list, np.asarray(as_list), None, "list")
            return made
        return self.number(letter)

    def vector(self, letter: str, count: int, ordered: bool = False) -> Field:
        """Not paired."""
        dtype = self.dtype(letter)
        made = self.values((count,), dtype)
        if ordered:
            made = np.sort(made)
        if self.chance(0.4):
            self.extents["lat"] = count
            return self.storage(("lat",), dtype, (count,), made, self.main_kind)
        if self.chance(0.4) and made.dtype.kind in "iufb":
            return Field(made.tolist(), made.tolist(), None, "list")
        field = self.array((count,), dtype)
        field.plain[...] = made
        field.given[...] = made
        return field

    # Other arguments.

    def axis(self, several: bool, dims: tuple[str, ...] | None = None, none: bool = True) -> Any:
        dims = (self.fields[0].dims or ()) if dims is None else dims
        choice = self.random.random()
        if none and choice < 0.15:
            return None
        if choice < 0.17:
            return self.choice(("Z", 7, -9, 1.0, "0") if dims else ("Z", 7))
        if not dims:
            return 0 if several is False or choice < 0.5 else ()
        one = lambda: self.choice((lambda n: n, lambda n: n - len(dims), lambda n: dims[n]))(  # noqa: E731
            self.random.randrange(len(dims))
        )
        if several and choice < 0.45:
            axes = self.random.sample(range(len(dims)), self.random.randint(0, len(dims)))
            made = [self.choice((a, a - len(dims), dims[a])) for a in axes]
            if self.chance(0.03):
                made.append(one())
            return tuple(made)
        return one()


# ---- Arguments of the functions. ----

# "names: required | optional"; `/` ends the parameters that only count by position. A capital letter is a storage, a small one any
# operand, of a class of CLASSES. The other words are functions of GENERATORS.
SPECS = """
angle: z=N | deg=flag
around round: a=N | decimals=digits out=out
choose: a=index choices=choices | out=out mode=mode
clip: a=R a_min=bound a_max=bound | out=out where=mask casting=casting dtype=dtype
digitize: x=R bins=ordered | right=flag
fix isneginf isposinf: x=R | out=out
i0 sinc: x=R
imag real: val=N
interp: x=R xp=ordered5 fp=vector5 | left=number right=number period=period
isclose allclose: a=N b=n | rtol=small atol=small equal_nan=flag
iscomplex isreal: x=N
isin: element=A test_elements=vector | assume_unique=false invert=flag kind=isin_kind
nan_to_num: x=N | copy=flag nan=number posinf=number neginf=number
real_if_close: a=N | tol=small
searchsorted: a=ordered v=R | side=side
select: condlist=conditions choicelist=choices2 | default=number
where: condition=B x=n y=n /
all any: a=A | axis=axes out=out keepdims=flag where=rmask
amax amin max min: a=A | axis=axes out=out keepdims=flag initial=number where=rmask
argmax argmin: a=A | axis=axis out=out keepdims=flag
average: a=N | axis=axes weights=weights returned=flag keepdims=flag
count_nonzero: a=A | axis=axes keepdims=flag
linalg.norm: x=N | ord=ord axis=axes keepdims=flag
linalg.vector_norm: x=N / | axis=axes keepdims=flag ord=vector_ord
mean: a=N | axis=axes dtype=dtype out=out keepdims=flag where=rmask
median nanmedian: a=R | axis=axes out=out overwrite_input=flag keepdims=flag
nanargmax nanargmin: a=R | axis=axis out=out keepdims=flag
nanmax nanmin: a=N | axis=axes out=out keepdims=flag initial=number where=rmask
nanmean: a=N | axis=axes dtype=dtype out=out keepdims=flag where=rmask
nanpercentile percentile: a=R q=percents | axis=axes out=out overwrite_input=flag method=method keepdims=flag
nanquantile quantile: a=R q=parts | axis=axes out=out overwrite_input=flag method=method keepdims=flag
prod sum nanprod nansum: a=N | axis=axes dtype=dtype out=out keepdims=flag initial=number where=rmask
std var nanstd nanvar: a=N | axis=axes dtype=dtype out=out ddof=ddof keepdims=flag where=rmask
ptp: a=N | axis=axes out=out keepdims=flag
trapezoid: y=N | x=same dx=number axis=axis_n
gradient: f=F | axis=axes edge_order=edge
pad: array=N pad_width=pad | mode=pad_mode
roll: a=A shift=shift | axis=axes
tile: A=A reps=reps
tril triu: m=N | k=digits
unwrap: p=R | axis=axis_n period=period
argpartition partition: a=R kth=kth | axis=axis
argsort sort: a=A | axis=axis stable=flag
compress: condition=booleans a=A | axis=axis out=out
cumprod cumsum nancumprod nancumsum: a=N | axis=axis dtype=dtype out=out
cumulative_prod cumulative_sum: x=N / | axis=axis dtype=dtype out=out include_initial=flag
delete: arr=A obj=positions | axis=axis
diff: a=N | n=few axis=axis_n prepend=same append=same
insert: arr=N obj=positions values=number | axis=axis
repeat: a=A repeats=repeats | axis=axis
take: a=A indices=positions2 | axis=axis out=out mode=mode
take_along_axis: arr=A indices=along axis=zero
expand_dims: a=A axis=new_axes
flip: m=A | axis=axes
fliplr flipud: m=A
linalg.matrix_transpose matrix_transpose: x=A /
moveaxis: a=A source=axis_n destination=axis_number
permute_dims transpose: a=A | axes=permutation
rollaxis: a=A axis=axis_n | start=start
rot90: m=A | k=digits axes=two_axes
squeeze: a=A | axis=axes
swapaxes: a=A axis1=axis_n axis2=axis_n
diagflat: v=N | k=digits
ediff1d: ary=N
histogram_bin_edges: a=R | bins=few1
resize: a=N new_shape=tiled
concat concatenate: arrays=joined / | axis=axis out=out dtype=dtype casting=casting
stack: arrays=stacked | axis=stack_axis out=out dtype=dtype casting=casting
array_split split: ary=A indices_or_sections=sections | axis=axis_n
unstack: x=A / | axis=axis_n
array_equal: a1=A a2=a | equal_nan=flag
array_equiv: a1=A a2=a
astype: x=N dtype=dtype / | copy=flag
copy: a=A
empty_like ones_like zeros_like: a=A / | dtype=dtype
full_like: a=N fill_value=number | dtype=dtype
can_cast: from_=A to=dtype | casting=casting
common_type: *arrays=properties_n
result_type: *arrays=properties_a
iscomplexobj isrealobj: x=A
ndim shape: a=A
size: a=A | axis=axis
array2string array_repr array_str: a=A
may_share_memory shares_memory: a=A b=same_or_self /
save: file=file arr=A
savetxt: fname=file X=R
savez savez_compressed: file=file *args=properties_a
argwhere flatnonzero nonzero: a=A
bincount: x=counts / | weights=no minlength=few
broadcast_arrays: *args=positional2
broadcast_to: array=A shape=wider
convolve: a=R1 v=R1 | mode=convolve_mode
correlate: a=R1 v=R1 | mode=convolve_mode
corrcoef: x=F2
cov: m=F2 | bias=flag ddof=few
cross: a=three b=three
linalg.cross: x1=three x2=three /
diag: v=A12 | k=digits
diagonal: a=A24 | offset=digits axis1=axis_n axis2=axis_n
dot: a=N2 b=N2t / | out=out_dot
inner: a=N2 b=same /
einsum: subscripts=einsum1 a=N24 /
extract: condition=B arr=same_a
fft.fft fft.ifft fft.rfft fft.irfft: a=N14 | n=few1 axis=axis_n norm=norm out=out_fft
fft.hfft fft.ihfft: a=N14 | n=few1 axis=axis_n norm=norm
fft.fft2 fft.ifft2: a=N24 | norm=norm
fft.fftn fft.ifftn fft.rfftn fft.irfftn: a=N14 | norm=norm axes=axes_list
fft.fftshift fft.ifftshift: x=A | axes=axes
histogram: a=R | bins=few1 density=flag
intersect1d setdiff1d setxor1d union1d: ar1=R ar2=vector
kron: a=N2 b=N2
lib.stride_tricks.sliding_window_view: x=A window_shape=few1 | axis=axis_n
linalg.cholesky: a=positive / | upper=flag
linalg.cond: x=square
linalg.det linalg.eig linalg.eigvals linalg.inv linalg.slogdet: a=square
linalg.eigh linalg.eigvalsh: a=positive | UPLO=uplo
linalg.diagonal: x=A24 / | offset=digits
linalg.lstsq: a=square b=rhs
linalg.matmul: x1=N2 x2=N2t /
linalg.matrix_norm: x=N24 / | keepdims=flag ord=matrix_ord
linalg.matrix_power: a=square n=few
linalg.matrix_rank: A=square
linalg.outer: x1=N1 x2=N1 /
linalg.pinv: a=square
linalg.qr: a=square | mode=qr_mode
linalg.solve: a=square b=rhs
linalg.svd: a=square | full_matrices=flag compute_uv=flag
linalg.svdvals: x=square /
linalg.tensordot: x1=N2 x2=N2t / | axes=few1
linalg.trace: x=N24 / | offset=digits dtype=dtype
linalg.vecdot: x1=N x2=same / | axis=axis_number
matmul: x1=N2 x2=N2t / | out=out_dot dtype=dtype casting=casting
matvec: x1=N2 x2=N1s / | out=out_dot
vecmat: x1=N1r x2=N2r / | out=out_dot
vecdot: x1=N x2=same / | out=out_dot
meshgrid: *xi=vectors | sparse=flag indexing=indexing
outer: a=N b=N | out=out_dot
polyfit: x=ordered5s y=vector5 deg=few
polyval: p=vector x=N
ravel: a=A | order=order
reshape: a=A shape=reshape / | order=order
tensordot: a=N2 b=N2t | axes=few1
trace: a=N24 | offset=digits axis1=axis_n axis2=axis_n dtype=dtype out=out_dot
unique: ar=R | return_index=flag return_inverse=flag return_counts=flag axis=axis
unique_all unique_counts unique_inverse unique_values: x=R /
vdot: a=N b=same /
copyto: dst=A src=n | casting=casting where=mask
"""
OUT = object()


def g_operand(letter: str) -> Callable[[Draw], Any]:
    return lambda d: d.operand(letter)


def g_first(letter: str, most: int = 4, least: int = 0) -> Callable[[Draw], Any]:
    return lambda d: d.first(letter, most, least)


def g_choice(*values: Any) -> Callable[[Draw], Any]:
    return lambda d: d.choice(values)


def g_same(d: Draw, letter: str = "N") -> Field:
    """A storage with the dimensions of the first in another order, or an array of its shape."""
    first = d.fields[0]
    dims, shape = first.dims or (), first.plain.shape
    if d.chance(0.8):
        order = d.random.sample(range(len(dims)), len(dims)) if d.chance(0.5) else range(len(dims))
        return d.storage(
            tuple(dims[i] for i in order), d.dtype(letter), tuple(shape[i] for i in order)
        )
    return d.array(shape, d.dtype(letter))


def g_same_or_self(d: Draw) -> Field:
    return d.fields[0] if d.chance(0.3) else g_same(d)


def g_mask(d: Draw) -> Any:
    if d.chance(0.1):
        return d.choice((True, False, np.True_, np.asarray(True)))
    return d.operand("B")


def g_rmask(d: Draw) -> Any:
    first = d.fields[0]
    dims, choice = first.dims or (), d.random.random()
    dtype = "i4" if dims and d.chance(0.03) else "?"
    if choice < 0.1:
        return d.choice((True, False))
    if choice < 0.25:
        return d.array(first.plain.shape, dtype)
    names = d.random.sample(dims, d.random.randint(0, len(dims)) if choice < 0.6 else len(dims))
    if d.chance(0.03):
        names.append("8")
        return d.storage(tuple(names), dtype, tuple([*(d_ext(first, n) for n in names[:-1]), 2]))
    return d.storage(tuple(names), dtype, tuple(d_ext(first, n) for n in names))


def d_ext(field: Field, name: str) -> int:
    return field.plain.shape[(field.dims or ()).index(name)]


def g_weights(d: Draw) -> Field:
    first = d.fields[0]
    dims = first.dims or ()
    names = d.random.sample(dims, d.random.randint(0, len(dims)) if d.chance(0.4) else len(dims))
    if d.chance(0.2):
        return d.array(first.plain.shape, d.dtype("N"))
    kind = d.kind() if d.chance(0.6) else ""
    return d.storage(tuple(names), d.dtype("N"), tuple(d_ext(first, n) for n in names), None, kind)


def g_choices(d: Draw) -> list[Any]:
    return [d.operand("N") for _ in range(3)]


def g_choices2(d: Draw) -> list[Any]:
    return [d.operand("N") for _ in range(2)]


def g_conditions(d: Draw) -> list[Any]:
    return [d.first("B"), d.operand("B")]


def g_index(d: Draw) -> Field:
    dims = d.dims()
    shape = tuple(d.extents[n] for n in dims)
    limit = 3 if d.chance(0.8) else 4
    values = np.abs(d.values(shape, "i4")) % limit
    return d.storage(dims, d.choice(("i4", "i8", "u1")), None, values)


def g_along(d: Draw) -> Field:
    first = d.fields[0]
    dims, shape = first.dims or (), first.plain.shape
    order = d.random.sample(range(len(dims)), len(dims))
    extents = tuple(shape[i] for i in order)
    least = min((e for e in shape), default=1) or 1
    values = np.abs(d.values(extents, "i8")) % (least + d.chance(0.1))
    return d.storage(tuple(dims[i] for i in order), d.choice(("i8", "i4")), extents, values)


def g_square(positive: bool) -> Callable[[Draw], Field]:
    def make(d: Draw) -> Field:
        dims = d.dims(3, 2)
        extent = d.choice((1, 2, 3, 3, 5))
        d.extents[dims[-1]] = d.extents[dims[-2]] = extent
        if len(dims) > 2:
            d.extents[dims[0]] = d.choice((0, 1, 2))
        dtype = d.choice(("f8", "f8", "f4", "i4", "c16", ">f8"))
        values = d.values(tuple(d.extents[n] for n in dims), dtype)
        if positive:
            values = values + np.swapaxes(values, -1, -2).conj() + 60 * np.eye(extent)
        elif d.chance(0.9):
            values = values + 20 * np.eye(extent)
        return d.storage(dims, dtype, None, values.astype(dtype))

    return make


def g_rhs(d: Draw) -> Field:
    extent = d.fields[0].plain.shape[-1]
    return d.storage(("8",), d.choice(("f8", "f4")), (extent,), None, d.main_kind)


def g_transposed(d: Draw) -> Field:
    rows = d.fields[0].plain.shape[-1] if d.fields[0].plain.ndim else 2
    if d.chance(0.05):
        rows += 1
    if d.chance(0.3):
        return d.array((rows, 2), d.dtype("N"))
    names = d.random.sample(NAMES, 2)
    return d.storage(tuple(names), d.dtype("N"), (rows, d.choice((1, 2, 3))))


def g_joined(d: Draw) -> list[Any]:
    first = d.first("A", 4, 1) if d.chance(0.95) else d.first("A")
    dims, made = first.dims or (), [first]
    for _ in range(d.choice((0, 1, 1, 2))):
        order = d.random.sample(range(len(dims)), len(dims))
        shape = list(first.plain.shape)
        if dims and d.chance(0.4):
            shape[0] = d.choice(EXTENTS)
        dtype = (
            first.plain.dtype.str
            if d.chance(0.6) and (first.plain.dtype.str in dict(POOLS_KEYS))
            else d.dtype("N")
        )
        if d.chance(0.2):
            made.append(d.array(tuple(shape), dtype))
        else:
            made.append(
                d.storage(tuple(dims[i] for i in order), dtype, tuple(shape[i] for i in order))
            )
    return tuple(made) if d.chance(0.3) else made


POOLS_KEYS = [(name, True) for name, _ in POOLS]


def g_stacked(d: Draw) -> list[Any]:
    made = [d.first("A", 3)]
    for _ in range(d.choice((0, 1, 1, 2))):
        made.append(g_same(d))
    return made


def g_positional2(d: Draw) -> list[Any]:
    first = d.first("A")
    return [first, d.array(first.plain.shape[-1:], d.dtype("N"))]


def g_properties(letter: str) -> Callable[[Draw], list[Any]]:
    return lambda d: [d.first(letter), *(g_same(d) for _ in range(d.choice((0, 1))))]


def g_vectors(d: Draw) -> list[Any]:
    return [d.storage((n,), d.dtype("N")) for n in d.random.sample(NAMES, d.choice((1, 2, 3)))]


def g_positions(d: Draw) -> Any:
    count = d.choice((0, 1, 2, 3))
    limit = d.choice((1, 2, 3))
    made = [d.random.randint(-limit, limit - 1) for _ in range(count)]
    return d.choice((made, np.array(made, "i8"), 0, -1, slice(0, 2)))


def g_positions2(d: Draw) -> Any:
    made = g_positions(d)
    if isinstance(made, slice):
        return [[0, 0], [0, -1]]
    return made


def g_permutation(d: Draw) -> Any:
    dims = d.fields[0].dims or ()
    made = d.random.sample(range(len(dims)), len(dims))
    if d.chance(0.05):
        made = made[1:]
    return tuple(d.choice((a, a - len(dims), dims[a])) for a in made)


def g_new_axes(d: Draw) -> Any:
    ndim = len(d.fields[0].dims or ())
    if d.chance(0.7):
        return d.random.randint(-ndim - 1, ndim)
    return tuple(d.random.sample(range(ndim + 2), 2))


def g_two_axes(d: Draw) -> Any:
    dims = d.fields[0].dims or ()
    if len(dims) < 2:
        return (0, 1)
    return tuple(d.choice((a, dims[a])) for a in d.random.sample(range(len(dims)), 2))


def g_axis(several: bool, none: bool) -> Callable[[Draw], Any]:
    return lambda d: d.axis(several, None, none)


def g_stack_axis(d: Draw) -> Any:
    ndim = len(d.fields[0].dims or ())
    return d.choice((0, -1, d.random.randint(-ndim - 1, ndim), "K", "Z", 9))


def g_sections(d: Draw) -> Any:
    return d.choice((1, 2, 3, [1], [1, 2], (0, 3), []))


def g_booleans(d: Draw) -> Any:
    made = [d.chance(0.5) for _ in range(d.choice((1, 2, 3)))]
    return d.choice((made, np.array(made)))


def g_reshape(d: Draw) -> Any:
    size = d.fields[0].plain.size
    return d.choice((-1, (size,), (1, size), (-1, 1), (2, -1)))


def g_wider(d: Draw) -> Any:
    return (2, *d.fields[0].plain.shape)


def g_einsum1(d: Draw) -> str:
    return d.choice(("...->...", "ij...->ji...", "ij...->i...", "ij->", "...ij->...i"))


def g_axis_number(d: Draw) -> int:
    return d.choice((0, -1, 1))


def g_no(d: Draw) -> Any:
    return None


GENERATORS: dict[str, Callable[[Draw], Any]] = {
    **{letter: g_first(letter) for letter in CLASSES},
    **{letter.lower(): g_operand(letter) for letter in CLASSES},
    **{f"{letter}{n}": g_first(letter, int(n[-1]), int(n[0])) for letter in CLASSES for n in ("1", "2", "12", "24", "14")},
    "flag": g_choice(False, True),
    "false": g_choice(False),
    "digits": g_choice(0, 1, 2, -1, -2),
    "few": g_choice(0, 1, 2, 3),
    "few1": g_choice(1, 2, 3),
    "small": g_choice(0, 1e-3, 0.5, 100),
    "number": lambda d: d.number("N"),
    "bound": lambda d: None if d.chance(0.15) else d.operand("R"),
    "period": g_choice(2.0, 6.5),
    "side": g_choice("left", "right"),
    "mode": g_choice("raise", "wrap", "clip"),
    "casting": g_choice("same_kind", "unsafe", "safe", "no", "equiv"),
    "dtype": g_choice("f4", "f8", "f2", "i4", "i8", "u1", "c16", "?", "g", ">f8", None, float, int),
    "out": lambda d: OUT,
    "out_dot": lambda d: OUT,
    "out_fft": lambda d: OUT,
    "mask": g_mask,
    "rmask": g_rmask,
    "index": g_index,
    "choices": g_choices,
    "choices2": g_choices2,
    "conditions": g_conditions,
    "ordered": lambda d: d.vector("R", d.choice((0, 1, 3, 5)), True),
    "ordered5": lambda d: d.vector("R", 5, True),
    "ordered5s": lambda d: d.storage(("8",), "f8", (5,), np.arange(5.0)),
    "vector": lambda d: d.vector("R", d.choice((0, 1, 3, 5))),
    "vector5": lambda d: d.vector("R", 5),
    "isin_kind": g_choice(None, "sort"),
    "axes": g_axis(True, True),
    "axis": g_axis(False, True),
    "axis_n": g_axis(False, False),
    "axis_number": g_axis_number,
    "zero": lambda d: d.choice((0, -1, *((d.fields[0].dims or ())[:1]))),
    "weights": g_weights,
    "ord": g_choice(None, None, 1, 2, np.inf, 0, "fro", "nuc"),
    "vector_ord": g_choice(1, 2, 3, np.inf, 0),
    "matrix_ord": g_choice("fro", 1, 2, np.inf),
    "percents": g_choice(30, 50.0, [0, 100], np.array([[25.0], [60]]), 101, 0),
    "parts": g_choice(0.3, 0.5, [0, 1.0], np.array([[0.25], [0.6]]), 1.5, 0),
    "method": g_choice("linear", "lower", "nearest", "median_unbiased", "inverted_cdf"),
    "ddof": g_choice(0, 1, 2, 0.5),
    "same": g_same,
    "same_a": lambda d: g_same(d, "A"),
    "same_or_self": g_same_or_self,
    "edge": g_choice(1, 2),
    "pad": g_choice(0, 1, 2, (1, 2), ((1, 2),)),
    "pad_mode": g_choice("constant", "edge", "reflect", "wrap", "mean", "symmetric", "maximum"),
    "shift": g_choice(0, 1, -2, 9, (1, 2)),
    "reps": g_choice(0, 1, 2, (2, 1), (1, 2), (1, 1, 2), (2, 1, 1, 1, 1)),
    "kth": g_choice(0, 1, -1, (0, 1)),
    "booleans": g_booleans,
    "positions": g_positions,
    "positions2": g_positions2,
    "repeats": g_choice(0, 1, 2, [2], [1, 2], [0, 1, 2]),
    "along": g_along,
    "new_axes": g_new_axes,
    "permutation": g_permutation,
    "start": g_choice(0, 1, 2),
    "two_axes": g_two_axes,
    "joined": g_joined,
    "stacked": g_stacked,
    "stack_axis": g_stack_axis,
    "sections": g_sections,
    "properties_n": g_properties("F"),
    "properties_a": g_properties("N"),
    "file": lambda d: io.BytesIO,
    "counts": lambda d: d.storage(("8",), "i8", (4,), [0, 2, 1, 2]),
    "no": g_no,
    "positional2": g_positional2,
    "wider": g_wider,
    "convolve_mode": g_choice("full", "same", "valid"),
    "three": lambda d: d.storage(("I",), d.dtype("N"), (3,)),
    "N2t": g_transposed,
    "einsum1": g_einsum1,
    "norm": g_choice(None, "ortho", "forward"),
    "axes_list": g_choice(None, [0], [-1], (0,)),
    "positive": g_square(True),
    "square": g_square(False),
    "uplo": g_choice("L", "U"),
    "rhs": g_rhs,
    "qr_mode": g_choice("reduced", "complete", "r"),
    "N1s": lambda d: d.storage(("9",), d.dtype("N"), (d.fields[0].plain.shape[-1] if d.fields[0].plain.ndim else 2,)),
    "N1r": lambda d: d.storage(("8",), d.dtype("N"), (3,)),
    "N2r": lambda d: d.storage(("8", "9"), d.dtype("N"), (3, 2)),
    "vectors": g_vectors,
    "indexing": g_choice("xy", "ij"),
    "order": g_choice("C", "F"),
    "reshape": g_reshape,
    "tiled": g_choice((), (2,), (3, 2), 5),
}  # fmt: skip


class Spec(NamedTuple):
    required: list[tuple[str, Callable[[Draw], Any]]]
    optional: list[tuple[str, Callable[[Draw], Any]]]
    by_position: bool


def _specs() -> Iterator[tuple[str, Spec]]:
    for line in SPECS.strip().splitlines():
        names, _, text = line.partition(":")
        required, _, optional = text.partition("|")
        pairs = [
            [
                (p, GENERATORS[g])
                for p, g in (word.split("=") for word in part.split() if word != "/")
            ]
            for part in (required, optional)
        ]
        for name in names.split():
            yield name, Spec(pairs[0], pairs[1], "/" in required)


SPECS_OF = dict(_specs())
UFUNCS = {
    name: value
    for name, value in sorted(vars(np).items())
    if isinstance(value, np.ufunc) and value.signature is None and value.nin < 3
}
REDUCIBLE = {n: u for n, u in UFUNCS.items() if u.nin == 2 and u.nout == 1}
UFUNC_CLASSES = {
    "bitwise": "I",
    "left": "I",
    "right": "I",
    "gcd": "I",
    "lcm": "I",
    "invert": "I",
    "isnat": "A",
}
OTHER_FORMS = set(
    "append apply_along_axis apply_over_axes atleast_1d atleast_2d atleast_3d block column_stack dsplit dstack histogram2d histogramdd"
    " hsplit hstack lexsort trim_zeros vsplit vstack".split()
)
"""They call a function that is attacked, or take arrays by position: test_array_functions.py compares them with NumPy."""

FUNCTIONS = [
    *(
        n
        for n, row in _table.ROWS.items()
        if row.rule != "no array" and n not in OTHER_FORMS and hasattr(np, n.split(".")[0])
    ),
    *UFUNCS,
    *(f"{name}.reduce" for name in REDUCIBLE),
]


# ---- A call. ----


class Call:
    """A function with its arguments by name."""

    def __init__(self, name: str, draw: Draw) -> None:
        self.name, self.draw = name, draw
        if name.startswith(("linalg.", "polyfit")):
            draw.special = False  # LAPACK need not return for what is not finite
        self.is_reduce = name.endswith(".reduce")
        plain = name.removesuffix(".reduce")
        self.function: Any = operator.attrgetter(name)(np)
        self.ufunc = UFUNCS.get(plain)
        self.arguments: dict[str, Any] = {}
        self.positional: list[str] = []
        self.wants_out = False
        if self.ufunc is None:
            row = _table.ROWS[name]
            self.rule, self.paired = row.rule, row.paired
            draw.has_new_axes = self.rule in (
                "reduces",
                "keeps",
                "along",
                "view",
                "parts",
                "like",
                "plain",
            )
            self.draw_arguments(SPECS_OF[name])
        elif self.is_reduce:
            self.rule, self.paired = "reduces", ("a", "where")
            self.draw_reduce()
        else:
            self.rule = "elementwise"
            self.paired = tuple(f"x{i}" for i in range(self.ufunc.nin))
            self.draw_ufunc()

    def draw_arguments(self, spec: Spec) -> None:
        draw = self.draw
        for name, make in spec.required:
            self.arguments[name] = make(draw)
        named = (
            len(spec.required)
            if spec.by_position or draw.chance(0.8)
            else draw.random.randint(0, 1)
        )
        named = max(named, sum(name[0] == "*" for name, _ in spec.required) and len(spec.required))
        self.positional = [name for name, _ in spec.required][:named]
        rate = draw.choice((0.2, 0.5))
        for name, make in spec.optional:
            # axis is what most depends on names.
            if draw.chance(0.75 if name in ("axis", "axes") else rate):
                value = make(draw)
                if value is OUT:
                    self.wants_out = True
                else:
                    self.arguments[name] = value

    def draw_ufunc(self) -> None:
        draw = self.draw
        assert self.ufunc is not None
        letter = next(
            (c for n, c in UFUNC_CLASSES.items() if self.name.startswith(n)), draw.choice("NNNRFA")
        )
        fields = [draw.first(letter) if draw.chance(0.9) else draw.operand(letter)]
        fields += [draw.operand(letter) for _ in range(self.ufunc.nin - 1)]
        if draw.chance(0.4):
            fields.reverse()
        self.arguments = dict(zip(self.paired, fields))
        self.positional = list(self.paired)
        self.wants_out = draw.chance(0.35)
        rate = draw.choice((0, 0, 0.4))
        if draw.chance(rate):
            self.arguments["where"] = g_mask(draw)
        if draw.chance(rate):
            self.arguments["casting"] = GENERATORS["casting"](draw)
        if draw.chance(rate / 2):
            self.arguments["dtype"] = GENERATORS["dtype"](draw)

    def draw_reduce(self) -> None:
        draw = self.draw
        self.arguments = {"a": draw.first(draw.choice("NNRIA"))}
        self.positional = ["a"]
        rate = draw.choice((0, 0.4))
        if draw.chance(0.8):
            self.arguments["axis"] = draw.axis(True)
        for name, rated in (("dtype", 0.5), ("keepdims", 1), ("initial", 1), ("where", 1)):
            if draw.chance(rate * rated):
                word = {"keepdims": "flag", "initial": "number", "where": "rmask"}.get(name, name)
                self.arguments[name] = GENERATORS[word](draw)
        self.wants_out = draw.chance(0.25)

    def invoke(self, arguments: dict[str, Any], out: Any = None, function: Any = None) -> Any:
        args: list[Any] = []
        for name in self.positional:
            if name[0] == "*":
                args.extend(arguments[name])
            else:
                args.append(arguments[name])
        keywords = {n: v for n, v in arguments.items() if n not in self.positional}
        for name in [n for n in keywords if n[0] == "*"]:
            args.extend(keywords.pop(name))
        if out is not None:
            keywords["out"] = out
        return (function or self.function)(*args, **keywords)

    def given(self) -> dict[str, Any]:
        return {name: _each(value, lambda f: f.given) for name, value in self.arguments.items()}

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({shown})"

    # What the arguments hold.

    def fields(self, only: Callable[[str], bool] = lambda name: True) -> list[Field]:
        found: list[Field] = []

        def note(field: Field) -> Field:
            found.append(field)
            return field

        for name, value in self.arguments.items():
            if only(name):
                _each(value, note)
        return found

    @property
    def storages(self) -> list[Field]:
        return [field for field in self.fields() if field.is_storage]


def _each(value: Any, function: Callable[[Field], Any]) -> Any:
    if isinstance(value, Field):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_each(item, function) for item in value)
    if value is io.BytesIO:
        return io.BytesIO()
    return value


# ---- What is right. ----

AXES = frozenset({"axis", "axes", "axis1", "axis2", "source", "destination", "start"})
HOST, DEVICE = "host", "device"
SIDES = {"cpu": {HOST}, "gpu": {DEVICE}, "synced": {HOST, DEVICE}, "managed": {HOST, DEVICE}}


class Expected(NamedTuple):
    """What a call returns: the value, the dimensions of a storage (None: it is not a storage), and its type's kind."""

    value: Any
    dims: Any = None
    kind: str = ""
    mask: Any = True  # which elements have values


def refuse(why: str, *classes: type[Exception]) -> None:
    raise Refused(why, *(classes or (ValueError,)))


def require_side(call: Call, fields: Sequence[Field], outputs: Sequence[Field]) -> None:
    """Documented refusals: docs/spec.md 11.26 to 11.29."""
    inputs = [field for field in fields if field.is_storage or np.ndim(field.plain)]
    inputs += [
        Field(v, v, None, "ndarray")
        for v in call.arguments.values()
        if isinstance(v, np.ndarray) and v.ndim
    ]
    everything = [*inputs, *outputs]
    sides = [SIDES.get(field.kind, {HOST}) for field in everything]
    storages = [SIDES[f.kind] for f in everything if f.is_storage]
    if all(len(side) == 1 for side in storages):
        (side,) = storages[0]
        if any(side not in other for other in sides):
            refuse("sides", TypeError)
        return
    for side in (HOST, DEVICE):
        reach = [SIDES.get(field.kind, {HOST}) for field in outputs]
        if {side} in reach:
            if any(side not in other for other in reach) or (
                side == HOST and any(side not in other for other in sides)
            ):
                refuse("sides", TypeError)
            return


def decider(fields: Sequence[Field]) -> Field:
    storages = [field for field in fields if field.is_storage]
    return next((f for f in storages if len(SIDES[f.kind]) == 2), storages[0])


def join(
    fields: Sequence[Field], others: Sequence[Field]
) -> tuple[tuple[str, ...], dict[str, int]]:
    """The dimensions of a result, and their extents: docs/spec.md 11.1 to 11.3."""
    extents: dict[str, int] = {}
    for field in (*fields, *others):
        for name, extent in zip(field.dims or (), field.plain.shape):
            if extents.setdefault(name, extent) != extent:
                refuse("extents")
    for field in fields:
        if set(field.dims or ()) == set(extents):
            return field.dims or (), extents
    return tuple(sorted(extents, key=lambda n: KIND_ORDER.get(n, (2, n)))), extents


def aligned(array: np.ndarray, dims: tuple[str, ...], target: tuple[str, ...]) -> np.ndarray:
    """A view with the dimensions `target`; those that the array does not have have an extent of 1."""
    order = [dims.index(name) for name in target if name in dims]
    return array.transpose(order)[(..., *(slice(None) if n in dims else None for n in target))]


def placed(
    field: Field, shape: tuple[int, ...], dims: tuple[str, ...], named: Sequence[Field]
) -> Any:
    """An array without names: docs/spec.md 11.22."""
    own = np.shape(field.plain)
    if isinstance(field.plain, np.ndarray) and not own:
        return field.plain[()]  # a number
    last = list(zip(reversed(own), reversed(shape)))
    if len(own) == len(shape) and all(a in (1, b) for a, b in last):
        return field.plain
    if len(own) < len(shape) and all(
        a == 1 or a == b and tuple(shape).count(a) == 1 for a, b in last
    ):
        return field.plain
    found = {f.dims for f in named if f.plain.shape == own}
    if len(found) != 1:
        refuse("place")
    return aligned(np.asarray(field.plain), found.pop() or (), dims)


def brought(
    field: Field, dims: tuple[str, ...], shape: tuple[int, ...], named: Sequence[Field]
) -> Any:
    """The twin of an operand that is paired, with the dimensions `dims`."""
    if field.kind == "number":
        return field.plain
    if field.dims is None:
        return placed(field, shape, dims, named)
    return aligned(field.plain, field.dims, dims)


def number_axes(value: Any, dims: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        if value not in dims:
            refuse("axis")
        return dims.index(value)
    if isinstance(value, tuple):
        return tuple(number_axes(item, dims) for item in value)
    return value


def with_axes(call: Call, dims: tuple[str, ...]) -> dict[str, Any]:
    return {n: number_axes(v, dims) if n in AXES else v for n, v in call.arguments.items()}


def plain_of(field: Field) -> Any:
    return field.plain


def on_plain(
    arguments: dict[str, Any], change: Callable[[Field], Any] = plain_of
) -> dict[str, Any]:
    return {name: _each(value, change) for name, value in arguments.items()}


def next_names(dims: tuple[str, ...], count: int) -> tuple[str, ...]:
    start = max((int(name) + 1 for name in dims if name.isdigit()), default=0)
    return tuple(str(start + i) for i in range(count))


class Outputs:
    """The outputs of a call: their twins in the order of the result, and what NumPy writes to."""

    def __init__(self, fields: Sequence[Field | None]) -> None:
        self.fields = fields

    @property
    def given(self) -> Any:
        values = tuple(None if f is None else f.given for f in self.fields)
        return values if len(values) > 1 else values[0]

    def deliver(self, number: int, value: Any, dims: tuple[str, ...] | None) -> None:
        """Writes what NumPy wrote: repeated along the dimensions that are new."""
        field = self.fields[number]
        assert field is not None
        target = field.plain
        if field.dims is None or dims is None:
            target[...] = value
        else:
            order = tuple(n for n in field.dims if n not in dims) + dims
            aligned(target, field.dims, order)[...] = value

    def twin(self, number: int, dims: tuple[str, ...] | None, shape: tuple[int, ...]) -> Any:
        """New memory of the shape of the result and the dtype of the output, with its elements if it has that shape."""
        field = self.fields[number]
        if field is None:
            return None
        check_output(field, dims, shape)
        made = np.zeros(shape, field.plain.dtype)
        if field.dims is None or dims is None:
            made[...] = field.plain
        elif set(field.dims) == set(dims):
            made[...] = aligned(field.plain, field.dims, dims)
        return made


def check_output(field: Field, dims: tuple[str, ...] | None, shape: tuple[int, ...]) -> None:
    if field.dims is None or dims is None:
        if field.plain.shape != shape:
            refuse("out", ValueError, TypeError)
        return
    if not set(dims) <= set(field.dims):
        refuse("out")
    if any(d_ext(field, name) != extent for name, extent in zip(dims, shape)):
        refuse("out")


def e_elementwise(call: Call, out: Outputs | None) -> Expected:
    if call.name == "where" and len(call.arguments) == 1:
        return e_plain(call, out)
    is_operand = lambda name: name in call.paired  # noqa: E731
    operands = call.fields(is_operand)
    outputs = [] if out is None else [f for f in out.fields if f is not None]
    is_ufunc = call.ufunc is not None or call.name == "clip"  # whose options are those of a ufunc
    mask = call.arguments.get("where", True) if is_ufunc else True
    masks = [mask] if isinstance(mask, Field) else []
    if not any(f.is_storage for f in (*operands, *masks, *outputs)):
        raise Skip
    others = call.fields(lambda n: not is_operand(n) and n != "where")
    named = [f for f in operands if f.is_storage]
    dims, extents = join(named, [f for f in (*masks, *outputs) if f.is_storage] if is_ufunc else [])
    first_out = next((f for f in outputs if f.is_storage), None)
    if is_ufunc:
        for field in outputs:
            if field.dims is not None and not set(dims) <= set(field.dims):
                refuse("out")
        if first_out is not None:
            dims = first_out.dims or ()
            named = [*named, first_out]
    shape = tuple(extents[name] for name in dims)

    arguments = on_plain(
        call.arguments, lambda f: f.plain if f in others else brought(f, dims, shape, named)
    )
    require_side(call, [*operands, *masks, *(f for f in others if f.kind != "list")], outputs)
    if is_ufunc:
        # New results are like the given output, if there is one.
        like = first_out or decider([*operands, *masks, *outputs])
        return e_ufunc(call, out, arguments, dims, shape, like.kind)
    if out is not None:
        made = out.twin(0, dims, shape)
        call.invoke(arguments, made)
        out.deliver(0, made, dims)
        return Expected(None, dims)
    if arguments.get("copy") is False:  # numpy.nan_to_num in place
        made = call.invoke({**arguments, "copy": True})
        operands[0].plain[...] = made
        return Expected(operands[0].plain, dims, operands[0].kind)
    value = call.invoke(arguments)
    return Expected(np.broadcast_to(value, shape), dims, decider(call.fields()).kind)


COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def e_ufunc(
    call: Call,
    out: Outputs | None,
    arguments: dict[str, Any],
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    kind: str,
) -> Expected:
    ufunc = call.function
    nout = 1 if call.ufunc is None else call.ufunc.nout
    where = arguments.pop("where", True)
    inputs = [
        np.ascontiguousarray(v) if isinstance(v, np.ndarray) and v.ndim else v
        for v in (arguments.pop(n) for n in call.paired if n in arguments)
    ]
    targets = [None if out is None else out.twin(i, dims, shape) for i in range(nout)]
    given = {} if out is None else {"out": targets[0] if nout == 1 else tuple(targets)}
    if call.name in ("isfinite", "isinf", "isnan") and any(
        np.asarray(v).dtype.kind in "mM" for v in (*inputs, *targets) if v is not None
    ):
        raise Skip  # NumPy 2.4.6 does not check the cast
    if call.name in COMPARISONS and where is not True and any(type(v) is int for v in inputs):
        # NumPy 2.4.6 crashes: the mask, and a number that the dtype does not have.
        if np.ndim(where) and np.asarray(where).dtype != bool:
            raise TypeError("Cannot cast array data to dtype('bool')")
        made = [ufunc(*inputs, **arguments)]
        if targets[0] is not None:
            np.copyto(
                targets[0], made[0], casting=arguments.get("casting", "same_kind"), where=where
            )
        made = [made[0] if t is None else t for t in targets]
    else:
        results = ufunc(*inputs, where=where, **given, **arguments)
        made = list(results) if nout > 1 else [results]
    values = []
    for number, value in enumerate(made):
        if targets[number] is not None:
            out.deliver(number, targets[number], dims)  # type: ignore[union-attr]
            values.append(None)
        else:
            values.append(np.broadcast_to(value, shape))
    if nout > 1:
        return Expected(tuple(values), dims, kind, where)
    return Expected(values[0], dims, kind, where)


def e_reduces(call: Call, out: Outputs | None) -> Expected:
    first = next(iter(call.arguments.values()))
    dims, shape = first.dims, first.plain.shape
    outputs = [] if out is None else [f for f in out.fields if f is not None]
    arguments = with_axes(call, dims)
    axis = arguments.get("axis", 0 if call.is_reduce else -1 if call.name == "trapezoid" else None)

    def filled(field: Field) -> Any:
        if field is first or field.kind == "number":
            return field.plain
        if field.dims is None:
            return placed(field, shape, dims, [first])
        if not set(field.dims) <= set(dims):
            refuse("where")
        join([first, field], [])
        return np.broadcast_to(aligned(field.plain, field.dims, dims), shape)

    plain = on_plain(arguments, filled)
    plain.pop("overwrite_input", None)
    fields = call.fields()
    require_side(call, fields, outputs)
    if isinstance(axis, (int, np.integer)):
        axis = (axis,)
    try:
        gone = set(range(len(dims))) if axis is None else {a % len(dims) for a in axis}
    except (TypeError, ZeroDivisionError):
        gone = set()
    if (
        isinstance(axis, tuple)
        and call.name.startswith("nan")
        and np.ndim(call.arguments.get("q", 0))
    ):
        raise Skip  # NumPy 2.4.6 puts the dimensions of q elsewhere
    if isinstance(axis, float):
        refuse("axis", TypeError)  # numpy.linalg.norm converts it
    keepdims = bool(arguments.get("keepdims", False))
    left = tuple(n for i, n in enumerate(dims) if keepdims or i not in gone)
    function = None
    if call.ufunc is not None:
        function = call.ufunc.reduce
    if out is None:
        value = call.invoke(plain, None, function)
        if isinstance(value, tuple):
            kind = decider(fields).kind
            return Expected(tuple(_reduced(v, left)._replace(kind=kind) for v in value), "each")
        return _reduced(value, left)._replace(kind=decider(fields).kind)
    result_shape = tuple(
        1 if i in gone else e for i, e in enumerate(shape) if keepdims or i not in gone
    )
    if "q" in call.arguments:
        extra = np.shape(call.arguments["q"])
        left, result_shape = (*next_names(left, len(extra)), *left), (*extra, *result_shape)
    made = out.twin(0, left, result_shape)
    call.invoke(plain, made, function)
    out.deliver(0, made, left)
    return Expected(None, left)


def _reduced(value: Any, left: tuple[str, ...]) -> Expected:
    if np.ndim(value) == 0 and not left:
        return Expected(value)
    value = np.asarray(value)
    return Expected(value, (*next_names(left, value.ndim - len(left)), *left))


def same_dims(call: Call, first: Field) -> Callable[[Field], Any]:
    paired = set(map(id, call.fields(lambda name: name in call.paired)))

    def in_order(field: Field) -> Any:
        if id(field) not in paired or field.dims is None:
            return field.plain
        if set(field.dims) != set(first.dims or ()):
            refuse("dims")
        return aligned(field.plain, field.dims, first.dims or ())

    return in_order


def e_along(call: Call, out: Outputs | None) -> Expected:
    first = next(f for f in call.fields(lambda name: name in call.paired) if f.is_storage)
    dims = first.dims or ()
    arguments = with_axes(call, dims)
    defaults = {
        "diff": -1,
        "unwrap": -1,
        "sort": -1,
        "argsort": -1,
        "partition": -1,
        "argpartition": -1,
        "take_along_axis": -1,
        "concat": 0,
        "concatenate": 0,
    }
    axis = arguments.get("axis", defaults.get(call.name))
    is_flat = call.rule != "keeps" and axis is None and len(dims) != 1
    plain = on_plain(arguments, same_dims(call, first))
    outputs = [] if out is None else [f for f in out.fields if f is not None]
    if call.name == "take" and call.arguments.get("mode") in ("wrap", "clip"):
        extents = first.plain.shape if axis is None else first.plain.shape[axis : axis + 1 or None]
        if 0 in first.plain.shape and (0 in extents or not extents):
            raise Skip  # NumPy 2.4.6 does not return
    require_side(call, call.fields(), outputs)
    try:
        value = call.invoke(plain)
    except TypeError:
        if out is None or not {"dtype", "casting"}.intersection(arguments):
            raise
        raise Skip  # NumPy may need the output to find a type
    # An index without dimensions drops one, and one of several makes several of it.
    is_flat |= call.rule != "keeps" and not dims
    is_flat |= call.name == "take" and np.ndim(arguments["indices"]) != 1
    if out is not None:
        names = None if is_flat or value.ndim != len(dims) else dims
        made = out.twin(0, names, value.shape)
        call.invoke(plain, made)
        out.deliver(0, made, names)
        return Expected(None, names)

    def one(item: Any) -> Expected:
        if is_flat or item.ndim != len(dims):
            return Expected(item)
        return Expected(item, dims, decider(call.fields()).kind)

    if isinstance(value, (list, tuple)):
        return Expected(type(value)(one(item) for item in value), "each")
    return one(value)


def e_stacks(call: Call, out: Outputs | None) -> Expected:
    first = next(f for f in call.fields(lambda name: name in call.paired) if f.is_storage)
    dims = first.dims or ()
    arguments = dict(call.arguments)
    axis = arguments.get("axis", 0)
    (name,) = next_names(dims, 1)
    if isinstance(axis, str):
        if axis in dims:
            refuse("axis")
        name, axis = axis, len(dims)
        arguments["axis"] = axis
    plain = on_plain(arguments, same_dims(call, first))
    outputs = [] if out is None else [f for f in out.fields if f is not None]
    require_side(call, call.fields(), outputs)
    value = call.invoke(plain)
    place = axis % (len(dims) + 1)
    names = (*dims[:place], name, *dims[place:])
    if out is not None:
        made = out.twin(0, names, value.shape)
        call.invoke(plain, made)
        out.deliver(0, made, names)
        return Expected(None, names)
    return Expected(value, names, decider(call.fields()).kind)


PRIMES = (2, 3, 5, 7, 11, 13, 17)


def e_view(call: Call, out: Outputs | None) -> Expected:
    first = call.storages[0]
    dims = first.dims or ()
    arguments = with_axes(call, dims)
    value = np.asarray(call.invoke(on_plain(arguments)), first.plain.dtype)
    if call.name == "expand_dims":
        axis = arguments["axis"]
        new = sorted(a % value.ndim for a in (axis if isinstance(axis, tuple) else (axis,)))
        fresh = [name for name in map(str, range(9)) if name not in dims]
        left = list(dims)
        names = tuple(fresh.pop(0) if i in new else left.pop(0) for i in range(value.ndim))
        return Expected(value, names, first.kind)
    if call.name == "squeeze":
        axis = arguments.get("axis")
        if axis is None:
            axis = tuple(i for i, extent in enumerate(first.plain.shape) if extent == 1)
        gone = {i % max(1, len(dims)) for i in (axis if isinstance(axis, tuple) else (axis,))}
        return Expected(value, tuple(n for i, n in enumerate(dims) if i not in gone), first.kind)
    shape = PRIMES[: len(dims)]
    shadow = np.broadcast_to(np.zeros(()), shape)
    seen = call.invoke(on_plain(arguments, lambda f: shadow)).shape
    return Expected(value, tuple(dims[shape.index(e)] for e in seen), first.kind)


def e_parts(call: Call, out: Outputs | None) -> Expected:
    first = call.storages[0]
    dims = first.dims or ()
    arguments = with_axes(call, dims)
    parts = call.invoke(on_plain(arguments))
    axis = arguments.get("axis", 0)
    names = dims
    if call.name == "unstack":
        names = tuple(n for i, n in enumerate(dims) if i != axis % len(dims))
        if not names:
            return Expected(parts)  # scalars
    return Expected(type(parts)(Expected(p, names, first.kind) for p in parts), "each")


def e_compares(call: Call, out: Outputs | None) -> Expected:
    fields = call.fields(lambda name: name in call.paired)
    require_side(call, [f for f in fields if f.kind != "list"], [])
    named = [f for f in fields if f.is_storage]
    try:
        dims, extents = join(named, [])
        shape = tuple(extents[n] for n in dims)
        plain = on_plain(call.arguments, lambda f: brought(f, dims, shape, named))
    except Refused:
        if call.name == "allclose":
            raise
        return Expected(False)
    if call.name == "array_equal" and len({frozenset(f.dims or ()) for f in named}) > 1:
        return Expected(False)
    return Expected(call.invoke(plain))


def e_like(call: Call, out: Outputs | None) -> Expected:
    first = call.storages[0]
    filled = call.arguments.get("fill_value")
    if first.plain.size == 0 and isinstance(getattr(filled, "plain", filled), (str, bytes)):
        raise Skip  # NumPy does not read the text, as there is no element.
    value = call.invoke(on_plain(call.arguments))
    return Expected(value, first.dims, first.kind, call.name != "empty_like")


def e_properties(call: Call, out: Outputs | None) -> Expected:
    storages = call.storages
    arguments = with_axes(call, storages[0].dims or ()) if storages else call.arguments
    return Expected(call.invoke(on_plain(arguments)))


def e_host(call: Call, out: Outputs | None) -> Expected:
    if any(f.kind == "gpu" for f in call.storages):
        refuse("host", TypeError)
    if call.name in ("may_share_memory", "shares_memory"):
        return Expected(call.invoke(on_plain(call.arguments)))
    file = io.BytesIO()
    arguments = {n: (file if v is io.BytesIO else v) for n, v in call.arguments.items()}
    value = call.invoke(on_plain(arguments))
    return Expected(value if call.name.startswith("array") else file)


def e_plain(call: Call, out: Outputs | None) -> Expected:
    fields = call.fields()
    if call.name.startswith("fft.") and any(0 in np.shape(f.plain) for f in fields):
        raise Skip  # NumPy 2.4.6 returns memory that it has not written
    if call.name == "einsum" and any(0 in np.shape(f.plain) for f in fields):
        raise Skip  # NumPy 2.4.6 writes beyond the memory
    storages = call.storages
    arguments = call.arguments
    if len(storages) == 1:
        arguments = with_axes(call, storages[0].dims or ())
    elif any(
        isinstance(v, str) or isinstance(v, tuple) and any(isinstance(i, str) for i in v)
        for n, v in arguments.items()
        if n in AXES
    ):
        raise Skip
    outputs = [] if out is None else [f for f in out.fields if f is not None]
    require_side(call, [f for f in call.fields() if f.kind != "list"], outputs)
    plain = on_plain(arguments)
    value = call.invoke(plain)
    if out is not None:
        field = out.fields[0]
        assert field is not None
        made = field.plain.copy()
        call.invoke(plain, made)
        field.plain[...] = made
        return Expected(None)
    return Expected(value)


def e_writes(call: Call, out: Outputs | None) -> Expected:
    dst, src, mask = (call.arguments.get(n, True) for n in ("dst", "src", "where"))
    fields = [f for f in (src, mask) if isinstance(f, Field)]
    dims = dst.dims
    named = [f for f in fields if f.is_storage]
    if any(not set(f.dims or ()) <= set(dims) for f in named):
        refuse("out")
    join([dst], named)
    storages = [*([src] if src in named else []), dst]
    shape = dst.plain.shape
    plain = on_plain(
        call.arguments, lambda f: f.plain if f is dst else brought(f, dims, shape, storages)
    )
    require_side(call, fields, [dst])
    for name in ("src", "where"):
        if isinstance(plain.get(name), np.ndarray):
            plain[name] = plain[name].copy()
    call.invoke(plain)
    return Expected(None)


RULES: dict[str, Callable[[Call, Outputs | None], Expected]] = {
    "elementwise": e_elementwise,
    "reduces": e_reduces,
    "keeps": e_along,
    "along": e_along,
    "joins": e_along,
    "stacks": e_stacks,
    "view": e_view,
    "parts": e_parts,
    "compares": e_compares,
    "like": e_like,
    "properties": e_properties,
    "host": e_host,
    "plain": e_plain,
    "writes": e_writes,
}


# ---- Outputs. ----


def draw_outputs(call: Call, expected: Expected | None) -> Outputs:
    count = call.ufunc.nout if call.ufunc is not None and not call.is_reduce else 1
    if expected is None:
        results = [(None, call.draw.fields[0].dims or ())] * count
    else:
        values = expected.value if count > 1 else (expected.value,)
        results = [(value, expected.dims) for value in values]
    fields = [
        None if count > 1 and call.draw.chance(0.3) else draw_output(call, value, dims)
        for value, dims in results
    ]
    if all(f is None for f in fields):
        fields[0] = draw_output(call, *results[0])
    if count > 1 and None not in fields and fields[0].base is fields[1].base:  # type: ignore[union-attr]
        fields[1] = None
    return Outputs(fields)


def draw_output(call: Call, value: Any, dims: Any) -> Field:
    draw = call.draw
    has_names = isinstance(dims, tuple)
    dims = dims if has_names else ()
    shape = np.shape(value) if value is not None else tuple(draw.extents.get(n, 2) for n in dims)
    natural = getattr(value, "dtype", np.dtype("f8")).str
    dtype = natural if draw.chance(0.6) and natural in NATURAL else draw.dtype("N")
    if has_names and len(dims) == len(shape) and draw.chance(0.15):
        for field in call.storages:
            if set(field.dims or ()) == set(dims) and all(
                d_ext(field, n) == e for n, e in zip(dims, shape)
            ):
                if draw.chance(0.5) or not dims:
                    return field
                turned = tuple(draw.choice((slice(None), slice(None, None, -1))) for _ in dims)
                return Field(
                    field.given[turned],
                    field.plain[turned],
                    field.dims,
                    field.kind,
                    field.base,
                    field.plain_base,
                )
    while np.dtype(dtype).kind in "SU" and dtype != natural:
        dtype = draw.dtype("N")
    shape_list = list(shape)
    if shape_list and draw.chance(0.04):
        shape_list[0] = draw.choice((0, 1, 2, 3))
    if not has_names or len(dims) != len(shape) or draw.chance(0.15):
        if draw.chance(0.03):
            shape_list.insert(0, 2)
        if not has_names and draw.chance(0.4) and len(shape_list) <= 4:
            return draw.storage(
                tuple(draw.random.sample(NAMES, len(shape_list))), dtype, tuple(shape_list)
            )
        return draw.array(tuple(shape_list), dtype)
    names = dict(zip(dims, shape_list))
    if draw.chance(0.1):
        names["7"] = 2
    if names and draw.chance(0.04):
        names.popitem()
    order = draw.random.sample(list(names), len(names)) if draw.chance(0.5) else list(names)
    return draw.storage(tuple(order), dtype, tuple(names[n] for n in order))


NATURAL = {name for name, _ in POOLS} | {np.dtype(name).str for name, _ in POOLS}
for _name, _special in list(POOLS):
    POOLS[np.dtype(_name).str, _special] = POOLS[_name, _special]


# ---- The comparison. ----


def elements(array: Any) -> np.ndarray:
    """A copy of the elements, whatever memory they are in."""
    if isinstance(array, gridbuf.storage.Storage):
        if not isinstance(array, gridbuf.storage.CPUStorage):
            array = gridbuf.storage.storage(array, device=None)
        return np.array(array)
    return np.asarray(array)


def is_same(found: np.ndarray, right: np.ndarray, tolerance: float) -> bool:
    if found.dtype.char not in "gG" and found.tobytes() == right.tobytes():
        return True
    kind = found.dtype.kind
    if kind in "OSUmM":
        return bool(((found == right) | ((found != found) & (right != right))).all())
    if kind not in "fc":
        return False
    same = (found == right) | ((found != found) & (right != right))
    if same.all():
        return True
    if not tolerance or found.shape != right.shape:
        return False
    wide = np.promote_types(found.dtype, "f8")
    with np.errstate(all="ignore"):
        near = np.abs(found.astype(wide) - right.astype(wide))
        size = np.abs(right.astype(wide))
        scale = np.max(size, where=np.isfinite(size), initial=0)
        allowed_error = max(tolerance, TOLERANCE * float(np.finfo(found.dtype).eps))
        return bool((same | (near <= allowed_error * np.maximum(size, scale))).all())


CLASSES_OF_ERRORS = (TypeError, IndexError, OverflowError, KeyError, ValueError, FloatingPointError, ZeroDivisionError, MemoryError, AttributeError, NotImplementedError)  # fmt: skip


def same_error(found: BaseException, right: BaseException) -> bool:
    if type(found) is type(right):
        return True
    return any(isinstance(found, c) and isinstance(right, c) for c in CLASSES_OF_ERRORS)


TYPES = {
    "cpu": gridbuf.storage.CPUStorage,
    "gpu": gridbuf.storage.GPUStorage,
    "synced": gridbuf.storage.SoftwareManagedGPUStorage,
    "managed": gridbuf.storage.CUDAManagedGPUStorage,
}


def problem_of(found: Any, right: Expected, tolerance: float) -> str:
    """What is wrong with a result; "" for nothing."""
    value = right.value
    if isinstance(value, io.BytesIO):
        return ""
    if isinstance(value, (tuple, list)) and (
        right.dims is not None or any(isinstance(v, (np.ndarray, np.generic)) for v in value)
    ):
        if type(found) is not type(value) or len(found) != len(value):
            return f"type: {type(found).__name__}, not {type(value).__name__}"
        for item, one in zip(found, value):
            one = one if isinstance(one, Expected) else right._replace(value=one)
            if one.dims == "each":
                one = one._replace(dims=None)
            if problem := problem_of(item, one, tolerance):
                return problem
        return ""
    if value is None:
        return ""
    is_storage = isinstance(found, gridbuf.storage.Storage)
    if (right.dims is not None) != is_storage:
        return f"kind: {type(found).__name__}"
    if is_storage:
        if type(found) is not TYPES[right.kind]:
            return f"kind: {type(found).__name__}, not {right.kind}"
        if found.dims != right.dims:
            return f"dims: {found.dims}, not {right.dims}"
    elif type(found) is not type(value):
        return f"type: {type(found).__name__}, not {type(value).__name__}"
    elif not isinstance(value, (np.ndarray, np.generic)):
        return "" if found == value or (found != found and value != value) else f"value: {found}"
    if found.dtype != value.dtype:
        return f"dtype: {found.dtype}, not {value.dtype}"
    if found.shape != value.shape:
        return f"shape: {found.shape}, not {value.shape}"
    if right.mask is False:
        return ""
    seen = elements(found)
    if right.mask is not True:
        mask = np.broadcast_to(np.asarray(right.mask, bool), value.shape)
        seen, value = seen[mask], np.asarray(value)[mask]
    if not is_same(seen, np.asarray(value), tolerance):
        return f"value: {seen.tolist()!s:.200}, not {np.asarray(value).tolist()!s:.200}"
    return ""


OPERATORS = {
    "add": operator.add,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "equal": operator.eq,
    "floor_divide": operator.floordiv,
    "greater": operator.gt,
    "invert": operator.invert,
    "left_shift": operator.lshift,
    "less_equal": operator.le,
    "matmul": operator.matmul,
    "multiply": operator.mul,
    "negative": operator.neg,
    "not_equal": operator.ne,
    "power": operator.pow,
    "remainder": operator.mod,
    "subtract": operator.sub,
    "true_divide": operator.truediv,
}
METHODS = ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var")


class Prepared(NamedTuple):
    """A call, its outputs, and the right result, or the exception that it must raise."""

    call: Call
    out: Outputs | None
    right: Expected | None
    error: Exception | None
    warned: set[str]


def prepare(random_: random.Random, name: str) -> Prepared | None:
    """Draws a call and computes what it must return. None if there is nothing to compare."""
    call = Call(name, Draw(random_))
    if not call.storages:
        return None
    expect = RULES[call.rule]
    out: Outputs | None = None
    if call.wants_out:
        right: Expected | None = None
        try:
            right = expect(call, None)
        except Skip:
            return None
        except Exception:  # noqa: S110  (whatever NumPy says, an output can be drawn)
            pass
        out = draw_outputs(call, right)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return Prepared(call, out, expect(call, out), None, categories(caught))
        except Skip:
            return None
        except Exception as error:
            return Prepared(call, out, None, error, set())


def categories(caught: Sequence[warnings.WarningMessage]) -> set[str]:
    """The warnings, but for those of casts: NumPy gives them also where it copies an output before it writes."""
    return {w.category.__name__ for w in caught if w.category is not np.exceptions.ComplexWarning}


def check(random_: random.Random, name: str = "") -> tuple[str, Call] | None:
    """One call: what is wrong with it ("": nothing). None if there was nothing to compare."""
    name = name or random_.choice(FUNCTIONS)
    state = random_.getstate()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        prepared = prepare(random_, name)
        if prepared is None:
            return None
        problem = run(prepared)
        if problem and allowed(prepared, problem):
            problem = ""
        if problem:
            random_.setstate(state)
            again = prepare(random_, name)
            assert again is not None
            problem += f"\n     {again.call}" + (f" out={again.out.fields}" if again.out else "")
        return problem, prepared.call


def run(prepared: Prepared) -> str:
    """What is wrong with the call; "" for nothing."""
    call, out, right, error, warned = prepared
    draw, is_rounded = call.draw, call.name.removesuffix(".reduce") in ROUNDED
    tolerance = TOLERANCE * max(map(precision_of, call.fields())) if is_rounded else 0
    given = call.given()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call_on_storages(call, given, out)
        except Exception as raised:
            if error is None:
                return f"raises {type(raised).__name__}: {raised!s:.200}"
            if isinstance(error, Refused):
                if not isinstance(raised, (TypeError, ValueError)) and not has_two_faults(
                    call, out, raised
                ):
                    return f"raises {type(raised).__name__} ({raised!s:.150}), not {error.classes} ({error})"
            elif not same_error(raised, error) and not has_two_faults(call, out, raised):
                return f"raises {type(raised).__name__} ({raised!s:.150}), not {type(error).__name__} ({error!s:.150})"
            # An exception of a value leaves the output as far as it was written, as in NumPy (docs/spec.md 11.15).
            late = ("Integers to negative", "invalid literal", "could not convert")
            is_late = any(text in str(error) for text in late)
            problem = "" if is_late else bases_problem(draw, tolerance)
            return problem and f"after {type(error).__name__}: {problem}"
        if error is not None:
            return f"does not raise {type(error).__name__}: {error!s:.150}"
    assert right is not None
    if categories(caught) != warned:
        return f"warns {sorted(categories(caught))}, not {sorted(warned)}: {[str(w.message) for w in caught]!s:.200}"
    if out is not None:
        returned = found if len(out.fields) > 1 else (found,)
        for one, field in zip(returned, out.fields):
            if field is not None and one is not field.given:
                return "does not return out"
    problem = problem_of(found, right, tolerance)
    if not problem and isinstance(right.value, io.BytesIO):
        problem = file_problem(given["file" if "file" in given else "fname"], right.value)
    problem = problem or bases_problem(draw, tolerance)
    if not problem and out is None and call.ufunc is not None and draw.chance(0.3):
        # The second call of the same parameters takes what the first found out.
        problem = problem_of(call_on_storages(call, given, None), right, tolerance)
        return problem and f"again: {problem}"
    return problem


def call_on_storages(call: Call, given: dict[str, Any], out: Outputs | None) -> Any:
    """The call, as an operator or a method where there is one."""
    is_operator = out is None and call.name in OPERATORS and len(given) == len(call.positional)
    # `==` of NumPy's arrays answers where the types have no order.
    if (
        is_operator
        and not any(np.asarray(f.plain).dtype.kind in "mMSU" for f in call.fields())
        and call.draw.chance(0.5)
    ):
        return OPERATORS[call.name](*given.values())
    if call.name in METHODS and call.draw.chance(0.5):
        return call.invoke(given, None if out is None else out.given, lambda a, *rest, **options: getattr(a, call.name)(*rest, **options))  # fmt: skip
    return call.invoke(given, None if out is None else out.given)


TOLERANCE = 16.0
"""Units in the last place of the largest element, in the precision of the least precise operand."""


def precision_of(field: Field) -> float:
    dtype = np.asarray(field.plain).dtype
    if dtype.kind in "biu":  # the type in which NumPy computes
        dtype = np.dtype({1: "f2", 2: "f4"}.get(dtype.itemsize, "f8"))
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0


ROUNDED = frozenset(
    """
    abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh cbrt cos cosh exp exp2 expm1
    float_power hypot log log10 log1p log2 logaddexp logaddexp2 pow power sin sinh tan tanh sinc i0 angle
    average mean nanmean nanstd nanvar std var trapezoid linalg.norm linalg.vector_norm linalg.matrix_norm cov corrcoef
    dot vdot inner matmul matvec vecmat vecdot tensordot einsum linalg.multi_dot linalg.matmul linalg.vecdot linalg.tensordot
    cumprod cumulative_prod nancumprod nanprod prod multiply divide true_divide sum nansum cumsum cumulative_sum nancumsum add
    """.split()
)
"""NumPy's loops of contiguous and of strided memory round these differently, and sums in another order."""


class Allowed(NamedTuple):
    """A difference that is right. `holds` says whether the problem of a call is this difference."""

    reason: str
    holds: Callable[[Prepared, str], bool]


def is_of_numpy_in_this_layout(prepared: Prepared, problem: str) -> bool:
    """Whether NumPy has the found result for arrays with the strides of the storages."""
    call, out, right = prepared.call, prepared.out, prepared.right
    outputs = [] if out is None else [field for field in out.fields if field is not None]
    bases = {id(field.base) for field in outputs}
    is_value = problem.startswith(("value", "again: value", "base", "array"))
    if not is_value or right is None or any(id(f.base) in bases for f in call.fields()):
        return False
    return any(_is_found_in(prepared, layout) for layout in ("layout", "device_layout"))


def is_of_a_cast_that_does_not_fit(prepared: Prepared, problem: str) -> bool:
    """Whether only elements differ whose result, computed as a float, the type of the output cannot hold."""
    call, out = prepared.call, prepared.out
    if out is None or call.arguments.get("casting") != "unsafe" or not problem.startswith("base"):
        return False
    try:
        right = RULES[call.rule](call, None)
    except Exception:  # only with its outputs the call is one that NumPy answers
        return False
    values = right.value if isinstance(right.value, tuple) else (right.value,)
    for field, value in zip(out.fields, values):
        if field is None or field.plain.dtype.kind not in "iu" or value.dtype.kind != "f":
            continue  # such an output must be equal
        limits, floats = np.iinfo(field.plain.dtype), np.zeros(field.plain.shape, value.dtype)
        Outputs([Field(None, floats, field.dims)]).deliver(0, value, right.dims)
        does_not_fit = ~((floats > limits.min - 1.0) & (floats < limits.max + 1.0))
        field.plain[does_not_fit] = elements(field.given)[does_not_fit]
    return not bases_problem(call.draw, 0)


def _is_found_in(prepared: Prepared, layout: str) -> bool:
    """The same for arrays of the host with the layout of a side."""
    call, out = prepared.call, prepared.out
    twins = [(field, field.plain) for field in call.storages]
    others = [field for field in call.fields() if not field.is_storage]
    twins += [(field, field.plain) for field in others]
    for field, _ in twins:
        host = field.given
        if not field.is_storage:  # A mask gets the layout of the first storage.
            first = call.storages[0].plain
            if np.shape(field.plain) == first.shape:
                axes = sorted(range(first.ndim), key=lambda axis: -abs(first.strides[axis]))
                field.plain = field.plain.transpose(axes).copy().transpose(np.argsort(axes))
            continue
        if field.kind != "cpu":
            order = getattr(host, layout) or host.layout
            host = gridbuf.storage.storage(host, device=None, layout=order)
        field.plain = host.to_numpy()
    try:
        again = RULES[call.rule](call, out)
        if out is not None:
            return not bases_problem(call.draw, 0)
        return not problem_of(call_on_storages(call, call.given(), None), again, 0)
    finally:
        for field, plain in twins:
            field.plain = plain


def has_where_of_ufunc(prepared: Prepared) -> bool:
    return (
        prepared.call.ufunc is not None or prepared.call.name == "clip"
    ) and "where" in prepared.call.arguments


ALLOWED = {
    "layout": Allowed(
        "NumPy's own result depends on the strides (`arctan2.reduce`, `logaddexp2.reduce`): it has the found one for the same "
        "elements in the storage's layout",
        is_of_numpy_in_this_layout,
    ),
    "cast that does not fit": Allowed(
        "C leaves open what an integer has that is cast from a float beyond its range; NumPy's loops differ (`casting='unsafe'`)",
        is_of_a_cast_that_does_not_fit,
    ),
    "where without out": Allowed(
        "NumPy 2.4 warns of elements without a value unless `out=None` is given, which does not reach `__array_ufunc__`; gridbuf is "
        "silent, as `out=None` is",
        lambda prepared, problem: (
            has_where_of_ufunc(prepared) and problem.startswith("warns [], not ['UserWarning']")
        ),
    ),
    "mask of a number": Allowed(
        "an array without dimensions counts as a number, also as `where` of a ufunc: NumPy refuses to cast it to bool",
        lambda prepared, problem: (
            has_where_of_ufunc(prepared)
            and np.ndim(getattr(prepared.call.arguments["where"], "plain", 0)) == 0
            and "TypeError: Cannot cast" in problem
            and "to dtype('bool')" in problem
        ),
    ),
    "mask of copyto": Allowed(
        "`copyto` takes a mask of bool only, and says so (docs/spec.md, `gridbuf.copyto`); NumPy converts numbers of Python",
        lambda prepared, problem: prepared.call.name == "copyto" and "but must be bool" in problem,
    ),
}
"""All differences from NumPy that are right, with reasons. What is not among them is a failure."""
HITS = dict.fromkeys(ALLOWED, 0)


def allowed(prepared: Prepared, problem: str) -> bool:
    for name, difference in ALLOWED.items():
        if difference.holds(prepared, problem):
            HITS[name] += 1
            return True
    return False


def has_two_faults(call: Call, out: Outputs | None, raised: Exception) -> bool:
    """Whether the call without one of its arguments raises this: with two faults either may be told."""
    if isinstance(raised, np.exceptions.AxisError):
        return AXES.intersection(call.arguments) != set()
    everything = call.arguments
    twins = [(field.plain_base, field.plain_base.copy()) for field in call.draw.fields]
    attempts = [(n, out) for n in everything if n not in call.positional]
    for name, target in [*attempts, ("", None)]:
        call.arguments = {n: v for n, v in everything.items() if n != name}
        try:
            RULES[call.rule](call, target)
            if out is not None and target is None and isinstance(raised, (TypeError, ValueError)):
                return True  # The output is the fault.
        except Refused as other:
            # Which sides compute can depend on the output, so that this says nothing.
            if isinstance(raised, other.classes) or (target is None and str(other) == "sides"):
                return True
        except Exception as other:
            if same_error(raised, other):
                return True
            if out is not None and target is None and isinstance(raised, (TypeError, ValueError)):
                return True  # about the output
        finally:
            call.arguments = everything
            for twin, elements_before in twins:
                twin[...] = elements_before
    return False


def file_problem(found: io.BytesIO, right: io.BytesIO) -> str:
    first, second = found.getvalue(), right.getvalue()
    if first == second:
        return ""
    found.seek(0), right.seek(0)
    try:
        one, other = np.load(found), np.load(right)
    except ValueError:
        return f"file: {first!r:.100}, not {second!r:.100}"
    if isinstance(one, np.ndarray):
        return "" if is_same(one, other, 0) and one.dtype == other.dtype else "file"
    return (
        ""
        if one.files == other.files and all(is_same(one[n], other[n], 0) for n in one.files)
        else "files"
    )


def bases_problem(draw: Draw, tolerance: float) -> str:
    """Whether all that was there, outputs included, is what NumPy made of it."""
    for field in draw.fields:
        seen = elements(field.base)
        if field.kind == "ndarray":
            if not is_same(seen, field.plain_base, tolerance):
                return f"array: {seen.tolist()!s:.200}, not {field.plain_base.tolist()!s:.200}"
        elif not is_same(seen, field.plain_base, tolerance):
            return f"base: {seen.tolist()!s:.200}, not {field.plain_base.tolist()!s:.200}"
    return ""
