"""The pytest plugin: each rule of the suite is a test, and any object in a test can be judged.

```console
$ pytest --gridbuf-producer mylib.testing:Producer
```

The tests are `gridbuf::mylib.testing:Producer::PB-01` and so on, one a rule; those of consumers begin with
`gridbuf-consumer`. All tests of one target share one run of the suite, because a plan answers many rules at
once: the first of them runs it, for the rules that -k, -m and --deselect have left. With pytest-xdist the workers
share that run as well: the first that needs it runs it under a file lock, the others read its report.

What becomes of an outcome: FAIL and its kin fail with the failure as the command prints it, the command that
replays it included. ADVISORY passes, with its text as a captured section (`pytest -rP`) and a line at the end; no
warning, for projects that turn warnings into errors would turn a SHOULD into a failure. A known failure (XFAIL) is
xfailed. What was not judged is skipped, with the reason. The verdict of a whole run is that of `gridbuf-conformance
check` with the same rules: what no single test can carry (a rule that was not selected and failed all the same, a
producer that declined every plan) is an error at the end of the target's last test.

The fixture `gridbuf_check` judges a live object and raises AssertionError with the report.

The plugin is loaded by every pytest of the environment it is installed in, so nothing of the suite is imported
before it is needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from .outcomes import ExitCode

if TYPE_CHECKING:
    from .report import Report

__all__ = ["Check", "Requirement", "Target"]

_SIDES = {"producer": "gridbuf", "consumer": "gridbuf-consumer"}
"""What is judged, and what the ids of its tests begin with."""
_NODE_ID = re.compile(r"^(?:.*/)?(gridbuf|gridbuf-consumer)::(.+?)(?:::([A-Z]+-[0-9]+))?$")
_NOT_JUDGED = ("UNSUPPORTED", "UNTESTED", "BLOCKED")
_DEFAULT_PROFILE = "smoke"
_WIDTH = 100
_SHARED = "gridbuf_shared_folder"


# Options ---------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--gridbuf-…`, and the same in the ini file; the command line takes precedence."""
    group = parser.getgroup("gridbuf", "gridbuf-conformance: rules of array exchange as tests")
    for side in _SIDES:
        group.addoption(
            f"--gridbuf-{side}",
            dest=f"gridbuf_{side}s",
            metavar="TARGET",
            action="append",
            default=None,
            help=f"judge this {side}: a name, package.module:Name or path/to/file.py:Name; may be repeated",
        )
        parser.addini(
            f"gridbuf_{side}s",
            f"{side}s to judge; files are relative to the root folder",
            type="args",
        )
    _add_option(group, parser, "profile", f"how many plans are tried (default: {_DEFAULT_PROFILE})")
    _add_option(group, parser, "rules", "only these rules: ids and wildcards, as in DL-*,XA-03")
    group.addoption(
        "--gridbuf-known",
        dest="gridbuf_known",
        metavar="FILE",
        action="append",
        default=None,
        help="known failures, as TOML; may be repeated",
    )
    parser.addini("gridbuf_known", "files of known failures, relative to this file", type="paths")
    group.addoption(
        "--gridbuf-report",
        dest="gridbuf_reports",
        metavar="PATH",
        action="append",
        default=[],
        help="write the suite's own report, its format by suffix (.html, .json, …); may be repeated",
    )


def _add_option(group: pytest.OptionGroup, parser: pytest.Parser, name: str, text: str) -> None:
    group.addoption(f"--gridbuf-{name}", dest=f"gridbuf_{name}", default=None, help=text)
    parser.addini(f"gridbuf_{name}", text)


def _option(config: pytest.Config, name: str) -> Any:
    """The command line's value, else the ini file's."""
    given = config.getoption(f"gridbuf_{name}")
    return given if given is not None else config.getini(f"gridbuf_{name}")


