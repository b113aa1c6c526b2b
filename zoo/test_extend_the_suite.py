"""docs/how-to/extend-the-suite.md: the producer, library and finding that the page shows."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import textwrap
from pathlib import Path

import records

from gridbuf_conformance.plan import strategies
from gridbuf_conformance.producer import Unsupported

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGE = (records.ROOT / "docs/how-to/extend-the-suite.md").read_text("utf-8")


def block_with(word: str) -> str:
    """The first code block of the page that has the word."""
    blocks = re.findall(r"^ *```\w+\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(next(block for block in blocks if word in block))


def test_the_producer_of_the_page_makes_what_plans_ask() -> None:
    (row,) = tomllib.loads(block_with("summary = ")).values()
    name, _, kind = row["class"].partition(":")
    spec = importlib.util.spec_from_loader(
        f"gridbuf_conformance.plugins.libraries.{name}", loader=None
    )
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(block_with(f"class {kind}"), vars(module))
    producer = getattr(module, kind)()
    plans = strategies.sample(strategies.general_plans(producer.capabilities), 100, seed=1)
    made = [(plan, producer.produce(plan)) for plan in plans]
    arrays = [(plan, array) for plan, array in made if not isinstance(array, Unsupported)]
    assert len(arrays) > 0.9 * len(plans)
    assert all(bytes(array) == plan.content() for plan, array in arrays)


def test_the_library_of_the_page_is_one(tmp_path: Path) -> None:
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries/bitarray.toml").write_text(block_with("exports = "))
    (tmp_path / "zoo.toml").write_text("date = 2026-01-01\n")
    library = records.load(tmp_path).libraries["bitarray"]
    assert [e.name for e in library.environments] == ["bitarray-3.12.3"]
    assert library.environments == records.load().libraries["bitarray"].environments


def test_the_finding_of_the_page_is_a_record(tmp_path: Path) -> None:
    script = tmp_path / "findings/ctypes-union.py"
    script.parent.mkdir()
    script.write_text(block_with("# /// script"), "utf-8")
    shutil.copytree(records.FOLDER / "libraries", tmp_path / "libraries")
    (tmp_path / "zoo.toml").write_text("date = 2026-01-01\n")
    (finding,) = records.load(tmp_path).findings
    assert finding.id == "ctypes-union"
    assert finding.title == "memoryview of a ctypes.Union has the format 'B' for an item of 8 bytes"
