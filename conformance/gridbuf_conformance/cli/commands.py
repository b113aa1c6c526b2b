"""The actions of the commands, after the options are parsed."""

from __future__ import annotations

import contextlib
import json
import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from .. import findings, named_consumers, producers, render
from ..engine import consumer_run, producer_run
from ..engine.results import scrubbed
from ..exports import interfaces, plan_of_dict
from ..known import KnownFailures
from ..known.changes import print_changes
from ..known.replays import require_matches
from ..outcomes import ExitCode, Outcome
from ..render import console as on_console
from ..render import reference
from ..render.report import Report
from ..render.summary import Absent, conclusion
from ..rules import catalogue
from ..rules.scope import chosen
from ..targets import CannotLoad, shown
from ..text import shorten
from .progress import progress_on

__all__ = [
    "SURVEY_REPORT",
    "Consoles",
    "UsageError",
    "check",
    "explain",
    "interop",
    "issue",
    "known",
    "list_what",
    "merge",
    "plan_of",
    "replay",
    "reproduce",
    "survey",
]

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
    """Judges one producer or consumer; returns the exit code of the report."""
    _check_selection(options)
    reports = _writable(options.report)
    target = _known_target(options.target, options.side)
    records = KnownFailures.load(options.known)
    with _event_writer(options.events) as write_event, progress_on(consoles.err) as progress:
        progress.begin(target)

        def listen(event: dict[str, Any]) -> None:
            write_event(event)
            progress.listen(event)

        report = _check_of(options.side)(
            target,
            profile=options.profile,
            rules=options.rules,
            isolate=options.isolate,
            seed=options.seed,
            time_limit_s=options.time_limit,
            storage=options.storage,
            spec=options.spec,
            known=records,
            on_event=listen,
        )
        progress.end(_remark(report))
    _save(reports, [report.data])
    on_console.render(report.data, consoles.out, verbose=options.verbose)
    return report.exit_code


def replay(options: Namespace, consoles: Consoles) -> int:
    """Judges one rule on one plan; returns the exit code of the report."""
    catalogue.matching(options.rule)
    reports = _writable(options.report)
    target = _known_target(options.target, options.side)
    plan = plan_of(options.plan, options.side)
    replayed = consumer_run.replay if options.side == "consumer" else producer_run.replay
    with _event_writer(options.events) as write_event:
        report = replayed(
            target,
            options.rule,
            plan,
            isolate=options.isolate,
            time_limit_s=options.time_limit,
            storage=options.storage,
            threads=options.threads,
            spec=options.spec,
            on_event=write_event,
        )
    _save(reports, [report.data])
    on_console.render(report.data, consoles.out, verbose=True)
    return report.exit_code


def survey(options: Namespace, consoles: Consoles) -> int:
    """Checks the named producers (or consumers), or all installed ones.

    Returns 0 whatever the libraries do, 3 if the suite itself failed, and 4 if an installed or named library
    cannot be loaded.
    """
    _check_selection(options)
    paths = _writable(options.report or [Path(SURVEY_REPORT)])
    targets, absent = _survey_targets(options.names, options.side)
    records = KnownFailures.load(options.known)
    done: list[Report] = []
    with progress_on(consoles.err, len(targets)) as progress:
        for target in targets:
            progress.begin(target)
            outcome = _surveyed(target, options, records, progress.listen)
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
    require_matches(records, done, [shown(target, options.side) for target in targets])
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


def interop(options: Namespace, consoles: Consoles) -> int:
    """Runs the scoreboard, or reads its records; returns 1 if `--compare` finds a difference, 5 if no pair was run."""
    from .. import interop as board
    from ..interop import page

    paths = [path for path in (options.save, options.report) if path]
    for path in paths:
        _require_place(path)
    if options.report and options.report.suffix != ".html":
        raise UsageError(f"--report {options.report}: the page of interop ends in .html")
    if options.script and not options.read:
        raise UsageError("--script is a cell of a record; name the record with --read FILE")
    expected = board.load(options.compare) if options.compare else None
    records = [board.load(path) for path in options.read] or [_interop_run(options, consoles)]
    if options.script:
        consoles.out.print(
            _interop_script(records[0], options.script), markup=False, soft_wrap=True
        )
        return ExitCode.CONFORMANT
    lines = board.differences(expected, records[-1]) if expected else []
    page.on_console(records[-1], consoles.out)
    if options.report:
        options.report.write_text(page.render(records, lines if expected else None), "utf-8")
        consoles.out.print(f"page: {options.report}", markup=False, soft_wrap=True)
    for line in lines:
        consoles.out.print(line, markup=False, soft_wrap=True)
    if expected:
        consoles.out.print(
            f"differences from {options.compare}: {len(lines)}", markup=False, soft_wrap=True
        )
    if not records[-1].cells:
        return ExitCode.NOTHING_SELECTED
    return ExitCode.NOT_CONFORMANT if lines else ExitCode.CONFORMANT


