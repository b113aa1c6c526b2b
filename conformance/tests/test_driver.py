"""The driver: whatever a producer does, a result comes back and no process is left behind."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gridbuf_conformance.engine import driver, process
from gridbuf_conformance.engine.driver import LocalWorker, Worker
from gridbuf_conformance.info import to_json
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.targets import CannotLoad, Target, load, name_of

HERE = Path(__file__).parent
HOSTILE = HERE / "hostile_producers.py"
PLAN = Plan(shape=(3,))
GROUPS = ("PB",)


def target(name: str) -> str:
    return f"{HOSTILE}:{name}"


def one_result(name: str, *, time_limit_s: float = 20.0) -> driver.Result:
    with Worker(target(name), time_limit_s=time_limit_s) as worker:
        return worker.run(PLAN, GROUPS)


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """After every test: no child process, and no file descriptor more than before."""
    open_before = os.listdir("/proc/self/fd")
    yield
    assert os.listdir("/proc/self/fd") == open_before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


# -- results ---------------------------------------------------------------------------


def test_a_good_producer_is_described_and_observed():
    with Worker(target("Good")) as worker:
        description = worker.description
        result = worker.run(PLAN, GROUPS)
        assert worker.close() is None
    assert (description.name, description.version) == ("good", "1.2")
    assert (
        description.capabilities.dtypes[0] == "float64" and description.capabilities.max_ndim == 1
    )
    assert result.kind == "observation" and result.observation.type == "array"


@pytest.mark.parametrize(
    "name, how",
    [
        ("Segfault", "died by SIGSEGV"),
        ("LeavesQuietly", "left with exit status 0"),
        ("LeavesAChild", "died by SIGABRT"),
    ],
)
def test_a_death_is_a_result_with_its_place(name, how):
    result = one_result(name)
    assert result.kind == "crash" and result.step == "produce"
    assert how in result.reason and "at step produce" in result.reason
    assert str(HERE) not in result.reason
    if name != "LeavesQuietly":
        assert "in hostile_producers.py:" in result.reason and "produce" in result.reason


@pytest.mark.parametrize(
    "name",
    [
        *("WritesNoJson", "WritesNoText", "WritesDeepLists", "WritesALongNumber", "WritesAList"),
        *("WritesNoKind", "WritesAnAnswer", "WritesNoObservation", "WritesAnotherForm"),
        "AnnouncesAHugeMessage",
    ],
)
def test_what_is_no_answer_counts_as_a_death(name):
    result = one_result(name)
    assert (result.kind, result.reason.partition(" at step")[0]) == (
        "crash",
        "the process wrote something else than its answers to the suite's socket",
    )


def test_files_that_shrink_do_not_hurt_the_driver():
    """Its next step is unknown then: SIGBUS ends the worker."""
    result = one_result("ShrinksFiles")
    assert (result.kind, result.step) == ("crash", "")
    assert "SIGBUS" in result.reason


def test_a_producer_may_replace_json():
    assert one_result("ReplacesJson").kind == "observation"


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.parametrize("name", ["Version", "Capabilities", "DeviceTable", "ApplyView"])
def test_sys_exit_in_an_attribute_is_a_clear_outcome(name, isolate):
    name = target(f"ExitsIn{name}")
    try:
        with driver.opened(name, isolate, 20.0) as worker:
            result = worker.run(PLAN, GROUPS)
    except CannotLoad as error:
        assert "SystemExit: 2" in str(error)
    else:
        assert (result.kind, result.reason) == ("raised", "SystemExit: 2")


@pytest.mark.parametrize("name", ["Sleeps", "Spins", "HangsInC"])
def test_a_hang_ends_at_the_time_limit_and_again_with_more_time(name):
    begin = time.monotonic()
    result = one_result(name, time_limit_s=1.0)
    assert result.kind == "timeout" and result.step == "produce"
    assert "hostile_producers.py" in result.reason
    assert 4.0 < time.monotonic() - begin < 12.0


def test_a_plan_that_was_only_slow_has_more_time_when_it_runs_again():
    assert one_result("Slow", time_limit_s=1.0).kind == "observation"


@pytest.mark.parametrize(
    "name, kind, reason",
    [
        ("CallsExit", "raised", "SystemExit: 3"),
        ("Raises", "raised", "RuntimeError: no luck"),
        ("OutOfMemory", "unsupported", "MemoryError: no room"),
        ("Declines", "unsupported", "not today"),
    ],
)
def test_what_a_producer_answers_is_told_apart(name, kind, reason):
    result = one_result(name)
    assert result.kind == kind and reason in result.reason


@pytest.mark.parametrize("name", ["Noisy", "Floods", "ClosesItsStreams", "RaisesInGetter"])
def test_what_a_producer_prints_disturbs_nothing(name):
    with Worker(target(name)) as worker:
        kinds = [worker.run(Plan(shape=(n,)), GROUPS).kind for n in (1, 2, 3)]
    assert kinds == ["observation"] * 3


def test_a_death_that_does_not_repeat_is_unstable(monkeypatch, tmp_path):
    monkeypatch.setenv("DIES_ONCE_MARK", str(tmp_path / "mark"))
    result = one_result("DiesOnce")
    assert result.kind == "unstable" and "SIGABRT" in result.reason and result.step == "produce"


def test_a_death_at_exit_is_told_on_closing():
    with Worker(target("DiesAtExit")) as worker:
        assert worker.run(PLAN, GROUPS).kind == "observation"
        end = worker.close()
    assert end.kind == "crash" and "SIGABRT" in end.reason and end.step == "exit"


def test_the_step_of_a_death_in_a_getter_is_the_getter():
    result = one_result("SegfaultInGetter")
    assert result.kind == "crash" and result.step not in ("", "idle", "produce")
    assert "hostile_producers.py" in result.reason and "__array_interface__" in result.reason


def test_the_run_goes_on_after_a_death():
    plans = [Plan(shape=(n,)) for n in (1, 2, 3, 4, 1)]
    with Worker(target("SegfaultOnLongArrays")) as worker:
        kinds = [result.kind for _, result in worker.run_all(plans, GROUPS)]
    assert kinds == ["observation", "observation", "crash", "crash", "observation"]


def test_a_flood_costs_little_memory():
    with Worker(target("Floods")) as worker:
        result = worker.run(PLAN, GROUPS)
        assert len(worker._process.started()._tail) <= 2 * process._TAIL_BYTES
    assert result.kind == "observation"


# -- loading ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written, words",
    [
        ("no-such-producer", "is not a producer"),
        ("no.such.module:Producer", "No module named"),
        ("no/such/file.py:Producer", "no file"),
        (target("Absent"), "producers there: Good"),
        (target("NoProducer"), r"no method produce\(plan\)"),
        (target("RaisesInImport"), "OSError: the library's licence server is down"),
        (target("DiesInImport"), "died by SIGABRT at step import"),
        (target("BadCapabilities"), "capabilities is str"),
    ],
)
def test_what_cannot_be_loaded_says_why(written, words):
    with pytest.raises(CannotLoad, match=words):
        Worker(written)


def test_an_import_that_takes_too_long_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(process, "START_LIMIT_S", 1.0)
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(1000)\n")
    with pytest.raises(CannotLoad, match="longer than 1 s"):
        Worker(f"{slow}:Producer")


def test_targets_by_module_by_file_and_by_class(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "class Producer:\n    name = 'mine'\n    def produce(self, plan):\n        return b''\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for written in ("mine.py:Producer", "mine.py", "mine:Producer", str(tmp_path / "mine.py")):
        with Worker(written) as worker:
            assert worker.description.name == "mine"
    import mine

    assert name_of(mine.Producer) == Target("mine:Producer", str(tmp_path / "mine.py"))
    assert load("mine:Producer").name == "mine"


def test_reports_hold_no_absolute_path():
    assert Target(f"{HOSTILE}:Good").shown == "hostile_producers.py:Good"
    assert Target("some/file.py:Good").shown == "some/file.py:Good"


def test_classes_that_no_worker_could_import_are_refused():
    class Local:
        def produce(self, plan):
            return b""

    with pytest.raises(CannotLoad, match="isolate=False"):
        name_of(Local)
    with pytest.raises(CannotLoad, match="pass the class Local"):
        name_of(Local())


# -- ends ------------------------------------------------------------------------------


def test_giving_up_in_the_middle_ends_the_worker():
    with Worker(target("Good")) as worker:
        for _, result in worker.run_all([Plan(shape=(n,)) for n in range(1, 9)], GROUPS):
            assert result.kind == "observation"
            break
        assert worker.run(PLAN, GROUPS).kind == "observation"


def test_a_forgotten_worker_ends_with_its_last_reference():
    worker = Worker(target("Good"))
    pid = worker._process.started()._popen.pid
    del worker
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


_DRIVER_PROGRAM = """
import sys
sys.path[:0] = {path!r}
from gridbuf_conformance.engine.driver import Worker
from gridbuf_conformance.plan import Plan
with Worker({target!r}, time_limit_s=100) as worker:
    print(worker._process.started()._popen.pid, flush=True)
    worker.run(Plan(shape=(3,)), ["PB"])
