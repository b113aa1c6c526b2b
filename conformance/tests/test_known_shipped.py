"""The files of known failures that come with the suite: what NumPy, PyTorch and JAX fail, each with
a reason.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import run

from gridbuf_conformance import known
from gridbuf_conformance.engine.consumer_run import check_consumer
from gridbuf_conformance.engine.producer_run import check_producer
from gridbuf_conformance.known.replays import State
from gridbuf_conformance.plan.consumer import version_of

LIBRARIES = ("jax", "numpy", "torch")
RECORDS = {name: known.read(Path(name)) for name in known.shipped()}
# Consumers that compile take a minute each.
TARGETS = [
    pytest.param(*found, marks=[pytest.mark.thorough] if is_slow else [])
    for found in sorted({(name, one.side, one.target) for name in RECORDS for one in RECORDS[name]})
    for is_slow in [found[0] != "numpy" and found[1] == "consumer"]
]


def _require_version(library: str) -> None:
    """Skips where the library is not the release that the file is about."""
    versions = {one.versions for one in RECORDS[library]}
    assert len(versions) == 1, "a file is about one release"
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    found = version_of(print, library) or pytest.importorskip(library).__version__
    if versions != {f"=={found.partition('+')[0]}"}:
        pytest.skip(f"{library} {found} is installed, the file is about {versions.pop()}")


def test_the_files_are_those_of_three_libraries() -> None:
    assert tuple(RECORDS) == LIBRARIES and all(RECORDS.values())


def test_the_page_has_the_release_of_each_file() -> None:
    page = Path(__file__).parents[2] / "docs/how-to/check-your-library.md"
    section = page.read_text("utf-8").split("### Records that the suite ships")[1]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|$", section.split("\n## ")[0], re.MULTILINE)
    releases = {name: known.covered(records) for name, records in RECORDS.items()}
    assert dict(rows) == releases


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_record_has_a_reason(library: str) -> None:
    """That a finding it names is one is tested with the findings."""
    assert all(record.reason.endswith(".") for record in RECORDS[library])


@pytest.mark.parametrize(("library", "side", "target"), TARGETS)
def test_a_target_passes_with_its_file_and_no_record_is_stale(
    library: str, side: str, target: str
) -> None:
    _require_version(library)
    check = check_consumer if side == "consumer" else check_producer
    report = check(target, profile="smoke", known=known.KnownFailures.of(library))
    assert report.exit_code == 0, str(report)
    states = {e["place"]: e["state"] for e in report.events if e["event"] == "known"}
    mine = [one for one in RECORDS[library] if (one.side, one.target) == (side, target)]
    assert states == {one.place: State.SAME for one in mine}


def test_the_command_takes_a_file_by_its_name(tmp_path: Path) -> None:
    _require_version("numpy")
    assert run("check", "numpy", "--profile", "smoke", cwd=tmp_path).returncode == 1
    done = run("check", "numpy", "--profile", "smoke", "--known", "numpy", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_of_the_user_is_used_before_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "numpy").write_text("")
    done = run("check", "bytes", "--known", "numpy", "--rules", "PB-03", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert known.read(tmp_path / "numpy") == []


def test_an_unknown_name_is_usage_and_lists_the_names(tmp_path: Path) -> None:
    done = run("check", "bytes", "--known", "nunpy", cwd=tmp_path)
    assert done.returncode == 2 and "or one of jax, numpy, torch" in done.stderr


PRODUCERS = Path(__file__).parent / "inheriting_producers.py"


@pytest.mark.parametrize(
    ("name", "inherited"),
    [
        ("Subclass", {"PB-01", "PB-20"}),
        ("Delegating", {"PB-01", "PB-20"}),
        ("Proxied", {"AI-06"}),
    ],
)
def test_a_failure_by_inherited_code_is_attributed_and_known(
    name: str, inherited: set[str]
) -> None:
    _require_version("numpy")
    target = f"{PRODUCERS}:{name}"
    report = check_producer(target, profile="smoke")
    assert set(report.failed) == inherited
    failed = [rule for rule in report.data["rules"] if rule["id"] in inherited]
    notes = [failure["note"] for rule in failed for failure in rule["failures"]]
    assert all(note.endswith("inherited from numpy.ndarray 2.4.6") for note in notes)
    report = check_producer(target, profile="smoke", known=known.KnownFailures.of("numpy"))
    assert report.exit_code == 0, report.to_json()
    assert {id_ for id_, outcome in report.outcomes.items() if outcome == "XFAIL"} == inherited


def test_a_failure_by_own_code_stays_one() -> None:
    """It refuses with the same class of error, and NumPy's record does not excuse it."""
    _require_version("numpy")
    target, records = f"{PRODUCERS}:Refusing", known.KnownFailures.of("numpy")
    report = check_producer(target, profile="smoke", known=records)
    assert report.failed == ("PB-01",) and report.outcomes["PB-20"] == "XFAIL"
    (rule,) = (rule for rule in report.data["rules"] if rule["id"] == "PB-01")
    assert not any("inherited" in failure["note"] for failure in rule["failures"])


def test_a_failure_of_numpys_own_arrays_is_not_inherited() -> None:
    _require_version("numpy")
    assert "inherited" not in check_producer("numpy", profile="smoke").to_json()
