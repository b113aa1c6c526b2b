"""What users type: the lines of the quick starts of NumPy, xarray, dask, matplotlib and SciPy, on storages.

Each line gives what it gives for arrays of NumPy, or raises an error whose hint works when it is typed.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import io
import pickle
import re
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import gridbuf.storage as gs
import gridbuf.testing
import numpy as np
import pytest

# Of NumPy: `f`, `g` (3, 4), `s` (3, 3), `v` (4,), `c` (2, 3, 4), `n` (3, 4) of int64, `m` a mask, `w` (3, 6).
EXPRESSIONS = """
f.shape
f.ndim
f.size
f.dtype
f.itemsize
f.nbytes
f.T
f.real
f.imag
f.flags.writeable
f.mT
f.strides == np.asarray(f).strides
f.base
f.data is not None
list(f.flat)
f.flat[3]
f[0, 1]
f[-1]
f[1:, ::2]
f[..., 0]
f[f > 2]
f[[0, 2]]
f[np.newaxis].shape
f[None, ..., None].shape
f[:, ::-1]
f[np.array([0, 1]), np.array([1, 2])]
f[np.ix_([0, 1], [1, 2])]
[row.sum() for row in f]
[float(x) for row in f for x in row]
len(f)
5.0 in f
sum(f[0])
max(f.flat)
sorted(f[0].tolist())
list(zip(f[0], f[1]))
[index for index, value in np.ndenumerate(f) if value > 5]
f + g
f - 1
2 * f
f / (g + 1)
f ** 2
f // 2
f % 3
divmod(f, 3)
f @ f.T
f @ v
-f
abs(f)
~m
m & (f > 1)
m | (f > 1)
f == g
f < 3
n << 1
n & 1
np.sin(f)
np.exp(-f)
np.sqrt(abs(f))
np.maximum(f, g)
np.hypot(f, g)
np.arctan2(f, g)
np.add.reduce(f)
np.add.reduce(f, axis=1)
np.add.accumulate(f)
np.multiply.outer(v, v)
np.add.reduceat(v, [0, 2])
f.sum()
f.sum(axis=0)
f.sum(0)
f.sum(axis=(0, 1))
f.mean(axis=-1)
f.mean(axis=1, keepdims=True)
f.std()
f.var(axis=0)
f.std(ddof=1)
f.min()
f.max(axis=1)
f.argmin()
f.argmax(axis=1)
np.unravel_index(f.argmax(), f.shape)
f.cumsum()
f.cumsum(axis=1)
f.cumprod(axis=0)
f.prod()
f.any()
f.all()
f.clip(1, 5)
f.clip(min=2)
f.round(2)
f.transpose()
f.transpose(1, 0)
f.transpose((1, 0))
f.swapaxes(0, 1)
f.reshape(4, 3)
f.reshape(-1)
f.reshape((2, 6))
f.reshape(2, -1)
f.reshape(4, 3, order="F")
f.ravel()
f.ravel("F")
f.flatten()
f.squeeze()
f[None].squeeze()
f.repeat(2, axis=1)
f.take([0, 2], axis=1)
f.take(5)
f.argsort()
f.argsort(axis=0)
f.argpartition(1, axis=1).shape
v.searchsorted(2.0)
f.nonzero()
f.copy()
f.astype(np.float32)
f.astype("int64")
f.astype(int)
f.tolist()
f.item(5)
f[0, 0].item()
f.tobytes()
f.dot(v)
f.trace()
f.diagonal()
f.conj()
f.conjugate()
f.ptp() if hasattr(f, "ptp") else np.ptp(f)
f.view()
f.view(np.ndarray)
f.compress([True, False, True], axis=0)
n.choose([f, f, f], mode="clip")
f.byteswap().shape
f.dumps()[:2]
pickle.loads(pickle.dumps(f))
copy.copy(f)
copy.deepcopy(f)
f.max() - f.min()
np.concatenate([f, g])
np.concatenate((f, g), axis=1)
np.stack([f, g])
np.vstack([f, g])
np.vstack((v, v))
np.hstack([f, g])
np.hstack((v, v))
np.dstack([f, g])
np.column_stack([v, v])
np.column_stack([f, g])
np.block([[f, g], [g, f]])
np.append(f, g)
np.append(f, g, axis=0)
np.append(v, 1.0)
np.split(f, 2, axis=1)
np.hsplit(f, 2)
np.vsplit(f, 3)
np.dsplit(c, 2)
np.array_split(f, 2)
np.tile(f, 2)
np.tile(f, (2, 1))
np.repeat(f, 2)
np.repeat(f, 2, axis=0)
np.roll(f, 1)
np.roll(f, 1, axis=0)
np.roll(f, (1, 1), axis=(0, 1))
np.flip(f)
np.flipud(f)
np.fliplr(f)
np.rot90(f)
np.pad(f, 1)
np.pad(f, ((1, 1), (0, 0)), mode="wrap")
np.where(f > 3, f, 0)
np.where(f > 3)
np.select([f > 5, f > 2], [f, -f], 0)
np.piecewise(f, [f < 3, f >= 3], [-1, 1])
np.clip(f, 1, 5)
np.unique(n)
np.unique(n, return_counts=True)
np.sort(f)
np.sort(f, axis=0)
np.sort(f, axis=None)
np.argsort(f, axis=1)
np.lexsort((v, v))
np.partition(f, 1, axis=1).shape
np.histogram(f, bins=4)
np.histogram(f, bins=4, range=(0, 12))
np.histogram2d(f.ravel(), g.ravel(), bins=3)
np.histogram2d(v, v, bins=3)
np.histogramdd(np.asarray(f), bins=2)[0].sum()
np.histogram_bin_edges(f, bins=4)
np.bincount(n.ravel())
np.digitize(f, [1, 3, 5])
np.interp(1.5, v, v)
np.interp(v, [0, 10], [0, 1])
np.gradient(f)
np.gradient(f, axis=0)
np.gradient(v, 2.0)
np.diff(f)
np.diff(f, axis=0)
np.ediff1d(v)
np.trapezoid(f, axis=1)
np.cumsum(f, axis=0)
np.cumulative_sum(v)
np.convolve(v, [1, 2, 1], mode="same")
np.correlate(v, v)
np.polyfit(v, 2 * v + 1, 1).round(6)
np.polyval([1.0, 2.0], v)
np.poly1d([1.0, 2.0])(v)
np.polynomial.Polynomial.fit(v, v, 1).degree()
np.dot(f, v)
np.matmul(f, v)
np.einsum("ij,j->i", f, v)
np.tensordot(f, v, axes=1)
np.outer(v, v)
np.inner(f, f)
np.vdot(f, g)
np.cross(s, s[::-1])
np.kron(v, v)
np.linalg.norm(f)
np.linalg.norm(f, axis=1)
np.linalg.solve(s, s[0])
np.linalg.inv(s)
np.linalg.det(s)
np.linalg.eigvalsh(s)
np.linalg.svd(f, compute_uv=False)
np.linalg.lstsq(f, f[:, 0])[2]
np.linalg.matrix_rank(f)
np.trace(f)
np.fft.fft(v)
np.fft.rfft(v)
np.fft.fft2(f)
np.fft.fftshift(f)
np.fft.irfft(np.fft.rfft(v))
np.meshgrid(v, v)
np.meshgrid(v, v, indexing="ij")
np.broadcast_to(v, (3, 4))
np.broadcast_arrays(f, v)
np.broadcast_arrays(f, np.arange(4.0))
np.broadcast_shapes(f.shape, v.shape)
np.expand_dims(f, 0).shape
np.squeeze(f)
np.moveaxis(c, 0, -1)
np.swapaxes(f, 0, 1)
np.transpose(f)
np.permute_dims(c, (2, 0, 1))
np.atleast_1d(f)
np.atleast_2d(v)
np.atleast_3d(f).shape
np.reshape(f, (4, 3))
np.reshape(f, -1)
np.ravel(f)
np.resize(f, (2, 2))
np.nan_to_num(f)
np.isnan(f)
np.isfinite(f).all()
np.isclose(f, g)
np.allclose(f, f)
np.array_equal(f, f)
np.percentile(f, 90)
np.percentile(f, [10, 90], axis=1)
np.quantile(f, 0.5, axis=0)
np.median(f)
np.nanmean(f)
np.nanmax(f, axis=0)
np.average(f, weights=g + 1)
np.average(f, axis=1, weights=v + 1)
np.cov(f)
np.corrcoef(f[0], f[1])
np.any(f > 3)
np.all(f > 3, axis=1)
np.count_nonzero(f > 3)
np.argmax(f)
np.argwhere(f > 5)
np.nonzero(f > 5)
np.flatnonzero(f > 5)
np.searchsorted(v, 2.0)
np.apply_along_axis(np.sum, 0, f)
np.apply_along_axis(lambda row: row - row.mean(), 1, f)
np.apply_over_axes(np.sum, f, [0])
np.vectorize(lambda x: x + 1)(f)
np.frompyfunc(lambda x: x + 1, 1, 1)(f)
np.take(f, [0, 1], axis=1)
np.take_along_axis(f, np.argsort(f, axis=1), axis=1)
np.compress([True, False, True], f, axis=0)
np.extract(f > 5, f)
np.choose(n % 2, [f, g])
np.diag(v)
np.diag(s)
np.diagonal(s)
np.diagflat(v)
np.tril(s)
np.triu(s)
np.triu_indices_from(s)
np.insert(f, 1, 0, axis=0)
np.delete(f, 1, axis=0)
np.trim_zeros(v)
np.isin(n, [1, 2])
np.union1d(n, n)
np.intersect1d(n, n)
np.setdiff1d(n, n)
np.ndim(f)
np.shape(f)
np.size(f)
np.iterable(f)
np.array2string(f)
np.array_str(f)
np.asarray(f)
np.asarray(f, dtype=np.float32)
np.array(f)
np.array(f, dtype="f4")
np.array([f, g]).shape
np.asanyarray(f)
np.ascontiguousarray(f)
np.asfortranarray(f)
np.require(f, requirements="C")
np.copy(f)
np.zeros_like(f)
np.ones_like(f, dtype=int)
np.full_like(f, 7)
np.empty_like(f).shape
np.zeros_like(f, shape=(1, 1))
np.full_like(f, 7, shape=5)
np.zeros_like(f, order="C")
np.shares_memory(f, f)
np.may_share_memory(f, g)
np.result_type(f, np.float32)
np.iscomplexobj(f)
np.isreal(f)
np.isscalar(f)
np.from_dlpack(f, device="cpu")
np.frombuffer(f[0].tobytes()).shape
[float(x) for x in np.nditer(np.asarray(f))]
np.ma.masked_where(f > 3, f).sum()
np.ma.masked_greater(f, 3).mean()
np.ma.array(f, mask=m).sum()
np.lib.stride_tricks.sliding_window_view(v, 2)
np.round(f, 1)
np.floor(f)
np.sign(f)
np.ptp(f)
np.unwrap(v)
np.angle(f)
np.sinc(f)
np.logspace(0, 1, f.shape[0])
np.linspace(0, 1, f.size).reshape(f.shape) + f
np.arange(f.size)
np.random.default_rng(0).permutation(f)
np.random.default_rng(0).choice(v, 2)
np.random.default_rng(0).normal(f, 0.0)
np.testing.assert_allclose(f, f)
np.testing.assert_array_equal(f, f)
np.testing.assert_array_almost_equal(f, f)
np.savetxt(io.BytesIO(), f)
np.loadtxt(["1 2", "3 4"]) + s[:2, :2]
np.save(io.BytesIO(), f)
np.savez(io.BytesIO(), f=f)
np.savez_compressed(io.BytesIO(), f)
float(f[0, 0])
int(f[0, 0])
bool(f[0, 0])
f"{f[0, 0]:.2f}"
f"{f.mean():.2f}"
str(f[0, 0])
isinstance(repr(f), str)
hash(f[0, 0]) == hash(float(f[0, 0]))
min(map(float, f[0]))
f.any(axis=0)
f.mean().item()
f.__array__().shape
f.device in ("cpu", None, "gpu")
f.to_device("cpu")
np.array_repr(f) is not None
dict(enumerate(v.tolist()))
"""

# One statement or more, after which `f` is compared.
STATEMENTS = """
f[0] = 1
f[0, 0] = 1; f[1, 1] = 2
f[f > 2] = 0
f[...] = 0
f[:] = g
f[1:] = g[:-1]
f[:, 0] = [1, 2, 3]
f[0] = v
f[[0, 2]] = 5
f[..., -1] += 1
f += 1
f *= g
f -= v
f /= 2
f **= 2
f //= 2
f.fill(3)
f.put([0, 1], 7)
f.sort()
f.sort(axis=0)
f.partition(1); f.sort()
f.itemset(0, 1) if hasattr(f, "itemset") else None
f.resize(3, 4)
f.flat[0] = 1
f.flat = 2
f.T[0] = 1
f.real[0] = 1
np.put(f, [0, 1], 7)
np.place(f, f > 3, [1])
np.putmask(f, f > 3, 0)
np.copyto(f, g)
np.copyto(f, 0, where=f > 3)
np.fill_diagonal(f, 0)
np.put_along_axis(f, np.array([[0], [1], [2]]), 9, axis=1)
np.add.at(f, (0, 1), 1)
np.add(f, 1, out=f)
np.sqrt(f, out=f)
np.sin(f, where=f > 3, out=f)
np.cumsum(f, axis=0, out=f)
np.clip(f, 1, 3, out=f)
np.nan_to_num(f, copy=False)
np.random.default_rng(0).random(out=np.asarray(f))
for row in f: row[...] = 1
for i in range(f.shape[0]): f[i] = i
for index in np.ndindex(f.shape): f[index] = sum(index)
it = np.nditer(np.asarray(f), op_flags=["readwrite"]); [x.__setitem__(..., 2 * x) for x in it]
f[1:-1, 1:-1] = (f[:-2, 1:-1] + f[2:, 1:-1]) / 2
f[1:-1] = 0.5 * (f[2:] - f[:-2])
a, b, c = f; a[...] = 1
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def arrays() -> dict[str, Any]:
    f = (np.arange(12.0) * 5 % 11).reshape(3, 4)
    return {
        "f": f,
        "g": f[:, ::-1].copy() / 2,
        "s": np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]]),
        "v": np.array([0.0, 1, 2, 4]),
        "c": np.arange(24.0).reshape(2, 3, 4),
        "n": np.arange(12).reshape(3, 4) % 5,
        "m": f > 4,
        "w": (np.arange(18.0) * 7 % 13).reshape(3, 6),
    }


