"""The zoo: released array libraries, the suite's findings in them, and the evidence.

    python zoo/command.py list
    python zoo/command.py run [ENVIRONMENT…]      judge libraries, write results/NAME.json
    python zoo/command.py run --library NumPy     all releases of one library
    python zoo/command.py run --rule PB-36        judge by one rule only, on its plans
    python zoo/command.py verify [FINDING…]       replay findings and run their scripts
    python zoo/command.py versions [FINDING…]     bisect findings over releases
    python zoo/command.py docs [FOLDER]           write zoo.md, its chart, a page for each library
    python zoo/command.py all                     what has no result of run and verify, then docs
    python zoo/command.py all --again             all of it; interrupted, go on with `all`

`run --rule` replaces that part of the records. `verify` and `versions` write what they find into
the headers of the scripts.

`run` and `verify` make one virtual environment for each library and version, from wheels of the
package index. They need the interpreters that the files in libraries/ name. `list` and `docs` need
neither.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter, defaultdict
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
from records import (
    RESULTS,
    ROOT,
    Environment,
    Finding,
    Zoo,
    load,
    read_json,
    write_json,
    write_records,
)
from rich.console import Console
from rich.table import Table

from gridbuf_conformance.rules import catalogue

_GENERATED = ROOT / ".gridbuf/generated"
_Item = TypeVar("_Item", Environment, Finding)
Tell = Callable[[str], None]
"""Prints one line of progress."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 if all went well, 1 if not, 2 for names that do not exist."""
    options = _parser().parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # into a file, too, one line at a time
    try:
        return int(options.act(load(), options, Console(highlight=False, soft_wrap=True)))
    except (KeyError, catalogue.UnknownRule) as error:
        Console(stderr=True).print(str(error.args[0]), markup=False)
        return 2


