#!/usr/bin/env python3
"""Checks gridbuf on a machine with an NVIDIA GPU and writes one Markdown report. It needs no network and no package.

It runs every test that other machines skip because they have no GPU, the CUDA benchmarks, and gridbuf-conformance for
gridbuf, CuPy, PyTorch and Numba on the device. Run it with the Python that has CuPy and PyTorch.

  tools/gpu_check                                     # builds with ./bazelw (clang 19, the CUDA toolkit)
  tools/gpu_check --wheel gridbuf-….whl --wheels dist # without Bazel: no C++ tests, no benchmarks
  tools/gpu_check --wheel … --programs programs       # with C++ programs that another machine built

Each step has one of four verdicts:
  passed    It ran. Tests that were skipped in it are counted, and the report has their reasons.
  findings  CuPy, PyTorch or Numba breaks rules of the conformance suite. This is not a failure of gridbuf.
  skipped   It was NOT checked, for the reason given. Without a GPU, only --rehearse runs steps.
  failed    A test failed, the time limit passed, or a test found no GPU although the driver has one.
The exit code is 1 if a step failed, 0 if none failed (also if all were skipped), and 2 for wrong usage.
The report is written again after each step, so that a run that ends early also leaves one.

To prepare a machine with Python 3.12 and no network, use Debian 12 with a network, the CUDA toolkit and a Python 3.12:
  export GRIDBUF_PYTHON=/path/to/python3.12
  $GRIDBUF_PYTHON -m pip wheel . -w dist
  $GRIDBUF_PYTHON -m pip download -d dist numpy pytest hypothesis rich jinja2 packaging tomlkit
The GPU's driver must be new enough for the toolkit: 13.0 needs driver 580; the report shows both versions.
Copy this checkout and the folder dist to the machine. For C++ tests and benchmarks, also run the command of the step
`build` (see --list), and copy the programs of the other steps, with their folders, from bazel-bin to a folder.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import datetime
import functools
import importlib.util
import os
import pathlib
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[1]

LACKS_GPU = re.compile(
    r"no (GPU|NVIDIA|CUDA device|CUDA driver)\b|needs? a (GPU|CUDA device)\b|without the CUDA toolkit"
    r"|on the emulated device|CUDA device, and there are 0"
)
"""What tests, benchmarks and the conformance suite print where they check less for lack of a GPU."""


@dataclass(frozen=True)
class Step:
    """One command. `{python}`, `{programs}` and so on are filled in when it runs."""

    name: str
    command: tuple[str, ...]
    limit_seconds: int = 600
    after: str = ""  # the step that must have passed
    peer: str = ""  # the Python module of others that it uses; exit code 1 is then a finding
    is_counted: bool = True  # writes JUnit XML to {xml}; the report has the output of others

    def shown(self) -> str:
        """The command, for readers."""
        return re.sub(r"'({\w+}[\w/]*)'", r"\1", shlex.join(self.command))


@dataclass
class Outcome:
    """What became of a step."""

    step: Step
    verdict: str = "skipped"
    reason: str = ""
    seconds: float = 0.0
    output: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    skips: collections.Counter[str] = field(default_factory=collections.Counter)

    def count(self, results: pathlib.Path) -> None:
        """Takes the counts, and why tests were skipped, from JUnit XML."""
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        for case in ET.parse(results).iter("testcase"):
            skipped = case.find("skipped")
            failed = case.find("failure") is not None or case.find("error") is not None
            self.counts["failed" if failed else "passed" if skipped is None else "skipped"] += 1
            if skipped is not None:
                self.skips[(skipped.get("message") or "no reason").strip().splitlines()[-1]] += 1

    def judge(self, code: int, has_gpu: bool) -> tuple[str, str]:
        """The verdict and its reason."""
        failures = self.counts.get("failed", 0)
        said = [*self.output.splitlines(), *self.skips]
        lacks = next((line for line in said if LACKS_GPU.search(line)), "")
        if code < 0:
            return "failed", f"ended by signal {-code}"
        if failures and not self.step.peer:
            return "failed", f"{failures} tests failed"
        if lacks:
            return "failed" if has_gpu else "skipped", f"it says: {lacks}"
        if "ERROR OCCURRED" in self.output:  # of Google Benchmark, whose exit code is then 0
            return "failed", "a benchmark failed"
        if self.step.is_counted and not self.counts:
            return "failed", f"wrote no results (exit code {code})"
        if self.step.peer and code == 1:
            return "findings", f"{failures} rules are broken"
        if code:
            return "failed", f"exit code {code}"
        if self.step.is_counted and not self.counts["passed"]:
            return "skipped", f"no test ran: {', '.join(self.skips) or 'there are none'}"
        return "passed", ""


# ---- The steps. ----

TOOLS = ("numpy", "pytest", "hypothesis", "rich", "jinja2", "packaging", "tomlkit")
"""What the Python tests and the conformance suite import."""

CC_TESTS = (
    "build_defs/tests/cuda/cuda_library_test",
    "modules/device/cuda/runtime/runtime_test",
    "modules/device/cuda/gpu_test",
    "modules/transfer/device/gpu_test",
)
BENCHMARK = "modules/transfer/device/device_benchmark"
PY_TESTS = (
    "modules/python/tests/test_cupy.py",
    "modules/python/tests/test_device.py",
    "modules/python/tests/test_imports_device.py",
    "modules/python/tests/test_round_trips.py",
    "modules/python/tests/storage/test_storage_exports.py",
    "modules/python/tests/storage/test_storage_functions.py",
    "conformance/tests/test_abi_device.py",
    "conformance/tests/test_builtin_libraries.py::test_producers_without_a_device_say_so",
    "conformance/tests/test_exports_host.py::TestCudaArrayInterface",
    "conformance/tests/test_producers.py -k 'cupy or numba'",
)
"""The tests that need a GPU; by files, whose other tests then run on a machine with a GPU, too."""

PRODUCERS = {
    **dict.fromkeys(("gridbuf.device", "gridbuf.pinned", "gridbuf.managed", "gridbuf.storage"), ""),
    **{"cupy": "cupy", "numba": "numba", "tools/torch_on_gpu.py:TorchOnGpu": "torch"},
}
CONSUMERS = {
    **{"gridbuf.as_buffer": "", "gridbuf.storage.as_storage": "", "cupy.asarray": "cupy"},
    **{"torch.as_tensor": "torch", "numba.cuda.as_cuda_array": "numba"},
}
"""Targets of the conformance suite, each with the library of others that is judged."""

PROBES = {
    "cupy": "cupy.__version__, 'CUDA', cupy.cuda.runtime.runtimeGetVersion(), cupy.zeros(1).device",
    "torch": "torch.__version__, 'CUDA', torch.version.cuda, torch.zeros(1, device='cuda').device",
    "numba": "numba.__version__, __import__('numba.cuda').cuda.get_current_device().name",
}
"""What a library of others prints where it can use the GPU, its version first."""

USES_DEVICE = (
    'import gridbuf; gridbuf.show_config(); b = gridbuf.allocate((1000,), memory="device"); '
    'print("copied back:", b.copy(memory="host").shape)'
)

PIP = ("{python}", "-m", "pip", "install", "-q", "--no-index", "--target", "{site}")
CHECK = ("{python}", "-m", "gridbuf_conformance", "check", "--report", "{xml}")
TAKES = (*CHECK, "--rules", "CAI-*", "--consumer")
PYTEST = ("{python}", "build_defs/pytest_main.py", "--color=no", "-m", "not thorough")
LABELS = tuple("//{}:{}".format(*path.rsplit("/", 1)) for path in (*CC_TESTS, BENCHMARK))
BUILD = (
    "./bazelw",
    "build",
    "--config=opt",
    "--config=cuda",
    "--noshow_progress",
    "//:wheel",
    *LABELS,
)

STEPS = (
    Step("build", BUILD, 3600, is_counted=False),
    *(Step(path, ("{programs}/" + path,), after="build") for path in CC_TESTS),
    Step(BENCHMARK, ("{programs}/" + BENCHMARK,), 1200, after="build", is_counted=False),
    Step("install", (*PIP, "--no-deps", "{wheel}"), after="build", is_counted=False),
    Step("tools", (*PIP, "-f", "{wheels}", "{missing}"), after="install", is_counted=False),
    Step("gridbuf", ("{python}", "-c", USES_DEVICE), after="install", is_counted=False),
    *(Step(test, (*PYTEST, *shlex.split(test)), 900, after="tools") for test in PY_TESTS),
    *(Step(f"producer {t}", (*CHECK, t), 900, "tools", peer) for t, peer in PRODUCERS.items()),
    *(Step(f"consumer {t}", (*TAKES, t), 900, "tools", peer) for t, peer in CONSUMERS.items()),
)


# ---- The machine. ----


def find_gpu() -> dict[str, str]:
    """What the driver says of the GPU; LookupError, with the reason, where there is none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise LookupError("no GPU: NVIDIA's driver (libcuda.so.1) is not installed") from None
    count, device, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if error or not count.value:
        raise LookupError(f"no GPU: the driver counts {count.value} devices (CUDA error {error})")
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(name, 256, device)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    query = ("nvidia-smi", "--query-gpu=driver_version,memory.total", "--format=csv,noheader")
    return {
        "GPU": f"{name.value.decode()} ({count.value} in this machine)",
        "driver, memory": printed(query)[1],
        "CUDA version of the driver": f"{version.value // 1000}.{version.value % 1000 // 10}",
    }


