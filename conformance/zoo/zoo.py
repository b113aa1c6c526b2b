"""The zoo: released array libraries, the suite's findings in them, and the evidence.

    python conformance/zoo/zoo.py list
    python conformance/zoo/zoo.py run [ENVIRONMENT…]      judge libraries, write results/NAME.json
    python conformance/zoo/zoo.py run --versions […]      bisect findings over releases, write results/versions.json
    python conformance/zoo/zoo.py verify [FINDING…]       replay findings, write results/verified.json
    python conformance/zoo/zoo.py reproduce [FINDING…]    run their scripts, write results/reproduced.json
    python conformance/zoo/zoo.py docs [--check]          write docs/zoo.md and its chart
    python conformance/zoo/zoo.py docs --site FOLDER      write the pages of the libraries for the site
    python conformance/zoo/zoo.py all                     what has no result yet of run, verify and reproduce, then docs
    python conformance/zoo/zoo.py all --again             all of it; interrupted, go on with `all`

`run`, `verify` and `reproduce` make one virtual environment for each library and version, from wheels of the package index. They
need the interpreters that environments.toml names. The other commands need neither.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import page
import runs
import scripts
import venvs
import versions
from records import FOLDER, RESULTS, Environment, Finding, Zoo, load, read_json, write_json
from rich.console import Console
from rich.table import Table

__all__ = ["main"]

_ROOT = FOLDER.parents[1]
_VERIFIED = RESULTS / "verified.json"
_REPRODUCED = RESULTS / "reproduced.json"
_Key = TypeVar("_Key")
Tell = Callable[[str], None]
"""Prints one line of progress."""


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
    if options.versions:
        return _versions(zoo, chosen, options, console)
    if options.missing:
        chosen = [environment for environment in chosen if not _is_run(environment)]

    def judge(environment: Environment, tell: Tell) -> bool:
        try:
            result = runs.checked(environment, options.folder)
        except venvs.CannotMake as error:
            tell(f"! {environment.name}: {error}")
            return False
        write_json(RESULTS / f"{environment.name}.json", result)
        tell(f"✓ {environment.name}: {_told(result)}")
        if options.discard:
            venvs.discard(environment, options.folder)
        return True

    return 0 if all(_on_all(judge, chosen, options, console)) else 1


def _versions(
    zoo: Zoo, chosen: Sequence[Environment], options: argparse.Namespace, console: Console
) -> int:
    """Bisects the findings that were recorded in these environments; one at a time, because they share a file."""
    code = 0
    for environment in chosen:
        findings = [f for f in zoo.findings if f.affected == environment.name]
        if options.missing:
            known = read_json(versions.PATH)
            findings = [f for f in findings if "releases" not in known.get(f.id, {})]
        try:
            if findings:
                versions.bisect(environment, findings, options.folder, console.print)
        except venvs.CannotMake as error:
            console.print(f"[yellow]![/] {error}")
            code = 1
    return code


def _is_run(environment: Environment) -> bool:
    """Whether there is a result for exactly these targets of this version, by this catalogue."""
    result = read_json(RESULTS / f"{environment.name}.json")
    ran = [(target["side"], target["target"]) for target in result.get("targets", [])]
    wanted = (environment.version, runs.PROFILE, runs.CATALOGUE)
    found = tuple(result.get(key) for key in ("version", "profile", "catalogue"))
    return ran == environment.targets and found == wanted


def _verify(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    findings = {finding.id: finding for finding in zoo.findings}
    results = {id_: proof for id_, proof in read_json(_VERIFIED).items() if id_ in findings}
    chosen = _named(findings, options.names, "finding")
    if options.missing:
        chosen = [f for f in chosen if not _is_proved(f, results.get(f.id, {}))]
    used = sorted({name for f in chosen for name in (f.affected, f.passes) if name})
    _on_all(lambda name, tell: _made(zoo.environments[name], options, tell), used, options, console)
    writing = Lock()

    def prove(finding: Finding, tell: Tell) -> bool:
        result = runs.verified(finding, zoo, options.folder)
        tell(_proof(finding, result))
        with writing:  # after each, so that results are kept if the rest is interrupted
            results[finding.id] = result
            write_json(_VERIFIED, results)
        return _is_proved(finding, result)

    codes = _on_all(prove, chosen, options, console)
    for name in used if options.discard else ():
        venvs.discard(zoo.environments[name], options.folder)
    return 0 if all(codes) else 1


def _reproduce(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    findings = {finding.id: finding for finding in zoo.findings}
    results = {id_: runs for id_, runs in read_json(_REPRODUCED).items() if id_ in findings}
    todo: dict[str, list[Finding]] = {}
    for finding in _named(findings, options.names, "finding"):
        known = results.get(finding.id, {})
        for environment in scripts.environments(finding, zoo):
            if not (options.missing and environment.name in known):
                todo.setdefault(environment.name, []).append(finding)
    writing = Lock()

    def show(name: str, tell: Tell) -> bool:
        environment = zoo.environments[name]
        try:
            python = venvs.make(environment, options.folder)
        except venvs.CannotMake as error:
            tell(f"! {name}: {error}")
            return False
        for finding in todo[name]:
            result = scripts.run(finding, environment, python)
            sign = {scripts.SHOWN: "✗", scripts.GONE: "✓"}.get(scripts.outcome(result), "?")
            tell(f"{sign} {name}: {finding.id}: {result['told']}")
            with writing:
                results.setdefault(finding.id, {})[name] = result
                write_json(_REPRODUCED, results)
        if options.discard:
            venvs.discard(environment, options.folder)
        return True

    return 0 if all(_on_all(show, sorted(todo), options, console)) else 1


def _all(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    """Everything that has no result yet, one environment after another, and then the page."""
    if options.again:
        for path in set(RESULTS.glob("*.json")) - {versions.PATH}:
            path.unlink()
    options.names, options.missing, options.versions = [], True, False
    begin, codes = time.monotonic(), []
    for title, step in (("run", _run), ("verify", _verify), ("reproduce", _reproduce)):
        console.print(f"== {title}, after {(time.monotonic() - begin) / 60:.0f} min")
        codes.append(step(zoo, options, console))
    codes.append(_docs(zoo, argparse.Namespace(check=False, site=None), console))
    console.print(f"== done, after {(time.monotonic() - begin) / 60:.0f} min")
    return max(codes)


def _made(environment: Environment, options: argparse.Namespace, tell: Tell) -> None:
    try:
        venvs.make(environment, options.folder)
    except venvs.CannotMake as error:
        tell(f"! {error}")


def _docs(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    """Writes docs/zoo.md and its chart, or the pages of the libraries, or says whether docs/zoo.md is current."""
    if options.site:
        for name, text in page.libraries(zoo).items():
            (options.site / name).write_text(text, "utf-8")
        return 0
    text = page.render(zoo)
    is_current = page.PAGE.exists() and page.PAGE.read_text("utf-8") == text
    if options.check:
        console.print("current" if is_current else "docs/zoo.md is not current; run: zoo.py docs")
        return 0 if is_current else 1
    page.PAGE.write_text(text, "utf-8")
    page.draw(zoo)
    console.print(f"{len(zoo.findings)} findings")
    return 0


def _proof(finding: Finding, result: dict[str, Any]) -> str:
    """One line: the outcome on the affected version and on the peer."""
    sign = "✓" if _is_proved(finding, result) else "✗"
    told = f"{finding.replay_rule} {result['affected']['outcome']} on {finding.affected}"
    if "passes" in result:
        told += f", {result['passes']['outcome']} on {finding.passes}"
    return f"{sign} {finding.id}: {told}"


def _is_proved(finding: Finding, result: dict[str, Any]) -> bool:
    """Whether its replays fail and pass as they should. The rules only advise against some contested ones."""
    return runs.is_verified(result) or (finding.is_contested and bool(result))


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


def _on_all(
    act: Callable[[_Key, Tell], Any],
    items: Sequence[_Key],
    options: argparse.Namespace,
    console: Console,
) -> list[Any]:
    """Calls `act` for each item, `options.jobs` at once. The lines that it tells begin with the number of the item."""

    def numbered(pair: tuple[int, _Key]) -> Any:
        number, item = pair
        return act(item, lambda line: console.print(f"{number}/{len(items)} {line}", markup=False))

    with ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(numbered, enumerate(items, 1)))


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        "zoo.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command = top.add_subparsers(required=True, metavar="COMMAND")
    listing = command.add_parser("list", help="list the environments")
    listing.set_defaults(run=_list)
    run = command.add_parser("run", help="judge the libraries of these environments (or of all)")
    verify = command.add_parser("verify", help="replay these findings (or all); 1 if one fails")
    reproduce = command.add_parser("reproduce", help="run the scripts of these findings (or all)")
    everything = command.add_parser("all", help="run, verify, reproduce and docs; resumes")
    everything.add_argument(
        "--again",
        action="store_true",
        help="forget all results first, except those of run --versions",
    )
    for parser, act in (
        (run, _run),
        (verify, _verify),
        (reproduce, _reproduce),
        (everything, _all),
    ):
        if parser is run:
            parser.add_argument(
                "--versions",
                action="store_true",
                help="try the scripts of their findings on other releases instead",
            )
        if parser is not everything:
            parser.add_argument("names", nargs="*", metavar="NAME")
            parser.add_argument(
                "--missing", action="store_true", help="only what has no result yet"
            )
        parser.add_argument(
            "--folder",
            type=Path,
            default=_ROOT / ".gridbuf/zoo",
            help="where the virtual environments are made (default: .gridbuf/zoo of the project)",
        )
        parser.add_argument("--jobs", type=int, default=1, help="how many at once (default: 1)")
        parser.add_argument(
            "--discard", action="store_true", help="remove each environment after its use"
        )
        parser.set_defaults(run=act)
    docs = command.add_parser("docs", help="write docs/zoo.md and its chart")
    docs.add_argument("--check", action="store_true", help="write nothing; 1 if it is not current")
    docs.add_argument("--site", type=Path, metavar="FOLDER", help="write the pages of libraries")
    docs.set_defaults(run=_docs)
    return top


if __name__ == "__main__":
    sys.exit(main())
