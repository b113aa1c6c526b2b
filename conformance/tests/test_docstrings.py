"""The examples in the docstrings of the public API run as printed."""

from __future__ import annotations

import doctest

import pytest

from gridbuf_conformance import api
from gridbuf_conformance.plan import plan, producer
from gridbuf_conformance.rules import catalogue


@pytest.mark.parametrize(
    "module", [api, catalogue, plan, producer], ids=lambda module: module.__name__
)
def test_examples_run(module):
    failed, tried = doctest.testmod(module)
    assert tried and not failed
