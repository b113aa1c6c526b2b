"""The package as users meet it: names, documentation, plans, texts, configuration, types."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import gridbuf
import gridbuf.storage
import numpy as np
import pytest

PACKAGE = Path(gridbuf.__file__).parent


def environment() -> dict[str, str]:
    """The environment of a child that imports what this process imports."""
    path = ":".join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": path, "MYPYPATH": str(PACKAGE.parent)}


def test_every_public_name_is_documented() -> None:
    for name in gridbuf.__all__:
        value = getattr(gridbuf, name)
        assert name == "__version__" or inspect.getdoc(value), name
    for kind in (gridbuf.Buffer, gridbuf.LayoutPlan):
        for name in vars(kind):
            if not name.startswith("_"):
                assert inspect.getdoc(inspect.getattr_static(kind, name)), name


def test_signatures_can_be_read() -> None:
    for name in gridbuf.__all__:
        value = getattr(gridbuf, name)
        if inspect.isbuiltin(value):
            assert str(inspect.signature(value)).startswith("(")
    parameters = inspect.signature(gridbuf.full).parameters
    assert [*parameters][:3] == ["shape", "fill_value", "dtype"]
    assert parameters["backend"].kind is inspect.Parameter.KEYWORD_ONLY


def test_public_names_say_where_they_live() -> None:
    assert gridbuf.Buffer.__module__ == gridbuf.LayoutPlan.__module__ == "gridbuf"
    for name in ("DeviceUnavailableError", "GTNoSuchBufferError", "SyncConflictError"):
        assert getattr(gridbuf, name).__module__ == "gridbuf"
    for name in gridbuf.storage.__all__:
        if inspect.isbuiltin(function := getattr(gridbuf.storage, name)):
            shown = "as_storage" if name == "asstorage" else name  # an alias
            assert (function.__module__, function.__name__) == ("gridbuf.storage", shown)
            assert pickle.loads(pickle.dumps(function)) is function
            if name not in ("from_c", "to_c"):
                assert "defaults" in inspect.signature(function).parameters


def test_the_errors_have_the_bases_of_the_table() -> None:
    assert issubclass(gridbuf.DeviceUnavailableError, RuntimeError)
    assert issubclass(gridbuf.SyncConflictError, RuntimeError)
    assert issubclass(gridbuf.GTNoSuchBufferError, BufferError)


def test_importing_needs_neither_cuda_nor_cupy() -> None:
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('cupy', 'cuda', 'torch', 'ml_dtypes', 'xarray'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import gridbuf\n"
        "assert gridbuf.ones((2,)).sum() == 2\n"
        "assert not any(m.startswith(('cupy', 'torch', 'ml_dtypes')) for m in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment())


def run(code: str) -> None:
    """Runs the code in a fresh interpreter, which must end well."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


LAZY = ("gt4py", "mpi", "storage", "testing", "xarray")


def test_importing_the_package_is_enough_for_its_modules() -> None:
    run(
        "import gridbuf, inspect, sys\n"
        f"lazy = {LAZY}\n"
        "assert not {f'gridbuf.{name}' for name in lazy} & {*sys.modules}, 'imported too early'\n"
        "assert {*lazy} < {*dir(gridbuf)}\n"
        "assert gridbuf.storage.zeros((2,), dims='I').dims == ('I',)\n"
        "assert gridbuf.testing.is_emulated() is False\n"
        "assert gridbuf.mpi.HaloExchange and gridbuf.gt4py.cartesian.zeros\n"
        "assert gridbuf.storage is sys.modules['gridbuf.storage']\n"
        "assert not hasattr(gridbuf, 'storages')\n"
        "inspect.getmembers(gridbuf)\n"
    )


def test_a_module_that_lacks_its_library_says_what_to_install() -> None:
    run(
        "import sys\n"
        "sys.modules['xarray'] = None\n"
        "import gridbuf, inspect\n"
        "try:\n"
        "    gridbuf.xarray\n"
        "except AttributeError as error:\n"
        "    assert str(error) == 'gridbuf.xarray needs xarray: pip install xarray', error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
        "inspect.getmembers(gridbuf)\n"  # as help(gridbuf) does
    )


