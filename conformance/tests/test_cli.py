"""The command as people use it: what it prints, where, its exit codes, and that no input ends in a
traceback.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import PACKAGE_FOLDER, run

import gridbuf_conformance as gc
from gridbuf_conformance import cli, named_consumers, producers
from gridbuf_conformance.libraries import Library
from gridbuf_conformance.plan import KEYS
from gridbuf_conformance.rules import catalogue
from hypothesis import given, settings
from hypothesis import strategies as st

COMMANDS = ("survey", "check", "list", "explain", "replay", "merge", "known", "interop")

# One dimension of bytes in a bytearray, with a getter for the array interface that breaks AI-01.
WRONG_PRODUCER = """
import gridbuf_conformance as gc

class Wrong(bytearray):
    __array_interface__ = "not a dict"

class Producer:
    name = "wrong"
    capabilities = gc.Capabilities(dtypes=("uint8",), min_ndim=1, max_ndim=1, max_extent=64,
                                   layouts="C", byteorders=("native",), readonly=(False,))

    def version(self):
        return "1.5"

    def produce(self, plan):
        return Wrong(plan.content())

class Dying(Producer):
    name = "dying"

    def produce(self, plan):
        import os, signal
        os.kill(os.getpid(), signal.SIGSEGV)

class Absent(Producer):
    import a_module_that_is_absent
"""


@pytest.fixture
def inside(capsys, monkeypatch, tmp_path):
    """The command in this process: quick, for everything that asks no producer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BUILD_WORKING_DIRECTORY", raising=False)

    def call(*arguments: str):
        try:
            code = cli.main(arguments)
        except SystemExit as exit:
            code = exit.code
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def wrong(tmp_path) -> Path:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG_PRODUCER.rsplit("class Absent", 1)[0])
    return tmp_path


# Help, list, explain
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_teaches_by_examples(inside, command):
    code, out, _ = inside(command, "--help")
    assert code == 0
    assert f"gridbuf-conformance {command} " in out.split("examples:")[1]


def test_the_help_names_every_exit_code(inside):
    _, out, _ = inside("--help")
    for code in range(6):
        assert f"  {code}  " in out


def test_no_command_shows_the_help(inside):
    code, _, err = inside()
    assert code == 2
    assert "start here:" in err


def test_examples_of_the_help_are_understood(inside):
    """Each example line parses; what it names exists."""
    for command in COMMANDS:
        _, out, _ = inside(command, "--help")
        for line in out.split("examples:")[1].strip().splitlines():
            words = shlex.split(line.split("   ")[0].strip())
            assert cli.parser().parse_args(words[1:]).run is not None


def test_list_names_producers_and_how_to_install(inside):
    code, out, _ = inside("list")
    assert code == 0
    for name in ("array", "numpy", "gridbuf", "gt4py"):
        assert name in out


def test_list_rules_can_be_narrowed(inside):
    code, out, _ = inside("list", "rules", "--rules", "pb-0*")
    assert code == 0
    assert "PB-01" in out and "PB-10" not in out and "AI-01" not in out


def test_explain_says_all_there_is(inside):
    code, out, _ = inside("explain", "pb-01")
    assert code == 0
    for word in ("PB-01", "MUST", "BufferError", "source", "how checked"):
        assert word in out


