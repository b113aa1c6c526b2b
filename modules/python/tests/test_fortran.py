"""Memory that Fortran allocated, in Python and GT4Py; gridbuf's memory in Fortran: examples/fortran, built and run."""

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/fortran"
if not EXAMPLE.exists():  # Among Bazel's runfiles, where this file is a link.
    EXAMPLE = Path(__file__).parents[3] / "examples/fortran"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's folder as a user has it, with the library made."""
    folder = tmp_path_factory.mktemp("fortran")
    for name in ("diffusion.f90", "wrap.py"):
        shutil.copy(EXAMPLE / name, folder)
    command = "gfortran -O2 -Wall -Wextra -Werror -shared -fPIC -o libdiffusion.so diffusion.f90"
    assert command.replace("-Wall -Wextra -Werror ", "") in (folder / "wrap.py").read_text()
    # Fortran's runtime libraries are where the compiler is, and that is on Debian's path.
    environ = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/bin:/bin"}
    done = subprocess.run(
        command.split(), cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wrap(built: Path) -> ModuleType:
    """The example as a module; importing it runs it."""
    sys.path.insert(0, str(built))
    try:
        import wrap
    finally:
        sys.path.remove(str(built))
    return wrap


@pytest.fixture
def model(wrap: ModuleType) -> Any:
    return wrap.Model(6, 4, 3)


def test_the_example_runs(built: Path) -> None:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "wrap.py"],
        cwd=built,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_of_fortran_is_wrapped_where_it_is(wrap: ModuleType, model: Any) -> None:
    field = model.temperature
    assert field.shape == (8, 6, 3) and field.strides == (8, 64, 384)
    assert field.halo == ((1, 1), (1, 1), (0, 0)) and field.__gt_origin__ == (1, 1, 0)
    for i, j, k in [(1, 1, 1), (6, 4, 3), (0, 5, 2)]:
        assert field[i, j, k - 1] == 100 * k + 10 * j + i
    again = model.temperature
    again[1, 1, 0] += 7.0
    assert field[1, 1, 0] == 118.0
    assert wrap.fortran.model_total() == field.domain_view.to_numpy().sum()


def test_fortrans_memory_lives_while_a_view_of_it_does(wrap: ModuleType) -> None:
    model = wrap.Model(6, 4, 3)
    row = model.temperature[2].T
    array = np.asarray(row)
    del model, row
    gc.collect()
    assert wrap.fortran.model_is_running() and array[0, 1] == 112.0
    del array
    gc.collect()
    assert not wrap.fortran.model_is_running()


def test_a_second_model_is_an_error_and_no_end(wrap: ModuleType, model: Any) -> None:
    with pytest.raises(RuntimeError, match="runs already"):
        wrap.Model(6, 4, 3)
    assert wrap.fortran.model_is_running() and model.temperature[1, 1, 0] == 111.0


def test_a_layout_that_the_memory_has_not_is_an_error(model: Any) -> None:
    memory = gridbuf.as_buffer(model.temperature)
    with pytest.raises(ValueError, match=r"layout is wanted as \(0, 1, 2\).*has \(2, 1, 0\)"):
        gs.as_storage(memory, backend="gt:cpu_kfirst")
    assert gs.as_storage(memory, layout=(2, 1, 0)).layout == (2, 1, 0)


def test_a_stencil_runs_on_it_and_says_that_its_rows_are_not_aligned(
    wrap: ModuleType, model: Any
) -> None:
    field = model.temperature
    before = field.to_numpy().copy()
    wrap.cool(field, 2.5)
    expected = before.copy()
    expected[1:-1, 1:-1] -= 2.5
    np.testing.assert_array_equal(field.to_numpy(), expected)
    assert wrap.fortran.model_total() == expected[1:-1, 1:-1].sum()
    fast = gridbuf.stencil(wrap.cool.__wrapped__, backend="gt:cpu_ifirst", writes="field")
    with pytest.warns(
        gridbuf.SlowFieldWarning, match="field 'field': .* must be a multiple of 64 bytes"
    ):
        fast(field, -2.5)
    np.testing.assert_array_equal(field.to_numpy(), before)


@pytest.mark.parametrize(
    "make",
    [
        lambda shape: gs.zeros(shape, backend="gt:cpu_ifirst", halo=(1, 1, 0)),
        lambda shape: gs.zeros(shape, backend="gt:cpu_kfirst"),
        lambda shape: gs.zeros(shape, layout=(1, 2, 0), alignment_size=48),
        lambda shape: gs.zeros(tuple(2 * n for n in shape))[::2, 1::2, ::-2],
        lambda shape: gs.zeros(shape[::-1], dims="KJI").T,
    ],
    ids=["ifirst", "kfirst", "padded", "slices", "transposed"],
)
def test_fortran_computes_in_memory_of_any_layout(
    wrap: ModuleType, model: Any, make: Callable[..., Any]
) -> None:
    start = model.temperature.to_numpy().copy()
    start[3, 2] = 40.0
    field, out = make(start.shape), make(start.shape)
    field[...] = start
    wrap.fortran.diffuse(wrap.exported(field), wrap.exported(out), 0.125)
    expected = np.zeros_like(start)
    inner = start[1:-1, 1:-1]
    around = start[:-2, 1:-1] + start[2:, 1:-1] + start[1:-1, :-2] + start[1:-1, 2:]
    expected[1:-1, 1:-1] = inner + 0.125 * (around - 4 * inner)
    np.testing.assert_array_equal(out.to_numpy(), expected)
    np.testing.assert_array_equal(field.to_numpy(), start)


# The backend "numpy" likes K contiguous; the result is still right.
@pytest.mark.filterwarnings("ignore:The layout of the field")
def test_gt4py_runs_on_fortrans_memory(
    wrap: ModuleType, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt4py", reason="GT4Py is not installed: ./bazelw --peers")
    from gt4py.cartesian import config, gtscript
    from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval

    monkeypatch.setitem(config.cache_settings, "root_path", str(tmp_path))

    @gtscript.stencil(backend="numpy")
    def diffuse(field: Field[float], out: Field[float], rate: float):
        with computation(PARALLEL), interval(...):
            out = field + rate * (  # noqa: F841
                field[-1, 0, 0] + field[1, 0, 0] + field[0, -1, 0] + field[0, 1, 0] - 4.0 * field
            )

    field = model.temperature
    out = gs.zeros_like(field)
    assert out.layout == (2, 1, 0) and out.halo == field.halo
    diffuse(field, out, 0.125)
    by_fortran = gs.zeros_like(field)
    wrap.fortran.diffuse(wrap.exported(field), wrap.exported(by_fortran), 0.125)
    np.testing.assert_allclose(out.to_numpy(), by_fortran.to_numpy(), rtol=1e-14)
    assert out.to_numpy()[1:-1, 1:-1].all() and not out.to_numpy()[0].any()
