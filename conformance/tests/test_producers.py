"""The built-in producers give what plans ask or decline with a reason; the registry has them."""

from __future__ import annotations

import importlib.util
import mmap
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from gridbuf_conformance import producers
from gridbuf_conformance.plan import Plan, strategies
from gridbuf_conformance.plan.producer import Capabilities, Producer, Unsupported
from gridbuf_conformance.plan.profiles import PROFILES
from gridbuf_conformance.producers.base import declined

STANDARD = ("array", "bytes", "bytearray", "memoryview", "ctypes", "mmap")


def _installed(name: str) -> Producer:
    entry = producers.find(name)
    if not entry.is_installed:
        pytest.skip(f"{entry.missing} is not installed; {entry.install}")
    if not entry.is_usable:
        pytest.skip(f"UNTESTED here: {name} needs a CUDA device, and this system shows none")
    if name == "pyside6" and "PyQt6" in sys.modules:
        pytest.skip("PyQt6 is loaded, and one process cannot hold two builds of Qt")
    return producers.load(name)()


def _plans(producer: Producer) -> list[Plan]:
    return _sampled(producer.capabilities)


@cache
def _sampled(can: Capabilities) -> list[Plan]:
    general = strategies.sample(strategies.general_plans(can), 150, seed=1)
    return general + strategies.sample(strategies.boundary_plans(can), 60, seed=2)


_DECLINED_SHARE = {
    **{
        "bytes": 0.3,
        "mmap": 0.2,
        "memoryview": 0.2,
        "gt4py": 0.3,
        "gt4py.next": 0.4,
        "gt4py.buffer": 0.4,
        "numpy.scalar": 0.1,
    },
    **{"vtk": 0.15, "vtk.soa": 0.3, "glm": 0.4, "gridbuf.next.fields": 0.25},
}
"""How many plans may be declined by types that cannot make zero extents, only rows of 2 to 4
elements, or no data dimensions: no range can leave those out."""


# --- what they make -----------------------------------------------------------------------------


# JAX compiles for each shape of keys: two minutes.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough) if name == "jax.keys" else name
        for name in producers.BUILT_IN
    ],
)
def test_most_plans_of_the_declared_range_are_answered(name: str) -> None:
    producer = _installed(name)
    answers = [producer.produce(plan) for plan in _plans(producer)]
    declined_answers = [answer for answer in answers if isinstance(answer, Unsupported)]
    reasons = {answer.reason for answer in declined_answers}
    limit = _DECLINED_SHARE.get(name, 0.05)
    assert len(declined_answers) <= limit * len(answers), sorted(reasons)


@pytest.mark.parametrize("name", producers.BUILT_IN)
def test_a_range_without_a_limit_has_extents_that_32_bits_cannot_hold(name: str) -> None:
    can = _installed(name).capabilities
    if can.max_extent is None and can.max_nbytes is None and can.max_ndim > 0:
        plans = strategies.huge_plans(can, PROFILES["smoke"].huge, seed=0)
        assert any(max(plan.shape) >= 2**31 for plan in plans)
    else:
        assert not strategies.huge_plans(can, PROFILES["smoke"].huge, seed=0)


@pytest.mark.parametrize("name", STANDARD)
def test_content_is_the_plans(name: str) -> None:
    producer = _installed(name)
    made = 0
    for plan in _plans(producer):
        result = producer.produce(plan)
        if not isinstance(result, Unsupported):
            made += 1
            view = memoryview(result)
            assert view.tobytes() == plan.content(), plan
            assert view.shape == plan.shape or name == "mmap", plan
            assert view.readonly is plan.readonly, plan
    assert made > 30


