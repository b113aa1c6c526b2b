"""`merge`: reports of several runs side by side, and refused input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from rendering import load_case

from gridbuf_conformance import check
from gridbuf_conformance.cli.merge import MergeError, merged
from gridbuf_conformance.engine import producer_run
from gridbuf_conformance.render import FORMATS, to_json


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, document: object) -> Path:
    path = Path(name)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def survey() -> list[dict]:
    return load_case("survey")[0]


def test_reports_surveys_and_event_streams_come_together(folder):
    reports, absent = load_case("survey")
    live = check(bytearray(3), rules="PB-0*")
    write("numpy.json", reports[1])
    write("others.json", to_json([reports[0], *reports[2:]], absent))
    live.save("live.jsonl")
    found, missing = merged([Path("numpy.json"), Path("others.json"), Path("live.jsonl")])
    names = [report["target"]["name"] for report in found]
    others = [report["target"]["name"] for report in [reports[0], *reports[2:]]]
    assert names == ["numpy", *others, "builtins.bytearray"]
    assert found[0] == reports[1] and found[-1] == live.data
    assert [library.name for library in missing] == [library.name for library in absent]


def test_what_one_file_judged_is_not_absent(folder):
    report = survey()[1]
    absent = {"name": "numpy", "reason": "numpy is not installed", "remedy": "pip install numpy"}
    write("a.json", {"schema": "gridbuf-conformance-survey/2", "reports": [], "absent": [absent]})
    assert merged([Path("a.json"), write("b.json", report)])[1] == []


def test_versions_pythons_and_sides_are_libraries_of_their_own(folder):
    report = survey()[1]
    files = [write("a.json", report)]
    for key, value in (
        ("version", "1.26"),
        ("python", "3.13.2"),
        ("platform", "linux aarch64"),
        ("side", "consumer"),
    ):
        files.append(write(f"{key}.json", {**report, "target": {**report["target"], key: value}}))
    assert len(merged(files)[0]) == 5


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["a.json", "a.json"], r"numpy 2.4.6 \(Python 3.11.2, .*\) is in 'a.json', twice; leave"),
        (["a.json", "copy.json"], r"is in 'a.json' and 'copy.json'; leave one of them out"),
        (
            ["a.json", "new.json"],
            "'new.json' has the schema 'gridbuf-conformance-report/3', this version reads",
        ),
        (["old.json"], "'gridbuf-conformance-report/1', .* run it again with this version"),
        (["old-survey.json"], "'gridbuf-conformance-survey/1', .* run it again with this version"),
        (["none.json"], "cannot read 'none.json': No such file"),
        (["."], "cannot read '.': Is a directory"),
        (["half.json"], "'half.json' is not JSON"),
        (["deep.json"], "'deep.json' is not JSON"),
        (["binary.json"], "it is not UTF-8"),
        (["list.json"], "'list.json' is not a report"),
        (["plan.json"], "'plan.json' is not a report"),
        (["torn.json"], "'torn.json' is not a whole report: the key 'rules' is missing"),
        (["odd.json"], "'odd.json' is not a whole report: a part of it is missing"),
        (["forged.json"], "'forged.json' is not a whole report"),
        (["torn-survey.json"], "'torn-survey.json' is not a whole survey"),
        (["absent.json"], "'absent.json' is not a whole survey"),
        (["cut.jsonl"], "'cut.jsonl' is not a finished run"),
        (["not.jsonl"], "'not.jsonl' is not an event stream"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_merged_is_told_in_a_sentence(folder, files, said):
    report = survey()[1]
    rule = report["rules"][0]
    write("a.json", report)
    write("copy.json", report)
    write("new.json", {**report, "schema": "gridbuf-conformance-report/3"})
    write("old.json", {**report, "schema": "gridbuf-conformance-report/1"})
    write("old-survey.json", {"schema": "gridbuf-conformance-survey/1", "reports": [report]})
    write("half.json", json.dumps(report)[:100])
    write("deep.json", "[" * 100_000)
    Path("binary.json").write_bytes(b"\xff\xfe")
    write("list.json", [report])
    write("plan.json", {"shape": [1]})
    write("torn.json", {key: value for key, value in report.items() if key != "rules"})
    write("odd.json", {**report, "rules": [{"id": "PB-01"}]})
    write("forged.json", {**report, "rules": [{**rule, "id": "<b>PB-01</b>"}]})
    write("torn-survey.json", {"schema": "gridbuf-conformance-survey/2", "reports": 3})
    write(
        "absent.json",
        {"schema": "gridbuf-conformance-survey/2", "reports": [], "absent": [{"x": 1}]},
    )
    write("cut.jsonl", '{"event":"start"}\n')
    write("not.jsonl", "[1]\n")
    with pytest.raises(MergeError, match=said) as error:
        merged([Path(name) for name in files])
    assert "\n" not in str(error.value)


def test_the_command_writes_every_format(folder):
    for name in ("array", "bytes"):
        report = producer_run.check_producer(name, profile="smoke", rules="PB-0*")
        report.save(f"{name}.json")
    written = [word for suffix in FORMATS for word in ("--report", f"all{suffix}")]
    done = run("merge", "array.json", "bytes.json", *written, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "✓ array" in done.stdout and "✓ bytes" in done.stdout
    assert all((folder / f"all{suffix}").stat().st_size > 80 for suffix in FORMATS)
    again = run("merge", "all.json", cwd=folder)
    assert again.stdout == done.stdout
    twice = run("merge", "all.json", "bytes.json", cwd=folder)
    assert twice.returncode == 2 and twice.stderr.startswith("error: producer bytes ")
