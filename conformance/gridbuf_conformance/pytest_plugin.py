"""The pytest plugin: each rule of the suite is a test, and a fixture judges objects in tests.

```console
$ pytest --gridbuf-producer mylib.testing:Producer
```

The tests have ids like `gridbuf::mylib.testing:Producer::PB-01`, one for each rule; ids of
consumers begin with `gridbuf-consumer`. All tests of one target share one run of the suite, because
one plan tests many rules. The first test runs the suite for the rules that -k, -m and --deselect
have left. With pytest-xdist the workers share that run: the first worker runs it under a file lock,
and the other workers read its report.

FAIL, XPASS, CRASH, TIMEOUT, UNSTABLE and ERROR fail, with the text and the replay command of
`check`. ADVISORY and FRAGILE pass, with their text as a captured section (`pytest -rP`) and a line
at the end. They are not warnings, because projects that turn warnings into errors would fail for a
SHOULD. A known failure (XFAIL) is xfailed. Rules that were not judged are skipped, with the reason.
The whole run has the result of `gridbuf-conformance check` with the same rules. Two cases do not
belong to a selected test: a rule that was not selected and failed, and a producer that declined
every plan. They are errors at the end of the last test of the target.

The defaults of the options are those of the configuration (`config`), the table
[tool.gridbuf-conformance] of pyproject.toml. So a project with producers there needs no option.

The fixture `gridbuf_check` judges a live object and raises AssertionError with the report. The
marker `gridbuf_interop` compares a run of `gridbuf-conformance interop` with a record.

Every pytest of the environment loads the plugin. So it imports the suite only when a test needs it.
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

from .config import TABLE, Config, ConfigError, load
from .outcomes import ExitCode

if TYPE_CHECKING:
    from .render.report import Report

_SIDES = {"producer": "gridbuf", "consumer": "gridbuf-consumer"}
"""The sides, with the start of the ids of their tests."""
_NODE_ID = re.compile(r"^(?:.*/)?(gridbuf|gridbuf-consumer)::(.+?)(?:::([A-Z]+-[0-9]+))?$")
_NOT_JUDGED = ("UNSUPPORTED", "UNTESTED", "BLOCKED")
_WIDTH = 100
_SHARED = "gridbuf_shared_folder"


# Options
# --------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options `--gridbuf-…`; they take precedence over the configuration."""
    group = parser.getgroup("gridbuf", "gridbuf-conformance: rules of array exchange as tests")
    repeated: dict[str, Any] = {"action": "append", "default": None}
    for side in _SIDES:
        group.addoption(
            f"--gridbuf-{side}",
            dest=f"gridbuf_{side}s",
            metavar="TARGET",
            help=f"judge this {side}: a name, package.module:Name or path/to/file.py:Name; "
            "may be repeated",
            **repeated,
        )
    for name, metavar, text in (
        ("profile", "NAME", "number of plans, by name"),
        ("rules", "PATTERNS", "only these rules: ids, wildcards and levels, as in DL-*,XA-03"),
        ("spec", "EDITIONS", "editions of documents, as in array-api-2024.12,dlpack-1.0"),
        ("config", "FILE", f"read [tool.{TABLE}] of this file"),
    ):
        option, dest = f"--gridbuf-{name}", f"gridbuf_{name}"
        group.addoption(option, dest=dest, default=None, metavar=metavar, help=text)
    group.addoption(
        "--gridbuf-no-config",
        dest="gridbuf_config",
        action="store_false",
        help=f"read no [tool.{TABLE}]",
    )
    group.addoption(
        "--gridbuf-storage",
        dest="gridbuf_storage",
        action="store_const",
        const=True,
        help="also the rules of GT4Py and of storages, for arrays without GT4Py's attributes",
    )
    group.addoption(
        "--gridbuf-known",
        dest="gridbuf_known",
        metavar="FILE",
        help="known failures, as TOML; may be repeated",
        **repeated,
    )
    group.addoption(
        "--gridbuf-report",
        dest="gridbuf_reports",
        metavar="PATH",
        action="append",
        default=[],
        help="write the report of the suite; the suffix selects the format (.html, .json, …); "
        "may be repeated",
    )


_OPTIONS = ("profile", "rules", "spec", "storage", "known", "producers", "consumers")
_SETTINGS = pytest.StashKey[Config]()


def settings_of(config: pytest.Config) -> Config:
    """The options of the command line, else those of the configuration."""
    if _SETTINGS not in config.stash:
        given = {name: config.getoption(f"gridbuf_{name}") for name in _OPTIONS}
        if given["producers"] or given["consumers"]:
            given |= {f"{side}s": given[f"{side}s"] or () for side in _SIDES}
        try:
            read = load(config.getoption("gridbuf_config"))
        except ConfigError as error:
            raise pytest.UsageError(str(error)) from None
        config.stash[_SETTINGS] = read.overridden(**given)
    return config.stash[_SETTINGS]


