"""The measurement of layouts for gt4py.next, on small fields: a row for each case, and equal results."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gt4py.next", reason="gt4py is not installed")

from gridbuf_benchmarks import next_layouts
from gridbuf_benchmarks.next_operators import Operators


def test_the_table_has_a_row_for_each_operator_and_allocator(capsys: pytest.CaptureFixture) -> None:
    assert next_layouts.run(["embedded"], rounds=2, extent=8) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert len({tuple(row[:4]) for row in cells}) == len(cells) == 10
    assert all(float(row[5].split()[0]) > 0 for row in cells)


def test_another_result_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Operators.call

    def wrong(self: Operators, name: str, allocator: object) -> object:
        call, result = own(self, name, allocator)
        return call, result if allocator is first else result + 1

    calls = next_layouts._Calls(None, 8)
    first = calls._allocators["GT4Py's | 64"]
    monkeypatch.setattr(Operators, "call", wrong)
    with pytest.raises(RuntimeError, match="has another result"):
        calls.times()


def test_the_operators_compute_what_they_say() -> None:
    operators = Operators(None, 4)
    call, result = operators.call("structured", None)
    call()
    phi = operators._structured
    inner = phi[1:-1, 1:-1]
    expected = 4 * inner - phi[2:, 1:-1] - phi[:-2, 1:-1] - phi[1:-1, 2:] - phi[1:-1, :-2]
    np.testing.assert_allclose(result, expected, atol=1e-12)
    call, result = operators.call("unstructured", None)
    call()
    np.testing.assert_allclose(result, operators._unstructured[operators._table].sum(axis=1))
