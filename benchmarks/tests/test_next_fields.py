"""The measurement of fields for gt4py.next, on small fields: a row for each request, and all ways make the same field."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gt4py.next", reason="gt4py is not installed")

import gridbuf
from gridbuf_benchmarks import next_fields
from gt4py import next as gtx


def test_the_table_has_a_row_for_each_request(capsys: pytest.CaptureFixture) -> None:
    assert next_fields.run(rounds=2, edge=2, levels=3) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert len({row[0] for row in cells}) == len(cells) == 6
    assert all(float(cell.split()[0]) > 0 for row in cells for cell in row[1:])


def test_all_ways_make_the_same_field_and_only_gridbuf_owns_its_own() -> None:
    names = {
        "Cell": gtx.Dimension("Cell"),
        "K": gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL),
        "by_cell": np.arange(60.0).reshape(20, 3),
        "by_level": np.arange(60.0).reshape(3, 20),
        "touch": lambda field: field,
    }
    for request in next_fields._requests(edge=2, levels=3):
        made = {
            name: eval(one.statement, dict(one.names))
            for name, one in request.contenders(names).items()
        }
        assert [gridbuf.owns(field) for field in made.values()] == [False, True, True]
        assert len({(field.domain, field.ndarray.strides) for field in made.values()}) == 1
        if "empty" not in request.title:
            first = made["GT4Py's"].asnumpy()
            assert all(np.array_equal(first, field.asnumpy()) for field in made.values())
