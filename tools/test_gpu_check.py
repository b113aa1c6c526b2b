"""The check for machines with a GPU, with small steps for the tests, on machines with and without a GPU."""

import os
import re
import subprocess
import sys
import time

import gpu_check
import pytest
from gpu_check import Step

PATH = {"PYTHONPATH": os.pathsep.join(sys.path)}
GPU = {"GPU": "a GPU of the test"}


def no_gpu():
    raise LookupError("no GPU: a machine of the test")


def step(name, code, **more):
    return Step(name, ("{python}", "-c", code), **{"is_counted": False, **more})


def results(skipped=""):
    """Code that writes JUnit XML: a test that passed and perhaps one that was skipped."""
    more = f'<testcase><skipped message="{skipped}"/></testcase>' if skipped else ""
    xml = f"<testsuites><testsuite><testcase/>{more}</testsuite></testsuites>"
    return f"import os; open(os.environ['XML_OUTPUT_FILE'], 'w').write({xml!r})"


@pytest.fixture
def check(tmp_path, capfd):
    """Runs steps; returns the exit code, {step: verdict}, and the report."""

    def run(steps, *arguments, find=no_gpu):
        path = tmp_path / "report.md"
        code = gpu_check.main(["--report", str(path), *arguments], steps, find)
        lines = [
            line.split("] ")[1] for line in capfd.readouterr().out.splitlines() if "] " in line
        ]
        verdicts = {line.split(": ")[0]: line.split(": ")[1].split(",")[0] for line in lines}
        return code, verdicts, path.read_text()

    return run


def test_without_a_gpu_every_step_is_skipped_and_reported(check):
    code, verdicts, report = check(gpu_check.STEPS)
    assert code == 0
    assert verdicts == {step.name: "skipped" for step in gpu_check.STEPS}
    assert f"**Steps: {len(gpu_check.STEPS)} skipped**" in report
    for s in gpu_check.STEPS:
        assert f"\n| {s.name} | skipped | 0 |  |  |  | no GPU: a machine of the test |\n" in report


def test_this_machine_is_asked_for_its_gpu(check):
    nothing = [step("first", "pass")]
    code, verdicts, report = check(nothing, find=gpu_check.find_gpu)
    assert code == 0
    assert verdicts["first"] == ("skipped" if "no GPU: " in report else "passed")


def test_failures_are_reported_with_their_last_lines_and_the_run_goes_on(check):
    steps = [
        step("fails", "print('the last line'); raise SystemExit(3)"),
        step("crashes", "import os; os.abort()"),
        step("hangs", "import time; print('before', flush=True); time.sleep(60)", limit_seconds=1),
        Step("absent", ("{programs}/nothing",), is_counted=False),
        step("silent", "pass", is_counted=True),
        step("benchmark", "print('BM_Copy ERROR OCCURRED: the work failed')"),
        step("blocked", "pass", after="fails"),
        step("passes", "pass"),
    ]
    code, verdicts, report = check(steps, find=lambda: dict(GPU))
    assert code == 1
    assert verdicts == {
        **dict.fromkeys(("fails", "crashes", "hangs", "absent", "silent", "benchmark"), "failed"),
        **{"blocked": "skipped", "passes": "passed"},
    }
    assert "a GPU of the test" in report
    assert "~~~~text\nthe last line\n~~~~" in report
    assert "~~~~text\nbefore\n~~~~" in report
    for reason in ("exit code 3", "signal 6", "limit of 1 s", "cannot be started", "no results"):
        assert reason in report, reason
    assert "the step `fails` did not pass" in report


REASONS = {
    "NOT RUN, no GPU: cudaGetDeviceCount": "failed",
    "no CUDA device, so arithmetic on one is untested here": "failed",
    "UNTESTED here: cupy needs a CUDA device, and this system shows none": "failed",
    "NOT RUN: built without the CUDA toolkit": "failed",
    "CuPy is not installed: no round trip through a GPU was made here": "passed",
    "this machine has a CUDA device": "passed",
    "": "passed",
}


