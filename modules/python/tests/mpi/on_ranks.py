"""Tests that run on several ranks: `@on_ranks(4)` on a function of a test file makes it run under mpiexec.

pytest runs the file as ever. The first marked test starts `mpiexec -n 4` on this program, which runs all marked functions of the
file on every rank, in the same order; each test then asserts what its function did. Starting once keeps a file of twenty
tests at the price of one. Ranks share the processors that there are.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

HOW = "install the peers with `./bazelw --peers`"
SECONDS = 150
PASSED = "passed"
Function = Callable[..., None]

_cases: list[tuple[str, int, dict[str, Any], Function]] = []
_on_a_rank = False


def has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def launcher(count: int) -> list[str]:
    """What starts a program on so many ranks, with mpi4py's MPI; skips the test where it is missing."""
    mpiexec = Path(sys.prefix) / "bin/mpiexec"
    if not has("mpi4py") or not mpiexec.exists():
        pytest.skip(f"NOT run: mpi4py and an MPI are not installed; {HOW}")
    return [str(mpiexec), "-n", str(count)]


def environment() -> dict[str, str]:
    """The environment of ranks that import what this process imports."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def on_ranks(count: int, **parameter: Sequence[Any]) -> Callable[[Function], Function]:
    """Runs a test on `count` ranks; `engine=("mpi4py", "ghex")` runs it once for each, with that argument."""

    def decorate(function: Function) -> Function:
        name = next(iter(parameter), None)
        choices = [{name: value} for value in parameter[name]] if name else [{}]
        for chosen in choices:
            _cases.append((_id(function, chosen), count, chosen, function))
        if _on_a_rank:
            return function
        file = inspect.getfile(function)

        def test(**chosen: Any) -> None:
            if "ghex" in chosen.values() and not has("ghex"):
                pytest.skip("NOT run: GHEX is not installed; `./bazelw --ghex` builds it")
            outcome = _outcomes(file, count).get(_id(function, chosen), "did not run")
            assert outcome == PASSED, outcome

        functools.update_wrapper(test, function)
        del test.__wrapped__  # type: ignore[attr-defined]
        test.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)] if name else []
        )
        return pytest.mark.parametrize(name, parameter[name])(test) if name else test

    return decorate


def _id(function: Function, chosen: dict[str, Any]) -> str:
    return "-".join([function.__name__, *map(str, chosen.values())])


@functools.cache
def _outcomes(file: str, count: int) -> dict[str, str]:
    """What became of each marked function: PASSED, or what the ranks that failed printed."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "outcomes.json"
        done = subprocess.Popen(
            [*launcher(count), sys.executable, __file__, file, str(count), str(written)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = done.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, 9)
            output, _ = done.communicate()
            output += f"\nthe ranks were ended after {SECONDS} s"
        outcomes: dict[str, str] = json.loads(written.read_text()) if written.exists() else {}
        if done.returncode and not outcomes:
            pytest.fail(f"the ranks ended with {done.returncode}:\n{output}")
        return outcomes


def _run(function: Function, chosen: dict[str, Any]) -> str:
    try:
        function(**chosen)
    except BaseException:
        return traceback.format_exc()
    return PASSED


def main() -> None:
    """One rank: runs the marked functions of a file, and on rank 0 writes what became of them after each."""
    global _on_a_rank
    from mpi4py import MPI

    _on_a_rank = True
    sys.modules["on_ranks"] = sys.modules["__main__"]
    file, count, written = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    spec = importlib.util.spec_from_file_location("on_these_ranks", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    outcomes: dict[str, str] = {}
    for name, wanted, chosen, function in _cases:
        if wanted != count or ("ghex" in chosen.values() and not has("ghex")):
            continue
        if MPI.COMM_WORLD.rank == 0:
            print(f"running {name}", flush=True)
        found = MPI.COMM_WORLD.allgather(_run(function, chosen))
        failed = [f"rank {rank}:\n{text}" for rank, text in enumerate(found) if text != PASSED]
        outcomes[name] = "\n".join(failed) or PASSED
        if MPI.COMM_WORLD.rank == 0:
            written.write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main()
