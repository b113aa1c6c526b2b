"""The site, built once for all tests; or the one in the folder GRIDBUF_SITE, to try a test again quickly."""

import os
from pathlib import Path

import build_site
import pytest


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    if given := os.environ.get("GRIDBUF_SITE"):
        return Path(given)
    folder = tmp_path_factory.mktemp("site")
    status = build_site.build(folder / "html", folder)
    assert status == 0, "Sphinx's warnings are above; each is a failure"
    return folder / "html"
