"""xarray: DataArray in, DataArray out; memory and labels stay where they are."""

import importlib
import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gridbuf
import gridbuf.storage as gs
import gridbuf.testing
import numpy as np
import pytest

xarray = pytest.importorskip("xarray", reason="xarray is not installed: ./bazelw --peers")

import gridbuf.xarray as gx  # noqa: E402

SHAPE = (5, 6, 3)
HALO = ((1, 2), (1, 1), (0, 0))
COORDS = {"I": np.arange(5.0), "height": ("K", [0.0, 100.0, 300.0])}


def numbers(shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.arange(float(np.prod(shape))).reshape(shape)


def field(**parameters: Any) -> Any:
    """A DataArray over a storage with a halo of two widths."""
    data = gs.storage(numbers(), halo=HALO, **({"backend": "gt:cpu_ifirst"} | parameters))
    return gx.to_data_array(data, COORDS, name="t", attrs={"units": "K"})


def geographic() -> Any:
    """A DataArray as it comes out of a file: its names, a scalar coordinate, one of two dimensions."""
    lat = xarray.DataArray([50.0, 51.0], dims="lat", attrs={"units": "degrees_north"})
    return xarray.DataArray(
        numbers((2, 3)),
        dims=("lat", "lon"),
        coords={"lat": lat, "area": (("lat", "lon"), np.ones((2, 3))), "time": 7},
        name="ps",
        attrs={"units": "Pa"},
    )


@pytest.fixture
def device() -> Iterator[None]:
    with gridbuf.testing.emulated_device():
        yield
        gridbuf.testing.synchronize()


def same_labels(found: Any, wanted: Any) -> None:
    assert found.dims == wanted.dims
    assert found.name == wanted.name
    assert found.attrs == wanted.attrs
    xarray.testing.assert_identical(found.coords.to_dataset(), wanted.coords.to_dataset())


def test_without_xarray_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['xarray'] = None; import gridbuf.xarray"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ImportError: gridbuf.xarray needs xarray" in done.stderr
    assert "pip install xarray" in done.stderr


# to_data_array


def test_a_storage_stays_itself_inside_a_data_array() -> None:
    storage = gs.zeros(SHAPE, dims="KIJ", halo=(0, 1, 1))
    array = gx.to_data_array(storage, {"I": np.arange(6)}, name="t", attrs={"units": "K"})
    assert array.data is storage
    assert array.dims == ("K", "I", "J") and array.name == "t" and array.attrs == {"units": "K"}
    assert array.coords["I"].values.tolist() == [0, 1, 2, 3, 4, 5]
    assert gridbuf.as_buffer(array).dims == ("K", "I", "J")


@pytest.mark.parametrize(
    "make",
    [
        lambda: gridbuf.zeros((2, 3), dims="KI", layout=(1, 0)),
        lambda: gridbuf.allocate((2, 3), dims="KI"),
    ],
)
def test_other_arrays_of_the_host_become_ndarrays_over_the_same_memory(
    make: Callable[[], Any],
) -> None:
    array = make()
    found = gx.to_data_array(array)
    assert isinstance(found.data, np.ndarray) and found.dims == ("K", "I")
    found[0, 1] = 5.0
    assert np.asarray(array)[0, 1] == 5.0


def test_arrays_without_names_get_given_ones_or_those_of_like_or_the_usual_ones() -> None:
    values = numbers((2, 3))
    assert gx.to_data_array(values).dims == ("I", "J")
    assert gx.to_data_array(numbers((1, 2, 3, 4, 5))).dims == ("I", "J", "K", "0", "1")
    assert gx.to_data_array(values, dims=("lat", "lon")).dims == ("lat", "lon")
    like = geographic()
    found = gx.to_data_array(values * 2, like=like)
    same_labels(found, like)
    assert np.shares_memory(gx.to_data_array(values).data, values)


def test_memory_of_a_device_stays_there(device: None) -> None:
    buffer = gridbuf.allocate((2, 3), dims="KI", device="gpu")
    found = gx.to_data_array(buffer, {"I": [1, 2, 3]})
    assert isinstance(found.data, gs.GPUStorage) and found.dims == ("K", "I")
    entry = found.__gt_data_interface__["gpu"]
    assert entry["data"][0] == buffer.__cuda_array_interface__["data"][0]
    storage = gs.zeros((2, 3), device="gpu")
    assert gx.to_data_array(storage).data is storage


def test_like_gives_its_coordinates_along_the_dimensions_that_are_left() -> None:
    whole = field()
    plane = gx.to_data_array(np.add.reduce(whole.data, axis="K"), like=whole)
    assert plane.dims == ("I", "J") and isinstance(plane.data, gs.CPUStorage)
    assert set(plane.coords) == {"I"} and plane.name == "t" and plane.attrs == {"units": "K"}
    renamed = gx.to_data_array(whole.data, like=whole, name="theta", attrs={})
    assert renamed.name == "theta" and renamed.attrs == {}
    assert whole.name == "t" and whole.attrs == {"units": "K"}


def test_a_data_array_is_taken_by_its_data() -> None:
    whole = field()
    again = gx.to_data_array(whole, name="theta")
    assert again.data is whole.data and again.name == "theta"
    xarray.testing.assert_identical(again.coords.to_dataset(), whole.coords.to_dataset())


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: gx.to_data_array(gs.zeros((2, 3), dims="KI"), dims="IK"),
            r"dims are \('I', 'K'\), but must be \('K', 'I'\)",
        ),
        (
            lambda: gx.to_data_array(gridbuf.zeros((2, 3), dims="KI"), dims="IK"),
            r"dims are \('I', 'K'\), but must be \('K', 'I'\)",
        ),
        (
            lambda: gx.to_data_array(np.zeros((2, 3)), dims="IJK"),
            r"that is 3, but must be 2, one for each dimension of shape \(2, 3\)",
        ),
        (
            lambda: gx.to_data_array(gs.zeros((5, 6, 3)), {"I": [1, 2]}),
            r"dimension 'I': length 5 .* length 2",
        ),
        (
            lambda: gx.to_data_array(gs.zeros((4, 6, 3)), like=field()),
            r"coordinate 'I' of like has 5 values along 'I', but must have 4",
        ),
    ],
)
def test_what_does_not_fit_is_a_value_error_with_dimension_wanted_and_found(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_array_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        gx.to_data_array(object())


# The functions of both doors


@pytest.mark.parametrize(
    "make, value",
    [
        (gx.empty_like, None),
        (gx.zeros_like, 0.0),
        (gx.ones_like, 1.0),
        (lambda data, **kw: gx.full_like(data, 4.0, **kw), 4.0),
    ],
)
def test_like_functions_keep_labels_halo_and_layout(
    make: Callable[..., Any], value: float | None
) -> None:
    whole = field()
    made = make(whole)
    same_labels(made, whole)
    assert isinstance(made.data, gs.CPUStorage)
    assert made.data.halo == HALO and made.data.layout == whole.data.layout
    assert value is None or (made.values == value).all()
    assert make(whole, dtype="float32").dtype == np.float32
    made.attrs["units"] = "m"
    assert whole.attrs == {"units": "K"}


def test_storage_copies_and_as_storage_does_not() -> None:
    values = numbers((2, 3))
    array = xarray.DataArray(values, dims=("K", "I"), coords={"I": [1, 2, 3]}, name="t")
    copied = gx.storage(array, halo=(0, 1), backend="gt:cpu_ifirst")
    viewed = gx.as_storage(array, halo=(0, 1))
    for found in (copied, viewed):
        same_labels(found, array)
        assert isinstance(found.data, gs.CPUStorage) and found.data.halo == ((0, 0), (1, 1))
        np.testing.assert_array_equal(found.values, values)
    values[0, 0] = 9.0
    assert copied[0, 0] == 0.0 and viewed[0, 0] == 9.0


def test_from_array_is_the_plain_door() -> None:
    array = geographic()
    made = gx.from_array(array, "float32", backend="gt:cpu_ifirst", dims="IJ")
    assert isinstance(made.data, np.ndarray) and made.dtype == np.float32
    assert made.data.strides == (4, 64)
    np.testing.assert_array_equal(made.values, array.values)


def test_any_names_go_in_and_come_out_unchanged_without_a_copy() -> None:
    dims = ("time", "lat", "lon", "level")
    labels = {"time": [0.5, 1.5], "lat": [50.0, 51.0, 52.0], "level": ("level", [10, 20, 30, 40])}
    array = xarray.DataArray(
        numbers((2, 3, 2, 4)), dims=dims, coords=labels, name="t", attrs={"units": "K"}
    )
    inside = gx.as_storage(array)
    assert inside.dims == inside.data.dims == dims and type(inside.data) is gs.CPUStorage
    back = inside.as_numpy()
    xarray.testing.assert_identical(back, array)
    assert np.shares_memory(back.values, array.values)
    again = gx.to_data_array(gs.as_storage(array), like=array)
    xarray.testing.assert_identical(again.as_numpy(), array)
    assert np.shares_memory(again.as_numpy().values, array.values)
    assert (inside.mean("lat") == array.mean("lat")).all()
    assert gx.storage(array, backend="gt:cpu_ifirst").data.dims == dims


def test_kinds_of_names_go_through_a_data_array() -> None:
    field = gs.storage(numbers((2, 3)), dims=("Cell", gridbuf.Dim("Level", "vertical")))
    array = gx.to_data_array(field)
    inside = gx.as_storage(array + 1.0).data
    assert [gridbuf.Dim(name).kind for name in inside.dims] == ["horizontal", "vertical"]
    field += array
    np.testing.assert_array_equal(field.to_numpy(), 2 * numbers((2, 3)))


@pytest.mark.parametrize("make", [gx.storage, gx.as_storage, gx.from_array, gx.zeros_like])
def test_other_names_become_those_of_a_grid_and_stay_as_coordinates(
    make: Callable[..., Any],
) -> None:
    array = geographic()
    same = make(array)
    assert same.dims == ("lat", "lon") and gridbuf.as_buffer(same).dims == ("lat", "lon")
    xarray.testing.assert_identical(same.coords.to_dataset(), array.coords.to_dataset())
    made = make(array, dims="IJ")
    assert made.dims == ("I", "J") and made.name == "ps" and made.attrs == array.attrs
    assert made.coords["lat"].dims == ("I",) and made.coords["lat"].values.tolist() == [50.0, 51.0]
    assert made.coords["lat"].attrs == {"units": "degrees_north"}
    assert made.coords["area"].dims == ("I", "J") and made.coords["time"] == 7
    assert gridbuf.as_buffer(made).dims == ("I", "J")
    assert array.dims == ("lat", "lon")


def test_as_storage_refuses_what_the_memory_has_not() -> None:
    with pytest.raises(ValueError, match="layout"):
        gx.as_storage(xarray.DataArray(np.zeros((2, 3)), dims=("I", "J")), layout=(1, 0))


def test_a_device_storage_out_of_a_data_array_and_back(device: None) -> None:
    array = xarray.DataArray(numbers((2, 3)), dims=("I", "J"), coords={"I": [3, 4]})
    there = gx.storage(array, device="gpu", managed="gt4py")
    there.data.host_to_device()
    there += 1.0
    assert there.data.sync_state.state == gs.SyncState.SYNC_DEVICE_DIRTY
    back = there.as_numpy()
    np.testing.assert_array_equal(back.values, array.values + 1.0)
    xarray.testing.assert_identical(back.coords.to_dataset(), array.coords.to_dataset())


# domain_view


def test_domain_view_leaves_the_halo_out_with_its_coordinates() -> None:
    whole = field()
    inner = gx.domain_view(whole)
    assert inner.shape == (2, 4, 3)
    assert inner.coords["I"].values.tolist() == [1.0, 2.0]
    assert inner.coords["height"].values.tolist() == [0.0, 100.0, 300.0]
    np.testing.assert_array_equal(inner.values, numbers()[1:3, 1:5])
    inner[...] = -1.0
    assert (whole.values[1:3, 1:5] == -1.0).all() and whole.values[0, 0, 0] == 0.0
    assert gx.domain_view(inner).shape == inner.shape


def test_domain_view_of_a_field_of_a_device(device: None) -> None:
    whole = field(backend="gt:gpu", managed=None)
    inner = gx.domain_view(whole)
    assert isinstance(inner.data, gs.GPUStorage) and inner.shape == (2, 4, 3)


def test_domain_view_without_a_halo_is_the_whole_and_asks_an_accessor_of_the_users() -> None:
    array = xarray.DataArray(numbers((4, 3)), dims=("I", "J"))
    assert gx.domain_view(array).shape == (4, 3)
    entry = dict(array.data.__array_interface__, halo=(1, (0, 1)))
    with pytest.warns(match="overriding"):
        xarray.register_dataarray_accessor("__gt_data_interface__")(lambda _: {None: entry})
    try:
        assert gx.domain_view(array).shape == (2, 2)
    finally:
        xarray.DataArray.__gt_data_interface__ = property(gx.data_interface)


# DataArrays in gridbuf's functions, storages in xarray's


def test_selecting_transposing_and_copying_keep_the_storage_with_its_halo() -> None:
    whole = field()
    assert whole.isel(I=slice(1, None)).data.halo[0] == (0, 2)
    assert whole.sel(I=2.0).data.dims == ("J", "K")
    turned = whole.transpose("K", "J", "I")
    assert turned.data.dims == ("K", "J", "I") and turned.data.halo == HALO[::-1]
    turned[0, 0, 0] = 8.0
    assert whole.data[0, 0, 0] == 8.0
    copied = whole.copy()
    copied[0, 0, 0] = 1.0
    assert isinstance(copied.data, gs.CPUStorage) and whole.data[0, 0, 0] == 8.0
    again = pickle.loads(pickle.dumps(whole))
    assert again.data.halo == HALO and again.identical(whole)


def test_arithmetic_keeps_labels_and_gives_a_storage() -> None:
    whole = field()
    for result in (whole + 1.0, np.sqrt(whole), whole * whole, whole + whole.as_numpy()):
        assert isinstance(result.data, gs.CPUStorage) and result.data.halo == HALO
        assert result.coords["I"].values.tolist() == COORDS["I"].tolist()
    column = xarray.DataArray(np.arange(3.0), dims="K")
    np.testing.assert_array_equal((whole + column).values, numbers() + np.arange(3.0))
    turned = xarray.DataArray(numbers((3, 6)), dims=("K", "J"))
    wanted = numbers() + turned.values.T
    np.testing.assert_array_equal((whole + turned).values, wanted)
    np.testing.assert_array_equal((turned + whole).transpose("I", "J", "K").values, wanted)
    memory = whole.data
    whole += 1.0
    assert whole.data is memory and memory[0, 0, 0] == 1.0


def test_as_numpy_is_the_same_memory() -> None:
    whole = field()
    host = whole.as_numpy()
    assert np.shares_memory(host.data, whole.data.to_numpy())
    same_labels(host, whole)
    np.testing.assert_array_equal(host.mean("I").values, numbers().mean(0))


FUNCTIONS: dict[str, Any] = {
    "all": lambda d: (d > 3).all(),
    "any": lambda d: (d > 3).any("K"),
    "argmax": lambda d: d.argmax("K"),
    "broadcast_like": lambda d: d.isel(I=0).broadcast_like(d),
    "clip": lambda d: d.clip(2, 5),
    "coarsen": lambda d: d.coarsen(K=3).mean(),
    "concat": lambda d: xarray.concat([d, d], "I"),
    "concat along a new dimension": lambda d: xarray.concat([d, d], "time"),
    "corr": lambda d: xarray.corr(d, d * 2 + 1, dim="K"),
    "count": lambda d: d.count("I"),
    "cumsum": lambda d: d.cumsum("K"),
    "diff": lambda d: d.diff("K"),
    "differentiate": lambda d: d.differentiate("I"),
    "dot": lambda d: xarray.dot(d, d, dim="K"),
    "expand_dims": lambda d: d.expand_dims("time"),
    "fillna": lambda d: d.where(d > 3).fillna(1.0),
    "fillna by a field": lambda d: d.where(d > 3).fillna(d * 2),
    "idxmax": lambda d: d.idxmax("I"),
    "interp": lambda d: d.interp(I=[0.5, 1.5]),
    "isel": lambda d: d.isel(I=0, J=slice(1, 3)),
    "isel by lists": lambda d: d.isel(I=[0, 1], J=[0, 2]),
    "isel of points": lambda d: d.isel(
        I=xarray.DataArray([0, 1], dims="p"), J=xarray.DataArray([0, 2], dims="p")
    ),
    "isin": lambda d: d.isin([1, 2]),
    "max": lambda d: d.max(["I", "K"]),
    "mean": lambda d: d.mean(),
    "mean of a dimension": lambda d: d.mean("I"),
    "median": lambda d: d.median("I"),
    "min": lambda d: d.min(),
    "pad": lambda d: d.pad(I=1),
    "pad by the edge": lambda d: d.pad(I=(1, 2), mode="edge"),
    "quantile": lambda d: d.quantile([0.3, 0.6], "K"),
    "roll": lambda d: d.roll(K=2, roll_coords=True),
    "rolling": lambda d: d.rolling(K=2).mean(),
    "round": lambda d: (d / 3).round(2),
    "sel": lambda d: d.sel(I=d.I[0]),
    "sel nearest": lambda d: d.sel(I=0.7, method="nearest"),
    "shift": lambda d: d.shift(I=1),
    "shift filled": lambda d: d.shift(J=-1, fill_value=0.0),
    "stack": lambda d: d.stack(z=("I", "J")),
    "std": lambda d: d.std("K"),
    "sum": lambda d: d.sum("J"),
    "var": lambda d: d.var(),
    "weighted": lambda d: d.weighted(d.isel(I=0, J=0)).mean("K"),
    "where": lambda d: d.where(d > 3),
    "where with a number": lambda d: d.where(d > 3, 0.0),
    "xarray.where": lambda d: xarray.where(d > 3, d, -d),
}


@pytest.mark.parametrize("kind", [None, "gpu"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_a_data_array_are_those_over_an_ndarray(
    device: None, name: str, kind: Any
) -> None:
    stored = gs.storage(field().data, device=kind)
    whole = gx.to_data_array(stored, like=field())
    if name == "interp":
        pytest.importorskip("scipy")
    found, expected = FUNCTIONS[name](whole), FUNCTIONS[name](whole.as_numpy())
    xarray.testing.assert_allclose(found.as_numpy(), expected)


def test_a_data_array_over_a_storage_is_plotted() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    figure = importlib.import_module("matplotlib.figure").Figure()
    axes = figure.subplots(2, 2).ravel()
    whole = field()
    mesh = whole.isel(K=0).plot(ax=axes[0])
    np.testing.assert_array_equal(
        np.sort(mesh.get_array().ravel()), np.sort(numbers()[..., 0].ravel())
    )
    (line,) = whole.isel(I=0, J=0).plot(ax=axes[1])
    np.testing.assert_array_equal(line.get_ydata(), numbers()[0, 0])
    whole.plot.hist(ax=axes[2])
    whole.isel(K=0).plot.contourf(ax=axes[3])


@pytest.mark.parametrize("kind", [None, "gpu"])
def test_arithmetic_of_storages_with_different_dimensions_is_xarrays(
    device: None, kind: Any
) -> None:
    """xarray puts in axes that only it can name, and counts on NumPy's way to pair them: by place."""
    arrays = [
        gx.to_data_array(gs.storage(numbers(shape), dims=dims, device=kind))
        for shape, dims in [
            ((2, 3, 4), "IJK"),
            ((4,), "K"),
            ((3, 2), "JI"),
            ((2, 4), "IK"),
            ((), ""),
        ]
    ]
    for first, second in itertools.product(arrays, arrays):
        expected = first.as_numpy() + second.as_numpy()
        total = first + second
        assert isinstance(total.data, type(arrays[0].data)) and total.data.dims == total.dims
        xarray.testing.assert_identical(total.as_numpy(), expected)
    whole, column, *_ = arrays
    expected = whole.as_numpy() * column.as_numpy()
    whole *= column
    xarray.testing.assert_identical(whole.as_numpy(), expected)
    whole[...] = column
    xarray.testing.assert_identical(
        whole.as_numpy(), xarray.zeros_like(expected) + column.as_numpy()
    )
    labelled = field() + gx.to_data_array(gs.ones((3,), dims="K"))
    same_labels(labelled, field().rename(None))
    assert labelled.data.halo == field().data.halo


# Each with missing values in the whole field, which numbers of the others replace.
TOGETHER: dict[str, Any] = {
    "where": lambda whole, other: whole.where(other > 2.0),
    "where otherwise": lambda whole, other: whole.where(other > 2.0, -1.0),
    "where of the other": lambda whole, other: other.where(whole > 2.0),
    "xarray.where": lambda whole, other: xarray.where(other > 2.0, whole, other),
    "clip": lambda whole, other: whole.clip(min=other, max=other + 5.0),
    "fillna": lambda whole, other: whole.fillna(other),
    "twice": lambda whole, other: whole + 2.0 * other - (other - 1.0),
    "mean": lambda whole, other: whole * (other - other.mean()),
}


@pytest.mark.parametrize("use", TOGETHER)
@pytest.mark.parametrize("kind", [None, "gpu"])
def test_data_arrays_that_lack_dimensions_join_as_in_xarray(
    device: None, kind: Any, use: str
) -> None:
    start = numbers((2, 3, 4))
    start[1, 1, :2] = np.nan
    whole = gx.to_data_array(gs.storage(start, device=kind))
    for dims in ("I", "J", "K", "IJ", "JI", "JK", "KI", "KJI", ""):
        shape = tuple({"I": 2, "J": 3, "K": 4}[name] for name in dims)
        other = gx.to_data_array(gs.storage(numbers(shape), dims=dims, device=kind))
        found = TOGETHER[use](whole, other)
        xarray.testing.assert_identical(
            found.as_numpy(), TOGETHER[use](whole.as_numpy(), other.as_numpy())
        )
        assert isinstance(found.data, type(whole.data)), dims


@pytest.mark.parametrize("extent", [1, 2])
def test_variables_of_one_extent_become_one_array(extent: int) -> None:
    """xarray expands the variables that lack a dimension, also one of one element."""
    data = xarray.Dataset(
        {
            "t": gx.to_data_array(gs.storage(numbers((2, extent)), dims=("lev", "time"))),
            "ps": gx.to_data_array(gs.storage(numbers((extent,)), dims=("time",))),
        }
    )
    plain = data.map(lambda array: array.as_numpy())
    xarray.testing.assert_identical(data.to_dataarray().as_numpy(), plain.to_dataarray())
    for dim in ("time", "lev"):
        together = xarray.concat([data, data], dim)
        expected = xarray.concat([plain, plain], dim)
        xarray.testing.assert_identical(together.map(lambda array: array.as_numpy()), expected)


@pytest.mark.parametrize("name", ["idxmax", "idxmin"])
def test_the_coordinate_of_an_extreme(name: str) -> None:
    whole = field()
    for dim in ("I", "K"):
        whole.coords[dim] = np.arange(float(whole.sizes[dim]))
        xarray.testing.assert_identical(
            getattr(whole, name)(dim).as_numpy(), getattr(whole.as_numpy(), name)(dim)
        )


def test_a_data_array_in_the_functions_of_gridbuf() -> None:
    whole = field()
    turned = xarray.DataArray(np.zeros(SHAPE[::-1]), dims=("K", "J", "I"))
    gridbuf.copyto(turned.transpose("I", "J", "K"), whole)
    np.testing.assert_array_equal(turned.values.T, numbers())
    storage = gs.zeros_like(whole)
    storage[...] = turned
    np.testing.assert_array_equal(storage.to_numpy(), numbers())
    assert gridbuf.get_dims(turned) == ("K", "J", "I")
    assert gs.as_storage(turned).dims == ("K", "J", "I")
    np.add(storage, turned, out=storage)
    np.testing.assert_array_equal(storage.to_numpy(), 2 * numbers())
    assert xarray.apply_ufunc(np.negative, whole).coords["I"].equals(whole.coords["I"])


@pytest.mark.filterwarnings("ignore::gridbuf.SlowFieldWarning")
def test_stencils_take_data_arrays_by_their_names_and_leave_the_labels(device: None) -> None:
    seen = {}

    def add(
        a: gridbuf.Field[np.float64, gridbuf.IJK],
        b: gridbuf.Field[np.float64, gridbuf.IJ],
        out: gridbuf.Field[np.float64, gridbuf.IJK],
        *,
        origin: dict[str, tuple[int, ...]],
        domain: tuple[int, ...],
    ) -> None:
        seen.update(origin=origin, domain=domain, shape=a.shape)
        cut = {n: tuple(slice(o, o + d) for o, d in zip(at, domain)) for n, at in origin.items()}
        out[cut["out"]] = a[cut["a"]] + b[cut["b"]][..., None]

    whole = field()
    levels_first = xarray.DataArray(numbers()[1:3, 1:5].T.copy(), dims=("K", "J", "I"))
    plane = xarray.DataArray(np.arange(24.0).reshape(4, 6), dims=("J", "I"))
    out = gx.zeros_like(whole)
    gridbuf.stencil(add, writes="out")(levels_first, plane, out)
    assert seen["shape"] == (2, 4, 3) and seen["domain"] == (2, 4, 3)
    assert seen["origin"] == {"a": (0, 0, 0), "b": (0, 0), "out": (1, 1, 0)}
    expected = levels_first.values.T + plane.values.T[:2, :, None]
    np.testing.assert_array_equal(gx.domain_view(out).values, expected)
    assert not out.values[0].any()
    same_labels(out, whole)

    on_device = gx.storage(levels_first, device="gpu", managed="gt4py")
    there = gx.zeros_like(whole, device="gpu", managed="gt4py")
    with pytest.warns(gridbuf.ExpensiveCopyWarning):
        gridbuf.stencil(add, backend="gt:gpu", writes="out")(on_device, plane, there)
    assert there.data.sync_state.state == gs.SyncState.SYNC_DEVICE_DIRTY
    np.testing.assert_array_equal(gx.domain_view(there).as_numpy().values, expected)

    with pytest.raises(ValueError, match="'a'"):
        gridbuf.stencil(add, writes="out")(levels_first.rename(K="lev"), plane, out)
    with pytest.raises(TypeError, match="'b'.*float32"):
        gridbuf.stencil(add, writes="out")(levels_first, plane.astype("float32"), out)


@pytest.mark.parametrize("kind", [None, "gpu"])
def test_a_data_array_is_assigned_by_the_names_of_its_dimensions(device: None, kind: Any) -> None:
    storage = gs.zeros((3, 3, 3), device=kind)
    values = numbers((3, 3, 3))
    storage[...] = xarray.DataArray(values, dims=("K", "J", "I"))
    np.testing.assert_array_equal(storage.to_numpy(), values.T)
    storage[1] = xarray.DataArray(values[0], dims=("K", "J"))
    np.testing.assert_array_equal(storage.to_numpy()[1], values[0].T)
    storage[...] = xarray.DataArray([1.0, 2.0, 3.0], dims="J")
    assert (storage.to_numpy() == np.array([1.0, 2.0, 3.0])[:, None]).all()
    storage[...] = xarray.DataArray(numbers((3, 3)).astype("float32"), dims=("K", "I"))
    np.testing.assert_array_equal(storage.to_numpy()[:, 2], numbers((3, 3)).T)
    for wrong, message in [
        (xarray.DataArray([1.0, 2.0], dims="J"), "J"),
        (xarray.DataArray([1.0, 2.0, 3.0], dims="lat"), "lat"),
        (xarray.DataArray([1.0, 2.0, 3.0], dims="0"), "0"),
    ]:
        with pytest.raises(ValueError, match=message):
            storage[...] = wrong
    np.testing.assert_array_equal(storage.to_numpy()[:, 2], numbers((3, 3)).T)


def test_other_names_are_assigned_without_them() -> None:
    storage = gs.zeros((2, 3))
    with pytest.raises(ValueError, match='"lat", but must be one of'):
        storage[...] = geographic()
    storage[...] = geographic().data
    np.testing.assert_array_equal(storage.to_numpy(), numbers((2, 3)))
    filled = gs.full_like(storage, geographic())  # A fill value is broadcast as NumPy's.
    np.testing.assert_array_equal(filled.to_numpy(), numbers((2, 3)))


def test_data_without_an_interface_is_a_type_error_that_says_so() -> None:
    pandas = pytest.importorskip("pandas")  # xarray needs it.
    array = xarray.DataArray(pandas.array([1, None, 3], dtype="Int64"), dims="I")
    with pytest.raises((TypeError, BufferError)):
        gridbuf.as_buffer(array)
    with pytest.raises((TypeError, BufferError)):
        gx.as_storage(array)


def test_a_data_array_becomes_a_storage_with_its_dims() -> None:
    assert gs.as_storage(xarray.DataArray(np.zeros((2, 3)), dims=("K", "I"))).dims == ("K", "I")


def test_a_data_array_in_arithmetic_is_treated_by_its_data_interface() -> None:
    values = np.arange(6.0).reshape(3, 2)
    array = xarray.DataArray(values, dims=("J", "I"))
    a = gs.storage(numbers((2, 3)))
    result = np.add(a, array)
    assert isinstance(result, gs.CPUStorage)
    np.testing.assert_array_equal(np.asarray(result), numbers((2, 3)) + values.T)
    np.multiply(a, 2, out=a)
    assert np.subtract(a, array, out=a) is a


TYPES = ["?", "u1", "i4", "f4", "f8", "c8", "M8[s]", "m8[ms]"]
MISSING: dict[str, Callable[[Any], Any]] = {
    "shift": lambda d: d.shift(I=1),
    "shift back": lambda d: d.shift(I=-1, J=1),
    "shift with a value": lambda d: d.shift(I=1, fill_value=d.values.flat[0]),
    "rolling": lambda d: d.rolling(J=2).construct("w"),
    "rolling in the middle": lambda d: d.rolling(J=3, center=True).construct("w"),
    "rolling of two": lambda d: d.rolling(I=2, J=2).construct(I="a", J="b"),
    "rolling with a value": lambda d: d.rolling(J=2).construct("w", fill_value=d.values.flat[0]),
    "roll": lambda d: d.roll(I=1),
    "pad": lambda d: d.pad(I=1),
    "pad with the edge": lambda d: d.pad(I=1, mode="edge"),
    "reindex": lambda d: d.assign_coords(I=[0, 1]).reindex(I=[0, 1, 2]),
    "where": lambda d: d.where(d == d.values.flat[0]),
    "isnull": lambda d: d.isnull(),
    "unstack": lambda d: d.stack(z=("I", "J")).isel(z=[0, 1, 5]).unstack("z"),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", MISSING)
def test_missing_values_of_every_type_are_those_over_an_ndarray(function: str, dtype: str) -> None:
    """Booleans with missing values are Python objects in xarray."""
    array = numbers((2, 3)).astype(dtype)
    plain = xarray.DataArray(array, dims=("I", "J"), name="t")
    found = MISSING[function](gx.to_data_array(gs.storage(array), name="t"))
    xarray.testing.assert_identical(found.as_numpy(), MISSING[function](plain))


def test_xarray_pairs_by_its_labels_and_not_by_the_storages_ranges() -> None:
    field = gs.storage(np.arange(6.0), lower=(3,), dims=("ranged",))
    data = gx.to_data_array(field)
    data[0] = 7.0
    assert float(field[0]) == 7.0  # the same memory
    np.testing.assert_array_equal((data[1:] + data[:-1]).to_numpy(), [8, 3, 5, 7, 9])


def test_a_declared_half_is_refused_beside_its_dimension() -> None:
    """xarray pairs by name alone, so that the sum of whole and half levels would have both dimensions."""
    gridbuf.declare_dims(xarray_half=gridbuf.half("xarray_level"))
    whole = gx.to_data_array(gs.ones((4,), dims=("xarray_level",)))
    for name in ("xarray_half", gridbuf.half("xarray_level")):
        half = gx.to_data_array(gs.ones((4,), dims=(name,)))
        for call in (lambda half=half: whole + half, lambda half=half: half * whole):
            with pytest.raises(ValueError, match="staggered half"):
                call()
