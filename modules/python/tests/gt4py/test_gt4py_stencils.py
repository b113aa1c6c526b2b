"""Plain arrays, Buffers and storages go unchanged into compiled stencils of the released GT4Py: values, origins, no warnings.

One stencil has all that matters: offsets that differ on every side, fields of three, two and one dimensions, and a data dimension. It is
compiled once for each backend.
"""

# No `from __future__ import annotations`: GT4Py evaluates a stencil's annotations.
import importlib.util
import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gridbuf
import gridbuf.storage
import gridbuf.testing
import numpy as np
import numpy.typing as npt
import pytest

if importlib.util.find_spec("gt4py") is None:
    pytest.skip(
        "gt4py is not installed; install the peers with `./bazelw --peers`", allow_module_level=True
    )

# Read when GT4Py is imported: where it keeps what it compiles, and how. What these tests ask of stencils is not speed: no
# optimisation halves the compiler's time. The headers of the DaCe that is installed need C++20, and GT4Py asks for C++17: the last
# option counts.
CACHE = os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp()
os.environ["GT_CACHE_ROOT"] = CACHE
os.environ.setdefault("GT4PY_COMPILE_OPT_LEVEL", "0")
os.environ.setdefault("GT4PY_EXTRA_COMPILE_ARGS", "-std=c++20")

from gt4py.cartesian import gtscript  # noqa: E402
from gt4py.cartesian.gtscript import IJ, IJK, PARALLEL, Field, K, computation, interval  # noqa: E402

BACKENDS = ("numpy", "gt:cpu_kfirst", "gt:cpu_ifirst", "dace:cpu")

# Lower and upper halos, all different, and the domain that they surround.
HALO = {"I": (2, 1), "J": (1, 3), "K": (1, 0), "0": (0, 0)}
DOMAIN = {"I": 5, "J": 4, "K": 6, "0": 2}
ORIGIN = {name: lower for name, (lower, _) in HALO.items()}
FIELDS = {"source": "IJK", "surface": "IJ", "profile": "K", "pair": "IJK0", "target": "IJK"}

Array = npt.NDArray[np.float64]
Make = Callable[[str, str, Array], Any]


def definition(
    source: Field[np.float64],
    surface: Field[IJ, np.float64],
    profile: Field[K, np.float64],
    pair: Field[IJK, (np.float64, (2,))],  # type: ignore[valid-type]
    target: Field[np.float64],
) -> None:
    with computation(PARALLEL), interval(...):
        target = (  # noqa: F841
            source[1, 0, 0]
            - source[-2, 0, 0]
            + 10.0 * source[0, 3, 0]
            - 20.0 * source[0, -1, -1]
            + surface
            + 100.0 * profile
            + pair[0, 0, 0][0]
            - 7.0 * pair[0, 0, 0][1]
        )


def expected(fields: dict[str, Array]) -> Array:
    """What the stencil computes, by NumPy, from arrays in the order of the annotations."""
    i, j, k = (slice(ORIGIN[name], ORIGIN[name] + DOMAIN[name]) for name in "IJK")

    def moved(by: slice, offset: int) -> slice:
        return slice(by.start + offset, by.stop + offset)

    source, pair = fields["source"], fields["pair"]
    result: Array = (
        source[moved(i, 1), j, k]
        - source[moved(i, -2), j, k]
        + 10.0 * source[i, moved(j, 3), k]
        - 20.0 * source[i, moved(j, -1), moved(k, -1)]
        + fields["surface"][i, j][:, :, None]
        + 100.0 * fields["profile"][k]
        + pair[i, j, k, 0]
        - 7.0 * pair[i, j, k, 1]
    )
    return result


def extents_of(dims: str, domain: dict[str, int] | None = None) -> tuple[int, ...]:
    return tuple(sum(HALO[name]) + (domain or DOMAIN)[name] for name in dims)


@pytest.fixture(scope="module")
def values() -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {name: rng.random(extents_of(dims)) for name, dims in FIELDS.items()}


@pytest.fixture(scope="module", params=BACKENDS)
def stencil(request: pytest.FixtureRequest) -> Any:
    return gtscript.stencil(backend=request.param, definition=definition, name="flow")


@pytest.fixture(autouse=True)
def fresh_checks(request: pytest.FixtureRequest) -> Iterator[None]:
    """GT4Py looks at layouts once for each combination of shapes and origins: every test is the first. Warnings are errors."""
    if "stencil" in request.fixturenames:
        request.getfixturevalue("stencil").clean_call_args_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # What DaCe says about its graphs does not concern a field.
        warnings.filterwarnings("ignore", module=r"dace\.")
        yield


def plain(backend: str, dims: str, data: Array) -> Any:
    index = tuple(ORIGIN[name] for name in dims)
    return gridbuf.from_array(data, backend=backend, aligned_index=index, dims=tuple(dims))


def storage(backend: str, dims: str, data: Array) -> Any:
    halo = tuple(HALO[name] for name in dims)
    return gridbuf.storage.storage(data, backend=backend, dims=tuple(dims), halo=halo)


