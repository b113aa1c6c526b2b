"""The package on Windows and macOS, as far as Linux can show it: a process that lacks what they
lack.

What this cannot show: that `ctypes`, machine code and address arithmetic are right there, and that
a worker starts on macOS.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gridbuf_conformance

PACKAGE = Path(gridbuf_conformance.__file__).parent
# The modules of the adapted libraries import these libraries.
ADAPTERS = {
    path
    for path in (PACKAGE / "plugins/libraries").glob("*.py")
    if path.stem not in ("__init__", "functions", "standard")
}
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if path not in ADAPTERS and path.stem != "__main__"
]

# The dependencies are portable, and are loaded before anything is taken away.
WITHOUT_POSIX = """
import ctypes, mmap, os, select, signal, sys
import hypothesis.strategies, jinja2, packaging.specifiers, pytest, tomlkit
import rich.console, rich.progress, rich.table

for name in ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
for module, names in (
    (mmap, [name for name in vars(mmap) if name.startswith(("MAP_", "PROT_"))]),
    (os, ["P_PID", "WNOWAIT", "fork", "getuid", "killpg", "setsid", "sysconf", "waitid"]),
    (select, ["epoll", "poll"]),
    (signal, ["SIGALRM", "SIGKILL", "setitimer"]),
):
    for name in names:
        delattr(module, name)

class Libraries(ctypes.CDLL):
    def __init__(self, name, *arguments, handle=None, **options):
        if name is None and handle is None:
            raise TypeError("argument of type 'NoneType' is not iterable")
        super().__init__(name, *arguments, handle=handle, **options)

class PythonLibraries(Libraries, ctypes.PyDLL):
    pass

ctypes.CDLL, ctypes.PyDLL = Libraries, PythonLibraries
sys.platform, sys.dllhandle = "win32", ctypes.pythonapi._handle
"""


# macOS has POSIX, but no /proc, and os.waitid only from Python 3.13 on.
WITHOUT_PROC = """
import builtins, os, sys
import hypothesis.strategies, jinja2, packaging.specifiers, pytest, tomlkit
import rich.console, rich.progress, rich.table

opened = builtins.open
def without_proc(file, *arguments, **options):
    if str(file).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", file)
    return opened(file, *arguments, **options)

builtins.open, sys.platform = without_proc, "darwin"
"""
WITHOUT_WAITID = "del os.waitid, os.P_PID\n"
MAIN = "from gridbuf_conformance.cli import main; sys.exit(main())"


def windows(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python(WITHOUT_POSIX + script, *arguments)


def run_python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONIOENCODING": "utf-8",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # plug-ins of other packages may need fcntl
        },
        timeout=200,
        check=False,
    )


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return windows(MAIN, *arguments)


def test_the_emulation_takes_away_what_it_says():
    assert windows("import fcntl").returncode == 1
    assert windows("os.waitid").returncode == 1
    assert "NoneType" in windows("ctypes.CDLL(None)").stderr


def test_every_module_can_be_imported():
    done = windows(
        "import importlib, traceback\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except Exception:\n"
        "        print(name, traceback.format_exc())\n",
        *MODULES,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["survey", "--help"], ["check", "--help"], ["list"]], ids=" ".join
)
def test_the_command_explains_itself(arguments):
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    assert "gridbuf-conformance" in done.stdout or "array.array" in done.stdout


def test_a_process_that_cannot_be_watched_is_refused_with_the_remedy():
    done = command("check", "array", "--profile", "smoke")
    assert done.returncode == 4, done.stderr
    assert "win32" in done.stderr and "os.waitid" in done.stderr and "--no-isolate" in done.stderr
    assert "Traceback" not in done.stderr


def test_exports_to_consumers_are_refused_with_the_remedy():
    done = command("check", "--consumer", "memoryview", "--no-isolate", "--profile", "smoke")
    assert done.returncode == 4, done.stderr
    assert "mmap" in done.stderr and "use Linux" in done.stderr


def test_a_producer_is_judged_without_a_process_of_its_own():
    done = command("check", "array", "--no-isolate", "--profile", "smoke", "--rules", "PB-*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ array conforms" in done.stdout


def test_rules_are_tests_of_pytest_without_locks(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Producer:\n    def produce(self, plan):\n        return bytearray(plan.content())\n"
    )
    options = ["-p", "gridbuf_conformance.pytest_plugin", "-p", "no:cacheprovider"]
    options += [f"--gridbuf-producer={tmp_path / 'mine.py'}:Producer", str(tmp_path)]
    done = windows(
        "sys.exit(pytest.main(sys.argv[1:]))", *options, "--gridbuf-rules=PB-03", "--capture=sys"
    )
    assert "no separate process can be started here: win32" in done.stdout, done.stderr
    assert "fcntl" not in done.stdout + done.stderr


# macOS
# --------------------------------------------------------------------------------------------------


def test_a_process_without_a_memory_map_judges_all_that_needs_none():
    script = WITHOUT_PROC + (
        "import array, gridbuf_conformance as gc\n"
        "report = gc.check(array.array('d', [1.0, 2.0]))\n"
        "print(report.exit_code, report.outcomes['PB-03'], report.outcomes['XA-10'])\n"
    )
    assert run_python(script).stdout == "0 PASS UNTESTED\n"


def test_producers_and_consumers_are_judged_in_the_process_of_macos():
    common = ("--no-isolate", "--profile", "smoke", "--rules")
    producer = run_python(WITHOUT_PROC + MAIN, "check", "array", *common, "PB-*")
    assert producer.returncode == 0 and "✓ array conforms" in producer.stdout, producer.stderr
    consumer = ("replay", "--consumer", "memoryview", "PB-35", '{"export":"buffer"}')
    done = run_python(WITHOUT_PROC + MAIN, *consumer, "--no-isolate")
    assert done.returncode == 0 and "✓ memoryview conforms" in done.stdout, done.stderr


def test_a_process_of_its_own_needs_a_newer_python_on_macos():
    command = ("check", "array", "--profile", "smoke", "--rules", "PB-03")
    older = run_python(WITHOUT_PROC + WITHOUT_WAITID + MAIN, *command)
    assert older.returncode == 4
    assert "darwin" in older.stderr and "os.waitid" in older.stderr, older.stderr
    newer = run_python(WITHOUT_PROC + MAIN, *command)
    assert newer.returncode == 0, newer.stderr
