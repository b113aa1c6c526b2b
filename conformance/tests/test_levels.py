"""Levels: which outcome a broken rule has, and that what no text demands never fails a run."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import pytest
from rich.console import Console

from gridbuf_conformance.engine import consumer_run
from gridbuf_conformance.known import KnownError, parse
from gridbuf_conformance.outcomes import ExitCode, Outcome, Verdict, exit_code_of, graded, worst
from gridbuf_conformance.render import badge, console, html, junit, markdown
from gridbuf_conformance.render.report import Report
from gridbuf_conformance.render.summary import conclusion
from gridbuf_conformance.rules.catalogue import matching, select
from gridbuf_conformance_mutants.consumer import exports_for

HOST = "gridbuf_conformance_mutants.host_consumers"
DIED = (Outcome.CRASH, Outcome.TIMEOUT, Outcome.UNSTABLE)


@pytest.mark.parametrize(
    ("level", "outcome"),
    [("MUST", "FAIL"), ("SHOULD", "ADVISORY"), ("SUITE", "ADVISORY"), ("ROBUST", "FRAGILE")],
)
def test_a_broken_rule_has_the_outcome_of_its_level(level: str, outcome: str) -> None:
    assert graded(Verdict(Outcome.FAIL, "this", "that"), level).outcome == outcome


@pytest.mark.parametrize("outcome", DIED)
def test_a_death_is_fragile_where_no_text_demands_survival(outcome: Outcome) -> None:
    died = Verdict(outcome, "the process lives on", "SIGABRT")
    assert graded(died, "ROBUST") == Verdict(
        Outcome.FRAGILE, "the process lives on", f"{outcome}: SIGABRT"
    )
    assert graded(died, "MUST") == graded(died, "SHOULD") == died


@pytest.mark.parametrize("outcome", set(Outcome) - {Outcome.FAIL, *DIED})
def test_other_outcomes_have_no_level(outcome: Outcome) -> None:
    verdict = Verdict(outcome)
    if not verdict.failed:
        assert graded(verdict, "ROBUST") == graded(verdict, "SHOULD") == verdict


def test_fragile_is_worse_than_an_advisory_and_conforms() -> None:
    order = [Outcome.FAIL, Outcome.FRAGILE, Outcome.ADVISORY, Outcome.PASS]
    assert [worst(order[place:]) for place in range(len(order))] == order
    assert exit_code_of([Outcome.FRAGILE, Outcome.PASS]) is ExitCode.CONFORMANT


@pytest.fixture(scope="module")
def fragile() -> Report:
    """A consumer that guesses the type of elements."""
    exports = [e for e in exports_for(["array-interface"]) if "AI-02" in e.variant.rules]
    target = f"{HOST}:GuessesTheType"
    return Report(consumer_run.check_exports(target, exports, rules="AI-02,XA-15").data)


def test_a_fragile_consumer_conforms(fragile: Report) -> None:
    assert fragile.outcomes["AI-02"] == "FRAGILE"
    assert fragile.failed == () and fragile.exit_code == 0
    (rule,) = (rule for rule in fragile.data["rules"] if rule["id"] == "AI-02")
    assert rule["level"] == "ROBUST"
    assert rule["failures"][0]["replay"].startswith("gridbuf-conformance replay --consumer")
    kind, sentence = conclusion(fragile.data)
    assert kind == "passed" and "1 fragile" in sentence


def test_reports_count_fragile_rules_separately(fragile: Report) -> None:
    assert fragile.data["summary"]["FRAGILE"] == 1
    out = io.StringIO()
    console.render(fragile.data, Console(file=out, width=100, color_system=None))
    assert "fragile" in out.getvalue() and "AI-02  ROBUST  FRAGILE" in out.getvalue()
    page = markdown.render([fragile.data])
    assert "| fragile |" in page and "AI-02" in page
    (suite,) = ElementTree.fromstring(junit.render([fragile.data]))
    (case,) = (case for case in suite if "AI-02" in case.get("name", ""))
    assert case.find("failure") is None
    text = case.findtext("system-out") or ""
    assert text.startswith("FRAGILE")
    assert 'class="rule k-fragile"' in html.render([fragile.data])
    assert "✓" in badge.render([fragile.data])


def test_a_level_selects_rules_of_a_side() -> None:
    found = matching("ROBUST")
    assert {rule.id for rule in found} == {rule.id for rule in select("ROBUST", "consumer")}


def test_a_record_of_a_fragile_rule_is_refused() -> None:
    record = """
[[known]]
rule = "AI-02"
{side} = "mylib:asarray"
plan = '{plan}'
reason = "later"
"""
    plan = '{"export":"array-interface:absent-typestr"}'
    with pytest.raises(KnownError, match="AI-02 is a ROBUST: breaking it is fragile"):
        parse(record.format(side="consumer", plan=plan), "known.toml")
    (known,) = parse(record.format(side="producer", plan="{}"), "known.toml")
    assert known.rule == "AI-02"
