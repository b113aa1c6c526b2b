"""Runs of producers by name, shared by the tests of what the suite says of real libraries."""

from __future__ import annotations

from functools import cache

import pytest

from gridbuf_conformance import producers
from gridbuf_conformance.engine.producer_run import check_producer
from gridbuf_conformance.render.report import Report

NUMPY_VERSION = "2.4.6"
NUMPY = {
    "PB-01",  # refusals are ValueError ("ndarray is not Fortran contiguous"), not BufferError
}
"""What NumPy breaks, and each library whose arrays are NumPy's."""


@cache
def report(name: str) -> Report:
    """The report of one smoke run."""
    return check_producer(name, profile="smoke")


def checked(name: str, version: str | None = None) -> Report:
    """The same; skips where the library is not installed, or not in the version that was verified
    by hand.
    """
    entry = producers.find(name)
    if not entry.is_installed:
        pytest.skip(f"{entry.missing} is not installed; {entry.install}")
    found = report(name)
    installed = found.data["target"]["version"].partition("+")[0]
    if version not in (None, installed):
        pytest.skip(f"{name} {installed} is installed, this set was verified on {version}")
    assert "ERROR" not in found.outcomes.values()
    return found


def advice(report: Report) -> set[str]:
    """The rules whose outcome is ADVISORY."""
    return {id_ for id_, outcome in report.outcomes.items() if outcome == "ADVISORY"}


def failure(report: Report, rule: str) -> dict:
    """The worst failure of a rule."""
    entry = next(entry for entry in report.data["rules"] if entry["id"] == rule)
    return entry["failures"][0]
