"""Looks at a result: what they give, what a death in them is, and which printed text has values."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import pytest

from gridbuf_conformance.exports import Export, array_repr
from gridbuf_conformance.exports.expected_values import mistake
from gridbuf_conformance.info import LookInfo
from gridbuf_conformance.measure import eyes, forks
from gridbuf_conformance.measure.keywords import keywords_for


class Dies:
    def tolist(self) -> Any:
        os.kill(os.getpid(), signal.SIGSEGV)

    def numpy(self) -> list[int]:
        return [1, 2]


class Hangs:
    """As a library whose threads are not in the fork."""

    process = os.getpid()

    def tolist(self) -> list[int]:
        if os.getpid() != self.process:
            time.sleep(60)
        return [3]


def test_a_look_has_a_shape_and_numbers():
    seen = eyes.look(memoryview(bytes((1, 2, 3))))
    assert seen["x.tolist()"] == LookInfo([3], ["1", "2", "3"])


def test_a_death_is_seen_and_the_other_looks_go_on():
    assert eyes.look(Dies()) == {
        "x.tolist()": LookInfo(died="SIGSEGV"),
        "x.numpy()": LookInfo([2], ["1", "2"]),
    }


def test_what_hangs_in_a_fork_is_looked_at_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(forks, "LIMIT_S", 0.2)
    assert eyes.look(Hangs()) == {"x.tolist()": LookInfo([1], ["3"])}


def test_an_object_without_values_has_no_looks():
    assert eyes.look(object()) == {}


@pytest.mark.parametrize(
    "text, values",
    [
        (
            "tensor([[1., 2.],\n        [3., 4.]], dtype=torch.float64)",
            [["1.", "2."], ["3.", "4."]],
        ),
        ("Tensor(shape=[2], dtype=float32,\n       [1.5e-10, 2.])", ["1.5e-10", "2."]),
        ("[True False]", ["True", "False"]),
        ("array([1, 2, ..., 9])", None),
        ("<Array object at 0x7f00>", None),
        ("array(['a', 'b'])", None),
        ("a ] b [1]", None),
        ("float64[2]@cpu:0", None),
        ("uint8[1] [7]", ["7"]),
    ],
)
def test_printed_values_are_nested_as_the_brackets(text: str, values: Any):
    assert array_repr.values(text) == values


def test_a_printed_number_is_as_exact_as_its_digits():
    export = Export(shape=(1,))
    value = float(mistake(export, "x.tolist()", LookInfo([1], ["0"]))[0].partition(" ")[0])
    short = f"{value:.3e}"
    assert mistake(export, "repr(x)", LookInfo([1], [short])) is None
    assert mistake(export, "x.tolist()", LookInfo([1], [short])) is not None
    assert mistake(export, "repr(x)", LookInfo([1], [f"{2 * value:.3e}"])) is not None


def test_the_bits_of_a_bfloat16_are_not_a_mistake():
    export = Export(shape=(1,), dtype="bfloat16")
    bits = int.from_bytes(export.viewed_element_bytes((0,)), sys.byteorder)
    assert mistake(export, "x.tolist()", LookInfo([1], [str(bits)])) is None
    assert mistake(export, "x.tolist()", LookInfo([1], [str(bits + 1)])) is not None


def test_another_shape_is_a_mistake_except_in_print():
    export = Export(shape=(2,))
    assert mistake(export, "x.tolist()", LookInfo([1], ["0"])) == (
        "shape [2]",
        "shape [1], by x.tolist()",
    )
    assert mistake(export, "repr(x)", LookInfo([1], ["0"])) is None


def test_keywords_are_those_of_the_signature():
    def asarray(x: Any, *, copy: bool | None = None, other: int = 0) -> Any:
        return x

    export = Export(export="buffer")
    assert list(keywords_for(asarray, export)) == [{"copy": True}, {"copy": False}, {"copy": None}]
    assert not list(keywords_for(lambda x, **keywords: x, export))
    assert not list(keywords_for(asarray, export.replaced(shape=(50,))))
