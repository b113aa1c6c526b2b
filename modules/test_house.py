"""Low modules do not depend on high modules: checks `deps()` of each folder of modules/."""

import pathlib
import re

import pytest

# Folder of modules/ → the folders on which it may depend. `python` depends on all of them.
MAY_USE = {
    "base": set(),
    "layout": {"base"},
    # Large blocks are touched and zeroed by several threads, and cached as the machine allows.
    "alloc": {"base", "layout"},
    "device": {"base", "layout", "alloc"},
    # Overlapping copies take scratch memory; large fills take threads.
    "transfer": {"base", "layout", "alloc"},
    # A description of memory holds a share in its owner, which is alloc's.
    "interface": {"base", "layout", "alloc"},
    # Memory of the host and of devices, with every interface.
    "array": {"base", "layout", "alloc", "device", "transfer", "interface"},
    # A side of a storage is an array; it computes no size itself.
    "storage": {"base", "layout", "alloc", "device", "transfer", "interface", "array"},
    # Arithmetic on descriptions of memory; field views are made of storages.
    "call": {"base", "layout", "alloc", "device", "transfer", "interface", "array", "storage"},
}


def closure(floor: str) -> list[str]:
    return (pathlib.Path(__file__).parent / f"{floor}_closure").read_text().splitlines()


@pytest.mark.parametrize("floor", MAY_USE)
def test_floor_stands_only_on_what_it_may(floor):
    labels = closure(floor)
    assert f"//modules/{floor}:{floor}" in labels, "the query found nothing"
    used = {match[1] for label in labels if (match := re.match(r"//modules/(\w+)", label))}
    assert used - {floor} <= MAY_USE[floor]


@pytest.mark.parametrize("floor", MAY_USE)
def test_no_floor_but_python_knows_python(floor):
    python = ("@gridbuf_python//:headers", "@gridbuf_python//:pybind11")
    assert not [label for label in closure(floor) if label.startswith(python)]


@pytest.mark.parametrize("floor", MAY_USE)
def test_programs_of_the_host_link_no_driver_and_build_no_cuda_code(floor):
    drivers = re.compile(r"//modules/device/(cuda|drivers|emulated)[:/]|@gridbuf_cuda//|.*\.cu$")
    assert not [label for label in closure(floor) if drivers.match(label)]


@pytest.mark.parametrize("floor", ["base", "layout"])
def test_arithmetic_does_not_allocate(floor):
    assert not [label for label in closure(floor) if label.startswith("//modules/alloc")]