def _interop_run(options: Namespace, consoles: Consoles) -> Any:
    from .. import interop as board

    def names(text: str) -> tuple[str, ...]:
        return tuple(filter(None, text.split(",")))

    def on_pair(number: int, count: int, title: str, record: Any) -> None:
        if options.save:
            board.save(record, options.save)
        consoles.err.print(f"[{number}/{count}] {title}", markup=False, soft_wrap=True)

    selection = board.Selection(
        names(options.library),
        names(options.against),
        tuple(options.producers),
        tuple(options.consumers),
    )
    resumes = options.resume and options.save and options.save.exists()
    done = board.load(options.save) if resumes else None
    return board.run(selection, done=done, time_limit_s=options.time_limit, on_pair=on_pair)


def _interop_script(record: Any, text: str) -> str:
    from .. import interop as board

    producer, consumer, array = (*text.split(" ", 2), "", "")[:3]
    cell = next((cell for cell in record.cells if cell.key == (producer, consumer)), None)
    if cell is None or array not in board.ARRAYS:
        raise UsageError(
            f"--script {text!r} must be 'PRODUCER CONSUMER ARRAY', with a cell of the record and one of "
            f"the arrays {', '.join(board.ARRAYS)}"
        )
    return board.standalone(record, cell, array).rstrip()


def known(options: Namespace, consoles: Consoles) -> int:
    """Checks the targets and updates the file of known failures; returns 0."""
    from ..known import edit

    _check_selection(options)
    path = options.update
    _require_place(path)
    targets = [_known_target(target, options.side) for target in dict.fromkeys(options.targets)]
    records = KnownFailures.load([path] if path.exists() else [])
    reports: dict[str, Report] = {}
    with progress_on(consoles.err, len(targets)) as progress:
        for target in targets:
            progress.begin(target)
            outcome = _surveyed(target, options, records, progress.listen)
            if isinstance(outcome, Absent):
                raise CannotLoad(f"{target}: {outcome.reason}")
            reports[target] = outcome
            progress.end(_remark(outcome))
    names = {shown(target, options.side) for target in reports}
    names |= {report.data["target"]["name"] for report in reports.values()}
    records.require_names(options.side, names)
    changes = edit.update(path, records.entries, reports)
    print_changes(changes, str(path), consoles.out)
    return ExitCode.CONFORMANT


def list_what(options: Namespace, consoles: Consoles) -> int:
    """Lists producers, consumers, exports, rules or findings."""
    if options.what != "rules" and options.rules:
        raise UsageError("--rules selects rules; write: gridbuf-conformance list rules --rules …")
    filters = [f"--{name}" for name in findings.FILTERS if getattr(options, name)]
    if options.what != "findings" and filters:
        raise UsageError(
            f"{filters[0]} selects findings; write: gridbuf-conformance list findings {filters[0]} …"
        )
    if options.what == "producers":
        reference.print_producers(list(producers.entries().values()), consoles.out)
    elif options.what == "exports":
        reference.print_exports(list(interfaces().values()), consoles.out)
    elif options.what == "consumers":
        reference.print_consumers(list(named_consumers.entries().values()), consoles.out)
    elif options.what == "findings":
        reference.print_findings(_selected_findings(options), consoles.out)
    else:
        reference.print_rules(catalogue.matching(options.rules), consoles.out)
    return ExitCode.CONFORMANT


def _selected_findings(options: Namespace) -> list[findings.Finding]:
    try:
        return findings.select({name: getattr(options, name) for name in findings.FILTERS})
    except findings.UnknownFinding as error:
        raise UsageError(_text_of(error)) from None


def explain(options: Namespace, consoles: Consoles) -> int:
    """Prints rules and findings; in Markdown, all rules together are a page, and a finding is its issue."""
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
            raise UsageError(f"{error}. And {_text_of(other)}") from None


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
        raise UsageError(_text_of(error)) from None


def _write_text(text: str, path: Path | None, consoles: Consoles) -> int:
    """To a file, or as it is to the output stream."""
    if path is None:
        consoles.out.file.write(text)
        return ExitCode.CONFORMANT
    _require_place(path)
    path.write_text(text, encoding="utf-8")
    return ExitCode.CONFORMANT