def test_the_text_of_a_buffer() -> None:
    buffer = gridbuf.allocate(
        (3, 4, 5), layout=(2, 0, 1), alignment_size=64, aligned_index=(1, 1, 1)
    )
    assert repr(buffer) == (
        "gridbuf.Buffer(shape=(3, 4, 5), dtype=float64, dims=('I', 'J', 'K'), layout=(2, 0, 1), "
        "padding=(5, 0, 0), alignment_size=64, aligned_index=(1, 1, 1), memory=host)"
    )
    assert repr(buffer[1].toreadonly()) == (
        "gridbuf.Buffer(shape=(4, 5), dtype=float64, dims=('J', 'K'), layout=(0, 1), "
        "strides=(320, 64), alignment_size=64, aligned_index=(1, 1), memory=host, readonly=True, view)"
    )
    record = gridbuf.allocate((), [("a", "i4"), ("b", "f8")])
    assert "dtype=dtype([('a', '<i4'), ('b', '<f8')])" in repr(record)


# ---- Plans. ----


def test_a_plan_holds_what_the_buffer_will_be() -> None:
    keywords = {
        "layout": (2, 0, 1),
        "alignment_size": 64,
        "aligned_index": (1, 2, 3),
        "dims": "KIJ",
    }
    plan = gridbuf.plan((3, 4, 5), "f4", **keywords)
    buffer = gridbuf.allocate((3, 4, 5), "f4", **keywords)
    assert buffer.plan == plan
    assert hash(buffer.plan) == hash(plan)
    assert repr(buffer.plan) == repr(plan)
    for name in ("shape", "ndim", "dims", "layout", "strides", "alignment_size", "aligned_index"):
        assert getattr(plan, name) == getattr(buffer, name)
    assert (plan.size, plan.nbytes, plan.itemsize) == (60, 240, 4)
    assert plan.padded_shape == (16, 4, 5)
    assert plan.total_bytes == 16 * 4 * 5 * 4
    assert plan.aligned_offset == 1 * 4 + 2 * 320 + 3 * 64
    assert plan.offset_rule() == "offset(i0, i1, i2) = 4*i0 + 320*i1 + 64*i2 bytes"


def test_plans_differ_in_everything_that_is_asked_for() -> None:
    base = gridbuf.plan((3, 4))
    others = [
        gridbuf.plan((3, 5)),
        gridbuf.plan((3, 4), "f4"),
        gridbuf.plan((3, 4), layout=(1, 0)),
        gridbuf.plan((3, 4), alignment_size=8),
        gridbuf.plan((3, 4), aligned_index=(0, 1)),
        gridbuf.plan((3, 4), dims="JI"),
    ]
    for other in others:
        assert base != other
    assert len({base, *others}) == 7
    assert base != "a plan"
    assert base.difference(base) == ""
    assert "layout" in base.difference(gridbuf.plan((3, 4), layout=(1, 0)))


def test_a_plan_is_drawn_within_bounds() -> None:
    drawing = gridbuf.plan((3, 4), layout=(1, 0), alignment_size=32, dims="KI").draw()
    assert "I=3" in drawing
    assert "padding" in drawing
    wide = gridbuf.plan((1000, 1000)).draw(max_columns=5, max_rows=3)
    assert len(wide.splitlines()) < 12
    for bad in ({"max_rows": 0}, {"max_columns": -1}):
        with pytest.raises(ValueError, match="max"):
            gridbuf.plan((3, 4)).draw(**bad)
    with pytest.raises(ValueError, match="max_rows"):
        gridbuf.plan((3, 4)).draw(max_rows=2**70)
    with pytest.raises(TypeError, match="max_rows"):
        gridbuf.plan((3, 4)).draw(max_rows=1.5)
    with pytest.raises(TypeError, match="LayoutPlan"):
        gridbuf.plan((3, 4)).difference("another")


def test_the_plan_of_a_view_is_that_of_its_allocation() -> None:
    buffer = gridbuf.allocate((3, 4), alignment_size=64)
    assert buffer[1:, ::2].plan == buffer.plan


# ---- Configuration and version. ----


def test_show_config_prints_what_bug_reports_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert gridbuf.show_config() is None
    printed = capsys.readouterr().out
    for part in (gridbuf.__version__, np.__version__, "transparent huge pages", "cupy", "compiler"):
        assert part in printed
    config = gridbuf.show_config("dict")
    assert config["versions"]["gridbuf"] == gridbuf.__version__
    with pytest.raises(ValueError, match="mode"):
        gridbuf.show_config("xml")


# ---- Types. ----