def storages(**parameters: Any) -> dict[str, Any]:
    dims = {"v": "J"}
    return {
        name: gs.storage(array, dims=dims.get(name, "IJK"[: array.ndim]), **parameters)
        for name, array in arrays().items()
    }


TOOLS = {"np": np, "numpy": np, "io": io, "pickle": pickle, "copy": copy, "gridbuf": gridbuf}


def same(found: Any, right: Any) -> bool:
    if isinstance(right, (tuple, list)):
        return len(found) == len(right) and all(map(same, found, right))
    if isinstance(right, np.ma.MaskedArray) or right is np.ma.masked:
        return bool(np.ma.allequal(found, right))
    if isinstance(right, (np.ndarray, np.generic, float)):
        found, right = np.asarray(found), np.asarray(right)
        if found.shape != right.shape or found.dtype != right.dtype:
            return False
        if right.dtype.kind in "fc":
            return np.allclose(found, right, rtol=1e-12, atol=1e-12, equal_nan=True)
        return bool(np.array_equal(found, right))
    return bool(found == right)


HINT = re.compile(r"; use (.*?)(?:, or to_cupy\(\) on a device)?$", re.DOTALL)


def follow(error: Exception, names: dict[str, Any]) -> None:
    """Types what the hint of an error says."""
    hint = HINT.search(str(error))
    assert hint, f"{type(error).__name__} without a hint: {error}"
    storage, names = names["f"], {**TOOLS, **names}
    code = hint[1].replace("…", "storage")
    exec(code, {**names, "storage": storage, "indices": np.array([[0], [1], [2]])})


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with (
        gridbuf.testing.emulated_device(),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        yield


@pytest.mark.parametrize("code", lines(EXPRESSIONS))
@pytest.mark.parametrize("device", [None, "gpu"])
def test_expressions(code: str, device: Any) -> None:
    names = storages(device=device)
    right = eval(code, {**TOOLS, **arrays()})
    try:
        found = eval(code, {**TOOLS, **names})
    except (TypeError, AttributeError) as error:
        follow(error, names)
        return
    assert same(found, right), f"{found!r}, not {right!r}"


@pytest.mark.parametrize("code", lines(STATEMENTS))
@pytest.mark.parametrize("device", [None, "gpu"])
def test_statements(code: str, device: Any) -> None:
    names, right = storages(device=device), arrays()
    wanted = right["f"]
    exec(code, {**TOOLS, **right})
    field = names["f"]
    try:
        exec(code, {**TOOLS, **names})
    except (TypeError, AttributeError) as error:
        follow(error, names)
        return
    assert same(field, wanted), f"{field!r}, not {wanted!r}"


# With `x`, a DataArray over `w` (dims I, J, and coordinates), and `plt`, `dask`, `pd`, `scipy`.
LIBRARIES = {
    "xarray": """
x.mean()
x.mean("I")
x.sum(dim=["I", "J"])
x.std("J")
x.median("J")
x.quantile(0.5, "I")
x.max()
x.argmax("J")
x.idxmax("J")
x.isel(I=0)
x.isel(I=slice(0, 2), J=-1)
x.sel(J=1.0)
x.sel(J=[0.0, 2.0])
x.sel(J=1.2, method="nearest")
x.loc[1:2]
x[0]
x[:, 1:]
x + x
x - x.mean("I")
x * x.J
x / 2
-x
x > 3
np.exp(x)
np.sqrt(abs(x))
x.where(x > 3)
x.where(x > 3, 0)
xarray.where(x > 3, x, 0)
x.clip(1, 5)
x.round(1)
x.astype("f4")
x.isnull()
x.notnull()
x.fillna(0)
x.dropna("I")
x.count("I")
x.any("I")
x.T
x.transpose("J", "I")
x.rename(I="lat")
x.rename("t")
x.expand_dims("time")
x.squeeze()
x.stack(z=("I", "J"))
x.stack(z=("I", "J")).unstack("z")
x.shift(I=1)
x.roll(I=1)
x.pad(I=1)
x.diff("I")
x.cumsum("I")
x.cumprod("J")
x.rank("I") if importlib.util.find_spec("bottleneck") else None
x.differentiate("J")
x.integrate("J")
x.cumulative_integrate("J")
x.polyfit("J", 1)
x.interp(J=[0.5, 1.5])
x.interp(J=0.5)
x.interp_like(x)
x.reindex(J=[0.0, 3.0, 9.0])
x.reindex(J=[0.5], method="nearest")
x.sortby("J", ascending=False)
x.groupby("J").mean()
x.groupby("group").mean()
x.groupby("group").sum()
x.groupby_bins("J", 2).mean()
x.rolling(J=2).mean()
x.rolling(J=2).construct("w")
x.coarsen(J=2).mean()
x.weighted(x.J).mean("J")
x.weighted(x.J).sum()
x.dot(x.J)
xarray.dot(x, x)
xarray.concat([x, x], "time")
xarray.concat([x, x], "I")
xarray.merge([x.rename("a"), x.rename("b")])
xarray.align(x, x)[0]
xarray.broadcast(x, x.J)[1]
xarray.corr(x, x, "I")
xarray.cov(x, x, "I")
xarray.apply_ufunc(np.sin, x)
xarray.apply_ufunc(np.mean, x, input_core_dims=[["J"]], kwargs={"axis": -1})
x.to_dataset(name="t")
x.to_dataset(name="t").to_dataarray()
x.to_dataset(name="t").mean()
x.to_dataframe(name="t")
x.to_pandas()
x.to_series()
x.to_numpy()
x.values
x.to_dict()["data"]
x.copy()
x.copy(deep=True)
x.copy(data=np.zeros(x.shape))
x.equals(x)
x.identical(x)
x.broadcast_like(x)
x.combine_first(x)
x.map_blocks(lambda a: a)
x.chunk() if importlib.util.find_spec("dask") else x
x.curvefit("J", lambda j, a: a * j, reduce_dims="I").curvefit_coefficients.shape
x.drop_vars("J")
x.assign_coords(J=x.J + 1)
x.swap_dims(I="group")
x.head(2)
x.thin(2)
x.bfill("J") if importlib.util.find_spec("bottleneck") else x
x.interpolate_na("J")
x.nbytes
x.dtype
len(x)
float(x[0, 0])
[float(row.sum()) for row in x]
isinstance(repr(x), str)
isinstance(x._repr_html_(), str)
pickle.loads(pickle.dumps(x))
copy.deepcopy(x)
xarray.zeros_like(x)
xarray.full_like(x, 3)
xarray.Dataset({"t": (("I", "J"), f)}).t
xarray.Dataset({"t": (("I", "J"), f)}).to_dataarray()
xarray.DataArray(f, dims=("a", "b")).sum("a")
xarray.DataArray(f).sum()
saved(lambda path: x.to_netcdf(path), "a.nc", xarray.load_dataarray)
saved(lambda path: x.to_dataset(name="t").to_netcdf(path), "a.nc", xarray.load_dataset)
""",
    "zarr": """
saved(lambda path: x.to_dataset(name="t").to_zarr(path), "a.zarr", lambda p: xarray.open_zarr(p).load())
zarr.array(f)[...]
assigned(zarr.zeros((3, 4)), f)
zarr.save_array(zarr.storage.MemoryStore(), f)
""",
    "netCDF4": """
saved(lambda path: netcdf(path, f), "b.nc", lambda p: netCDF4.Dataset(p)["t"][...].data)
saved(lambda path: netcdf(path, f.domain_view if hasattr(f, "domain_view") else f), "b.nc", lambda p: netCDF4.Dataset(p)["t"][...].data)
""",
    "dask": """
dask.array.from_array(f, chunks=2).sum().compute()
dask.array.from_array(f, chunks=2).mean(axis=0).compute()
dask.array.from_array(f, chunks=2).std().compute()
dask.array.from_array(f, chunks=2).var(axis=1).compute()
dask.array.from_array(f, chunks=2).max(axis=1).compute()
dask.array.from_array(f, chunks=2).reshape(12).compute()
dask.array.from_array(f, chunks=2).ravel().compute()
dask.array.from_array(f, chunks=2).T.compute()
dask.array.from_array(f, chunks=2).compute()
dask.array.from_array(f, chunks=2)[1:, 0].compute()
(dask.array.from_array(f, chunks=2) + 1).compute()
(dask.array.from_array(f, chunks=2) * dask.array.from_array(f, chunks=2)).compute()
dask.array.from_array(f, chunks=2).dot(dask.array.from_array(v, chunks=2)).compute()
dask.array.from_array(f, chunks=2).map_blocks(lambda b: b + 1).compute()
dask.array.from_array(f, chunks=2).cumsum(axis=0).compute()
dask.array.from_array(f, chunks=2).argmax(axis=0).compute()
dask.array.concatenate([dask.array.from_array(f, chunks=2)] * 2).compute()
dask.array.stack([dask.array.from_array(f, chunks=2)] * 2).compute()
dask.array.where(dask.array.from_array(f, chunks=2) > 2, 1, 0).compute()
dask.array.histogram(dask.array.from_array(f, chunks=2), bins=3, range=(0, 9))[0].compute()
dask.array.from_array(f, chunks=2).rechunk(3).compute()
dask.array.from_array(f, chunks=2).map_overlap(lambda b: b, depth=1, boundary="none").compute()
dask.array.from_array(f, chunks=2).astype("f4").compute()
dask.array.asarray(f).sum().compute()
dask.delayed(np.sum)(f).compute()
x.chunk({"I": 2}).mean("I").compute()
x.chunk({"I": 2}).std().compute()
""",
    "pandas": """
pd.DataFrame(f)
pd.DataFrame(f, columns=list("abcd"))
pd.DataFrame({"a": v, "b": v})
pd.Series(v)
pd.Series(v).mean()
pd.DataFrame(f).describe()
pd.Index(v)
pd.concat([pd.Series(v), pd.Series(v)])
""",
    "scipy": """
scipy.ndimage.gaussian_filter(f, 1)
scipy.ndimage.uniform_filter(f, 3)
scipy.ndimage.convolve(f, s)
scipy.ndimage.zoom(f, 2, order=1)
scipy.signal.convolve2d(f, s)
scipy.signal.detrend(f)
scipy.interpolate.interp1d(v, v)(1.5)
scipy.interpolate.RegularGridInterpolator((np.arange(3.0), np.arange(4.0)), f)((1.5, 1.5))
scipy.interpolate.CubicSpline(np.arange(4.0), v)(1.5)
scipy.linalg.solve(s, s[0])
scipy.linalg.inv(s)
scipy.fft.fft(v)
scipy.fft.dctn(f)
scipy.stats.describe(v).mean
scipy.stats.linregress(v, v).slope
scipy.stats.pearsonr(v, v).statistic
scipy.stats.zscore(f, axis=0)
scipy.integrate.simpson(f, axis=1)
scipy.integrate.trapezoid(f, axis=1)
scipy.integrate.cumulative_trapezoid(f, axis=1)
scipy.optimize.curve_fit(lambda x, a: a * x, v, v)[0].round(6)
scipy.optimize.minimize(lambda p: float(((p - 1) ** 2).sum()), v).x.round(3)
scipy.sparse.csr_matrix(s).toarray()
scipy.sparse.csr_matrix(s) @ s[0]
scipy.spatial.distance.cdist(f, f)
scipy.special.erf(f)
scipy.special.gamma(f + 1)
""",
    "matplotlib": """
plt.plot(v)
plt.plot(v, v, "o-")
plt.plot(f)
plt.plot(f.T)
plt.scatter(v, v, c=v)
plt.imshow(f)
plt.imshow(f[::-1], origin="lower", vmin=0)
plt.matshow(f)
plt.contour(f)
plt.contourf(f, levels=3)
plt.contourf(v, np.arange(3), f)
plt.pcolormesh(f)
plt.pcolormesh(v, np.arange(3), f, shading="nearest")
plt.colorbar(plt.pcolormesh(f))
plt.pcolor(f)
plt.quiver(f, f)
plt.quiver(v, np.arange(3), f, f)
plt.quiver(f, f, f)
plt.streamplot(np.arange(4), np.arange(3), f + 1, f + 1)
plt.barbs(f, f)
plt.hist(v)
plt.hist(f.ravel(), bins=4)
plt.hist2d(v, v, bins=3)
plt.hist2d(f.ravel(), g.ravel(), bins=3)
plt.hexbin(v, v)
plt.bar(v, v)
plt.barh(v, v)
plt.step(v, v)
plt.fill_between(v, v, v + 1)
plt.stackplot(v, v, v)
plt.stackplot(v, f)
plt.errorbar(v, v, yerr=v)
plt.boxplot(f)
plt.violinplot(f)
plt.stem(v, v)
plt.pie(v)
plt.eventplot(v)
plt.semilogy(v, v + 1)
plt.loglog(v + 1, v + 1)
plt.axhline(v[1])
plt.vlines(v, 0, 1)
plt.tricontourf(f.ravel(), g.ravel(), np.arange(12.0))
plt.spy(f)
plt.ylim(f.min(), f.max())
plt.figure().add_subplot(projection="3d").plot_surface(*np.meshgrid(np.arange(4), np.arange(3)), f)
x.plot()
x[0].plot()
x.plot.contourf()
x.plot.hist()
""",
}


def saved(save: Any, name: str, load: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/{name}")
        return load(f"{folder}/{name}")


def netcdf(path: str, field: Any) -> None:
    netCDF4 = importlib.import_module("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", field.shape[0])
        file.createDimension("x", field.shape[1])
        file.createVariable("t", "f8", ("y", "x"))[:] = field


def assigned(target: Any, value: Any) -> Any:
    target[:] = value
    return target[...]


def tools_of(library: str) -> dict[str, Any]:
    found = {name: pytest.importorskip(name) for name in {library, "xarray"}}
    tools = {
        **TOOLS,
        "importlib": importlib,
        "saved": saved,
        "netcdf": netcdf,
        "assigned": assigned,
        **found,
    }
    if library == "matplotlib":
        found["matplotlib"].use("agg")
        tools["plt"] = importlib.import_module("matplotlib.pyplot")
    if library == "scipy":
        for part in "fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats".split():
            importlib.import_module(f"scipy.{part}")
        importlib.import_module("scipy.spatial.distance")
    if library == "dask":
        importlib.import_module("dask.array")
    tools["pd"] = found.get("pandas")
    return tools


def labelled(tools: dict[str, Any], names: dict[str, Any]) -> Any:
    coords = {
        "J": [0.0, 1.0, 2.0, 2.5, 4.0, 5.0],
        "I": [0, 1, 2],
        "group": ("I", ["a", "b", "a"]),
    }
    return tools["xarray"].DataArray(names["w"], dims=("I", "J"), coords=coords, name="t")


def plain(value: Any) -> Any:
    """Labelled arrays with NumPy's elements."""
    return value.as_numpy() if hasattr(value, "as_numpy") else value


@pytest.mark.parametrize(
    ("library", "code"),
    [(library, code) for library, text in LIBRARIES.items() for code in lines(text)],
)
def test_libraries(library: str, code: str) -> None:
    tools = tools_of(library)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    results = []
    for names in (arrays(), storages()):
        names["x"] = labelled(tools, names)
        try:
            results.append(plain(eval(code, {**tools, **names})))
        except (TypeError, AttributeError) as error:
            if not results:
                raise
            follow(error, names)
            return
        finally:
            if library == "matplotlib":
                tools["plt"].close("all")
    right, found = results
    if library == "matplotlib":
        return  # A picture; its elements are the artists.
    if isinstance(right, (tools["xarray"].DataArray, tools["xarray"].Dataset)):
        tools["xarray"].testing.assert_allclose(found, right)
    elif hasattr(right, "equals"):
        assert found.equals(right)
    else:
        assert same(found, right), f"{found!r}, not {right!r}"
