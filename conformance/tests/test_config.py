"""One configuration for the command, pytest and the API: its place, its keys, its errors."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from command_line import run

import gridbuf_conformance as gc
from gridbuf_conformance import cli
from gridbuf_conformance.config import Config, ConfigError, Interop, load
from gridbuf_conformance.engine.session import Options
from gridbuf_conformance.plan import profiles

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCUMENT = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
SECTION = re.search(r"^## Configuration\n(.*?)(?=^## )", DOCUMENT, re.DOTALL | re.MULTILINE)[1]
EXAMPLE = re.search(r"```toml\n(.*?)```", SECTION, re.DOTALL)[1]
"""The example of the documentation, with every key."""

MINE = """
import gridbuf_conformance as gc

class Producer:
    name = "mine"
    capabilities = gc.Capabilities(dtypes=("uint8",), min_ndim=1, max_ndim=1, max_extent=64,
                                   layouts="C", byteorders=("native",), readonly=(False,))

    def produce(self, plan):
        return bytearray(plan.content())

def view(exporter):
    return memoryview(exporter)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes the table of a project, whose folder is the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)

    def write(text: str, table: str = "tool.gridbuf-conformance") -> Path:
        path = tmp_path / "pyproject.toml"
        path.write_text(f"[{table}]\n{text}\n")
        return path

    return write