# Wrong input
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["check", "nump"], 2, "numpy"),
        (["survey", "numpi"], 2, "numpy"),
        (["check", "array", "--rules", "PB-1O"], 2, "did you mean PB-10"),
        (["check", "array", "--rules", "dl-9"], 2, "did you mean DL-"),
        (["check", "array", "--rules", "mist"], 2, "did you mean MUST?"),
        (["survey", "array", "--rules", "ZZ"], 2, "groups are AI"),
        (["known", "--update", "k.toml", "array", "--rules", "ZZ"], 2, "no rule matches"),
        (["explain", "PV-01"], 2, "did you mean"),
        (["list", "rules", "--rules", "ZZ-*"], 2, "no rule matches"),
        (["list", "--rules", "PB-*"], 2, "list rules"),
        (["list", "everything"], 2, "producers"),
        (["check"], 2, "there is no target"),
        (["chek", "array"], 2, "check"),
        (["check", "array", "--profile", "fast"], 2, "smoke"),
        (["check", "array", "--report", "r.pdf"], 2, ".html"),
        (["check", "array", "--report", "r"], 2, "suffix"),
        (["check", "array", "--report", "/proc/none/r.html"], 2, "cannot write"),
        (["check", "array", "--report", "."], 2, "suffix"),
        (["check", "array", "--events", "/proc/none/e.jsonl"], 2, "cannot write"),
        (["check", "array", "--seed", "-1"], 2, "0..4294967295"),
        (["check", "array", "--seed", "²"], 2, "0..4294967295"),
        (["check", "array", "--time-limit", "nan"], 2, "above 0"),
        (["check", "array", "--time-limit", "0"], 2, "above 0"),
        (["check", "absent.py:Producer"], 4, "there is no file"),
        (["check", "no_such_package.mod:Producer"], 4, "no_such_package"),
        (["check", ":"], 4, "cannot load"),
        (["check", "array", "--known", "none.toml"], 2, "cannot read known failures 'none.toml'"),
        (["survey", "array", "--known", "."], 2, "cannot read known failures '.'"),
        (["known", "array"], 2, "--update"),
        (["known", "--update", "/proc/none/k.toml", "array"], 2, "cannot write"),
        (["known", "--update", "k.toml", "nump"], 2, "numpy"),
        (["merge"], 2, "FILE"),
        (["merge", "none.json"], 2, "cannot read 'none.json'"),
        (["merge", "none.json", "--report", "r.pdf"], 2, ".svg"),
        (["explain", "PB-01", "--format", "pdf"], 2, "md"),
        (["replay", "array", "PB-01", "{"], 2, "JSON"),
        (["replay", "array", "PB-01", "[1]"], 2, "JSON object"),
        (["replay", "array", "PB-01", '{"shap":[1]}'], 2, "shape"),
        (["replay", "array", "PB-01", '{"shape":"x"}'], 2, "integers"),
        (["replay", "array", "PB-01", '{"shape":[-1]}'], 2, ">= 0"),
        (["replay", "array", "PB-01", '{"dtype":"float65"}'], 2, "float64"),
        (["replay", "array", "PB-01", '{"dtype":[]}'], 2, "dtype"),
        (["replay", "array", "PB-01", "[" * 100_000], 2, "plan"),
        (["replay", "array", "PB-01", '{"shape":[' + "9" * 5000 + "]}"], 2, ""),
        (["replay", "array", "XX-01", "{}"], 2, "no rule matches"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_wrong_input_is_told_what_to_write_instead(inside, arguments, code, said):
    got, out, err = inside(*arguments)
    assert got == code, err
    assert said in err
    assert "Traceback" not in err + out
    assert len(err) < 2000


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["list", "explain", "rules", "--rules", "PB-*", "--verbose", "-h", "--", "*"]
        )
        | st.text(max_size=8),
        max_size=5,
    )
)
def test_no_words_end_in_a_traceback(words):
    """Commands that ask no producer, with any words."""
    words = ["list" if words[:1] not in (["list"], ["explain"]) else words[0], *words[1:]]
    try:
        code = cli.main(words)
    except SystemExit as exit:
        code = exit.code
    assert code in (0, 2)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*KEYS, "other"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_json_as_a_plan_is_a_plan_or_a_usage_error(plan):
    from gridbuf_conformance.cli.commands import UsageError, plan_of

    try:
        assert plan_of(json.dumps(plan)).to_dict()
    except UsageError as error:
        assert str(error)


# Judging
# --------------------------------------------------------------------------------------------------