def _targets(config: pytest.Config, side: str) -> list[str]:
    """The targets as they are written; files of the ini file begin at the root folder, wherever pytest was started."""
    given = config.getoption(f"gridbuf_{side}s")
    if given is not None:
        return list(dict.fromkeys(given))
    folder = os.path.relpath(config.rootpath)
    written = dict.fromkeys(config.getini(f"gridbuf_{side}s"))
    return [os.path.normpath(f"{folder}/{t}") if _is_file(t) else t for t in written]


def _is_file(target: str) -> bool:
    place = target.rpartition(":")[0] or target
    return place.endswith(".py") and not os.path.isabs(target)


# The session -----------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Understands ids of tests on the command line; makes the folder where reports are shared, if there will be any."""
    config.addinivalue_line(
        "markers", "gridbuf: a rule of gridbuf-conformance (`-m gridbuf` runs nothing else)"
    )
    _take_node_ids(config)
    shared = getattr(config, "workerinput", {}).get(_SHARED)
    if shared is not None:
        config.stash[_FOLDER] = Path(shared)
    elif config.stash[_PICKED] or any(_targets(config, side) for side in _SIDES):
        config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="gridbuf-conformance-"))


_FOLDER = pytest.StashKey[Path]()
_PICKED = pytest.StashKey[list[tuple[str, str, str]]]()