def printed(command: Sequence[str], environ: dict[str, str] | None = None) -> tuple[bool, str]:
    """Whether a short command succeeds, and the last line that it prints."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else ""


# ---- Running. ----


class Run:
    """One run of the steps."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path, has_gpu: bool) -> None:
        self.options, self.folder, self.has_gpu = options, folder, has_gpu
        self.outcomes: dict[str, Outcome] = {}
        self.missing = [tool for tool in TOOLS if importlib.util.find_spec(tool) is None]
        self.results = folder / "results.xml"
        ours = {"conformance", *(os.path.dirname(test.partition("::")[0]) for test in PY_TESTS)}
        self.environ = os.environ | {
            "GRIDBUF_PYTHON": sys.executable,
            "GRIDBUF_TEST_USES_PEERS": "1",  # tests may skip for a missing package
            "GTEST_OUTPUT": f"xml:{self.results}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(map(str, (folder / "site", *(ROOT / p for p in ours)))),
            "TEST_TMPDIR": str(folder),
            "XML_OUTPUT_FILE": str(self.results),
        }

    @functools.cache  # noqa: B019
    def version(self, module: str) -> tuple[bool, str]:
        """Whether a Python module can be used (for PROBES: on the GPU), and its version or the error."""
        shown = PROBES.get(module, f"getattr({module}, '__version__', 'installed')")
        return printed([sys.executable, "-c", f"import {module}; print({shown})"], self.environ)

    def outcome(self, step: Step) -> Outcome:
        """Runs the step, or says why not."""
        wheel, programs = self.options.wheel, self.options.programs
        before = self.outcomes.get(step.after)
        if step.name == "build" and wheel:
            return Outcome(step, reason="--wheel was given")
        if step.command[0].startswith("{programs}") and wheel and not programs:
            why = "needs Bazel and clang 19, or programs that another machine built (--programs)"
            return Outcome(step, reason=why)
        if before and before.verdict != "passed" and not (step.after == "build" and wheel):
            return Outcome(step, reason=f"the step `{step.after}` did not pass")
        if "{missing}" in step.command and not self.missing:
            return Outcome(step, "passed", f"{', '.join(TOOLS)} are installed")
        if "{missing}" in step.command and not self.options.wheels:
            why = f"{', '.join(self.missing)} not installed; pass a folder with wheels (--wheels)"
            return Outcome(step, reason=why)
        if step.peer and not self.version(step.peer)[0]:
            return Outcome(step, reason=self.version(step.peer)[1])
        return self.execute(step)

    def command(self, step: Step) -> list[str]:
        """The step's command, filled in."""
        values = {
            "python": sys.executable,
            "site": self.folder / "site",
            "xml": self.results,
            "programs": self.options.programs or ROOT / "bazel-bin",
            "wheels": self.options.wheels,
            "wheel": self.options.wheel or next(ROOT.glob("bazel-bin/wheel/*.whl"), None),
        }
        names = re.compile("{(%s)}" % "|".join(values))
        parts = [
            p for part in step.command for p in (self.missing if part == "{missing}" else [part])
        ]
        return [names.sub(lambda match: str(values[match[1]]), part) for part in parts]

    def execute(self, step: Step) -> Outcome:
        """Runs the step within its time limit."""
        outcome, begin = Outcome(step, "failed"), time.monotonic()
        self.results.unlink(missing_ok=True)
        with tempfile.TemporaryFile() as out:
            try:
                process = subprocess.Popen(
                    self.command(step),
                    cwd=ROOT,
                    env=self.environ,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                outcome.reason = f"cannot be started: {error.strerror}"
                return outcome
            try:
                code = process.wait(step.limit_seconds)
            except subprocess.TimeoutExpired:
                outcome.reason = f"ran longer than its limit of {step.limit_seconds} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the processes that it started, too
                process.wait()
            out.seek(0)
            outcome.output = out.read().decode(errors="replace")
        outcome.seconds = time.monotonic() - begin
        if not outcome.reason:
            if self.results.exists():
                outcome.count(self.results)
            outcome.verdict, outcome.reason = outcome.judge(code, self.has_gpu)
        return outcome


# ---- The report. ----


def table(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """A Markdown table; nothing without rows."""
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    shown = [heads, ["---"] * len(heads), *cells]
    return ["| " + " | ".join(row) + " |" for row in shown] + [""] if cells else []


def report(run: Run, facts: dict[str, str], left: int) -> str:
    """The report after a step; `left` more are to come."""
    outcomes, kinds = list(run.outcomes.values()), ("passed", "failed", "skipped")
    verdicts = collections.Counter(o.verdict for o in outcomes)
    verdicts += collections.Counter({"NOT REACHED: the run was ended": left})
    lines = [
        "# gridbuf on a GPU",
        "",
        "`tools/gpu_check.py` wrote this. A skipped step is NOT checked.",
        "",
    ]
    if not run.has_gpu:
        lines += ["**There was no GPU: nothing here says that gridbuf works on one.**", ""]
    lines += [f"**Steps: {', '.join(f'{n} {verdict}' for verdict, n in verdicts.items())}**", ""]
    lines += table(["machine", ""], facts.items())
    lines += table(
        ["step", "verdict", "seconds", *(f"tests {kind}" for kind in kinds), "reason"],
        (
            (
                o.step.name,
                o.verdict,
                f"{o.seconds:.0f}",
                *(o.counts.get(k, "") for k in kinds),
                o.reason,
            )
            for o in outcomes
        ),
    )
    for o in outcomes:
        lines += [f"## {o.step.name}: {o.verdict}", "", f"`{o.step.shown()}`", ""]
        lines += table(["skipped", "because"], ((n, why) for why, n in o.skips.most_common()))
        last = o.output.splitlines()[-40 if o.step.is_counted else -200 :]
        if last and (o.verdict in ("failed", "findings") or not o.step.is_counted):
            lines += ["~~~~text", *last, "~~~~", ""]
    text = "\n".join(lines).rstrip() + "\n"
    hidden = {str(run.folder): "(work)", str(ROOT): "(checkout)", sys.prefix: "(python)"}
    return re.sub("|".join(map(re.escape, hidden)), lambda match: hidden[match[0]], text)


# ---- The command. ----


def main(
    arguments: Sequence[str] | None = None,
    steps: Sequence[Step] = STEPS,
    find: Callable[[], dict[str, str]] = find_gpu,
) -> int:
    """The command; returns its exit code."""
    summary, _, rest = (__doc__ or "").partition("\n\n")
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=summary, epilog=rest, formatter_class=style)
    for option, text in {
        "--wheel": "gridbuf's wheel; without it, ./bazelw builds one",
        "--wheels": "a folder with wheels of test tools that are not installed",
        "--programs": "a folder with C++ programs, laid out like bazel-bin",
    }.items():
        parser.add_argument(option, type=existing, metavar="PATH", help=text)
    parser.add_argument(
        "--report",
        type=pathlib.Path,
        default="gpu_check.md",
        metavar="PATH",
        help="default: %(default)s",
    )
    parser.add_argument("--commit", help="what git would say, where the checkout has no .git")
    parser.add_argument(
        "--only",
        action="append",
        metavar="STEP",
        choices=[step.name for step in steps],
        help="run this step and those it needs; may be given again",
    )
    parser.add_argument("--list", action="store_true", help="list the steps and run none")
    parser.add_argument(
        "--rehearse", action="store_true", help="without a GPU, try wheels, paths and programs"
    )
    options = parser.parse_args(arguments)
    wanted = set(options.only or (step.name for step in steps))
    for step in reversed(steps):
        wanted |= {step.after} if step.name in wanted else set()
    steps = [step for step in steps if step.name in wanted]
    if options.list:
        for step in steps:
            print(f"{step.name}, at most {step.limit_seconds} s:\n    {step.shown()}")
        return 0
    try:
        facts, no_gpu = find(), ""
    except LookupError as error:
        facts, no_gpu = {"GPU": str(error)}, str(error)
    git = printed(("git", "describe", "--always", "--dirty", "--abbrev=40"))[1]
    facts |= {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        "commit": options.commit or git,
        "system": f"{platform.platform()}, {os.cpu_count()} processors",
        "Python": platform.python_version(),
    }
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the step that runs, too
    with tempfile.TemporaryDirectory(prefix="gridbuf-gpu-check-") as folder:
        run = Run(options, pathlib.Path(folder), has_gpu=not no_gpu)
        for number, step in enumerate(steps, 1):
            print(f"[{number}/{len(steps)}] {step.name}: ", end="", flush=True)
            idle = no_gpu and not options.rehearse
            outcome = Outcome(step, reason=no_gpu) if idle else run.outcome(step)
            run.outcomes[step.name] = outcome
            print(f"{outcome.verdict}, {outcome.seconds:.0f} s. {outcome.reason}", flush=True)
            if step.name == "tools":
                Run.version.cache_clear()
            versions = {
                m: run.version(m)[1] for m in ("numpy", *sorted({s.peer for s in steps} - {""}))
            }
            options.report.write_text(report(run, facts | versions, len(steps) - number))
    print(f"report: {options.report}")
    return int(any(outcome.verdict == "failed" for outcome in run.outcomes.values()))


def existing(text: str) -> pathlib.Path:
    """An absolute path, because the steps run in the checkout."""
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"{text} does not exist")
    return pathlib.Path(text).absolute()


if __name__ == "__main__":
    sys.exit(main())
