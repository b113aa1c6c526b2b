"""The zoo: released array libraries, what the suite finds in them, and the proof that it is so.

    python conformance/zoo/zoo.py list
    python conformance/zoo/zoo.py run [ENVIRONMENT…]      judge libraries, write results/NAME.json
    python conformance/zoo/zoo.py verify [FINDING…]       replay findings, write results/verified.json
    python conformance/zoo/zoo.py docs [--check]          write docs/zoo.md

`run` and `verify` make one virtual environment for each library and version, from wheels of the package index. They
need the interpreters that environments.toml names. Everything else needs neither.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import page
import runs
import venvs
from records import FOLDER, RESULTS, Environment, Finding, Zoo, load, read_json, write_json
from rich.console import Console
from rich.table import Table

__all__ = ["main"]

_ROOT = FOLDER.parents[1]
_VERIFIED = RESULTS / "verified.json"
_DOCUMENT = _ROOT / "docs/zoo.md"
_Key = TypeVar("_Key")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 if all went well, 1 if not, 2 for names that do not exist."""
    options = _parser().parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # into a file, too, one line at a time
    try:
        return int(options.run(load(), options, Console(highlight=False, soft_wrap=True)))
    except KeyError as error:
        Console(stderr=True).print(str(error.args[0]), markup=False)
        return 2


def _list(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    table = Table("environment", "Python", "age", "targets", "findings", box=None)
    for environment in zoo.environments.values():
        targets = ", ".join(target for _, target in environment.targets)
        found = sum(environment.name in finding.environments for finding in zoo.findings)
        table.add_row(
            environment.name, environment.python, environment.age, targets, str(found or "")
        )
    console.print(table)
    return 0


def _run(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    chosen = _named(zoo.environments, options.names, "environment")
    if options.missing:
        chosen = [environment for environment in chosen if not _is_run(environment)]

    def judge(environment: Environment) -> bool:
        try:
            result = runs.checked(environment, options.folder)
        except venvs.CannotMake as error:
            console.print(f"[yellow]![/] {environment.name}: {error}")
            return False
        write_json(RESULTS / f"{environment.name}.json", result)
        console.print(f"[green]✓[/] {environment.name}: {_told(result)}")
        if options.discard:
            venvs.discard(environment, options.folder)
        return True

    return 0 if all(_on_all(judge, chosen, options.jobs)) else 1


def _is_run(environment: Environment) -> bool:
    """Whether there is a result for just these targets of this version."""
    result = read_json(RESULTS / f"{environment.name}.json")
    ran = [(target["side"], target["target"]) for target in result.get("targets", [])]
    return ran == environment.targets and result["version"] == environment.version


def _verify(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    findings = {finding.id: finding for finding in zoo.findings}
    results = {id_: proof for id_, proof in read_json(_VERIFIED).items() if id_ in findings}
    chosen = _named(findings, options.names, "finding")
    if options.missing:
        chosen = [f for f in chosen if not runs.is_verified(results.get(f.id, {}))]
    used = sorted({name for f in chosen for name in (f.affected, f.passes)})
    _on_all(lambda name: _made(zoo.environments[name], options, console), used, options.jobs)
    writing = Lock()

    def prove(finding: Finding) -> bool:
        result = runs.verified(finding, zoo, options.folder)
        console.print(_proof(finding, result))
        with writing:  # after each, so that what is known is kept if the rest is interrupted
            results[finding.id] = result
            write_json(_VERIFIED, results)
        return runs.is_verified(result)

    return 0 if all(_on_all(prove, chosen, options.jobs)) else 1


def _made(environment: Environment, options: argparse.Namespace, console: Console) -> None:
    try:
        venvs.make(environment, options.folder)
    except venvs.CannotMake as error:
        console.print(f"[yellow]![/] {error}")


def _docs(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    text = page.render(zoo)
    if options.check:
        is_current = _DOCUMENT.exists() and _DOCUMENT.read_text("utf-8") == text
        console.print("current" if is_current else "not current: run zoo.py docs")
        return 0 if is_current else 1
    _DOCUMENT.write_text(text, "utf-8")
    console.print(f"{_DOCUMENT.relative_to(_ROOT)}: {len(zoo.findings)} findings")
    return 0


def _proof(finding: Finding, result: dict[str, Any]) -> str:
    """One line: what the affected version and the other one came to."""
    sign = "[green]✓[/]" if runs.is_verified(result) else "[red]✗[/]"
    broken, right = result["affected"]["outcome"], result["passes"]["outcome"]
    return f"{sign} {finding.id}: {finding.rule} {broken} on {finding.affected}, {right} on {finding.passes}"


def _told(result: dict[str, Any]) -> str:
    """One line: each target and the rules that failed."""
    parts = []
    for target in result["targets"]:
        failed = ", ".join(target.get("failures", {})) or "nothing fails"
        parts.append(f"{target['target']}: {target.get('error', failed)}")
    return "; ".join(parts)


def _named(known: Any, names: Sequence[str], kind: str) -> list[Any]:
    """The records of these names, or all; raises KeyError for an unknown one."""
    for name in names:
        if name not in known:
            raise KeyError(f"no {kind} is called {name!r}; see: zoo.py list")
    return [known[name] for name in names] if names else list(known.values())


def _on_all(act: Callable[[_Key], Any], items: Sequence[_Key], jobs: int) -> list[Any]:
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(act, items))


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        "zoo.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command = top.add_subparsers(required=True, metavar="COMMAND")
    listing = command.add_parser("list", help="list the environments")
    listing.set_defaults(run=_list)
    run = command.add_parser("run", help="judge the libraries of these environments (or of all)")
    verify = command.add_parser("verify", help="replay these findings (or all); 1 if one fails")
    for parser, act in ((run, _run), (verify, _verify)):
        parser.add_argument("names", nargs="*", metavar="NAME")
        parser.add_argument(
            "--folder",
            type=Path,
            default=_ROOT / ".gridbuf/zoo",
            help="where the virtual environments are made (default: .gridbuf/zoo of the project)",
        )
        parser.add_argument("--jobs", type=int, default=1, help="how many at once (default: 1)")
        parser.add_argument("--missing", action="store_true", help="only what has no result yet")
        parser.set_defaults(run=act)
    run.add_argument("--discard", action="store_true", help="remove each environment after its run")
    docs = command.add_parser("docs", help="write docs/zoo.md")
    docs.add_argument("--check", action="store_true", help="write nothing; 1 if it is not current")
    docs.set_defaults(run=_docs)
    return top


if __name__ == "__main__":
    sys.exit(main())
