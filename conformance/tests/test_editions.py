"""`--spec`: rules whose text is newer than the chosen editions do not judge, and the report says
so.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_line import run

import gridbuf_conformance as gc
from gridbuf_conformance.engine.consumer_run import check_exports
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.rules import catalogue
from gridbuf_conformance.rules.scope import UnknownEdition, chosen, editions
from gridbuf_conformance_mutants import consume_dlpack, dlpack, target
from gridbuf_conformance_mutants.consumer import exports_for
from gridbuf_conformance_mutants.reference import Reference

RULES = catalogue.load()
PLAN = Plan(shape=(3, 4), fill=3)


def test_each_rule_of_a_published_text_names_a_known_edition() -> None:
    for rule in RULES.values():
        name, _, edition = rule.since.rpartition("-")
        if rule.is_published and not rule.untestable:
            assert edition in editions()[name], rule.id
        else:
            assert name not in editions(), rule.id


def test_the_newest_editions_leave_out_no_rule() -> None:
    newest = ",".join(f"{name}-{known[-1]}" for name, known in editions().items())
    report = gc.check(bytearray(8), spec=newest)
    assert report.outcomes == gc.check(bytearray(8)).outcomes
    assert report.data["spec"] == newest.split(",") and report.data["notes"] == []


def test_a_rule_that_is_newer_does_not_judge() -> None:
    mutant = dlpack.SharesForItsOwnDevice()
    assert check_plans(mutant, [PLAN], isolate=False).failed == ("DP-20",)
    assert RULES["DP-20"].since == "array-api-2023.12"
    same = check_plans(mutant, [PLAN], isolate=False, spec="ARRAY-API-2023.12")
    assert same.failed == ("DP-20",) and same.data["spec"] == ["array-api-2023.12"]
    older = check_plans(mutant, [PLAN], isolate=False, spec=["array-api-2022.12", "python-3.13"])
    assert older.failed == () and older.exit_code == 0
    (entry,) = (one for one in older.data["rules"] if one["id"] == "DP-20")
    assert entry["outcome"] == "UNSUPPORTED" and "array-api-2023.12" in entry["note"]
    assert older.data["spec"] == ["array-api-2022.12", "python-3.13"]
    assert any("newer than array-api-2022.12" in note for note in older.data["notes"])
    assert "newer than array-api-2022.12" in str(older)


def test_rules_of_other_documents_judge_as_before() -> None:
    plain = check_plans(Reference(), [PLAN], isolate=False).outcomes
    older = check_plans(Reference(), [PLAN], isolate=False, spec="dlpack-0.8").outcomes
    changed = {id_ for id_ in plain if plain[id_] != older[id_]}
    assert changed and all(RULES[id_].since.startswith("dlpack-1.") for id_ in changed)
    assert all(older[id_] == "UNSUPPORTED" for id_ in changed)


def test_a_newer_rule_blocks_no_other() -> None:
    """DP-20 is a precondition of XA-08: unless it is left out, its failure keeps XA-08 from being
    judged.
    """
    assert "DP-20" in RULES["XA-08"].preconditions
    judged = {}
    for spec in (None, "array-api-2021.12"):
        report = check_plans(
            dlpack.SharesForItsOwnDevice(), [PLAN], isolate=False, rules="XA-08", spec=spec
        )
        judged[spec] = report.outcomes
    assert judged == {
        None: {"XA-08": "BLOCKED"},
        "array-api-2021.12": {"XA-08": "PASS"},
    }


def test_a_consumer_is_not_judged_by_newer_rules() -> None:
    mutant = consume_dlpack.RefusesCopies
    rules = {"DL-01", "DL-10"}
    exports = [e for e in exports_for(mutant.interfaces) if rules.intersection(e.variant.rules)]
    options = {"isolate": False, "rules": ",".join(rules)}
    found = check_exports(target(mutant), exports, **options)
    assert found.outcomes == {"DL-01": "FAIL", "DL-10": "PASS"}
    older = check_exports(target(mutant), exports, **options, spec="dlpack-0.8")
    assert older.outcomes == {"DL-01": "UNSUPPORTED", "DL-10": "PASS"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("dlpack-9.9", "dlpack-0.2, 0.3"),
        ("dlpack", "array-api-2021.12"),
        ("opengl-4", "python-3.0"),
        ("dlpack-1.0,dlpack-1.1", "two editions"),
    ],
)
def test_an_unknown_edition_is_a_usage_error_that_lists_the_known_ones(
    spec: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UnknownEdition, match=words):
        chosen(spec)
    with pytest.raises(ValueError, match=words):
        gc.check(bytearray(8), spec=spec)
    done = run("check", "bytes", "--spec", spec, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_the_command_names_the_editions_in_its_report_and_in_the_replay(tmp_path: Path) -> None:
    mutant = "gridbuf_conformance_mutants.dlpack:SharesForItsOwnDevice"
    command = ("check", mutant, "--profile", "smoke", "--rules", "DP-20", "--report", "run.json")
    older = run(*command, "--spec", "array-api-2022.12", cwd=tmp_path)
    assert older.returncode == 0, older.stdout + older.stderr
    assert json.loads((tmp_path / "run.json").read_text())["spec"] == ["array-api-2022.12"]
    newer = run(*command, "--spec", "array-api-2024.12", cwd=tmp_path)
    assert newer.returncode == 1
    (failure, *_) = json.loads((tmp_path / "run.json").read_text())["rules"][0]["failures"]
    assert "--spec array-api-2024.12" in failure["replay"]
    assert run(*shlex.split(failure["replay"])[1:], cwd=tmp_path).returncode == 1
