"""The measurement of loops that make and free arrays, on small ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gridbuf_benchmarks import memory_loops

ONLY = ["resize-small", "alternating"]


def test_the_table_and_the_record_have_a_row_for_each_loop_and_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "record.json"
    assert memory_loops.run(rounds=1, record=record, only=ONLY) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    loops = {loop["id"]: loop for loop in json.loads(record.read_text())["loops"]}
    assert sorted(loops) == sorted(ONLY)
    assert sorted(loops["alternating"]["kinds"]) == ["allocator", "array", "storage"]
    assert sorted(loops["resize-small"]["kinds"]) == ["allocator"]
    assert len(rows) == 4
    for loop in loops.values():
        assert loop["numpy_seconds"] > 0
        # Two arrays of 20 MiB and one of 33 MiB are alive at once; a resized one has 6 MiB.
        least = 73 << 20 if loop["id"] == "alternating" else 5 << 20
        assert loop["numpy_peak_bytes"] >= least


@pytest.mark.parametrize("kind", ["numpy", "array", "storage"])
@pytest.mark.parametrize(
    "id", [id for id, loop in memory_loops.LOOPS.items() if len(loop.kinds) > 2]
)
def test_the_loops_make_arrays_of_bytes(id: str, kind: str) -> None:
    make = memory_loops._maker(kind)
    sizes = []

    def small(size_bytes: int) -> np.ndarray:
        sizes.append(size_bytes)
        return make(size_bytes >> 10)

    memory_loops.LOOPS[id].run(small)
    assert len(sizes) >= 80 and min(sizes) >= 1 << 10
    assert make(5).nbytes == 5
