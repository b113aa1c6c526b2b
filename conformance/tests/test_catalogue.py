"""The catalogue against itself, against the checks, and against what other parts rely on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gridbuf_conformance.exports import interfaces
from gridbuf_conformance.rules import CHECKS, CONSUMER_CHECKS, catalogue
from gridbuf_conformance.rules.registry import check, consumer_check

RULES = catalogue.load()
SIDES = ("producer", "consumer")


@pytest.mark.parametrize(
    ("change", "is_other"),
    [
        ({"level": "SHOULD"}, True),
        ({"preconditions": ("PB-01",)}, True),
        ({"why": "", "requirement": "", "example": ""}, False),
    ],
)
def test_the_version_changes_with_what_decides(
    change: dict[str, object], is_other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.fullmatch("[0-9a-f]{12}", catalogue.VERSION)
    changed = {**RULES, "PB-24": replace(RULES["PB-24"], **change)}
    monkeypatch.setattr(catalogue, "load", lambda: changed)
    assert (catalogue.digest() != catalogue.VERSION) is is_other


def test_a_new_rule_is_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {id_: rule for id_, rule in RULES.items() if id_ != "PB-24"}
    monkeypatch.setattr(catalogue, "load", lambda: fewer)
    assert catalogue.digest() != catalogue.VERSION


@pytest.mark.parametrize("group", catalogue.GROUPS)
def test_the_ids_of_a_group_have_no_gap(group: str) -> None:
    """None is dropped or used again: the ids run from 01 on, in this order."""
    ids = [id_ for id_ in RULES if id_.startswith(f"{group}-")]
    assert ids and ids == [f"{group}-{n:02}" for n in range(1, len(ids) + 1)]


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_row_is_complete(rule: catalogue.Rule) -> None:
    assert rule.level in catalogue.LEVELS
    assert rule.requirement.endswith(".")
    assert str(rule.source)
    assert rule.why and rule.fix and rule.example, "`explain` prints them of every rule"
    assert rule.sides
    if not rule.untestable:
        assert rule.since
        assert rule.oracle


SOURCES = [
    pytest.param(rule, side, id=f"{rule.id}-{side}")
    for rule in RULES.values()
    for side in rule.sides
]


@pytest.mark.parametrize(("rule", "side"), SOURCES)
def test_a_level_is_no_higher_than_the_verb_of_its_sentence(
    rule: catalogue.Rule, side: str
) -> None:
    level, verb = rule.level_of(side), rule.source_of(side).verb
    if level == "MUST":
        assert verb in catalogue.BINDING, (
            "no text demands it: lower the level, or find the sentence"
        )
    elif level in ("ROBUST", "SUITE"):
        assert verb not in catalogue.BINDING, "a text demands it: raise the level"


@pytest.mark.parametrize(("rule", "side"), SOURCES)
def test_a_source_leads_to_its_sentence(rule: catalogue.Rule, side: str) -> None:
    source = rule.source_of(side)
    assert source.verb in catalogue.VERBS
    assert source.section
    assert source.says.endswith(".") and len(source.says) <= 200
    assert source.document in catalogue.documents()
    place = r"#L\d+(-L\d+)?" if "/blob/" in source.text.url else r"#[\w.-]+"
    assert re.search(rf"{place}$", source.url), source.url


def test_documents_are_of_a_version_and_all_are_used() -> None:
    documents = catalogue.documents()
    used = {rule.source_of(side).document for rule in RULES.values() for side in SIDES}
    assert used | {"pep-3118"} == set(documents)
    for document in documents.values():
        assert document.kind in catalogue.KINDS
        assert document.version
        assert not re.search(r"/(main|master|latest|stable)/", document.url), "names no version"


def test_rules_on_own_documents_are_those_of_gt4py_and_allocation() -> None:
    groups = {rule.group for rule in RULES.values() if not rule.is_published}
    assert groups == {"GT", "XA"}
    assert [r.id for r in RULES.values() if r.group == "XA" and not r.is_published] == ["XA-17"]
    assert [r.id for r in RULES.values() if r.group == "GT" and r.is_published] == []


def test_sections_of_the_own_specification_exist() -> None:
    page = Path(__file__).parents[2] / "docs" / "spec.md"
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {"#" + re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    own = {r.source.at for r in RULES.values() if r.source.text.kind == "own"}
    assert own <= anchors


def test_a_consumer_level_differs_and_has_a_check() -> None:
    for rule in RULES.values():
        if rule.consumer_level:
            assert rule.consumer_level in catalogue.LEVELS
            assert rule.consumer_level != rule.level
            assert rule.judges("consumer") and rule.consumer_source is not None


def test_robust_exports_are_about_a_rule_for_consumers() -> None:
    robust = [v for i in interfaces().values() for v in i.variants.values() if v.is_robust]
    ids = {"AS-04", "DL-08", "CS-02", "DL-23", "DP-32", "GT-02", "PB-16", "PB-17", "XA-15"}
    ids |= {"AI-16", "AI-18"}
    assert {variant.rules[0] for variant in robust} == ids


def test_few_rules_are_untestable() -> None:
    assert len([rule for rule in RULES.values() if rule.untestable]) <= 10
    assert not any(rule.untestable for rule in RULES.values() if rule.id in CHECKS)


ROW = {
    "level": "MUST",
    "requirement": "It is so.",
    "source": {"document": "pep-3118", "section": "x", "at": "#x", "verb": "must"},
    "says": "It has to be so.",
}


@pytest.mark.parametrize("key", ["level", "requirement", "source"])
def test_a_row_without_a_needed_key_is_an_error(key: str) -> None:
    row = {name: value for name, value in ROW.items() if name != key}
    if key == "source":
        del row["says"]
    assert catalogue.rule_of("PB-01", ROW).level == ROW["level"]
    with pytest.raises(ValueError, match=f"PB-01: {key} missing in its row"):
        catalogue.rule_of("PB-01", row)


def test_a_row_that_nothing_decides_is_an_error() -> None:
    with pytest.raises(ValueError, match="PB-99 has no check; decorate one"):
        catalogue.rule_of("PB-99", ROW)
    assert catalogue.rule_of("PB-99", {**ROW, "untestable": "both are legal"}).sides == (
        "producer",
    )


@pytest.mark.parametrize(("key", "value"), [("level", "must"), ("consumer_level", "bad")])
def test_a_row_with_an_unknown_word_is_an_error(key: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"PB-01: level .*'{value}'.*use one of MUST"):
        catalogue.rule_of("PB-01", {**ROW, key: value})


def test_a_check_without_a_row_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for checks in (CHECKS, CONSUMER_CHECKS):
        with monkeypatch.context() as patch:
            patch.setitem(checks, "PB-99", next(iter(checks.values())))
            with pytest.raises(ValueError, match="checks without a row in rules.toml: PB-99"):
                catalogue._rules.__wrapped__()


def test_a_second_check_of_a_rule_is_an_error() -> None:
    for register in (check("PB-01"), consumer_check("PB-07")):
        with pytest.raises(ValueError, match="PB-0. has two checks"):
            register(lambda *_: None)


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


def test_a_step_breaks_one_rule_that_is_judged() -> None:
    steps = [(step, rule.id) for rule in RULES.values() for step in rule.steps]
    assert len(dict(steps)) == len(steps)
    assert {rule for _, rule in steps} <= CHECKS.keys()


@pytest.mark.parametrize(
    ("step", "rule"),
    [
        ("dp:call=copy=True", "DP-20"),
        ("dp:call=anything", "DP-03"),
        ("dp", "DP-03"),
        ("pb:release=FULL_RO", "PB-24"),
        ("gt:hook=acquire of gpu", "GT-03"),
        ("no such step", "GT-20"),
    ],
)
def test_a_step_has_the_rule_of_its_longest_name(step: str, rule: str) -> None:
    assert catalogue.rule_of_step(step) == rule


def test_no_row_holds_a_path_or_an_address() -> None:
    for rule in RULES.values():
        text = " ".join((rule.requirement, rule.why, rule.fix, rule.example, rule.source.says))
        assert not re.search(r"/(?:tmp|home|work|root)\b|0x[0-9a-f]{6,}", text), rule.id


class TestSelect:
    def test_none_selects_all(self) -> None:
        producers = [rule for rule in RULES.values() if rule.judges("producer")]
        consumers = [rule for rule in RULES.values() if rule.judges("consumer")]
        assert catalogue.select() == catalogue.select("") == producers
        assert catalogue.select(side="consumer") == consumers
        assert producers and consumers

    def test_patterns_select_in_catalogue_order(self) -> None:
        ids = [rule.id for rule in catalogue.select("XA-03, DL-0*")]
        assert ids == ["DL-01", *(f"DL-0{n}" for n in range(2, 10)), "XA-03"]

    def test_a_level_selects_its_rules(self) -> None:
        robust = catalogue.select("ROBUST", "consumer")
        assert [rule.id for rule in robust][:2] == ["AI-02", "AI-05"]
        assert all(rule.level_of("consumer") == "ROBUST" for rule in robust)
        assert catalogue.select("ROBUST") == []

    def test_pattern_of_the_other_sides_rules_selects_nothing(self) -> None:
        assert catalogue.select("CAI-13,DP-3*") == []

    @pytest.mark.parametrize("pattern", ["PB-99", "QQ-*", "PBX", "PB-01,XX-1"])
    def test_unknown_pattern_is_named(self, pattern: str) -> None:
        with pytest.raises(catalogue.UnknownRule, match=re.escape(repr(pattern.split(",")[-1]))):
            catalogue.select(pattern)

    def test_load_returns_a_copy(self) -> None:
        catalogue.load().clear()
        assert list(catalogue.load()) == list(RULES)
