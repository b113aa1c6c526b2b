"""The settings and records of the scoreboard are well formed, and a setting runs only the pairs
that it does not have.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import interop
import interop_page
import interop_scores
import pytest
import venvs
from records import ROOT

from gridbuf_conformance import cli, findings, libraries
from gridbuf_conformance.plugins.scoreboard import ARRAYS, load, records
from gridbuf_conformance.plugins.scoreboard.records import Cell, Record, RecordError

SETTINGS = interop.settings()
RECORDED = {name: load(s.record) for name, s in SETTINGS.items() if s.record.exists()}


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_is_of_the_pinned_versions(name: str):
    assert not [*interop.moved(RECORDED[name], SETTINGS[name])]
    cells = RECORDED[name].cells
    assert cells and all(len(cell.outcomes) == len(ARRAYS) for cell in cells)


def test_no_record_is_left_of_what_is_gone():
    assert {path.name.partition(".")[0] for path in interop.SETTINGS.iterdir()} == set(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_locked_with_hashes(name: str):
    environment = SETTINGS[name].environment
    lines = environment.locked.splitlines()
    assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    locked = {line.split("==")[0].replace("_", "-"): line.split()[0] for line in lines}
    for requirement in environment.requirements:
        wanted = requirement.partition("[")[0] + requirement.partition("]")[2]
        package, _, version = wanted.partition("==")
        found = locked[package.lower().replace("_", "-")].split("==")[1]
        assert found.partition("+")[0] == (version or found.partition("+")[0])


def test_defects_of_trackers_are_found_where_they_are_and_absent_elsewhere(capsys):
    assert interop.main(["defects"]) == 0
    assert "✗" in capsys.readouterr().out, "some expectations were wrong"


# The page
# ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page() -> str:
    return interop_page.render(RECORDED.values())


def test_the_page_of_all_records_is_the_same_twice(page: str):
    code = (
        "import sys, interop, interop_page\n"
        "from gridbuf_conformance.plugins.scoreboard import load\n"
        "settings = interop.settings().values()\n"
        "records = [load(s.record) for s in settings if s.record.exists()]\n"
        "sys.stdout.write(interop_page.render(records))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.stdout.decode() == page


def test_links_of_the_page_lead_to_a_place_in_it(page: str):
    ids = re.findall(r'id="([^"]*)"', page.partition('<div class="board">')[2])
    links = set(re.findall(r'<a href="#([^"]*)"', page))
    assert len(links) > 200 and links <= set(ids) and len(ids) == len(set(ids))


def test_the_newest_matrix_comes_first_and_causes_come_before_cells(page: str):
    newest = max(RECORDED.values(), key=lambda r: interop_page._newness(r.libraries["numpy"]))
    version = newest.libraries["numpy"]
    first = page.index("<h2>")
    assert f"numpy {version}" in page[first : page.index('id="libraries"')]
    places = [page.index(text) for text in ("<h3>Causes", 'id="libraries"', "<svg", 'id="cells"')]
    assert places == sorted(places)


def test_a_badge_has_the_score_of_the_page(page: str, tmp_path: Path):
    assert interop.main(["page", str(tmp_path / "matrix.md")]) == 0
    assert (tmp_path / "matrix.md").read_text("utf-8") == page
    badges = {str(p.relative_to(tmp_path)): p.read_text("utf-8") for p in tmp_path.rglob("*.svg")}
    assert {"badges/numpy.svg", "badges/jax.svg"} <= set(badges)
    assert set(badges) == set(re.findall('href="(badges/[^"]*)"', page))
    for name, badge in badges.items():
        library = name[len("badges/") : -len(".svg")]
        (summary,) = re.findall(f'id="library-{library}"><summary>(.*?)</summary>', page)
        shown = re.findall(r"(?:passes|takes) \d+ %", summary)
        assert shown and f">{', '.join(shown)}</text>" in badge


@pytest.mark.parametrize("name", ["numpy", "jax", "mlx", "PIL", "torch"])
def test_the_page_says_why_a_library_has_its_score(name: str):
    boards = [
        interop_page.page.Board(record, f"r{n}") for n, record in enumerate(RECORDED.values())
    ]
    (library,) = (one for one in interop_page._libraries(boards) if one.name == name)
    assert library.document.startswith("https://")
    for _, found, partner in library.sides:
        causes = found.by_cause()
        assert found.counted and sum(lost for *_, lost in causes) >= found.lost
        for cause, by, _ in causes:
            assert cause.id in ("refused", "not made", "other rank", "unread") or cause.title
            assert all(getattr(pair, partner) != name and arrays for pair, arrays in by.items())


def test_changes_are_those_of_partners_that_all_releases_have():
    boards = [
        interop_page.page.Board(record, f"r{n}") for n, record in enumerate(RECORDED.values())
    ]
    (jax,) = (one for one in interop_page._libraries(boards) if one.name == "jax")
    assert jax.before and jax.changes
    sides = {side for line in jax.changes for side in line.partition(": ")[0].split(" → ")}
    assert not {side for side in sides if side.startswith(("torch", "pyarrow", "tensorflow"))}


def test_a_history_has_the_releases_of_a_library_in_their_order_with_fixed_partners():
    boards = [
        interop_page.page.Board(record, f"r{n}") for n, record in enumerate(RECORDED.values())
    ]
    found = interop_page.history(boards)
    versions = [release.version for release in found["jax"]]
    assert versions[0] == "0.4.18" and versions == sorted(versions, key=interop_page._newness)
    partners = {p.partition(" ")[0] for rows in found.values() for r in rows for p in r.partners}
    assert partners <= {"itself", *interop_page.FIXED}
    assert "jax" in interop_page.chart(found) and "<metadata" not in interop_page.chart(found)


# What the score rests on
# ---------------------------------------------------------------------------------------


def test_rows_of_documented_arrays_name_what_is_there():
    rows = interop_scores._table("interop_documented.toml")
    groups = rows.pop("groups")
    for name, row in rows.items():
        assert row.keys() <= {"document", "makes", "takes"} and row["document"].startswith("https")
        for has in (row[side] for side in ("makes", "takes") if side in row):
            types = interop_scores._words(has["types"], groups)
            layouts = interop_scores._words(has.get("layouts", ""), groups)
            assert types <= {array.plan.dtype for array in ARRAYS.values()}, name
            assert layouts <= {
                "order",
                "steps",
                "negative",
                "zero",
                "offset",
                "swapped",
                "read-only",
            }
            assert {*has["by"].split()} <= {"ndarray", "array", "interface", "buffer", "dlpack"}
            for pattern in filter(None, has.get("unmade", "").split("|")):
                among = {*ARRAYS} | {array.plan.dtype for array in ARRAYS.values()}
                assert any(fnmatchcase(word, pattern) for word in among), (name, pattern)


def test_a_cause_has_a_source_and_the_library_of_its_finding():
    causes = interop_scores.tables()["causes"]
    assert len(causes) > 15
    for cause in causes:
        assert cause.get("link", "").startswith("https://") or cause["finding"], cause["id"]
        for cell in cause["cells"]:
            _, _, outcome = cell.split(" ", 2)
            assert outcome in records.OUTCOMES
        if "finding" in cause:
            name = findings.find(cause["finding"]).library
            with contextlib.suppress(libraries.UnknownLibrary):
                assert [libraries.find(name).module] == cause["libraries"], cause["id"]


def test_most_harm_has_a_cause_that_is_known():
    harm: list[tuple[str, int]] = []
    for record in RECORDED.values():
        for cause, _, count in interop_page.page.Board(record, "r0").causes:
            harm.append((cause.id, count))
    explained = sum(count for _, count in harm) - sum(n for id, n in harm if "not explained" in id)
    assert explained > 0.9 * sum(count for _, count in harm)


def test_the_pages_print_what_the_records_have(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)
    page = (ROOT / "docs/scoreboard.md").read_text("utf-8")
    ((command, shown),) = re.findall(
        r"<!-- output: gridbuf-conformance (.*?) -->\n```console\n\$ [^\n]*\n(.*?)```",
        page,
        re.DOTALL,
    )
    assert f"$ gridbuf-conformance {command}\n" in page
    assert cli.main(command.split()) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == shown.splitlines()


def test_the_setting_of_the_page_is_one():
    page = (ROOT / "docs/how-to/record-the-scoreboard.md").read_text("utf-8")
    ((file, head),) = re.findall(r"<!-- setting: (\S+) -->\n```toml\n(.*?)```", page, re.DOTALL)
    assert (ROOT / file).read_text("utf-8").startswith(head)


# A setting that grows
# ---------------------------------------------------------------------------------------

SETTING = """\
python = "3.12"
requirements = ["numpy==2.5.5", "pyarrow==26.0.1"]
against = ["numpy"]
"""


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A setting in a folder. Its suite runs the libraries that are installed, and notes which cells
    it ran.
    """
    ran: list[str] = []

    def suite(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        save = Path(command[command.index("--save") + 1])
        record = load(save) if save.exists() else Record("3.12.1", "linux x86_64")
        have = {cell.producer for cell in record.cells}
        locked = interop.settings()["small"].environment.locked
        for name, version in re.findall(r"^(\S+)==(\S+) ", locked, re.MULTILINE):
            if f"{name} is slow" in ran:
                continue
            record.libraries[name] = version
            if name not in have:
                ran.append(name)
                outcomes = "s" * len(ARRAYS)
                record.cells.append(Cell(name, "numpy.asarray", name, "numpy", outcomes))
        records.save(record, save)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(interop, "SETTINGS", tmp_path)
    monkeypatch.setattr(interop, "CHANGES", tmp_path.with_name("changes"))
    monkeypatch.setattr(interop.subprocess, "run", suite)
    monkeypatch.setattr(venvs, "make", lambda environment, folder: Path(sys.executable))
    monkeypatch.setattr(
        venvs,
        "lock",
        lambda environment: "".join(
            f"{name} --hash=sha256:{'0' * 64}\n" for name in environment.requirements
        ),
    )
    (tmp_path / "small.toml").write_text(SETTING)
    return ran


def _lock_and_run(folder: Path, setting: str, *options: str) -> set[str]:
    path = folder / "small.toml"
    path.write_text(setting + path.read_text().partition('against = ["numpy"]\n')[2])
    arguments = ["small", "--folder", str(folder / "environments"), *options]
    (folder / "environments").mkdir(exist_ok=True)
    assert interop.main(["lock", *arguments]) == interop.main(["run", *arguments]) == 0
    return {cell.producer for cell in load(folder / "small.json.gz").cells}


def test_a_new_library_of_a_setting_runs_its_own_pairs_only(ran: list[str], tmp_path: Path):
    assert _lock_and_run(tmp_path, SETTING) == {"numpy", "pyarrow"}
    grown = SETTING.replace("26.0.1", '26.0.1", "jax==0.12.0.1')
    assert _lock_and_run(tmp_path, grown) == {"numpy", "pyarrow", "jax"}
    assert ran == ["numpy", "pyarrow", "jax"]


def test_changes_of_a_run_are_on_the_page_of_the_day(tmp_path: Path, capsys):
    """A second run of a setting replaces its section, and keeps the others."""
    page = tmp_path / "pages/2026-11-30.md"
    cell = Cell("numpy", "numpy.asarray", "numpy", "numpy", "s" * len(ARRAYS))
    old = Record("3.12", "linux", {"numpy": "1.0"}, cells=[cell], name="one")
    wrong = replace(cell, outcomes="W" + cell.outcomes[1:], messages={"a `b`": ["float64"]})
    for name, cells in (("one", [cell]), ("two", [cell]), ("one", [wrong])):
        interop.note_changes(old, replace(old, cells=cells, name=name), page)
    new = replace(old, libraries={"numpy": "2.0"}, name="three")
    interop.note_changes(old, new, page)
    assert page.read_text("utf-8") == (
        "# Scoreboard changes, 2026-11-30\n"
        "\n## one\n\n- `numpy → numpy.asarray: shared → wrong values: float64 (a 'b')`\n"
        "\n## three\n\n- `numpy 1.0 → 2.0`\n"
        "\n## two\n\nNo cell changed.\n"
    )
    assert "numpy 1.0 → 2.0" in capsys.readouterr().out


@pytest.mark.parametrize("options", [(), ("--again",)])
def test_all_pairs_run_again_if_a_version_is_another_one(
    options: tuple[str, ...], ran: list[str], tmp_path: Path
):
    _lock_and_run(tmp_path, SETTING)
    changed = SETTING if options else SETTING.replace("26.0.1", "27.0.0")
    _lock_and_run(tmp_path, changed, *options)
    assert ran == ["numpy", "pyarrow"] * 2


def test_a_library_that_could_not_be_loaded_loses_no_cells(
    ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    _lock_and_run(tmp_path, SETTING)
    record = (tmp_path / "small.json.gz").read_bytes()
    folder = tmp_path / "environments"
    again = ["run", "small", "--again", "--folder", str(folder)]
    ran.append("pyarrow is slow")
    assert interop.main(again) == 1 and "pyarrow could not be loaded" in capsys.readouterr().out
    assert (tmp_path / "small.json.gz").read_bytes() == record
    ran.remove("pyarrow is slow")
    assert interop.main(again) == 0


def test_a_setting_with_a_wheel_needs_its_file(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(interop, "SETTINGS", tmp_path)
    monkeypatch.setattr(venvs, "make", lambda environment, folder: Path(sys.executable))
    (tmp_path / "own.toml").write_text(f'{SETTING}wheel = "mine"\n')
    for more in ((), ("--wheel", "other-1.0-py3-none-any.whl")):
        assert interop.main(["run", "own", "--folder", str(tmp_path), *more]) == 1
    assert capsys.readouterr().out.count("name the wheel of mine") == 2


def test_a_record_is_compressed_and_the_same_twice(ran: list[str], tmp_path: Path):
    _lock_and_run(tmp_path, SETTING)
    path = tmp_path / "small.json.gz"
    first = path.read_bytes()
    records.save(load(path), path)
    assert path.read_bytes() == first and first[:2] == b"\x1f\x8b"
    path.write_bytes(first[:-9])
    with pytest.raises(RecordError, match="is not a record"):
        load(path)