@pytest.fixture
def inside(capsys):
    """The command in this process: exit code, output, errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        return cli.main(arguments), *capsys.readouterr()

    return call


def test_the_example_of_the_documentation_has_every_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(EXAMPLE)
    assert load() == Config(
        producers=("mylib.testing:Producer",),
        consumers=("mylib:asarray",),
        profile="smoke",
        rules=("PB-*", "XA-*"),
        spec=("array-api-2024.12", "dlpack-1.0"),
        known=("ci/known.toml",),
        seed=7,
        time_limit=20.0,
        interop=Interop(("mylib",), ("numpy",), "ci/interop.json"),
        file=tmp_path / "pyproject.toml",
    )
    table = tomllib.loads(EXAMPLE)["tool"]["gridbuf-conformance"]
    inner = [f"interop.{key}" for key in table.pop("interop")]
    listed = re.findall(r"`([\w.-]+)`(?=[^|]*\|.*\|.*\|$)", SECTION, re.MULTILINE)
    assert {*table, *inner} <= {*listed}


def test_there_is_one_default_profile():
    assert Config().profile == Options().profile == profiles.DEFAULT
    assert gc.check(bytearray(8), config=False).data["profile"] == profiles.DEFAULT
    macro = Path(__file__).parents[1] / "defs.bzl"
    assert f'profile = "{profiles.DEFAULT}"' in macro.read_text()


def test_it_is_found_from_the_working_directory_upwards(project, tmp_path, monkeypatch):
    project(
        'profile = "smoke"\nproducers = ["mine.py:Producer", "numpy"]\nknown = ["k.toml", "numpy"]'
    )
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text(
        "[tool.other]\n"
    )  # without the table: passed over
    monkeypatch.chdir(folder)
    found = load()
    assert found.profile == "smoke" and found.file == tmp_path / "pyproject.toml"
    assert found.producers == ("../../mine.py:Producer", "numpy")
    assert found.known == ("../../k.toml", "numpy")
    assert load(False) == Config()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('profil = "smoke"', "unknown key 'profil'; did you mean profile? The keys are "),
        ('profile = "fast"', "profile is 'fast', must be one of smoke, default"),
        ("profile = 3", "profile is 3, must be a string"),
        ("known = [1]", "known is [1], must be a list of strings"),
        ("rules = true", "rules is True, must be a list of strings"),
        ('storage = "yes"', "storage is 'yes', must be true or false"),
        ("seed = -1", "seed is -1, must be an integer in 0..4294967295"),
        ("seed = true", "seed is True, must be an integer"),
        ("time-limit = 0", "time-limit is 0, must be a number of seconds above 0, at most 3600"),
        ("time_limit = 5", "did you mean time-limit?"),
        ("interop = 3", "interop is 3, must be a table; its keys are library, against, compare"),
        ("interop = { expected = 'r.json' }", ".interop]: unknown key 'expected'"),
        ("interop = { compare = [] }", "compare is [], must be a string"),
        ("profile = smoke", "pyproject.toml is not TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_file_key_and_what_is_accepted(project, inside, text, said):
    project(text)
    with pytest.raises(ConfigError) as error:
        load()
    assert str(error.value).startswith("pyproject.toml") and said in str(error.value)
    for command in (("check", "array"), ("known", "--update", "k.toml"), ("interop",)):
        code, _, told = inside(*command)
        assert code == 2 and said in told
    with pytest.raises(ConfigError):
        gc.check(bytearray(8))


@pytest.mark.parametrize(
    ("name", "said"),
    [("absent.toml", "cannot read absent.toml"), ("other.toml", "has no table [tool.gridbuf-")],
)
def test_a_named_file_must_have_the_table(project, inside, name, said):
    Path("other.toml").write_text("[tool.ruff]\n")
    code, _, told = inside("check", "array", "--config", name)
    assert code == 2 and said in told


def test_check_judges_the_targets_of_the_configuration(project, tmp_path):
    project(
        'producers = ["mine.py:Producer"]\nconsumers = ["mine:view"]\nprofile = "smoke"\n'
        'rules = "PB-03,PB-35"'
    )
    folder = tmp_path / "below"
    folder.mkdir()
    done = run("check", "--report", "r.json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = json.loads((folder / "r.json").read_text())["reports"]
    assert [one["target"]["side"] for one in reports] == ["producer", "consumer"]
    assert [[rule["id"] for rule in one["rules"]] for one in reports] == [["PB-03"], ["PB-35"]]


def test_options_take_precedence_in_the_command(project, inside):
    project(
        'producers = ["absent"]\nprofile = "thorough"\nrules = "AI-*"\nstorage = true\nseed = 3'
    )
    options = ("--profile", "smoke", "--rules", "PB-03", "--no-storage", "--report", "r.json")
    code, _, told = inside("check", "array", *options)
    assert code == 0, told
    report = json.loads(Path("r.json").read_text())
    assert (report["target"]["name"], report["profile"], report["seed"]) == ("array", "smoke", 3)
    assert [rule["id"] for rule in report["rules"]] == ["PB-03"]
    code, _, told = inside("check", "--no-config")
    assert code == 2 and "there is no target" in told


def test_the_api_reads_it_and_arguments_take_precedence(project):
    path = project('rules = ["PB-03"]\nspec = "python-3.1"\nprofile = "smoke"\nseed = 5')
    report = gc.check(bytearray(8))
    assert list(report.outcomes) == ["PB-03"] and report.data["spec"] == ["python-3.1"]
    assert list(gc.check(bytearray(8), rules="PB-01").outcomes) == ["PB-01"]
    assert len(gc.check(bytearray(8), config=False).outcomes) > 100
    assert list(gc.check(bytearray(8), config=path).outcomes) == ["PB-03"]
    judged = gc.check_producer("array", isolate=False).data
    assert (judged["profile"], judged["seed"]) == ("smoke", 5)


def test_known_failures_of_the_configuration_hold(project, inside):
    project(
        'producers = ["mine.py:Producer"]\nprofile = "smoke"\nrules = "PB-03"\nknown = ["k.toml"]'
    )
    Path("k.toml").write_text(
        "[[known]]\nrule = 'PB-03'\nproducer = 'mine.py:Producer'\nplan = '{\"dtype\":\"uint8\"}'\n"
        "reason = 'gone'\n"
    )
    code, out, _ = inside("check")
    assert code == 1 and "XPASS" in out
    assert inside("known", "--update", "k.toml")[0] == 0
    assert inside("check")[0] == 0


def test_the_scoreboard_is_compared_with_the_record_of_the_configuration(project, inside):
    project(
        'producers = ["mine.py:Producer"]\n'
        'interop = { against = ["python"], compare = "board.json" }'
    )
    code, _, told = inside("interop")
    assert code == 2 and "board.json is not a record of `interop --save`" in told
    code, out, told = inside("interop", "--save", "board.json")
    assert code == 0 and "differences" not in out, told
    code, out, _ = inside("interop")
    assert code == 0 and "differences from board.json: 0" in out
    record = json.loads(Path("board.json").read_text())
    cell = next(one for one in record["cells"] if one["consumer"] == "memoryview")
    cell["outcomes"] = "W" + cell["outcomes"][1:]
    Path("board.json").write_text(json.dumps(record))
    code, out, _ = inside("interop")
    assert code == 1 and "differences from board.json: 1" in out


def test_events_are_of_one_target(project, inside):
    code, _, told = inside("check", "array", "bytes", "--events", "e.jsonl")
    assert code == 2 and "name one target" in told