def buffer(backend: str, dims: str, data: Array) -> Any:
    index = tuple(ORIGIN[name] for name in dims)
    made = gridbuf.allocate(data.shape, backend=backend, dims=tuple(dims), aligned_index=index)
    gridbuf.copyto(made, data)
    return made


def fields_of(
    make: Make, backend: str, values: dict[str, Array], order: dict[str, str] = FIELDS
) -> dict[str, Any]:
    """The fields, each with its dimensions in a different order."""
    return {
        name: make(
            backend,
            order[name],
            values[name].transpose([dims.index(axis) for axis in order[name]]),
        )
        for name, dims in FIELDS.items()
    }


def result_of(field: Any, dims: str = "IJK") -> Array:
    """The whole target, in the order of the annotation."""
    return np.asarray(field).transpose([dims.index(axis) for axis in "IJK"])


def check(target: Array, values: dict[str, Array]) -> None:
    """The domain has the computed values, bit for bit or nearly so, and nothing around it was touched."""
    inner = tuple(slice(ORIGIN[name], ORIGIN[name] + DOMAIN[name]) for name in "IJK")
    wanted = values["target"].copy()
    wanted[inner] = expected(values)
    np.testing.assert_allclose(target[inner], wanted[inner], rtol=1e-13, atol=1e-12)
    outside = np.ones(target.shape, bool)
    outside[inner] = False
    assert (target[outside] == wanted[outside]).all()


def test_plain_arrays_with_the_call_s_origin(stencil: Any, values: dict[str, Array]) -> None:
    fields = fields_of(plain, stencil.backend, values)
    assert all(isinstance(field, np.ndarray) for field in fields.values())
    origin = {name: tuple(ORIGIN[axis] for axis in dims) for name, dims in FIELDS.items()}
    stencil(**fields, origin=origin, domain=tuple(DOMAIN[axis] for axis in "IJK"))
    check(result_of(fields["target"]), values)


@pytest.mark.parametrize("make", [storage, buffer], ids=["storage", "buffer"])
def test_the_origin_is_the_object_s(stencil: Any, make: Make, values: dict[str, Array]) -> None:
    """Nothing is said at the call: halos on two sides, all different, decide."""
    fields = fields_of(make, stencil.backend, values)
    stencil(**fields)
    check(result_of(fields["target"]), values)


@pytest.mark.parametrize("order", ["IKJ", "JIK", "JKI", "KIJ", "KJI"])
@pytest.mark.parametrize("make", [storage, buffer], ids=["storage", "buffer"])
def test_dimensions_in_any_order_with_halos(
    stencil: Any, make: Make, order: str, values: dict[str, Array]
) -> None:
    """Permuted dimensions, an asymmetric halo and the object's own origin at once; the layout still suits the backend."""
    orders = {
        "source": order,
        "surface": "JI",
        "profile": "K",
        "pair": order[:1] + "0" + order[1:],
        "target": order[::-1],
    }
    fields = fields_of(make, stencil.backend, values, orders)
    assert fields["source"].__gt_dims__ == tuple(order)
    assert fields["source"].__gt_origin__ == tuple(ORIGIN[axis] for axis in "IJK")
    stencil(**fields)
    check(result_of(fields["target"], orders["target"]), values)


def test_aligned_where_the_computation_starts(stencil: Any, values: dict[str, Array]) -> None:
    """Every row of the domain begins at a multiple of the preset's alignment, and the stencil writes just there."""
    fields = fields_of(storage, stencil.backend, values)
    alignment_bytes = gridbuf.presets()[stencil.backend]["alignment_size"]
    for name in ("source", "target", "pair"):
        array = np.asarray(fields[name])
        contiguous = array.strides.index(array.itemsize)
        if contiguous == 3:
            continue  # no backend makes the data dimension contiguous; its index is 0
        others = [
            range(n) if d != contiguous else [ORIGIN["IJK"[d]]] for d, n in enumerate(array.shape)
        ]
        for index in itertools.product(*others):
            one = tuple(slice(entry, entry + 1) for entry in index)
            assert array[one].ctypes.data % alignment_bytes == 0
    stencil(**fields)
    check(result_of(fields["target"]), values)


@pytest.mark.parametrize("flat", ["I", "J", "IJ"])
def test_extents_of_one_lie_as_the_backend_wants(stencil: Any, flat: str) -> None:
    """GT4Py compares the strides of extents of 1, too: with the presets there is nothing to complain of."""

    def make(name: str, dims: str) -> Any:
        halo = tuple((0, 0) if axis in flat and name != "source" else HALO[axis] for axis in dims)
        extents = tuple(
            sum(pair) + (1 if axis in flat else DOMAIN[axis]) for axis, pair in zip(dims, halo)
        )
        return gridbuf.storage.ones(extents, backend=stencil.backend, dims=tuple(dims), halo=halo)

    fields = {name: make(name, dims) for name, dims in FIELDS.items()}
    stencil(**fields)
    assert (fields["target"].domain_view.to_numpy() == -10.0 + 101.0 - 6.0).all()


