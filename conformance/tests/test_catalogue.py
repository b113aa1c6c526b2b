"""The catalogue against itself, against the checks, and against what other parts rely on."""

from __future__ import annotations

import re

import pytest

from gridbuf_conformance import catalogue
from gridbuf_conformance.judge import STEP_RULES
from gridbuf_conformance.rules import CHECKS, CONSUMER_CHECKS

RULES = catalogue.load()
IN_SCOPE = [rule for rule in RULES.values() if rule.in_scope]


def test_all_published_ids_have_rows() -> None:
    """The ids of each group run from 01 on without a gap: none is ever dropped or used again."""
    counts = {
        "AI": 34,
        "AS": 8,
        "CAI": 30,
        "PB": 35,
        "DL": 30,
        "DP": 33,
        "DX": 12,
        "GT": 28,
        "XA": 18,
    }
    expected = {f"{group}-{n:02}" for group, count in counts.items() for n in range(1, count + 1)}
    assert RULES.keys() == expected
    assert len(RULES) == 228
    assert set(counts) == set(catalogue.GROUPS)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_row_is_complete(rule: catalogue.Rule) -> None:
    assert rule.level in catalogue.LEVELS
    assert rule.scope in ("now", "later")
    assert rule.requirement.endswith(".")
    assert rule.source
    assert rule.why and rule.fix and rule.example, "`explain` prints them of every rule"
    if rule.check is not None or rule.consumer_check is not None:
        assert rule.since
        assert rule.oracle


@pytest.mark.parametrize("rule", IN_SCOPE, ids=lambda rule: rule.id)
def test_rule_in_scope_has_a_check_or_a_reason(rule: catalogue.Rule) -> None:
    assert rule.sides, "neither a check, nor a consumer's, nor a reason why there is none"
    assert rule.check is None or rule.untestable is None


def test_nothing_is_left_for_later() -> None:
    assert [rule.id for rule in RULES.values() if not rule.in_scope] == []


def test_few_rules_are_untestable() -> None:
    assert len([rule for rule in IN_SCOPE if rule.untestable]) <= 10


def test_every_check_names_a_row_and_every_row_its_check() -> None:
    assert {id_: check.name for id_, check in CHECKS.items()} == {
        rule.id: rule.check for rule in RULES.values() if rule.check is not None
    }
    assert {id_: check.name for id_, check in CONSUMER_CHECKS.items()} == {
        rule.id: rule.consumer_check for rule in RULES.values() if rule.consumer_check is not None
    }
    assert all(RULES[id_].in_scope for id_ in (*CHECKS, *CONSUMER_CHECKS))


def test_preconditions_are_judged_rules_without_cycles() -> None:
    def visit(rule: str, path: tuple[str, ...]) -> None:
        assert rule not in path, f"{' -> '.join(path)} -> {rule}"
        for before in RULES[rule].preconditions:
            assert before in CHECKS, f"{rule} waits for {before}, which is not judged"
            visit(before, (*path, rule))

    for rule in RULES:
        visit(rule, ())


def test_oracles_are_the_known_ones() -> None:
    known = {"META", "ARITH", "WALK", "POKE", "MAP", "LIFE", "AGAIN", "VIEW", "PB", "SLOW", "FAKE"}
    assert {oracle for rule in RULES.values() for oracle in rule.oracle} <= known


def test_steps_fail_judged_rules() -> None:
    assert {rule for rules in STEP_RULES.values() for rule in rules} <= CHECKS.keys()


def test_no_row_holds_a_path_or_an_address() -> None:
    for rule in RULES.values():
        text = " ".join((rule.requirement, rule.why, rule.fix, rule.example, rule.source))
        assert not re.search(r"/(?:tmp|home|work|root)\b|0x[0-9a-f]{6,}", text), rule.id


class TestSelect:
    def test_none_selects_all_in_scope(self) -> None:
        producers = [rule for rule in IN_SCOPE if rule.judges("producer")]
        consumers = [rule for rule in IN_SCOPE if rule.judges("consumer")]
        assert catalogue.select() == catalogue.select("") == producers
        assert catalogue.select(side="consumer") == consumers
        assert producers and consumers

    def test_patterns_select_in_catalogue_order(self) -> None:
        ids = [rule.id for rule in catalogue.select("XA-03, DL-0*")]
        assert ids == ["DL-01", *(f"DL-0{n}" for n in range(2, 10)), "XA-03"]

    def test_pattern_of_later_rules_selects_nothing(self) -> None:
        assert catalogue.select("CAI-13,DP-3*") == []

    @pytest.mark.parametrize("pattern", ["PB-99", "QQ-*", "pb", "PB-01,XX-1"])
    def test_unknown_pattern_is_named(self, pattern: str) -> None:
        with pytest.raises(catalogue.UnknownRule, match=re.escape(repr(pattern.split(",")[-1]))):
            catalogue.select(pattern)

    def test_load_returns_a_copy(self) -> None:
        catalogue.load().clear()
        assert len(catalogue.load()) == 228