def _list(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    table = Table("environment", "Python", "targets", "findings", box=None)
    for environment in zoo.environments.values():
        targets = ", ".join(target for _, target in environment.targets)
        found = sum(environment.name in finding.environments for finding in zoo.findings)
        table.add_row(environment.name, environment.python, targets, str(found or ""))
    console.print(table)
    return 0


def _run(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    chosen = _named(zoo, zoo.environments, options, "environment")
    catalogue.matching(options.rule)
    if options.missing:
        chosen = [environment for environment in chosen if not _is_run(environment)]

    def judge(environment: Environment, tell: Tell) -> bool:
        path = RESULTS / f"{environment.name}.json"
        record = read_json(path)
        try:
            if options.rule and _targets(record) == environment.targets:
                result = runs.refreshed(record, environment, options.folder, options.rule)
            else:
                result = runs.checked(environment, options.folder)
        except venvs.CannotMake as error:
            tell(f"! {environment.name}: {error}")
            return False
        write_json(path, result)
        tell(f"✓ {environment.name}: {_told(result)}")
        if options.discard:
            venvs.discard(environment, options.folder)
        return True

    return 0 if all(_on_all(judge, chosen, options, console)) else 1


def _targets(record: dict[str, Any]) -> list[tuple[str, str]]:
    return [(target["side"], target["target"]) for target in record.get("targets", [])]


def _is_run(environment: Environment) -> bool:
    """Whether there is a result for exactly these targets of this version, by this catalogue."""
    result = read_json(RESULTS / f"{environment.name}.json")
    wanted = (environment.version, runs.PROFILE, runs.CATALOGUE)
    found = tuple(result.get(key) for key in ("version", "profile", "catalogue"))
    return _targets(result) == environment.targets and found == wanted


def _verify(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    findings = {finding.id: finding for finding in zoo.findings}
    chosen = _named(zoo, findings, options, "finding")
    if options.missing:
        chosen = [finding for finding in chosen if not _is_shown(finding, zoo)]
    used = {finding.id: {e.name: e for e in _environments(finding, zoo)} for finding in chosen}
    left = Counter(name for environments in used.values() for name in environments)
    making, counting = defaultdict(Lock), Lock()

    def prove(finding: Finding, tell: Tell) -> bool:
        pythons = {}
        for name, environment in used[finding.id].items():
            with making[name]:  # two findings may need it at once
                try:
                    pythons[name] = venvs.make(environment, options.folder)
                except venvs.CannotMake as error:
                    tell(f"! {error}")
        replays = runs.verified(finding, zoo, options.folder)
        shown = {
            e.name: scripts.run(finding, pythons[e.name])
            for e in scripts.environments(finding, zoo)
            if e.name in pythons
        }
        write_records(finding.script, {"replays": replays, "runs": shown})
        tell(_proof(finding, replays))
        for name, result in shown.items():
            sign = {scripts.SHOWN: "✗", scripts.GONE: "✓"}.get(scripts.outcome(result), "?")
            tell(f"{sign} {name}: {finding.id}: {result['told']}")
        with counting:
            left.subtract([*used[finding.id]])
        for name, environment in used[finding.id].items() if options.discard else ():
            if not left[name]:
                venvs.discard(environment, options.folder)
        return _is_proved(finding, replays) and len(pythons) == len(used[finding.id])

    return 0 if all(_on_all(prove, chosen, options, console)) else 1


def _environments(finding: Finding, zoo: Zoo) -> list[Environment]:
    """Everything that the replays and the script of a finding need."""
    peers = [zoo.environments[name] for name in (finding.affected, finding.passes) if name]
    return [*peers, *scripts.environments(finding, zoo)]


def _is_shown(finding: Finding, zoo: Zoo) -> bool:
    """Whether it is proved, and its script ran everywhere."""
    wanted = {environment.name for environment in scripts.environments(finding, zoo)}
    return _is_proved(finding, finding.replays) and wanted <= set(finding.runs)


def _versions(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    """Bisects findings, those of an environment together."""
    chosen = _named(zoo, {finding.id: finding for finding in zoo.findings}, options, "finding")
    todo: dict[str, list[Finding]] = {}
    for finding in chosen:
        if not (options.missing and "listed" in finding.releases):
            todo.setdefault(finding.affected, []).append(finding)
    code = 0
    for name, findings in todo.items():
        try:
            versions.bisect(zoo.environments[name], findings, options.folder, console.print)
        except venvs.CannotMake as error:
            console.print(f"! {error}", markup=False)
            code = 1
    return code


def _all(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    """Everything that has no result yet, and then the pages."""
    if options.again:
        for path in RESULTS.glob("*.json"):
            path.unlink()
        for finding in zoo.findings:
            write_records(finding.script, {"replays": {}, "runs": {}})
    options = argparse.Namespace(
        **{**vars(options), "names": [], "library": "", "rule": "", "missing": True, "to": None}
    )
    begin, codes = time.monotonic(), []
    for title, step in (("run", _run), ("verify", _verify), ("docs", _docs)):
        console.print(f"== {title}, after {(time.monotonic() - begin) / 60:.0f} min")
        codes.append(step(load(), options, console))
    console.print(f"== done, after {(time.monotonic() - begin) / 60:.0f} min")
    return max(codes)


def _docs(zoo: Zoo, options: argparse.Namespace, console: Console) -> int:
    """Writes the pages; without a folder also the chart that is committed."""
    folder = options.to or _GENERATED
    page.write(zoo, folder)
    if not options.to:
        shutil.copyfile(folder / "images/zoo.svg", page.CHART)
    console.print(f"{len(zoo.findings)} findings: {folder / 'zoo.md'}")
    return 0


def _proof(finding: Finding, result: dict[str, Any]) -> str:
    """One line: the outcome on the affected version and on the peer."""
    sign = "✓" if _is_proved(finding, result) else "✗"
    told = f"{finding.replay_rule} {result['affected']['outcome']} on {finding.affected}"
    if "passes" in result:
        told += f", {result['passes']['outcome']} on {finding.passes}"
    return f"{sign} {finding.id}: {told}"


def _is_proved(finding: Finding, result: Any) -> bool:
    """Whether its replays fail and pass as they should. The rules only advise against some
    contested ones.
    """
    return runs.is_verified(result) or (finding.is_contested and bool(result))


def _told(result: dict[str, Any]) -> str:
    """One line: each target and the rules that failed."""
    parts = []
    for target in result["targets"]:
        failed = ", ".join(target.get("failures", {})) or "nothing fails"
        parts.append(f"{target['target']}: {target.get('error', failed)}")
    return "; ".join(parts)


def _named(zoo: Zoo, known: Any, options: argparse.Namespace, kind: str) -> list[Any]:
    """The records of these names or this library, or all; raises KeyError for unknown ones."""
    for name in options.names:
        if name not in known:
            raise KeyError(f"no {kind} is called {name!r}; see: command.py list")
    libraries = {name.lower() for name in zoo.libraries}
    if options.library and options.library.lower() not in libraries:
        raise KeyError(f"no library is called {options.library!r}; see: ls zoo/libraries")
    chosen = [known[name] for name in options.names] if options.names else list(known.values())
    return [one for one in chosen if options.library.lower() in ("", one.library.lower())]


def _on_all(
    act: Callable[[_Item, Tell], Any],
    items: Sequence[_Item],
    options: argparse.Namespace,
    console: Console,
) -> list[Any]:
    """Calls `act` for each item, `options.jobs` at once. The lines that it tells begin with the
    number of the item.
    """

    def numbered(pair: tuple[int, _Item]) -> Any:
        number, item = pair
        return act(item, lambda line: console.print(f"{number}/{len(items)} {line}", markup=False))

    with ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(numbered, enumerate(items, 1)))


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        "command.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command = top.add_subparsers(required=True, metavar="COMMAND")
    command.add_parser("list", help="list the environments").set_defaults(act=_list)
    run = command.add_parser("run", help="judge the libraries of these environments (or of all)")
    run.add_argument("--rule", default="", metavar="PATTERNS", help="judge by these rules only")
    verify = command.add_parser("verify", help="replay these findings (or all), run their scripts")
    bisect = command.add_parser("versions", help="try the scripts on other releases")
    everything = command.add_parser("all", help="run, verify and docs; resumes")
    everything.add_argument(
        "--again", action="store_true", help="forget all results first, except those of versions"
    )
    acts = {run: _run, verify: _verify, bisect: _versions, everything: _all}
    for parser, act in acts.items():
        parser.set_defaults(act=act)
        parser.add_argument(
            "--folder",
            type=Path,
            default=ROOT / ".gridbuf/zoo",
            help="where the virtual environments are made (default: .gridbuf/zoo of the project)",
        )
        parser.add_argument("--jobs", type=int, default=1, help="how many at once (default: 1)")
        parser.add_argument(
            "--discard", action="store_true", help="remove each environment after its use"
        )
    for parser in (run, verify, bisect):
        parser.add_argument("names", nargs="*", metavar="NAME")
        parser.add_argument("--library", default="", help="those of one library")
        parser.add_argument("--missing", action="store_true", help="only what has no result yet")
    docs = command.add_parser("docs", help="write the pages")
    docs.add_argument(
        "to", nargs="?", type=Path, metavar="FOLDER", help="default: .gridbuf/generated"
    )
    docs.set_defaults(act=_docs)
    return top


if __name__ == "__main__":
    sys.exit(main())