def _targets(config: pytest.Config, side: str) -> list[str]:
    """The targets as written, each once."""
    return list(dict.fromkeys(getattr(settings_of(config), f"{side}s")))


# The session
# -----------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Reads test ids of the command line; makes the folder of shared reports for a target."""
    config.addinivalue_line(
        "markers", "gridbuf: a rule of gridbuf-conformance (`-m gridbuf` runs nothing else)"
    )
    config.addinivalue_line(
        "markers",
        "gridbuf_interop(expected, libraries, against, producers, consumers): the test fails if "
        "the scoreboard differs from the record `expected`, relative to the root folder; the "
        "defaults are those of the configuration",
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
    """Removes ids such as `gridbuf::numpy::PB-01` from the arguments: pytest would look for files.

    An option keeps the ids, because the workers of pytest-xdist get options.
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
    """Tells a worker of pytest-xdist the folder for shared reports."""
    if _FOLDER in node.config.stash:
        node.workerinput[_SHARED] = str(node.config.stash[_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes the shared folder; with pytest-xdist only the controller does."""
    if not hasattr(config, "workerinput") and _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Adds the rules of all targets, before -k, -m and --deselect select tests."""
    if any(mark.name.startswith("gridbuf_") for item in items for mark in item.iter_markers()):
        from .interfaces import modules

        for module in modules("pytest_plugin"):
            config.pluginmanager.register(module)
    picked = config.stash[_PICKED]
    for side, head in _SIDES.items():
        chosen = [(target, rule) for picked_head, target, rule in picked if picked_head == head]
        names = list(dict.fromkeys(target for target, _ in chosen))
        for name in names if picked else _targets(config, side):
            rules = _rules_of(name, side, settings_of(config))
            identity = {"name": name, "nodeid": f"{head}::{name}"}
            node = Target.from_parent(session, side=side, rules=rules, **identity)
            wanted = {rule for target, rule in chosen if target == name} - {""}
            found = session.genitems(node)
            items += [item for item in found if not wanted or item.name in wanted]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints one line for each target: the conclusion of the command, and the advisories."""
    reports = _finished(config)
    if not reports:
        return
    from .render.summary import conclusion
    from .text import clean

    terminalreporter.section("gridbuf-conformance")
    for report in reports:
        kind, sentence = conclusion(report)
        advised = [rule["id"] for rule in report["rules"] if rule["outcome"] == "ADVISORY"]
        fragile = [rule["id"] for rule in report["rules"] if rule["outcome"] == "FRAGILE"]
        listed = f" Fragile: {', '.join(fragile)}." if fragile else ""
        listed += f" Advisories: {', '.join(advised)}." if advised else ""
        line = f"{clean(report['target']['name'])} {sentence}{listed}"
        terminalreporter.write_line(line, red=kind == "failed", green=kind == "passed")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the reports of `--gridbuf-report`."""
    paths = session.config.getoption("gridbuf_reports")
    if not paths or hasattr(session.config, "workerinput"):
        return
    from . import render

    for path in paths:
        render.write(path, _finished(session.config))


def _finished(config: pytest.Config) -> list[dict[str, Any]]:
    """The reports of the runs of this session, in the order of the targets."""
    folder = config.stash.get(_FOLDER, None)
    files = sorted(folder.glob("*.json")) if folder is not None else []
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Names the targets and the profile."""
    named = {side: _targets(config, side) for side in _SIDES}
    shown = [f"{side} {name}" for side, names in named.items() for name in names]
    if not shown and not config.stash[_PICKED]:
        return []
    settings = settings_of(config)
    read = f", {os.path.relpath(settings.file)}" if settings.file else ""
    about = f"profile {settings.profile}{read}"
    return [f"gridbuf-conformance: {about}: {', '.join(shown) or 'as named'}"]


# The tests
# -------------------------------------------------------------------------------------------------


class Target(pytest.Collector):
    """A producer or a consumer: its tests are the rules, and they share one report."""

    def __init__(self, *, side: str, rules: list[str], **options: Any) -> None:
        super().__init__(**options)
        self.side = side
        self._rules = rules
        self._report: Report | None = None
        self._trouble = ""

    def collect(self) -> list[pytest.Item]:
        """One test for each rule that the options select."""
        return [Requirement.from_parent(self, name=rule) for rule in self._rules]

    def report(self) -> Report:
        """Returns the report on the selected rules; the first call runs the suite.

        Returns
        -------
        Report
            The report of the target.

        Raises
        ------
        pytest.fail.Exception
            If the target cannot be loaded, on the first call.
        pytest.skip.Exception
            If the target cannot be loaded, on later calls, so that one problem is one error.
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
        """Fails for results without a selected test: the session fails as the command does."""
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
        """Runs the suite, or reads the report of another process of this session."""
        from .render.report import Report

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

        settings = settings_of(self.config)
        options = {**settings.options, "rules": self._tested(), "known": settings.known}
        if self.side == "consumer":
            del options["storage"]
        judge = api.check_producer if self.side == "producer" else api.check_consumer
        return judge(self.name, config=False, **options)


class Requirement(pytest.Item):
    """One rule on one target."""

    parent: Target

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_marker("gridbuf")

    def setup(self) -> None:
        """Gets the target's report. A target that cannot be loaded is an error, not a failure."""
        report = self.parent.report()
        self._rule: Mapping[str, Any] = next(
            rule for rule in report.data["rules"] if rule["id"] == self.name
        )
        self.user_properties.append(("gridbuf.outcome", self._rule["outcome"]))

    def runtest(self) -> None:
        """Turns the outcome of the rule into an outcome of pytest."""
        outcome = self._rule["outcome"]
        if outcome in _NOT_JUDGED:
            pytest.skip(f"{outcome}: {self._rule['note'] or 'no reason was recorded'}")
        if outcome in ("FRAGILE", "ADVISORY"):
            self.add_report_section("call", outcome.lower(), _rendered(self._rule))
        elif outcome != "PASS":
            if outcome == "XFAIL":
                pytest.xfail(_reason(self._rule))  # with --runxfail it returns, and the test fails
            pytest.fail(f"{_headline(self._rule)}\n{_rendered(self._rule)}", pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Reports the root folder as the place of a rule, because a rule has no file."""
        return self.config.rootpath, None, f"{self.parent.name} {self.name}"


def _headline(rule: Mapping[str, Any]) -> str:
    """The first line of a failure, which pytest repeats in its summary."""
    from .text import clean, shorten

    failure: Mapping[str, Any] = next(iter(rule["failures"]), {})
    found = failure.get("actual") or rule["note"] or rule["outcome"]
    expected = f"; expected {failure['expected']}" if failure.get("expected") else ""
    return shorten(clean(f"{rule['outcome']}: {found}{expected}").replace("\n", " "), 300)


def _reason(rule: Mapping[str, Any]) -> str:
    failure: Mapping[str, Any] = next(iter(rule["failures"]), {})
    return str(failure.get("note") or rule["note"] or "known failure")


def _rendered(rule: Mapping[str, Any]) -> str:
    """The entry of a rule, as the command prints it."""
    from rich.console import Console

    from .render import console

    text = StringIO()
    console.render_rule(rule, Console(file=text, width=_WIDTH, no_color=True, highlight=False))
    return text.getvalue().rstrip()


def _rules_of(target: str, side: str, settings: Config) -> list[str]:
    """The ids of a target's rules; a pattern or edition that matches none is a usage error."""
    from .engine.producer_run import ProducerRun
    from .engine.session import patterns
    from .rules import catalogue, scope

    chosen = patterns(settings.rules or None)
    if chosen is None and side == "producer":
        chosen = ProducerRun.default_rules(target)
    try:
        scope.chosen(settings.spec)
        return [rule.id for rule in catalogue.select(chosen, side)]
    except (catalogue.UnknownRule, scope.UnknownEdition) as error:
        raise pytest.UsageError(str(error)) from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Locks a file against other processes; the system releases the lock of a process that dies.

    Windows has no such lock: with pytest-xdist, several workers there may run the suite.
    """
    with open(path, "w") as file:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# The fixture
# -----------------------------------------------------------------------------------------------


class Check(Protocol):
    """The type of the fixture `gridbuf_check`."""

    def __call__(
        self, obj: Any, rules: str | Iterable[str] | None = None, **options: Any
    ) -> Report: ...


@pytest.fixture(scope="session")
def gridbuf_check(pytestconfig: pytest.Config) -> Callable[..., Report]:
    """A function that judges a live object: `gridbuf_check(obj, rules=None, **options)`.

    The parameters and options are those of `gridbuf_conformance.check`. The function returns the
    report.

    Raises
    ------
    AssertionError
        If a rule fails, with the report. Also if the object has no interface of the selected rules,
        because a test that judges nothing must not pass.
    ValueError
        If the object has no interface at all.

    Examples
    --------
    ```python
    def test_arrays_conform(gridbuf_check):
        gridbuf_check(mylib.zeros((3, 4)), rules="AI-*,XA-*")
    ```
    """

    def judge(obj: Any, rules: str | Iterable[str] | None = None, **options: Any) -> Report:
        __tracebackhide__ = True
        import gridbuf_conformance as gc

        from .rules.catalogue import with_role

        read = {"config": pytestconfig.getoption("gridbuf_config"), **options}
        report = gc.check(obj, rules=rules, **read)
        if report.exit_code != gc.ExitCode.CONFORMANT:
            raise AssertionError(f"{report!r}\n{report}")
        if not _judged(report).difference(with_role("anything")):
            kind = type(obj).__name__
            raise AssertionError(
                f"nothing was judged: {kind} has no interface of the selected rules"
            )
        return report

    return judge


def _judged(report: Report) -> set[str]:
    """The rules that were judged."""
    return {rule for rule, outcome in report.outcomes.items() if outcome not in _NOT_JUDGED}