def _take_node_ids(config: pytest.Config) -> None:
    """`pytest gridbuf::numpy::PB-01`: such an argument is no file, and pytest must not look for one.

    The ids are kept as an option, which is how they reach the workers of pytest-xdist.
    """
    matches = {argument: _NODE_ID.match(argument) for argument in config.args}
    found = [argument for argument, match in matches.items() if match]
    if found:
        config.option.gridbuf_node_ids = found
        config.option.gridbuf_alone = len(found) == len(config.args)
    chosen = getattr(config.option, "gridbuf_node_ids", [])
    if getattr(config.option, "gridbuf_alone", False):
        config.args[:] = []
    else:
        config.args[:] = [argument for argument in config.args if argument not in chosen]
    picked = [match.groups() for match in map(_NODE_ID.match, chosen) if match]
    config.stash[_PICKED] = [(head, target, rule or "") for head, target, rule in picked]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist starts a worker: it learns where the reports are shared."""
    if _FOLDER in node.config.stash:
        node.workerinput[_SHARED] = str(node.config.stash[_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes the shared folder; it is the controller's, with pytest-xdist."""
    if not hasattr(config, "workerinput") and _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Adds the rules of all targets, before -k, -m and --deselect choose among the tests."""
    picked = config.stash[_PICKED]
    for side, head in _SIDES.items():
        chosen = [(target, rule) for picked_head, target, rule in picked if picked_head == head]
        names = list(dict.fromkeys(target for target, _ in chosen))
        for name in names if picked else _targets(config, side):
            rules = _rules_of(name, side, _option(config, "rules") or None)
            identity = {"name": name, "nodeid": f"{head}::{name}"}
            node = Target.from_parent(session, side=side, rules=rules, **identity)
            wanted = {rule for target, rule in chosen if target == name} - {""}
            found = session.genitems(node)
            items += [item for item in found if not wanted or item.name in wanted]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line a target, as the command ends in; and where the reports lie."""
    reports = _finished(config)
    if not reports:
        return
    from .render.summary import conclusion
    from .text import clean

    terminalreporter.section("gridbuf-conformance")
    for report in reports:
        kind, sentence = conclusion(report)
        advised = [rule["id"] for rule in report["rules"] if rule["outcome"] == "ADVISORY"]
        listed = f" Advisories: {', '.join(advised)}." if advised else ""
        line = f"{clean(report['target']['name'])} {sentence}{listed}"
        terminalreporter.write_line(line, red=kind == "failed", green=kind == "passed")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the reports that were asked for."""
    paths = session.config.getoption("gridbuf_reports")
    if not paths or hasattr(session.config, "workerinput"):
        return
    from . import render

    for path in paths:
        render.write(path, _finished(session.config))


def _finished(config: pytest.Config) -> list[dict[str, Any]]:
    """The reports of this session's runs, in the order in which the targets were named."""
    folder = config.stash.get(_FOLDER, None)
    files = sorted(folder.glob("*.json")) if folder is not None else []
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Which targets are judged, and how."""
    named = {side: _targets(config, side) for side in _SIDES}
    shown = [f"{side} {name}" for side, names in named.items() for name in names]
    if not shown and not config.stash[_PICKED]:
        return []
    profile = _option(config, "profile") or _DEFAULT_PROFILE
    return [f"gridbuf-conformance: profile {profile}: {', '.join(shown) or 'as named'}"]


# The tests -------------------------------------------------------------------------------------------------


class Target(pytest.Collector):
    """A producer or a consumer: its tests are the rules, its report is made once."""

    def __init__(self, *, side: str, rules: list[str], **options: Any) -> None:
        super().__init__(**options)
        self.side = side
        self._rules = rules
        self._report: Report | None = None
        self._trouble = ""

    def collect(self) -> list[pytest.Item]:
        """One test a rule that the options select."""
        return [Requirement.from_parent(self, name=rule) for rule in self._rules]

    def report(self) -> Report:
        """The report on the rules that are left to be tested; the first call makes it.

        Raises what the first call raised: `pytest.fail.Exception` if the target cannot be loaded, and on later calls
        `pytest.skip.Exception`, so that one trouble is one error.
        """
        if self._trouble:
            pytest.skip(f"not judged: {self._trouble}")
        if self._report is None:
            from .targets import CannotLoad

            try:
                self._report = self._shared_run()
            except (CannotLoad, ValueError) as error:
                self._trouble = str(error)
                pytest.fail(f"cannot judge the {self.side}: {error}", pytrace=False)
        return self._report

    def teardown(self) -> None:
        """Fails for what no test of this session says, so that the session's verdict is the command's."""
        report = self._report
        if report is None:
            return
        tested = set(self._tested())
        stray = [rule for rule in report.data["rules"] if rule["id"] in {*report.failed} - tested]
        if stray:
            shown = "\n\n".join(_rendered(rule) for rule in stray)
            ids = ", ".join(rule["id"] for rule in stray)
            pytest.fail(f"{ids} failed as well, though not selected:\n{shown}", pytrace=False)
        if report.exit_code == ExitCode.NOTHING_SELECTED:
            pytest.fail(f"{self.name} declined every plan: nothing was judged", pytrace=False)

    def _tested(self) -> list[str]:
        return [item.name for item in self.session.items if item.parent is self]

    def _shared_run(self) -> Report:
        """Runs the suite, or takes the report that another process of this session has made or is making."""
        from .report import Report

        order = f"{[*_SIDES].index(self.side)}{self.session.items.index(self._first()):06}"
        key = hashlib.sha256(f"{self.nodeid}\n{self._tested()}".encode()).hexdigest()[:16]
        path = self.config.stash[_FOLDER] / f"{order}-{key}.json"
        with _locked(path.with_suffix(".lock")):
            if not path.exists():
                path.write_text(self._run().to_json(), encoding="utf-8")
        return Report(json.loads(path.read_text(encoding="utf-8")))

    def _first(self) -> pytest.Item:
        return next(item for item in self.session.items if item.parent is self)

    def _run(self) -> Report:
        from . import api

        options: dict[str, Any] = {
            "profile": _option(self.config, "profile") or _DEFAULT_PROFILE,
            "rules": self._tested(),
        }
        if known := _option(self.config, "known"):
            options["known"] = [Path(path) for path in known]
        judge = api.check_producer if self.side == "producer" else api.check_consumer
        return judge(self.name, **options)


class Requirement(pytest.Item):
    """One rule on one target."""

    parent: Target

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_marker("gridbuf")

    def setup(self) -> None:
        """Makes the target's report, once: a target that cannot be loaded is an error here, not a failure."""
        report = self.parent.report()
        self._rule: Mapping[str, Any] = next(
            rule for rule in report.data["rules"] if rule["id"] == self.name
        )
        self.user_properties.append(("gridbuf.outcome", self._rule["outcome"]))

    def runtest(self) -> None:
        """Turns the rule's outcome into pytest's."""
        outcome = self._rule["outcome"]
        if outcome in _NOT_JUDGED:
            pytest.skip(f"{outcome}: {self._rule['note'] or 'no reason was recorded'}")
        if outcome == "ADVISORY":
            self.add_report_section("call", "advisory", _rendered(self._rule))
        elif outcome != "PASS":
            if outcome == "XFAIL":
                pytest.xfail(_reason(self._rule))  # with --runxfail it returns, and the test fails
            pytest.fail(f"{_headline(self._rule)}\n{_rendered(self._rule)}", pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        """No file is the place of a rule; the root folder stands for it."""
        return self.config.rootpath, None, f"{self.parent.name} {self.name}"


def _headline(rule: Mapping[str, Any]) -> str:
    """The first line of a failure: what pytest repeats in its summary."""
    from .text import clean, shorten

    failure: Mapping[str, Any] = next(iter(rule["failures"]), {})
    found = failure.get("actual") or rule["note"] or rule["outcome"]
    expected = f"; expected {failure['expected']}" if failure.get("expected") else ""
    return shorten(clean(f"{rule['outcome']}: {found}{expected}").replace("\n", " "), 300)


def _reason(rule: Mapping[str, Any]) -> str:
    failure: Mapping[str, Any] = next(iter(rule["failures"]), {})
    return str(failure.get("note") or rule["note"] or "known failure")


def _rendered(rule: Mapping[str, Any]) -> str:
    """A rule's entry as the command prints it."""
    from rich.console import Console

    from .render import console

    text = StringIO()
    console.render_rule(rule, Console(file=text, width=_WIDTH, no_color=True, highlight=False))
    return text.getvalue().rstrip()


def _rules_of(target: str, side: str, patterns: str | None) -> list[str]:
    """The ids of the rules that a target is judged by; a pattern that matches none is a usage error."""
    from . import catalogue, producers

    if patterns is None and side == "producer" and target in producers.BUILT_IN:
        patterns = producers.BUILT_IN[target].rules
    try:
        return [rule.id for rule in catalogue.select(patterns, side)]
    except catalogue.UnknownRule as error:
        raise pytest.UsageError(str(error)) from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone among the processes that use this file; a process that dies lets go of it."""
    import fcntl

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# The fixture -----------------------------------------------------------------------------------------------


class Check(Protocol):
    """What the fixture `gridbuf_check` is."""

    def __call__(
        self, obj: Any, rules: str | Iterable[str] | None = None, *, device_table: Any = None
    ) -> Report: ...


@pytest.fixture(scope="session")
def gridbuf_check() -> Callable[..., Report]:
    """Judges a live object: `gridbuf_check(obj)` returns the report, or raises AssertionError with it.

    `rules` selects, as in `gridbuf_conformance.check`. An object that has no interface raises as well: a test that
    judges nothing must not pass.
    """

    def judge(
        obj: Any, rules: str | Iterable[str] | None = None, *, device_table: Any = None
    ) -> Report:
        __tracebackhide__ = True
        import gridbuf_conformance as gc

        report = gc.check(obj, rules=rules, device_table=device_table)
        if report.exit_code != gc.ExitCode.CONFORMANT:
            raise AssertionError(f"{report!r}\n{report}")
        # What holds of a bare object() says nothing of this one.
        if not _judged(report) - _judged(gc.check(object(), rules=rules)):
            kind = type(obj).__name__
            raise AssertionError(f"nothing was judged: {kind} has no interface that was asked for")
        return report

    return judge


def _judged(report: Report) -> set[str]:
    """The rules that had something of their own to say."""
    return {rule for rule, outcome in report.outcomes.items() if outcome not in _NOT_JUDGED}
