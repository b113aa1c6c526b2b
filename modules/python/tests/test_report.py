"""`gridbuf.memory.report`: each kind of memory has its bytes."""

from __future__ import annotations

import gridbuf
import gridbuf.storage
import gridbuf.testing
import numpy as np
import pytest

MIB = 2**20


def rows() -> dict[tuple[str, str], int]:
    return {(part.place, part.name): part.nbytes for part in gridbuf.memory.report().parts}


def test_each_kind_of_memory_has_a_row():
    before = rows()
    field = gridbuf.storage.zeros((256, 256, 64))
    shared = gridbuf.zeros((256, 256), memory="shared")
    space = gridbuf.memory.Workspace(64 * MIB)
    np.asarray(space)[: 8 * MIB] = 1
    space.need(8 * MIB)
    after = rows()
    assert after["host", "arrays and fields"] - before["host", "arrays and fields"] >= field.nbytes
    assert after["host", "shared"] - before["host", "shared"] == shared.nbytes
    assert 8 * MIB <= after["host", "workspaces"] - before["host", "workspaces"] < 64 * MIB
    del field, shared, space
    ended = rows()
    assert ended["host", "shared"] == before["host", "shared"]
    assert ended["host", "workspaces"] == before["host", "workspaces"]
    assert ended["host", "arrays and fields"] == before["host", "arrays and fields"]


def test_the_process_has_more_than_the_touched_parts():
    array = gridbuf.full((512, 1024), 1.0)
    assert gridbuf.memory.report().process >= array.nbytes


def test_devices_have_rows():
    assert not [place for place, _ in rows() if place != "host"], "nothing is on a device yet"
    with gridbuf.testing.emulated_device():
        field = gridbuf.storage.zeros((64, 64, 8), device="gpu", managed="gt4py")
        space = gridbuf.memory.Workspace(MIB, device="gpu")
        before = rows()
        other = gridbuf.storage.zeros((64, 64, 8), device="gpu")
        after = rows()
    grown = after["emulated", "arrays and fields"] - before["emulated", "arrays and fields"]
    assert grown >= other.nbytes
    assert after["emulated", "workspaces"] == space.limit
    assert after["host", "pinned for emulated"] >= field.nbytes


def test_a_report_is_a_table_and_a_picture():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("agg")
    report = gridbuf.memory.report()
    space = gridbuf.memory.Workspace(MIB)
    space.need(1000)
    lines = str(report).splitlines()
    assert lines[0].split() == ["place", "what", "MiB", "now", "at", "most"]
    assert len(lines) == len(report.parts) + 2
    axes = gridbuf.memory.report().plot()
    assert "host: workspaces" in [label.get_text() for label in axes.get_yticklabels()]
    _, given = pyplot.subplots()
    assert report.plot(given) is given