def test_a_test_that_finds_no_gpu_where_there_is_one_fails(check):
    steps = [step(f"step {n}", results(why), is_counted=True) for n, why in enumerate(REASONS)]
    code, verdicts, report = check(steps, find=lambda: dict(GPU))
    assert code == 1
    assert list(verdicts.values()) == list(REASONS.values())
    for n, why in enumerate(REASONS):
        assert re.search(
            rf"\| step {n} \| {REASONS[why]} \| \d+ \| 1 \| 0 \| {int(bool(why))} \|", report
        )
        assert f"| 1 | {why} |" in report or not why
    code, verdicts, _ = check(steps, "--rehearse")
    assert code == 0
    assert list(verdicts.values()) == [v.replace("failed", "skipped") for v in REASONS.values()]


def test_a_run_that_is_ended_leaves_its_report_and_no_process(tmp_path):
    """As a time limit from outside ends it."""
    path, started = tmp_path / "report.md", tmp_path / "started"
    code = f"""if True:
        import sys, gpu_check
        from gpu_check import Step
        sleeps = "import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
        first = Step("first", ("{{python}}", "-c", ""), is_counted=False)
        second = Step("second", ("{{python}}", "-c", sleeps), is_counted=False)
        gpu_check.main(["--report", {str(path)!r}], [first, second], lambda: {GPU!r})"""
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | PATH)
    while not (started.exists() and started.read_text()):
        assert process.poll() is None
        time.sleep(0.1)
    process.terminate()
    assert process.wait(30) == 143
    assert "1 passed, 1 NOT REACHED" in path.read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_rules_that_a_library_of_others_breaks_are_findings(check):
    code, verdicts, _ = check(
        [step("peer", results() + "; raise SystemExit(1)", is_counted=True, peer="json")],
        find=lambda: dict(GPU),
    )
    assert (code, verdicts) == (0, {"peer": "findings"})


def test_a_missing_library_skips_the_step_and_names_it(check):
    steps = [step("peer", "pass", peer="no_such_library")]
    code, verdicts, report = check(steps, find=lambda: dict(GPU))
    assert (code, verdicts) == (0, {"peer": "skipped"})
    assert "No module named 'no_such_library'" in report


def test_only_runs_a_step_and_what_it_needs(check):
    steps = [step("a", "pass"), step("b", "pass"), step("c", "pass", after="a")]
    assert check(steps, "--rehearse", "--only", "c")[1] == {"a": "passed", "c": "passed"}


def test_with_a_wheel_programs_need_bazel_or_a_folder(check, tmp_path):
    wheel = tmp_path / "some.whl"
    wheel.touch()
    program = tmp_path / "program"
    program.symlink_to("/bin/true")
    steps = [
        step("build", "raise SystemExit(1)"),
        Step("program", ("{programs}/program",), after="build", is_counted=False),
    ]
    asked = ("--rehearse", "--wheel", str(wheel))
    assert check(steps, *asked)[1] == {"build": "skipped", "program": "skipped"}
    asked += ("--programs", str(tmp_path))
    assert check(steps, *asked)[1] == {"build": "skipped", "program": "passed"}
    assert check(steps, "--rehearse")[1] == {"build": "failed", "program": "skipped"}


def test_every_test_that_can_lack_a_gpu_has_a_step():
    """In the source tree: a line that skips, or gives a skip's reason, with a GPU in it."""
    folders = ("benchmarks", "build_defs", "conformance", "docs", "examples", "modules")
    tests = [
        path
        for folder in folders
        for path in (gpu_check.ROOT / folder).rglob("*test*")
        if path.suffix in (".py", ".cc")
    ]
    found = {
        str(path.relative_to(gpu_check.ROOT))
        for path in tests
        for line in path.read_text().splitlines()
        if re.search("skip|SKIP|reason=", line) and gpu_check.LACKS_GPU.search(line)
    }
    steps = {re.split("::| ", test)[0] for test in gpu_check.PY_TESTS}
    assert found == steps | {f"{path}.cc" for path in gpu_check.CC_TESTS}


def test_list_and_help(capsys):
    assert gpu_check.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(s.name in listed for s in gpu_check.STEPS)
    with pytest.raises(SystemExit) as ended:
        gpu_check.main(["--help"])
    assert ended.value.code == 0
    assert "--rehearse" in capsys.readouterr().out