SAMPLE = """
from typing import Any, assert_type

import gridbuf
import numpy as np
import numpy.typing as npt

array = gridbuf.empty((3, 4), backend="gt:cpu_ifirst", dims="IJ", device=None)
assert_type(array, npt.NDArray[np.float64])
assert_type(gridbuf.zeros([3, 4], np.float32), npt.NDArray[np.float32])
assert_type(gridbuf.full((3,), 1, dtype="f4"), npt.NDArray[Any])
assert_type(gridbuf.zeros_like(array, alignment_size=64), npt.NDArray[np.float64])
assert_type(gridbuf.from_array([1, 2], np.int16), npt.NDArray[np.int16])
buffer = gridbuf.allocate((3, 4), layout=lambda dims: tuple(range(len(dims))))
assert_type(buffer, gridbuf.Buffer)
assert_type(np.asarray(buffer), npt.NDArray[Any])
memoryview(buffer)
np.from_dlpack(buffer)
buffer[1:, ..., None].transpose(0, 2, 1)
plan = buffer.plan
assert plan is not None
assert_type(plan.draw(max_rows=3), str)
assert_type(gridbuf.get_dims(array, "IJ"), tuple[str, ...] | None)
gridbuf.register_preset("mine", alignment_size=64, layout=(2, 0, 1))
assert_type(gridbuf.show_config("dict"), dict[str, dict[str, str]])
field = gridbuf.storage.zeros((3, 4), np.float32, halo=(1, (0, 2)), device="gpu", managed=None)
assert_type(field, gridbuf.storage.Storage)
assert_type(field.domain_view, gridbuf.storage.Storage)
field.halo = (1, 1)
level = gridbuf.Dim("level", "vertical")
assert_type(level.kind, str)
cells = gridbuf.storage.zeros((3, 4), dims=("Cell", level), layout=("level", "Cell"), halo={"Cell": (0, 1)})
cells.halo = {level: 1}
assert_type(cells.transpose("level", "Cell"), gridbuf.storage.Storage)
gridbuf.allocate((3, 4), layout=lambda dims: dims[::-1], aligned_index={"I": 1})[{"I": -1}]
field[0] = gridbuf.storage.as_storage(array, array, sync_state=gridbuf.storage.SyncState(1)) + 1
assert_type(gridbuf.mpi.Decomposition({"I": 4}), gridbuf.mpi.Decomposition)
assert_type(gridbuf.testing.is_emulated(), bool)
gridbuf.gt4py.cartesian.zeros((3, 4), np.float32, backend="numpy")
gridbuf.xarray.to_data_array(field)
"""
WRONG = """
import gridbuf

gridbuf.storages
gridbuf.empty((3, 4), halo=1)
gridbuf.empty("34")
gridbuf.zeros((3,), alignment_size="64")
gridbuf.allocate((3,)).shape = (4,)
gridbuf.allocate((3,), device="cpu")
gridbuf.storage.zeros((3,), backend=3)
gridbuf.storage.zeros((3,), managed="numa")
gridbuf.storage.zeros((3,), halo={"I": "1"})
gridbuf.storage.zeros((3,), dims=(1,))
"""


def mypy(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    sample = folder / "sample.py"
    sample.write_text(text, "utf-8")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--cache-dir",
            folder / "cache",
            sample,
        ],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=folder,
        check=False,
    )


def test_type_checkers_accept_right_uses_and_reject_wrong_ones(tmp_path: Path) -> None:
    accepted = mypy(tmp_path, SAMPLE)
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    rejected = mypy(tmp_path, WRONG)
    assert rejected.stdout.count("error:") == 10, rejected.stdout + rejected.stderr


def test_the_stubs_say_what_the_extension_has(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed.txt"
    allowed.write_text(
        "gridbuf._core.Buffer.__buffer__\n"  # a slot without a name before Python 3.12
        "gridbuf._core.Buffer.__iter__\n"  # iterates by index
        "gridbuf._core.StorageBase.__buffer__\n"  # as above
        # Classes of pybind11: their metaclass, its attribute, and __new__ behind its __init__.
        r"gridbuf\._core\.(DevicePointer|LayoutPlan|Parameters|SyncState|StencilRules|BoundStencil|FieldHooks|_Workspace)"
        r"(\.__init__|\.__pybind11_module_local.*)?"
        "\n"
        r"gridbuf\.(call|memory|storage|mpi|gt4py)(\.next)?\._\w+(\..*)?"
        "\n"  # no stubs: compared with itself, and with what lru_cache makes of it
        # These cannot be imported without xarray or GT4Py, which are optional.
        "gridbuf.xarray\ngridbuf.gt4py.(next|as_field)\n",
        "utf-8",
    )
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n[mypy-xarray.*]\nignore_missing_imports = True\n", "utf-8")
    command = [sys.executable, "-m", "mypy.stubtest", "gridbuf", "--allowlist", allowed]
    command += ["--mypy-config-file", config]
    done = subprocess.run(
        [*command, "--ignore-unused-allowlist"],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
    assert (PACKAGE / "_core.pyi").exists()
