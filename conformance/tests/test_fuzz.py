"""Objects that change, raise or answer falsely at their n-th answer are judged: none of them is an
error of the suite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gridbuf_conformance import check
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer
from gridbuf_conformance.engine.consumer_run import check_exports
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.exports import interfaces
from gridbuf_conformance.exports.drawing import listed
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.render.report import Report
from gridbuf_conformance_mutants.dlpack import CapsuleIsKept
from gridbuf_conformance_mutants.importer import reference as right_consumer
from gridbuf_conformance_mutants.reference import Array, Reference


def _raising(kind: type[BaseException]) -> Callable[[Any], Any]:
    def answer(right: Any) -> Any:
        raise kind("not now")

    return answer


class _Hostile:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise OSError(name)

    def __index__(self) -> int:
        raise ArithmeticError

    __eq__ = __len__ = __iter__ = __bool__ = __hash__ = __index__  # type: ignore[assignment]


_CHANGES: dict[str, Callable[[Any], Any]] = {
    "raises": _raising(ValueError),
    "refuses": _raising(BufferError),
    "denies": _raising(AttributeError),
    "exits": _raising(SystemExit),
    "none": lambda right: None,
    "number": lambda right: -(2**70),
    "hostile": lambda right: _Hostile(),
    "tuple": lambda right: (right, right),
    "edited": lambda right: {**right, "shape": (2**62,)} if isinstance(right, dict) else right,
    "half": lambda right: {"shape": right.get("shape")} if isinstance(right, dict) else right,
}


_SOME_CHANGES = [
    change if change in ("raises", "hostile") else pytest.param(change, marks=pytest.mark.thorough)
    for change in _CHANGES
]


class _Teller:
    """Counts the answers of all objects of one producer, and gives one false answer, or false ones
    from then on.
    """

    def __init__(self, change: str, at: int, *, once: bool) -> None:
        self.change, self.at, self.once = _CHANGES[change], at, once
        self.count = 0

    def tell(self, right: Callable[[], Any]) -> Any:
        self.count += 1
        is_false = self.count == self.at if self.once else self.count >= self.at
        return self.change(right()) if is_false else right()


class _Lying(Array):
    """An array each of whose answers goes through the teller."""

    teller: _Teller

    @property
    def __array_interface__(self) -> Any:
        return self.teller.tell(super().array_interface)

    @property
    def __array_struct__(self) -> Any:
        return self.teller.tell(lambda: Array.__array_struct__.fget(self))

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.teller.tell(lambda: Array.__dlpack__(self, **keywords))

    def __dlpack_device__(self) -> Any:
        return self.teller.tell(lambda: Array.__dlpack_device__(self))

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        try:
            self.teller.tell(lambda: Array.get_buffer(self, view, flags))
        except SystemExit:  # a callback of ctypes cannot leave it to its caller
            raise BufferError from None

    def viewed(self, operation: Any) -> Any:
        return self.teller.tell(lambda: Array.viewed(self, operation))


class _Producer(Reference):
    """A producer of arrays that answer falsely, whose `produce` gives false answers as well."""

    def __init__(self, teller: _Teller) -> None:
        self.array_type = type("Lying", (_Lying,), {"teller": teller})
        self._teller = teller

    def produce(self, plan: Plan) -> Any:
        return self._teller.tell(lambda: super(_Producer, self).produce(plan))


def _judged(change: str, at: int, *, once: bool, plan: Plan) -> tuple[Report, int]:
    teller = _Teller(change, at, once=once)
    return check_plans(_Producer(teller), [plan], isolate=False), teller.count


def _errors(report: Report) -> list[Any]:
    return [rule for rule in report.data["rules"] if rule["outcome"] == "ERROR"]


_PLANS = (Plan(), Plan(shape=(4,), dtype="int16", views=(("reverse", 0),)))
_POSITIONS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 120, 144, 180, 210, 233, 270, 300)


@pytest.mark.parametrize("change", _SOME_CHANGES)
def test_a_producer_that_answers_falsely_is_never_an_error_of_the_suite(change: str) -> None:
    honest, answers = _judged(change, 10**9, once=True, plan=_PLANS[0])
    assert honest.failed == () and answers > max(_POSITIONS)
    for number, at in enumerate(_POSITIONS):
        for once in (True, False):
            report, _ = _judged(change, at, once=once, plan=_PLANS[number % len(_PLANS)])
            assert not _errors(report), (at, once)


@pytest.mark.parametrize("change", _CHANGES)
def test_a_live_object_that_answers_falsely_is_never_an_error_of_the_suite(change: str) -> None:
    for at in range(1, 40, 3):
        teller = _Teller(change, at + 1, once=False)
        report = check(_Producer(teller).produce(Plan()))
        assert not _errors(report), at


@pytest.mark.parametrize("change", _SOME_CHANGES)
def test_a_consumer_that_answers_falsely_is_never_an_error_of_the_suite(change: str) -> None:
    exports = {e.variant.name: e for e in listed(interfaces()["dlpack"], threads=False)}
    for at in (1, 7, 40):
        teller = _Teller(change, at, once=False)
        report = check_exports(
            lambda exporter: teller.tell(lambda: right_consumer(exporter)),  # noqa: B023
            exports.values(),
            isolate=False,
        )
        assert not _errors(report), at


def test_the_same_capsule_again_breaks_dp_03() -> None:
    report = check(CapsuleIsKept().produce(Plan()))
    assert report.failed == ("DP-03",)
    assert "the capsule of the call before" in str(report)