def test_views_of_storages(stencil: Any, values: dict[str, Array]) -> None:
    """A part of a storage is a field like any other; its halo and its origin follow."""
    fields = fields_of(storage, stencil.backend, values)
    larger = gridbuf.storage.zeros(
        tuple(extent + 6 for extent in extents_of("IJK")),
        backend=stencil.backend,
        halo=[(2 + HALO[axis][0], 4 + HALO[axis][1]) for axis in "IJK"],
    )
    part = larger[2:-4, 2:-4, 2:-4]
    part[...] = values["target"]
    assert part.__gt_origin__ == tuple(ORIGIN[axis] for axis in "IJK")
    stencil(**fields | {"target": part})
    check(result_of(part), values)
    outside = np.ones(larger.shape, bool)
    outside[2:-4, 2:-4, 2:-4] = False
    assert (larger.to_numpy()[outside] == 0.0).all()


def test_a_frozen_stencil(stencil: Any, values: dict[str, Array]) -> None:
    fields = fields_of(storage, stencil.backend, values)
    origin = {name: tuple(ORIGIN[axis] for axis in dims) for name, dims in FIELDS.items()}
    frozen = stencil.freeze(origin=origin, domain=tuple(DOMAIN[axis] for axis in "IJK"))
    frozen(**fields)
    check(result_of(fields["target"]), values)


def test_a_layout_for_another_backend_is_what_gt4py_warns_of(
    stencil: Any, values: dict[str, Array]
) -> None:
    """So that the absence of the warning elsewhere means something."""
    other = "gt:cpu_kfirst" if stencil.backend == "gt:cpu_ifirst" else "gt:cpu_ifirst"
    fields = fields_of(storage, stencil.backend, values)
    fields["source"] = storage(other, "IJK", values["source"])
    with pytest.warns(UserWarning, match="layout of the field 'source' is not recommended"):
        stencil(**fields)
    check(result_of(fields["target"]), values)


@pytest.mark.parametrize("device_defaults", [None, "gt:gpu"])
def test_a_storage_with_a_device_is_current_on_both_sides(
    stencil: Any, values: dict[str, Array], device_defaults: str | None
) -> None:
    """GT4Py's host stencils read what the device wrote, and the device sees what they wrote, without a word from the caller."""
    with gridbuf.testing.emulated_device():
        fields = fields_of(storage, stencil.backend, values)
        shared = {
            name: gridbuf.storage.storage(
                values[name],
                backend=stencil.backend,
                halo=[HALO[axis] for axis in "IJK"],
                device="gpu",
                device_defaults=device_defaults,
            )
            for name in ("source", "target")
        }
        shared["source"].host_to_device(force=True)
        shared["source"].set_device_modified()  # the device's are the newer ones
        stencil(**fields | shared)
        check(result_of(shared["target"]), values)
        shared["target"].host_to_device()
        doubled = shared["target"] + shared["target"]  # computed on the device
        check(result_of(doubled) / 2.0, values)


def test_called_by_gridbuf(stencil: Any, values: dict[str, Array]) -> None:
    """The same fields through `gridbuf.stencil`, which looks at every call: GT4Py remembers its verdict by shapes and origins."""
    orders = {"source": "JKI", "surface": "JI", "profile": "K", "pair": "J0KI", "target": "KIJ"}
    fields = fields_of(storage, stencil.backend, values, orders)
    called = gridbuf.stencil(stencil)
    called(**fields)
    check(result_of(fields["target"], orders["target"]), values)
    before = np.asarray(fields["target"]).copy()
    with pytest.raises(TypeError, match="'source'.*float32.*float64"):
        called(**fields | {"source": fields["source"].astype("f4")})
    assert (np.asarray(fields["target"]) == before).all()


def test_a_halo_wider_than_the_stencil_s_reach(stencil: Any) -> None:
    """GT4Py computes as far as its accesses stay inside the field; gridbuf leaves the upper halo out."""
    wide = {
        name: gridbuf.storage.ones(
            [DOMAIN[axis] + 8 for axis in dims],
            backend=stencil.backend,
            dims=tuple(dims),
            halo=[(0, 8) if axis == "0" else (4, 4) for axis in dims],
        )[(..., slice(0, 2)) if "0" in dims else ...]
        for name, dims in FIELDS.items()
    }
    by_gt4py, by_gridbuf = (gridbuf.storage.zeros_like(wide["target"]) for _ in range(2))
    stencil(**wide | {"target": by_gt4py})
    gridbuf.stencil(stencil)(**wide | {"target": by_gridbuf})
    points = [(np.asarray(field) != 0.0).sum(axis=(1, 2)) for field in (by_gt4py, by_gridbuf)]
    assert (points[0] > 0).sum() > (points[1] > 0).sum() == DOMAIN["I"]
    inner = np.asarray(by_gridbuf.domain_view)
    assert (inner == 85.0).all() and (np.asarray(by_gridbuf) != 0.0).sum() == inner.size


def test_where_gt4py_keeps_what_it_compiled(stencil: Any) -> None:
    """In the test's own folder, not next to the sources."""
    from gt4py.cartesian import config

    root = Path(config.cache_settings["root_path"])
    assert root == Path(CACHE)
    assert (root / config.cache_settings["dir_name"]).is_dir()
