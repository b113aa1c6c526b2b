"""The actions of the commands, after the options are parsed."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from .. import config, findings, libraries, named_consumers, producers, render
from ..config import Config
from ..engine import consumer_run, producer_run
from ..engine.results import scrubbed
from ..engine.session import patterns
from ..exports import interfaces, plan_of_dict
from ..known import KnownFailures
from ..known.changes import print_changes
from ..known.replays import require_matches
from ..outcomes import ExitCode, Outcome, exit_code_of_all
from ..render import console as on_console
from ..render import reference
from ..render.report import Report
from ..render.summary import Absent, conclusion
from ..rules import catalogue
from ..rules.scope import chosen
from ..targets import CannotLoad, Target, is_path
from ..text import shorten
from .progress import progress_on

SURVEY_REPORT = "gridbuf-survey.html"
_MAX_MESSAGE_CHARS = 600


class UsageError(Exception):
    """The command line names a thing that does not exist; the text says what to write instead."""


@dataclass(frozen=True)
class Consoles:
    """The console for results, and the console for progress and errors."""

    out: Console
    err: Console


def check(options: Namespace, consoles: Consoles) -> int:
    """Judges producers and consumers; returns the exit code of the report, or of all reports."""
    settings = settings_of(options)
    reports = _writable(options.report)
    targets = _known_targets(options, settings)
    if options.events and len(targets) > 1:
        raise UsageError("--events is the stream of one run; name one target")
    records = KnownFailures.load(settings.known)
    is_one = len(targets) == 1
    done = []
    with (
        _event_writer(options.events) as write_event,
        progress_on(consoles.err, len(targets)) as progress,
    ):

        def listen(event: dict[str, Any]) -> None:
            write_event(event)
            progress.listen(event)

        for target in targets:
            progress.begin(target.written)
            records_of = records if is_one else replace(records, lenient=True)
            report = _judged(target, settings, options.isolate, records_of, listen)
            done.append(report)
            progress.end(_remark(report))
    _save(reports, [report.data for report in done])
    for report in done:
        on_console.render(report.data, consoles.out, verbose=options.verbose)
    if is_one:
        return done[0].exit_code
    require_matches(records, done, [target.shown for target in targets])
    return exit_code_of_all(report.exit_code for report in done)


def replay(options: Namespace, consoles: Consoles) -> int:
    """Judges one rule on one plan; returns the exit code of the report."""
    catalogue.matching(options.rule)
    settings = settings_of(options)
    reports = _writable(options.report)
    targets = _known_targets(options, settings)
    if len(targets) != 1:
        raise UsageError("replay judges one target: name a producer, or --consumer TARGET")
    target = targets[0]
    plan = plan_of(options.plan, target.side)
    replayed = consumer_run.replay if target.side == "consumer" else producer_run.replay
    with _event_writer(options.events) as write_event:
        report = replayed(
            target.written,
            options.rule,
            plan,
            isolate=options.isolate,
            time_limit_s=settings.time_limit,
            storage=settings.storage,
            threads=options.threads,
            spec=settings.spec,
            on_event=write_event,
        )
    _save(reports, [report.data])
    on_console.render(report.data, consoles.out, verbose=True)
    return report.exit_code


def survey(options: Namespace, consoles: Consoles) -> int:
    """Checks the named producers and consumers, or all installed producers or consumers.

    Returns 0 whatever the libraries do, 3 if the suite itself failed, and 4 if an installed or
    named library cannot be loaded.
    """
    settings = settings_of(options)
    paths = _writable(options.report or [Path(SURVEY_REPORT)])
    targets, absent = _survey_targets(options)
    records = KnownFailures.load(settings.known)
    done: list[Report] = []
    with progress_on(consoles.err, len(targets)) as progress:
        for target in targets:
            progress.begin(target.written)
            outcome = _surveyed(target, settings, options.isolate, records, progress.listen)
            if isinstance(outcome, Report):
                done.append(outcome)
                progress.end(_remark(outcome))
            else:
                absent.append(outcome)
                progress.end(outcome.reason)
    reports = [report.data for report in done]
    absent.sort(key=lambda library: not library.failed)
    _save(paths, reports, absent)
    where = [os.path.abspath(path) for path in paths]
    on_console.render_survey(reports, consoles.out, absent=absent, paths=where)
    require_matches(records, done, [target.shown for target in targets])
    has_error = any(str(Outcome.ERROR) in report["summary"] for report in reports)
    if has_error:
        return ExitCode.SUITE_ERROR
    is_incomplete = any(library.failed for library in absent)
    return ExitCode.CANNOT_LOAD if is_incomplete else ExitCode.CONFORMANT


def merge(options: Namespace, consoles: Consoles) -> int:
    """Combines reports of several runs; returns 0 whatever they contain, like a survey."""
    from .merge import MergeError, merged

    paths = _writable(options.report)
    try:
        reports, absent = merged(options.files)
    except MergeError as error:
        raise UsageError(str(error)) from None
    _save(paths, [dict(report) for report in reports], absent)
    on_console.render_survey(reports, consoles.out, absent=absent)
    return ExitCode.CONFORMANT


def known(options: Namespace, consoles: Consoles) -> int:
    """Checks the targets and updates the file of known failures; returns 0."""
    from ..known import edit

    settings = settings_of(options)
    path = options.update
    require_place(path)
    targets = _known_targets(options, settings)
    records = KnownFailures.load([path] if path.exists() else [])
    reports: dict[str, Report] = {}
    with progress_on(consoles.err, len(targets)) as progress:
        for target in targets:
            progress.begin(target.written)
            outcome = _surveyed(target, settings, options.isolate, records, progress.listen)
            if isinstance(outcome, Absent):
                raise CannotLoad(f"{target.written}: {outcome.reason}")
            if target.written in reports:
                raise UsageError(f"{target.written} is a producer and a consumer; update one first")
            reports[target.written] = outcome
            progress.end(_remark(outcome))
    for side in dict.fromkeys(target.side for target in targets):
        names = {target.shown for target in targets if target.side == side}
        found = (report.data["target"] for report in reports.values())
        records.require_names(side, names | {one["name"] for one in found if one["side"] == side})
    changes = edit.update(path, records.entries, reports)
    print_changes(changes, str(path), consoles.out)
    return ExitCode.CONFORMANT


def list_what(options: Namespace, consoles: Consoles) -> int:
    """Lists producers, consumers, libraries, exports, rules or findings."""
    if options.what != "rules" and options.rules:
        raise UsageError("--rules selects rules; write: gridbuf-conformance list rules --rules …")
    filters = [f"--{name}" for name in findings.FILTERS if getattr(options, name)]
    if options.what != "findings" and filters:
        raise UsageError(
            f"{filters[0]} selects findings; "
            f"write: gridbuf-conformance list findings {filters[0]} …"
        )
    if options.what == "producers":
        reference.print_producers(list(producers.entries().values()), consoles.out)
    elif options.what == "exports":
        reference.print_exports(list(interfaces().values()), consoles.out)
    elif options.what == "consumers":
        reference.print_consumers(list(named_consumers.entries().values()), consoles.out)
    elif options.what == "libraries":
        reference.print_libraries(libraries.load(), consoles.out)
    elif options.what == "findings":
        reference.print_findings(_selected_findings(options), consoles.out)
    else:
        reference.print_rules(catalogue.matching(options.rules), consoles.out)
    return ExitCode.CONFORMANT


def _selected_findings(options: Namespace) -> list[findings.Finding]:
    try:
        return findings.select({name: getattr(options, name) for name in findings.FILTERS})
    except LookupError as error:
        raise UsageError(text_of(error)) from None


def explain(options: Namespace, consoles: Consoles) -> int:
    """Prints rules and findings; in Markdown, all rules are a page, and a finding is its issue."""
    found = {one.id: one for word in options.ids for one in _explained(word)}.values()
    rules = [one for one in found if isinstance(one, catalogue.Rule)]
    if options.format == "md":
        from ..render import rule_pages

        is_all = len(rules) == len(catalogue.load())
        texts = [rule_pages.page(rules) if is_all else rule_pages.sections(rules)] if rules else []
        texts += [findings.issue(one) for one in found if isinstance(one, findings.Finding)]
        consoles.out.file.write("\n".join(texts))
        return ExitCode.CONFORMANT
    for number, one in enumerate(found):
        if number:
            consoles.out.print()
        if isinstance(one, catalogue.Rule):
            reference.print_rule(one, consoles.out)
        else:
            reference.print_finding(one, consoles.out)
    return ExitCode.CONFORMANT


def _explained(word: str) -> Sequence[catalogue.Rule | findings.Finding]:
    """The rules of an id, pattern or group, or the finding of a name."""
    try:
        return catalogue.matching(word)
    except catalogue.UnknownRule as error:
        try:
            return [findings.find(word.lower())]
        except findings.UnknownFinding as other:
            raise UsageError(f"{error}. And {text_of(other)}") from None


def reproduce(options: Namespace, consoles: Consoles) -> int:
    """Writes the script that shows a finding; returns 0."""
    return _write_text(findings.script(_finding_of(options.finding)), options.output, consoles)


def issue(options: Namespace, consoles: Consoles) -> int:
    """Writes an issue on a finding; returns 0."""
    return _write_text(findings.issue(_finding_of(options.finding)), options.output, consoles)


def _finding_of(name: str) -> findings.Finding:
    try:
        return findings.find(name)
    except findings.UnknownFinding as error:
        raise UsageError(text_of(error)) from None


def _write_text(text: str, path: Path | None, consoles: Consoles) -> int:
    """To a file, or as it is to the output stream."""
    if path is None:
        consoles.out.file.write(text)
        return ExitCode.CONFORMANT
    require_place(path)
    path.write_text(text, encoding="utf-8")
    return ExitCode.CONFORMANT


def plan_of(text: str, side: str = "producer") -> Any:
    """Reads a plan (of a consumer: an export) from JSON; raises UsageError for other text."""
    try:
        return plan_of_dict(text, side=side)
    except RecursionError:
        raise UsageError("the plan is nested too deeply; see plan.schema.json") from None
    except (ValueError, TypeError) as error:
        raise UsageError(shorten(str(error), _MAX_MESSAGE_CHARS)) from None


_OPTIONS = ("profile", "rules", "spec", "storage", "known", "seed", "time_limit")


def settings_of(options: Namespace) -> Config:
    """The options of a run: those of the command line, else those of the configuration.

    Raises ConfigError, UnknownRule or UnknownEdition before any work is done.
    """
    settings = config.load(getattr(options, "config", False))
    given = {name: getattr(options, name, None) for name in _OPTIONS}
    targets = {
        side: tuple(getattr(options, side, None) or ()) for side in ("producers", "consumers")
    }
    if any(targets.values()):
        given |= targets
    settings = settings.overridden(**given)
    catalogue.matching(patterns(settings.rules))
    chosen(settings.spec)
    folder = str(settings.file.parent.resolve()) if settings.file else ""
    if folder and folder not in sys.path:
        sys.path.append(folder)
    return settings


# Targets ------------------------------------------------------------------------------------------


def _judged(
    target: Target,
    settings: Config,
    isolate: bool,
    records: KnownFailures,
    listen: Callable[[dict[str, Any]], None],
) -> Report:
    is_consumer = target.side == "consumer"
    judge = consumer_run.check_consumer if is_consumer else producer_run.check_producer
    return judge(
        target.written, isolate=isolate, known=records, on_event=listen, **settings.options
    )


def _entries_of(name: str, side: str) -> list[producers.Entry]:
    """The registered producer of a name, or the consumers; a library may have several consumers.

    Raises UsageError if there is none.
    """
    both: tuple[Any, Any] = (producers, named_consumers)
    registry, other = both if side == "producer" else both[::-1]
    if side == "consumer" and name not in registry.entries():
        if own := registry.of_library(name):
            return list(own)
    try:
        return [registry.find(name)]
    except LookupError as error:
        if name not in other.entries():
            raise UsageError(text_of(error)) from None
    if side == "producer":
        raise UsageError(f"{name} is a consumer; write --consumer {name}")
    raise UsageError(f"{name} is a producer; write {name} without --consumer")


def _written(settings: Config) -> list[tuple[str, str]]:
    """The targets as a user wrote them, each once, with their sides."""
    named = [(name, "producer") for name in settings.producers]
    return list(dict.fromkeys([*named, *((name, "consumer") for name in settings.consumers)]))


def _known_targets(options: Namespace, settings: Config) -> list[Target]:
    """The targets that exist; the worker finds out whether they can be loaded."""
    found = []
    for name, side in _written(settings):
        if is_path(name):
            found.append(Target(name, side=side))
            continue
        for entry in _entries_of(name, side):
            if not entry.is_usable:
                raise CannotLoad(f"{_absence(entry)}; {_remedy(entry)}")
            found.append(Target(entry.name, side=side))
    if not found:
        raise UsageError(
            "there is no target: name a producer, or --consumer TARGET, or set producers or "
            f"consumers in the table [tool.{config.TABLE}] of pyproject.toml"
        )
    return list(dict.fromkeys(found))


def _absence(entry: producers.Entry) -> str:
    if entry.is_installed:
        return f"{entry.name} needs a CUDA device, and this system shows none"
    if entry.missing == entry.name:
        return f"{entry.name} is not installed"
    return f"{entry.name} needs {entry.missing}, which is not installed"


def _remedy(entry: producers.Entry) -> str:
    return "run it on a machine that has one" if entry.is_installed else entry.install


def _survey_targets(options: Namespace) -> tuple[list[Target], list[Absent]]:
    """The targets to check, and the absent known libraries; a repeated name counts once."""
    targets: list[Target] = []
    absent: list[Absent] = []

    def take(entry: producers.Entry, side: str, is_named: bool) -> None:
        if entry.is_usable:
            targets.append(Target(entry.name, side=side))
        else:
            absent.append(Absent(entry.name, _absence(entry), _remedy(entry), failed=is_named))

    named = _written(Config(tuple(options.producers), tuple(options.consumers)))
    for name, side in named:
        if is_path(name):
            targets.append(Target(name, side=side))
        else:
            for entry in _entries_of(name, side):
                take(entry, side, is_named=True)
    if options.all_consumers or not named:
        side = "consumer" if options.all_consumers else "producer"
        registry = named_consumers if options.all_consumers else producers
        for entry in registry.entries().values():
            take(entry, side, is_named=False)
    return list(dict.fromkeys(targets)), absent


def _surveyed(
    target: Target,
    settings: Config,
    isolate: bool,
    records: KnownFailures,
    listen: Callable[[dict[str, Any]], None],
) -> Report | Absent:
    """The report of one library, or why it is missing. One library never ends the survey."""
    try:
        return _judged(target, settings, isolate, replace(records, lenient=True), listen)
    except CannotLoad as error:
        reason = str(error).removeprefix(f"{target.written}: ")
        return Absent(target.written, f"cannot be loaded: {scrubbed(reason)}", failed=True)


def _remark(report: Report) -> str:
    return conclusion(report.data)[1]


def text_of(error: BaseException) -> str:
    """The original message of an error: str() of a LookupError may quote it."""
    return str(error.args[0]) if error.args else str(error)


# Files
# --------------------------------------------------------------------------------------------------


def _writable(paths: list[Path]) -> list[Path]:
    """Checks format and folder of `paths` before a run starts; raises UsageError for a bad path."""
    for path in paths:
        try:
            render.check_suffix(path)
        except ValueError as error:
            raise UsageError(str(error)) from None
        require_place(path)
    return paths


def require_place(path: Path) -> None:
    """Raises UsageError unless `path` can be written; creates its folder, but leaves no file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot write {str(path)!r} ({reason}); name another file") from None


def _save(
    paths: Sequence[Path], reports: Sequence[dict[str, Any]], absent: Sequence[Absent] = ()
) -> None:
    for path in paths:
        try:
            render.write(path, reports, absent)
        except OSError as error:
            raise UsageError(f"cannot write {str(path)!r}: {error.strerror}") from None


@contextlib.contextmanager
def _event_writer(path: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A listener that writes each event as a line immediately, for programs that follow a run."""
    if path is None:
        yield lambda event: None
        return
    require_place(path)
    with open(path, "w", encoding="utf-8", buffering=1) as stream:
        yield lambda event: print(json.dumps(event), file=stream)
