"""The attack `functions`: some thousand calls, and whether it sees what is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import differential
import numpy as np
import pytest
from foreign import emulated
from gridbuf.storage import _compute, _functions, _table

CALLS = 3000


@pytest.fixture(autouse=True, scope="module")
def _device() -> Iterator[None]:
    with emulated():
        yield


def problems(names: list[str], calls: int, first: int = 0) -> list[str]:
    answers = (
        differential.check(random.Random(f"test {number}"), names[number % len(names)])
        for number in range(first, first + calls)
    )
    return [answer[0] for answer in answers if answer is not None and answer[0]]


def test_storages_answer_as_numpy_does() -> None:
    assert problems(differential.FUNCTIONS, CALLS) == []


def test_every_function_that_takes_arrays_is_called() -> None:
    rows = {
        name for name, row in _table.ROWS.items() if row.rule != "no array"
    } - differential.OTHER_FORMS
    missing = {name for name in rows if not hasattr(np, name.split(".")[0])}
    assert rows - missing <= set(differential.FUNCTIONS)
    ufuncs = {n for n, v in vars(np).items() if isinstance(v, np.ufunc) and v.signature is None}
    assert ufuncs <= set(differential.FUNCTIONS)


WRONG = {
    "a value": ("cumsum", _functions, "stored", lambda right: lambda v, *rest: right(-v, *rest)),
    "names": ("sort", _functions, "stored", lambda right: lambda *a: right(*a).transpose()),
    "the rest of an output": ("add", _compute, "run", lambda right: _writing_all(right)),
    "an exception": ("median", _functions, "reduced", lambda right: lambda *a: 1 / 0),
}


def _writing_all(right: Any) -> Any:
    def run(work: Any, operands: Any, mask: Any, outputs: Any, *rest: Any, **options: Any) -> Any:
        return right(work, operands, True, outputs, *rest, **options)

    return run


@pytest.mark.parametrize("wrong", list(WRONG))
def test_what_is_wrong_is_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, module, attribute, change = WRONG[wrong]
    monkeypatch.setattr(module, attribute, change(getattr(module, attribute)))
    assert problems([name], 300)


OF_THE_MACHINE = {"layout", "cast that does not fit"}
"""Here the processor, and where memory begins, decide which loop NumPy chooses."""


def test_of_a_cast_that_does_not_fit_the_rest_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """-2^63 as float64, into uint32: 0 or 2^31. Another element of the same output is 7."""
    case = "2854225523 functions 178706"

    def problem() -> str:
        answer = differential.check(random.Random(case))
        assert answer is not None
        return answer[0]

    assert problem() == ""
    right = _compute.run

    def run(work: Any, operands: Any, mask: Any, outputs: Any, *rest: Any, **options: Any) -> Any:
        result = right(work, operands, mask, outputs, *rest, **options)
        outputs[0][0, 0, 0] = 6
        return result

    monkeypatch.setattr(_compute, "run", run)
    assert problem().startswith("base")


def test_differences_that_are_right_have_reasons_and_occur() -> None:
    """One that does not occur is not needed."""
    ufuncs = [n for n in differential.FUNCTIONS if "reduce" in n or n in differential.UFUNCS]
    assert problems(["copyto"], 300) == []
    for part in range(12):  # as long as a rare one has not occurred
        assert problems(ufuncs, CALLS // 2, part * CALLS // 2) == []
        if all(hits for name, hits in differential.HITS.items() if name not in OF_THE_MACHINE):
            break
    assert all(len(allowed.reason) > 20 for allowed in differential.ALLOWED.values())
    assert {name for name, hits in differential.HITS.items() if not hits} <= OF_THE_MACHINE