@pytest.mark.parametrize("name", ["numpy", "gt4py", "gridbuf", "gridbuf.plain"])
def test_content_is_the_plans_through_numpy(name: str) -> None:
    producer = _installed(name)
    import numpy

    for plan in _plans(producer):
        result = producer.produce(plan)
        if not isinstance(result, Unsupported):
            # NumPy would prefer the buffer protocol, and cannot read every format there.
            array = numpy.asarray(SimpleNamespace(__array_interface__=result.__array_interface__))
            assert array.tobytes() == plan.content(), plan
            assert array.shape == plan.shape, plan


def test_content_is_the_plans_through_torch() -> None:
    producer = _installed("torch")
    import torch

    for plan in _plans(producer):
        result = producer.produce(plan)
        if not isinstance(result, Unsupported) and plan.nbytes:
            held = result.contiguous().reshape(-1).view(torch.uint8)
            assert bytes(held.tolist()) == plan.content(), plan


@pytest.mark.parametrize("name", producers.BUILT_IN)
def test_two_results_are_two_objects(name: str) -> None:
    producer = _installed(name)
    for plan in _plans(producer)[:40]:
        first, second = producer.produce(plan), producer.produce(plan)
        assert first is not second or not plan.nbytes or isinstance(first, Unsupported), plan


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dtype": "complex64"}, "element type complex64"),
        ({"byteorder": "swapped"}, "native byte order"),
        ({"shape": (2, 3)}, "2 dimensions"),
        ({"alignment_size": 64}, "alignment of 64 bytes"),
        ({"dims": ("I",)}, "no names"),
        ({"halo": ((0, 0),)}, "no halo"),
        ({"readonly": True}, "writable memory only"),
        ({"shape": (2**28,), "fill": None}, "without touching its pages"),
    ],
)
def test_declines_say_which_key(change: dict, reason: str) -> None:
    answer = _installed("array").produce(Plan().replaced(**change))
    assert isinstance(answer, Unsupported)
    assert answer.reason.startswith("array: ")
    assert reason in answer.reason


def test_row_major_layout_asked_by_name_is_no_reason_to_decline() -> None:
    can = _installed("memoryview").capabilities
    assert declined(Plan(shape=(2, 3), layout=(0, 1)), can) == ""
    assert "layout" in declined(Plan(shape=(2, 3), layout=(1, 0)), can)


def test_mmap_leaves_gigabytes_untouched() -> None:
    pages = _installed("mmap").produce(Plan(shape=(2**32,), dtype="uint8", fill=None))
    assert len(pages) == 2**32
    resident = Path("/proc/self/statm").read_text().split()[1]
    assert int(resident) * mmap.PAGESIZE < 2**31
    pages.close()


# --- the registry -------------------------------------------------------------------------------


def test_listing_imports_no_library() -> None:
    heavy = ("numpy", "torch", "gt4py", "gridbuf")
    code = (
        "import sys; from gridbuf_conformance import producers;"
        "[entry.is_installed for entry in producers.entries().values()];"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "absent", "remedy"),
    [
        ("torch", "torch", "pip install torch"),
        ("gridbuf.xarray", "xarray", "in gridbuf's repository: pip install . xarray"),
    ],
)
def test_absent_library_says_how_to_install(
    name: str, absent: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == absent else real(name)
    )
    assert not producers.find(name).is_installed
    with pytest.raises(producers.NotInstalled, match=f"{absent} is not installed; {remedy}"):
        producers.load(name)


def test_unknown_name_lists_close_ones() -> None:
    with pytest.raises(producers.UnknownProducer, match="use one of numpy"):
        producers.find("numpi")


def test_entry_points_announce_producers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "announced-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        f"[{producers.ENTRY_POINT_GROUP}]\n"
        "mine = announced_module:Outer.Producer\n"
        "numpy = announced_module:Outer.Producer\n"
    )
    (tmp_path / "announced_module.py").write_text(
        "class Outer:\n    class Producer:\n        name = 'mine'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "mine" in producers.names()
    assert producers.load("mine").name == "mine"
    assert producers.find("mine").summary == "announced by announced"
    assert producers.find("numpy") is producers.BUILT_IN["numpy"], "built-in names are taken"