"""


@pytest.mark.parametrize(
    "name, sent", list(itertools.product(["Sleeps", "HangsInC"], [signal.SIGINT, signal.SIGKILL]))
)
def test_the_worker_ends_with_its_driver(name, sent):
    """An interrupt kills the worker; a killed driver takes even a hanging worker with it."""
    program = _DRIVER_PROGRAM.format(path=[str(HERE.parent), str(HERE)], target=target(name))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program_process:
        worker_pid = int(program_process.stdout.readline())
        time.sleep(0.3)
        program_process.send_signal(sent)
        _, errors = program_process.communicate(timeout=20)
    assert ("KeyboardInterrupt" in errors) == (sent == signal.SIGINT)
    deadline = time.monotonic() + 5
    while _is_running(worker_pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_running(worker_pid)


def _is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie that its new parent has still to collect."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before the open, or before the read
        return False


# -- without isolation -----------------------------------------------------------------


def test_without_isolation_the_answers_are_the_same():
    plans = [Plan(shape=(n,), fill=n) for n in (1, 2, 5)]
    local = LocalWorker(load(target("Good")))
    with Worker(target("Good")) as worker:
        assert worker.description == local.description
        for (_, there), (_, here) in zip(
            worker.run_all(plans, GROUPS), local.run_all(plans, GROUPS)
        ):
            assert there.kind == here.kind == "observation"
            assert to_json(there.observation).keys() == to_json(here.observation).keys()