def plan_of(text: str, side: str = "producer") -> Any:
    """Reads the plan (for a consumer the export) that a user wrote as JSON; raises UsageError for other text."""
    try:
        return plan_of_dict(text, side=side)
    except RecursionError:
        raise UsageError("the plan is nested too deeply; see plan.schema.json") from None
    except (ValueError, TypeError) as error:
        raise UsageError(shorten(str(error), _MAX_MESSAGE_CHARS)) from None


def _check_selection(options: Namespace) -> None:
    """Raises UnknownRule or UnknownEdition before any work is done."""
    catalogue.matching(options.rules)
    chosen(options.spec)


# Targets ---------------------------------------------------------------------------------------------------


def _is_written_path(target: str) -> bool:
    """Whether a target names a module or a file rather than a registered producer."""
    return ":" in target or target.endswith(".py")


def _check_of(side: str) -> Callable[..., Report]:
    return consumer_run.check_consumer if side == "consumer" else producer_run.check_producer


def _entry_of(name: str, side: str) -> producers.Entry:
    """The registered producer or consumer of a name; raises UsageError if there is none."""
    try:
        return named_consumers.find(name) if side == "consumer" else producers.find(name)
    except (producers.UnknownProducer, named_consumers.UnknownConsumer) as error:
        raise UsageError(_text_of(error)) from None


def _known_target(target: str, side: str) -> str:
    """Returns `target` if it names a producer or consumer; the worker finds out whether it can be loaded."""
    if _is_written_path(target):
        return target
    _require_side(target, side)
    entry = _entry_of(target, side)
    if not entry.is_usable:
        raise CannotLoad(f"{_absence(entry)}; {_remedy(entry)}")
    return target


def _require_side(name: str, side: str) -> None:
    """Raises UsageError for the name of a consumer where a producer is expected, and the reverse."""
    is_producer, is_consumer = name in producers.entries(), name in named_consumers.entries()
    if side == "producer" and is_consumer and not is_producer:
        raise UsageError(f"{name} is a consumer: add --consumer")
    if side == "consumer" and is_producer and not is_consumer:
        raise UsageError(f"{name} is a producer: leave out --consumer")


def _absence(entry: producers.Entry) -> str:
    if entry.is_installed:
        return f"{entry.name} needs a CUDA device, and this system shows none"
    if entry.missing == entry.name:
        return f"{entry.name} is not installed"
    return f"{entry.name} needs {entry.missing}, which is not installed"


def _remedy(entry: producers.Entry) -> str:
    return "run it on a machine that has one" if entry.is_installed else entry.install


def _survey_targets(names: list[str], side: str) -> tuple[list[str], list[Absent]]:
    """The targets to check, and the known libraries that are absent; a repeated name counts once."""
    targets: list[str] = []
    absent: list[Absent] = []
    known = named_consumers.entries() if side == "consumer" else producers.entries()
    for name in dict.fromkeys(names or known):
        if _is_written_path(name):
            targets.append(name)
            continue
        _require_side(name, side)
        entry = _entry_of(name, side)
        if entry.is_usable:
            targets.append(name)
        else:
            absent.append(Absent(name, _absence(entry), _remedy(entry), failed=name in names))
    return targets, absent


def _surveyed(
    target: str,
    options: Namespace,
    records: KnownFailures,
    listen: Callable[[dict[str, Any]], None],
) -> Report | Absent:
    """The report of one library, or the reason why it is missing. One library never ends the survey."""
    try:
        return _check_of(options.side)(
            target,
            profile=options.profile,
            rules=options.rules,
            isolate=options.isolate,
            seed=options.seed,
            time_limit_s=options.time_limit,
            storage=options.storage,
            spec=options.spec,
            known=replace(records, lenient=True),
            on_event=listen,
        )
    except CannotLoad as error:
        reason = str(error).removeprefix(f"{target}: ")
        return Absent(target, f"cannot be loaded: {scrubbed(reason)}", failed=True)


def _remark(report: Report) -> str:
    return conclusion(report.data)[1]


def _text_of(error: BaseException) -> str:
    """The original message of an error: str() of a LookupError may quote it."""
    return str(error.args[0]) if error.args else str(error)


# Files -----------------------------------------------------------------------------------------------------


def _writable(paths: list[Path]) -> list[Path]:
    """Checks format and folder of `paths` before a run starts; raises UsageError if a path is not usable."""
    for path in paths:
        try:
            render.check_suffix(path)
        except ValueError as error:
            raise UsageError(str(error)) from None
        _require_place(path)
    return paths


def _require_place(path: Path) -> None:
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
    """A listener that writes each event as a line immediately, so that another program can follow the run."""
    if path is None:
        yield lambda event: None
        return
    _require_place(path)
    with open(path, "w", encoding="utf-8", buffering=1) as stream:
        yield lambda event: print(json.dumps(event), file=stream)
