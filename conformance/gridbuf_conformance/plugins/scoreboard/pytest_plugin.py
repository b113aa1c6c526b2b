"""The marker `gridbuf_interop` of pytest: a test is preceded by a run of the scoreboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...pytest_plugin import settings_of
from . import Selection, differences, load, run


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Compares the scoreboard with the record of each marker `gridbuf_interop`."""
    for mark in item.iter_markers("gridbuf_interop"):
        settings = settings_of(item.config)
        given = dict(mark.kwargs)
        expected = given.pop("expected", None)
        path = item.config.rootpath / expected if expected else Path(settings.interop.compare)
        defaults = {
            "libraries": settings.interop.library,
            "against": settings.interop.against,
            "producers": settings.producers,
            "consumers": settings.consumers,
        }
        chosen = {**defaults, **{key: tuple(names) for key, names in given.items()}}
        try:
            lines = differences(load(path), run(Selection(**chosen)))
        except (ValueError, LookupError) as error:
            pytest.fail(str(error.args[0]), pytrace=False)
        if lines:
            pytest.fail("\n".join(lines), pytrace=False)
