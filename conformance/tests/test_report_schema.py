"""report.schema.json: every report and survey the suite writes is valid by it, and damaged ones are
not.
"""

from __future__ import annotations

import copy
import json
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from rendering import CASES, load_case

from gridbuf_conformance import check
from gridbuf_conformance.engine import consumer_run, producer_run
from gridbuf_conformance.known import KnownFailures, parse
from gridbuf_conformance.outcomes import Outcome
from gridbuf_conformance.render import SURVEY_SCHEMA, to_json
from gridbuf_conformance.render.report import SCHEMA, Report
from gridbuf_conformance.render.summary import Absent
from gridbuf_conformance.rules.catalogue import LEVELS

SOURCE = json.loads(files("gridbuf_conformance.render").joinpath("report.schema.json").read_text())
PRODUCERS = Path(__file__).parent / "known_producers.py"
VALIDATOR = Draft202012Validator(SOURCE)
RULES = "AI-0*,XA-11,GT-20"


def faults_of(document: object) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(document)]


def of(name: str, **options) -> Report:
    return producer_run.check_producer(
        f"{PRODUCERS}:{name}", profile="smoke", rules=RULES, **options
    )


def test_the_schema_says_what_the_code_says():
    assert SOURCE["$defs"]["outcome"]["enum"] == [str(outcome) for outcome in Outcome]
    assert SOURCE["$defs"]["rule"]["properties"]["level"]["enum"] == list(LEVELS)
    schemas = [SOURCE["$defs"][name]["properties"]["schema"] for name in ("report", "survey")]
    assert schemas == [{"const": SCHEMA}, {"const": SURVEY_SCHEMA}]
    assert SOURCE["$id"].endswith(f"report:{SCHEMA.rpartition('/')[2]}")


def test_every_key_is_described_and_no_key_is_left_out():
    report = of("Faulty").data
    parts = SOURCE["$defs"]
    assert report.keys() == parts["report"]["properties"].keys()
    assert report["target"].keys() == parts["target"]["properties"].keys()
    rule = next(rule for rule in report["rules"] if rule["failures"])
    assert rule.keys() == parts["rule"]["properties"].keys()
    assert rule["failures"][0].keys() == parts["failure"]["properties"].keys()
    for name, part in parts.items():
        assert set(part.get("required", ())) == part.get("properties", {}).keys(), name


@pytest.mark.parametrize(
    "make",
    [
        lambda: of("Good"),
        lambda: of("Faulty"),
        lambda: of("Dying"),
        lambda: of("DyingInTheEnd"),
        lambda: of("Choosy", seed=7),
        lambda: of("Faulty", known=_known('{"shape":[3],"dtype":"uint8"}')),
        lambda: of("Faulty", known=_known('{"shape":[1],"dtype":"uint8"}')),
        lambda: check(bytearray(b"abc")),
        lambda: check(bytearray(b"abc"), rules="CAI-*"),
        lambda: producer_run.check_producer("array", profile="smoke", rules="PB-31"),
        lambda: consumer_run.check_consumer(
            f"{PRODUCERS}:reversed_view", profile="smoke", rules="PB-*"
        ),
    ],
    ids="good faulty dying late choosy xfail xpass object nothing none consumer".split(),
)
def test_what_runs_write_is_valid(make):
    report = make()
    assert faults_of(report.data) == []
    assert faults_of(json.loads(report.to_json())) == []


def _known(plan: str) -> KnownFailures:
    text = f"[[known]]\nrule='AI-03'\nproducer='faulty'\nplan='{plan}'\nreason='x'\n"
    return KnownFailures(tuple(parse(text, "known.toml")))


def test_surveys_are_valid():
    reports = [of("Good").data, of("Faulty").data]
    absent = [Absent("cupy", "cupy is not installed", "pip install cupy-cuda12x")]
    assert faults_of(json.loads(to_json(reports, absent))) == []
    assert faults_of(json.loads(to_json([], []))) == []


@pytest.mark.parametrize("name", CASES)
def test_the_renderers_inputs_are_valid(name):
    """But for the key `side`, which reports of older versions lack."""
    for report in copy.deepcopy(load_case(name)[0]):
        report["target"].setdefault("side", "producer")
        assert faults_of(report) == []


@pytest.mark.parametrize(
    "tear",
    [
        lambda report: report.pop("rules"),
        lambda report: report["target"].pop("side"),
        lambda report: report["rules"][0].update(outcome="OK"),
        lambda report: report["rules"][0].update(id="<b>"),
        lambda report: report["rules"][0].update(plans=-1),
        lambda report: report["summary"].update(GOOD=1),
        lambda report: report.update(notes="none"),
        lambda report: report.update(schema="gridbuf-conformance-report/1"),
        lambda report: report["timing"].update(total_s="long"),
        lambda report: report["rules"][0]["failures"].append({}),
    ],
)
def test_what_is_torn_is_not_valid(tear):
    report = copy.deepcopy(check(bytearray(3), rules="PB-0*").data)
    assert faults_of(report) == []
    tear(report)
    assert faults_of(report)
