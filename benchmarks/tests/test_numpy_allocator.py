"""The measurement of `numpy_allocator`, on small arrays."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gridbuf_benchmarks import numpy_allocator


def test_the_table_and_the_record_have_a_row_for_each_case(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    record = tmp_path / "record.json"
    assert numpy_allocator.run(rounds=2, record=record, only=["empty-64", "add-1024"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    cases = json.loads(record.read_text())["cases"]
    assert [case["id"] for case in cases] == ["empty-64", "add-1024"]
    assert all(case["median"] > 0 and case["numpy_ns"] > 0 for case in cases)
    assert [row.split(" | ")[1] for row in rows] == ["64 bytes", "1 KiB"]


@pytest.mark.parametrize("id", ["all-4194304", "some-4194304", "expression-1024"])
def test_the_statements_compute(id: str) -> None:
    case = numpy_allocator.CASES[id]
    names = case.make(case.size_bytes)
    result = eval(case.statement, names)
    if id.startswith("expression"):
        assert np.allclose(result, (names["a"] + 3 * names["b"]) / names["b"])
        assert result.nbytes == case.size_bytes
    else:
        assert result is None