def test_check_of_a_conforming_producer(tmp_path):
    done = run("check", "bytearray", "--profile", "smoke", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().splitlines()[-1].startswith("✓ bytearray conforms: ")


def test_results_and_progress_go_to_different_streams(tmp_path):
    done = run("check", "bytes", "--profile", "smoke", "--rules", "PB-0*", cwd=tmp_path)
    assert "bytes: " in done.stderr and "Buffer protocol" not in done.stderr
    assert "Buffer protocol" in done.stdout


def test_check_writes_every_format_and_the_events(wrong):
    done = run(
        *("check", "wrong.py:Producer", "--profile", "smoke", "--rules", "AI-0*,PB-0*"),
        *("--report", "out/r.json", "--report", "r.html", "--report", "r.xml"),
        *("--report", "r.md", "--report", "r.svg"),
        *("--events", "e.jsonl"),
        cwd=wrong,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads((wrong / "out" / "r.json").read_text())
    assert report["schema"] == "gridbuf-conformance-report/2"
    assert report["target"]["name"] == "wrong"
    assert {rule["id"]: rule["outcome"] for rule in report["rules"]}["AI-01"] == "FAIL"
    assert "<!DOCTYPE html>" in (wrong / "r.html").read_text()
    assert ElementTree.parse(wrong / "r.xml").getroot().get("failures") != "0"
    assert (wrong / "r.md").read_text().startswith("## ✗ `wrong 1.5` does not conform: ")
    assert ElementTree.parse(wrong / "r.svg").getroot().get("aria-label").endswith(" failed")
    events = [json.loads(line) for line in (wrong / "e.jsonl").read_text().splitlines()]
    assert (events[0]["event"], events[-1]["event"]) == ("start", "end")


def test_a_failures_replay_command_fails_again(wrong):
    checked = run(
        *("check", "wrong.py:Producer", "--rules", "AI-01", "--profile", "smoke"), cwd=wrong
    )
    (command,) = (
        line.split("replay", 1)[1]
        for line in checked.stdout.splitlines()
        if "-conformance replay" in line
    )
    words = shlex.split(command.split("gridbuf-conformance")[1])
    again = run(*words, cwd=wrong)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "✗ AI-01" in again.stdout


def test_nothing_selected_is_no_success(tmp_path):
    """Rules for consumers are in the catalogue and judged by a later version."""
    done = run("check", "array", "--rules", "DP-3*", cwd=tmp_path)
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("array was not judged: nothing was selected.")


def test_survey_goes_on_over_crashes_and_says_where_its_report_is(wrong):
    done = run(
        *("survey", "bytes", "wrong.py:Dying", "array"), *("--rules", "PB-0*,GT-20"), cwd=wrong
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line[:2] in ("✓ ", "✗ ")]
    assert [row.split()[1] for row in rows[:3]] == ["bytes", "dying", "array"]
    report = wrong / "gridbuf-survey.html"
    assert done.stdout.rstrip().endswith(f"Report: {report}")
    assert "SIGSEGV" in report.read_text()


def test_a_survey_fails_if_what_was_named_cannot_be_loaded(wrong):
    done = run("survey", "missing.py:Producer", "bytes", "--rules", "PB-03", cwd=wrong)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "✗ missing.py:Producer  BROKEN  cannot be loaded: there is no file" in done.stdout
    assert "✓ bytes" in done.stdout


@pytest.fixture
def known_libraries(monkeypatch):
    """A survey of `array`, of gridbuf, and of a library that is not installed."""
    entries = {name: producers.BUILT_IN[name] for name in ("array", "gridbuf")}
    entries["absent"] = producers.Entry(
        *("absent", "absent:Producer", "nothing"),
        Library("absent", "a_module_that_is_absent"),
        "pip install absent",
    )
    monkeypatch.setattr(producers, "entries", lambda: entries)
    monkeypatch.setattr(producers, "find", entries.__getitem__)
    monkeypatch.delitem(sys.modules, "gridbuf", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.parametrize("names", [(), ("array", "gridbuf")], ids=["unnamed", "named"])
def test_a_survey_fails_if_what_is_installed_is_broken(
    inside, known_libraries, monkeypatch, tmp_path, names
):
    """As after an update of the system: the package is there, its extension cannot load."""
    package = tmp_path / "installed" / "gridbuf"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from ._core import Buffer\n")
    (package / "_core.so").write_bytes(b"no ELF file")
    monkeypatch.syspath_prepend(package.parent)
    code, out, err = inside("survey", *names, "--rules", "PB-03", "--report", "s.json")
    assert code == 4, out + err
    assert "✗ gridbuf  BROKEN  cannot be loaded: ImportError: _core.so: " in out
    assert "✓ array" in out
    absent = json.loads(Path("s.json").read_text())["absent"]
    assert [(one["name"], one["failed"]) for one in absent][0] == ("gridbuf", True)
    assert str(tmp_path) not in Path("s.json").read_text()


def test_a_survey_passes_over_what_is_not_installed(inside, known_libraries, monkeypatch):
    monkeypatch.delitem(producers.entries(), "gridbuf")
    code, out, err = inside("survey", "--rules", "PB-03")
    assert code == 0, out + err
    assert "Not available: absent; see gridbuf-conformance list\n" in out
    assert "pip install absent" in inside("list")[1]


def test_a_survey_fails_if_what_was_named_is_not_installed(inside, known_libraries):
    code, out, err = inside("survey", "array", "absent", "--rules", "PB-03")
    assert code == 4, out + err
    assert "✗ absent  BROKEN  " in out and "pip install absent" in out


def test_under_bazel_run_paths_are_the_users(wrong, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("runfiles")
    done = run(
        *("survey", "wrong.py:Producer", "--rules", "AI-01"),
        cwd=elsewhere,
        BUILD_WORKING_DIRECTORY=str(wrong),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (wrong / "gridbuf-survey.html").exists()
    assert not (elsewhere / "gridbuf-survey.html").exists()


def test_a_survey_of_several_as_json(tmp_path):
    done = run("survey", "bytes", "array", "--rules", "PB-03", "--report", "s.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    survey = json.loads((tmp_path / "s.json").read_text())
    assert survey["schema"] == "gridbuf-conformance-survey/2"
    assert [report["target"]["name"] for report in survey["reports"]] == ["bytes", "array"]


def test_a_c_locale_prints_ascii(wrong):
    done = run(
        *("check", "wrong.py:Producer", "--rules", "AI-01", "--profile", "smoke"),
        cwd=wrong,
        PYTHONIOENCODING="ascii",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.isascii() and "x AI-01" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    command = f"{sys.executable} -m gridbuf_conformance list rules | head -1"
    environ = {
        **os.environ,
        "PYTHONPATH": PACKAGE_FOLDER + os.pathsep + os.environ.get("PYTHONPATH", ""),
    }
    done = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, cwd=tmp_path)
    assert done.stderr == b""


@pytest.mark.parametrize("patterns", ["dl-09", "must", "Pb"])
def test_ids_levels_and_groups_are_known_in_any_case(inside, patterns):
    for arguments in (
        ["replay", "array", patterns, '{"shape":[3],"dtype":"uint8"}'],
        ["list", "rules", "--rules", patterns],
        ["explain", patterns],
    ):
        code, _, err = inside(*arguments)
        assert code == 0 and "error" not in err, arguments
    report = gc.check(bytearray(8), rules=patterns)
    assert list(report.outcomes) == [rule.id for rule in catalogue.select(patterns)]


@pytest.mark.thorough
@pytest.mark.parametrize("patterns", ["dl-09", "must", "Pb"])
def test_ids_levels_and_groups_choose_what_is_judged(inside, patterns, tmp_path):
    for arguments in (
        ["check", "array", "--profile", "smoke", "--rules", patterns],
        ["survey", "array", "--rules", patterns, "--report", str(tmp_path / "survey.json")],
        ["known", "--update", str(tmp_path / "known.toml"), "array", "--rules", patterns],
    ):
        code, _, err = inside(*arguments)
        assert code == 0 and "error" not in err, arguments


@pytest.mark.parametrize("name", ["numpy.from_dlpack", "torch.as_tensor", "jax.numpy.asarray"])
def test_a_consumer_without_its_option_is_usage(inside, name):
    assert name in named_consumers.BUILT_IN
    code, _, told = inside("check", name)
    assert code == 2 and told == f"error: {name} is a consumer; write --consumer {name}\n"


@pytest.mark.parametrize("isolated", [(), ("--no-isolate",)])
def test_a_function_where_a_producer_is_expected_is_usage(inside, tmp_path, isolated):
    (tmp_path / "mine.py").write_text("def asarray(x):\n    return memoryview(x)\n")
    for target in ("mine.py:asarray", "numpy:from_dlpack"):
        if target.startswith("numpy"):
            pytest.importorskip("numpy")
        code, _, told = inside("check", target, *isolated)
        assert code == 2 and f"error: {target} is a consumer; write --consumer {target}" in told


def test_a_producer_with_the_option_of_consumers_is_usage(inside):
    code, _, told = inside("check", "--consumer", "array")
    assert code == 2 and "array is a producer; write array without --consumer" in told


def test_the_version_is_that_of_the_suite_and_of_the_catalogue(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out.split() == [
        "gridbuf-conformance", f"{gc.__version__},", "catalogue", catalogue.VERSION
    ]  # fmt: skip
    report = json.loads(gc.check(b"1234", rules="PB-01").to_json())
    assert report["suite"]["catalogue"] == catalogue.VERSION
