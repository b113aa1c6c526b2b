"""Array types of other libraries, examples/own_array_type: taken by GT4Py and gridbuf, judged by the suite."""

import gc
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import gridbuf
import gridbuf.storage as gs
import gridbuf.testing
import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[3] / "examples/own_array_type"


def child(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments in a copy of the example, importing what this process imports."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry)
    environ = {**os.environ, "PYTHONPATH": path, "GT_CACHE_ROOT": str(folder), "HOME": str(folder)}
    environ.pop(
        "PYTHONSAFEPATH", None
    )  # Bazel 7 sets it: then a script does not find its neighbours.
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environ | {"PYTHONWARNINGS": "error::UserWarning:gt4py"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def fields() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fields", EXAMPLE / "fields.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def device() -> Iterator[None]:
    with gridbuf.testing.emulated_device():
        yield
        gridbuf.testing.synchronize()


@pytest.mark.parametrize("producer, least", [("Producer", 40), ("OnDevice", 65)])
def test_the_suite_finds_nothing(tmp_path: Path, producer: str, least: int) -> None:
    done = child(
        tmp_path, "-m", "gridbuf_conformance", "check", f"producer.py:{producer}", "--profile=smoke"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    judged = int(done.stdout.rpartition("conforms: ")[2].partition(" ")[0])
    assert judged >= least, done.stdout


def test_the_suite_finds_an_origin_in_the_order_of_memory(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    source = tmp_path / "fields.py"
    right = 'for name in ("I", "J", "K", *data_dims) if name in lower)'
    assert source.read_text().count(right) == 1
    source.write_text(source.read_text().replace(right, "for name in reversed(self.dims))"))
    command = [sys.executable, "-m", "gridbuf_conformance", "check", "producer.py:Producer"]
    path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry)
    done = subprocess.run(
        [*command, "--profile=smoke"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "GT-27" in done.stdout, done.stdout + done.stderr
    assert "Order the lower halos by name, not by position." in done.stdout


def test_gt4py_takes_it_without_a_warning_of_the_layout(tmp_path: Path) -> None:
    pytest.importorskip("gt4py", reason="GT4Py is not installed: ./bazelw --peers")
    done = child(tmp_path, "in_gt4py.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "layout" not in done.stderr


def test_stencils_of_gridbuf_take_it(tmp_path: Path) -> None:
    done = child(tmp_path, "in_gridbuf.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_gridbuf_acquires_it_for_as_long_as_it_looks(fields: ModuleType) -> None:
    halo = ((0, 0), (1, 1), (2, 1))
    field, other = (fields.ModelField((5, 8, 11), halo=halo) for _ in range(2))
    buffer = gridbuf.as_buffer(field)
    assert buffer.dims == ("K", "J", "I") and field.users == 1
    assert gridbuf.get_origin(field) == (2, 1, 0)
    with pytest.raises(RuntimeError, match="in use"):
        field.swap(other)
    del buffer
    gc.collect()
    field.swap(other)
    storage = gs.as_storage(field)
    assert storage.halo == halo and np.shares_memory(storage.to_numpy(), field.values)


def test_a_mirrored_one_is_brought_up_to_date_where_it_is_taken(
    fields: ModuleType, device: None
) -> None:
    field = fields.MirroredField((3, 4), dims="KI")
    field.values[...] = 2.0
    on_device = gs.zeros((4, 3), dims="IK", device="gpu", managed=None)
    on_device += 1.0
    result = on_device + field  # Computed on the device, by the names.
    assert isinstance(result, gs.GPUStorage) and field.newer is None
    np.add(on_device, 4.0, out=field)
    assert field.newer == "device" and field.values[0, 0] == 2.0
    assert np.asarray(field)[0, 0] == 5.0 and field.newer == "host"
    np.testing.assert_array_equal(
        gs.storage(result, device=None, managed=None).to_numpy(), np.full((4, 3), 3.0)
    )


@pytest.mark.filterwarnings("ignore::gridbuf.SlowFieldWarning")
def test_a_stencil_acquires_touches_and_releases_it_on_its_own_side(
    fields: ModuleType, device: None
) -> None:
    seen = []

    def add(
        a: gridbuf.Field[np.float64, gridbuf.IK],
        out: gridbuf.Field[np.float64, gridbuf.IK],
        *,
        fail: bool = False,
    ) -> None:
        seen.append((host_only.users, out.shape))
        if fail:
            raise RuntimeError("the kernel failed")
        out[...] = a + 1.0

    halo = ((0, 0), (1, 1))
    host_only = fields.ModelField((3, 6), dims="KI", halo=halo)
    mirrored = fields.MirroredField((3, 6), dims="KI", halo=halo)
    on_host = gridbuf.stencil(add, writes="out")
    on_host(host_only, mirrored)
    assert seen.pop() == (1, (6, 3)) and host_only.users == 0
    assert mirrored.newer == "host" and (mirrored.values == 1.0).all()
    with pytest.raises(RuntimeError, match="the kernel failed"):
        on_host(host_only, mirrored, fail=True)
    assert host_only.users == 0

    on_device = gridbuf.stencil(add, backend="gt:gpu", writes="out")
    other = fields.MirroredField((3, 6), dims="KI", halo=halo)
    on_device(mirrored, other)
    assert mirrored.newer is None and other.newer == "device"
    assert not other.values.any() and (np.asarray(other) == 2.0).all()
    with pytest.warns(gridbuf.ExpensiveCopyWarning):
        on_device(mirrored, host_only)  # It has no entry for the device: there and back.
    assert (host_only.values == 2.0).all() and host_only.users == 0
