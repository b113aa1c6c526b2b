"""The zoo's data: the libraries, the findings in them, and the records of runs.

`libraries/NAME.toml` has the releases of a library that are judged, its documented entry points
with the targets that drive them, where its project takes issues, and remarks. `findings/ID.py` is a
finding: a script that shows the defect without the suite. Its header is inline script metadata (PEP
723): its dependencies are those of an environment, and the table `tool.gridbuf-finding` has the
record. These are written by hand, so this module checks them. `command.py` writes the rest:
`results/NAME.json` is a run of one environment; the last tables of a header are the runs of that
finding.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from packaging.version import Version

from gridbuf_conformance.render import summary
from gridbuf_conformance.rules.catalogue import SEVERITIES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
RESULTS = FOLDER / "results"
SIDES = ("producer", "consumer")
STATUSES = ("new", "reported", "acknowledged", "fixed")
"""`new`: a search did not find it in a tracker. The others have a link to a tracker; `fixed` has a
version too.
"""
GROUPS = tuple(summary.GROUPS)
"""The rule groups, in the order of the reports."""

_HEADER = re.compile(r"# /// script\n(?P<toml>(?:#(?: .*)?\n)+?)# ///\n")
_RECORD = "gridbuf-finding"
_RECORDS = ("replays", "runs", "releases")
"""The tables of a header that `command.py` writes: the last ones."""
_LEVELS = 4
"""A result has targets, a target has failures, and each failure is a line."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._+-]*")
_NAMES = "ids are lower case, digits and hyphens"
_Record = TypeVar("_Record")


@dataclass(frozen=True)
class Environment:
    """One library at one version under one Python: a virtual environment, and the targets that are
    judged in it.

    `name` and `version` are those of the first requirement, unless the file has others. `python` is
    a minor version ("3.13"), or a full one where the interpreter itself is the library.
    `extensions` says that the suite's C++ extensions are built there, against the installed
    pybind11 and nanobind; `sources` names what its project publishes without wheels. `carrier` is
    the package and version that has the library compiled in. `locked` has all packages with hashes,
    a line each.
    """

    name: str
    library: str
    version: str
    python: str
    requirements: tuple[str, ...]
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    extensions: bool = False
    sources: tuple[str, ...] = ()
    carrier: str = ""
    locked: str = ""

    @property
    def shown(self) -> str:
        """The version, and what carries the library if it is not a package."""
        return f"{self.version} (in {self.carrier})" if self.carrier else self.version

    @property
    def targets(self) -> list[tuple[str, str]]:
        """(side, target) of everything that is judged here."""
        named = zip(SIDES, (self.producers, self.consumers))
        return [(side, target) for side, targets in named for target in targets]


@dataclass(frozen=True)
class EntryPoint:
    """One documented entry point: the targets that drive it, or the reason why none does.

    `through` is the library that reads the exporter, or makes the array. A failure that it has too
    belongs to it.
    """

    library: str
    side: str
    name: str
    link: str
    targets: tuple[str, ...] = ()
    through: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Remark:
    """A failure that a run meets and that is not a finding of ours, with the reason."""

    library: str
    side: str
    rule: str
    text: str


@dataclass(frozen=True)
class Library:
    """A library, and where it takes issues and reports of vulnerabilities (`security`), if it has a
    policy for them.

    `compared`: the entry points were compared with the documentation, or with the public names of
    the package. Without it the list has what the targets drive, and what else is known.
    """

    name: str
    environments: tuple[Environment, ...]
    points: tuple[EntryPoint, ...] = ()
    remarks: tuple[Remark, ...] = ()
    issues: str = ""
    security: str = ""
    compared: bool = False


@dataclass(frozen=True)
class Finding:
    """One cause in one library: what one change of the library would repair, with every rule that
    it breaks.

    `script` shows it: exit code 1 while the defect is there, 0 when it is gone. Its docstring is
    the title, its header has the other fields, and the name of the file is the id. `affected` is
    the environment in which the replay fails. It is the environment that judges the target and has
    the Python and the requirements of the header.

    `rule` and `plan` are the replay that shows it, `also_rules` the other rules that the cause
    breaks. `passes` is an environment in which the same plan passes: a fixed version, or another
    released library; without one it is empty.

    `severity` is what the script shows, not what the rule could lead to. `expected`, `impact` and
    `fix` are the texts of an issue; what was observed is the line that the script prints. `source`
    is the sentence that binds this library, with a link, where it is not the source of the rule.

    `replayed_as` is the rule of the replay if it is not `rule`: only a rule of this suite judges
    the requirement at such sizes. `searched` says when, where and for which words a tracker was
    searched for a `new` finding. `counter` is the argument against a contested finding, with a
    link. `picture` is a drawing of the memory. `pattern` is a key of the table in zoo.toml, for a
    mistake that other libraries have, too.

    `replays`, `runs` and `releases` are what `command.py` found: the replays on `affected` and
    `passes`, the runs of the script by environment, and the other releases that the script was
    tried on, by state.
    """

    id: str
    script: Path
    affected: str
    library: str
    side: str
    target: str
    rule: str
    plan: str
    title: str
    severity: str
    expected: str
    impact: str
    fix: str
    status: str
    passes: str = ""
    passes_target: str = ""
    also_rules: tuple[str, ...] = ()
    also_affected: tuple[str, ...] = ()
    also_targets: tuple[str, ...] = ()
    replayed_as: str = ""
    source: str = ""
    source_link: str = ""
    fixed_in: str = ""
    tracker: str = ""
    searched: str = ""
    counter: str = ""
    counter_link: str = ""
    picture: str = ""
    pattern: str = ""
    replays: Mapping[str, Any] = field(default_factory=dict)
    runs: Mapping[str, Any] = field(default_factory=dict)
    releases: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rules(self) -> tuple[str, ...]:
        """Every rule that it breaks, the one of the replay first."""
        return (self.rule, *self.also_rules)

    @property
    def replay_rule(self) -> str:
        """The rule that the replay judges."""
        return self.replayed_as or self.rule

    @property
    def peer(self) -> tuple[str, str]:
        """Environment and target of the replay that passes; two empty strings if there is none."""
        return self.passes, self.passes_target or self.target

    @property
    def environments(self) -> tuple[str, ...]:
        """Every environment in which it was seen."""
        return (self.affected, *self.also_affected)

    @property
    def is_contested(self) -> bool:
        """Whether there is an argument against it. Contested findings are apart."""
        return bool(self.counter)

    @property
    def code(self) -> str:
        """The script without its header."""
        return _HEADER.sub("", self.script.read_text("utf-8"), count=1)

    def covers(self, environment: Environment, side: str, target: str, rule: str) -> bool:
        """Whether a failure that a run met is this finding."""
        here = (self.library, self.side) == (environment.library, side)
        of_it = rule in (*self.rules, self.replay_rule)
        return here and of_it and target in (self.target, *self.also_targets)


@dataclass(frozen=True)
class Worst:
    """One of the worst findings, worst first, with the reason: what a user loses."""

    finding: str
    reason: str


@dataclass(frozen=True)
class Untried:
    """A library that was not tried, with the reason."""

    library: str
    reason: str


@dataclass(frozen=True)
class Zoo:
    """All of it. `date` is the day on which the releases were looked up."""

    date: str
    libraries: Mapping[str, Library]
    environments: Mapping[str, Environment]
    findings: tuple[Finding, ...]
    untried: tuple[Untried, ...]
    worst: tuple[Worst, ...]
    patterns: Mapping[str, str]

    @property
    def points(self) -> list[EntryPoint]:
        """Every entry point."""
        return [point for library in self.libraries.values() for point in library.points]

    @property
    def remarks(self) -> list[Remark]:
        """Every remark."""
        return [remark for library in self.libraries.values() for remark in library.remarks]

    def finding_of(
        self, environment: Environment, side: str, target: str, rule: str
    ) -> Finding | None:
        """The finding that explains a failure, or None."""
        matching = (f for f in self.findings if f.covers(environment, side, target, rule))
        return next(matching, None)


def load(folder: Path = FOLDER) -> Zoo:
    """Reads the libraries and the scripts. Raises ValueError, naming the record, for what does not
    fit together.
    """
    tables = tomllib.loads((folder / "zoo.toml").read_text("utf-8"))
    read = [_library(path) for path in sorted((folder / "libraries").glob("*.toml"))]
    read.sort(key=lambda library: library.name.lower())
    libraries = {library.name: library for library in read}
    environments = sorted((e for each in read for e in each.environments), key=lambda e: e.name)
    _require_unique("environment", [environment.name for environment in environments])
    scripts = sorted((folder / "findings").glob("*.py"))
    zoo = Zoo(
        date=str(tables["date"]),
        libraries=libraries,
        environments={environment.name: environment for environment in environments},
        findings=tuple(_finding(script, environments) for script in scripts),
        untried=tuple(_record(Untried, row) for row in tables.get("untried", ())),
        worst=tuple(_record(Worst, row) for row in tables.get("worst", ())),
        patterns=dict(tables.get("patterns", {})),
    )
    for point in zoo.points:
        known = not point.through or point.through in libraries
        _require(known, f"{point.library}: {point.name}", f"no library is {point.through!r}")
    for finding in zoo.findings:
        _require_consistent(finding, zoo)
    return zoo


def slug(library: str) -> str:
    """The name of the files of a library: "python-soundfile" for python-soundfile, "dr-jit" for
    Dr.Jit.
    """
    return re.sub(r"[^a-z0-9]+", "-", library.lower()).strip("-")


def order(version: str) -> Version:
    """The key that sorts versions, oldest first. A snapshot ("24.0.0git") is before its release."""
    return Version(version.replace("git", ".dev0"))


def read_json(path: Path) -> dict[str, Any]:
    """A result file; empty if there is none."""
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a result file: a line for each failure, so that a diff shows what changed. Keys are
    sorted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_compact(data) + "\n", "utf-8")


def _compact(value: Any, depth: int = 0) -> str:
    """JSON with a line for each entry, except in what has only plain values or is on the fourth
    level.
    """
    is_table = isinstance(value, dict)
    inner = value.values() if is_table else value if isinstance(value, list) else ()
    if depth == _LEVELS or not any(isinstance(entry, (dict, list)) for entry in inner):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if is_table:
        lines = [f"{json.dumps(key)}: {_compact(value[key], depth + 1)}" for key in sorted(value)]
    else:
        lines = [_compact(entry, depth + 1) for entry in value]
    start, end = "{}" if is_table else "[]"
    margin = "\n" + " " * depth
    return f"{start}{margin} " + f",{margin} ".join(lines) + f"{margin}{end}"


def write_records(script: Path, tables: Mapping[str, Any]) -> None:
    """Writes these tables of runs into the header of a script, in place of those that are there."""
    import tomlkit  # which only those need who write

    text = script.read_text("utf-8")
    header = _HEADER.match(text)
    _require(header is not None, script.name, "it has no header, # /// script")
    own = tomllib.loads(_uncommented(header["toml"]))["tool"][_RECORD]  # type: ignore[index]
    kept = {key: own[key] for key in _RECORDS if key in own}
    written = {key: table for key, table in {**kept, **tables}.items() if table}
    made = tomlkit.dumps({"tool": {_RECORD: _sorted(written)}}).strip() if written else ""
    first = rf"^(?:#\n)?# \[tool\.{_RECORD}\."
    by_hand = re.split(first, header["toml"], 1, re.MULTILINE)[0]  # type: ignore[index]
    lines = ["#", *(f"# {line}".rstrip() for line in made.splitlines())] if made else []
    header_text = f"# /// script\n{by_hand}" + "".join(f"{line}\n" for line in lines) + "# ///\n"
    script.write_text(header_text + text[header.end() :], "utf-8")  # type: ignore[union-attr]


def _sorted(table: Any) -> Any:
    return {k: _sorted(table[k]) for k in sorted(table)} if isinstance(table, dict) else table


def _uncommented(lines: str) -> str:
    return "\n".join(line[2:] for line in lines.splitlines())


def _require_consistent(finding: Finding, zoo: Zoo) -> None:
    def require(condition: bool, text: str) -> None:
        _require(condition, finding.id, text)

    for name in (*finding.environments, *filter(None, [finding.passes])):
        require(name in zoo.environments, f"no environment is called {name!r}")
    for name in finding.environments:
        library = zoo.environments[name].library
        require(library == finding.library, f"{name} is an environment of {library}")
    require(finding.status in STATUSES, f"status must be one of {STATUSES}")
    is_new = finding.status == "new"
    require(is_new == bool(finding.searched), "searched is for new findings, and they need it")
    require(is_new != finding.tracker.startswith("https://"), "tracker must be a link, unless new")
    is_fixed = finding.status == "fixed"
    require(is_fixed == bool(finding.fixed_in), "fixed_in is for fixed findings, and they need it")
    has_link = finding.counter_link.startswith("https://")
    require(finding.is_contested == has_link, "counter needs counter_link, a link")
    require(finding.pattern in ("", *zoo.patterns), f"no pattern is called {finding.pattern!r}")
    has_source = finding.source_link.startswith("https://")
    require(bool(finding.source) == has_source, "source needs source_link, a link")
    require(finding.severity in SEVERITIES, f"severity must be one of {', '.join(SEVERITIES)}")


def _library(path: Path) -> Library:
    """A library, from its file."""
    table = tomllib.loads(path.read_text("utf-8"))
    try:
        name, documentation = table["name"], table.pop("documentation", "")
        _require(path.stem == slug(name), path.name, f"the file of {name} is {slug(name)}.toml")
        own = {
            "environments": [_environment(name, row) for row in table.pop("environment")],
            "points": [
                _record(
                    EntryPoint,
                    {
                        "link": documentation + row.pop("see", ""),
                        "library": name,
                        "side": side,
                        **row,
                    },
                )
                for side, key in zip(SIDES, ("exports", "imports"))
                for row in table.pop(key, ())
            ],
            "remarks": [
                _record(Remark, {**row, "library": name}) for row in table.pop("remark", ())
            ],
        }
    except KeyError as error:
        raise ValueError(f"{path.name}: it has no key {error}") from None
    library = _record(Library, {**table, **own})
    _require_unique(path.name, [f"{point.name} ({point.side})" for point in library.points])
    for point in library.points:
        place = f"{path.name}: {point.name}"
        _require(bool(point.targets) != bool(point.reason), place, "give targets, or a reason")
        _require(not point.through or bool(point.targets), place, "through is for targets")
        _require(point.link.startswith("https://"), place, "documentation and see are a link")
    driven = {(point.side, target) for point in library.points for target in point.targets}
    judged = {target for environment in library.environments for target in environment.targets}
    differ = sorted(f"{target} ({side})" for side, target in driven ^ judged)
    need = "a target of an environment drives an entry point, and an entry point names no others"
    _require(not differ, path.name, f"{need}: {', '.join(differ)}")
    return library


def _environment(library: str, row: Mapping[str, Any]) -> Environment:
    """An environment; its name and its version are those of its first requirement, unless it says
    them.
    """
    package, _, version = (*row.get("requirements", ()), "")[0].partition("==")
    short = {"name": f"{package.partition('[')[0].lower()}-{version}", "version": version}
    made = _record(Environment, {**short, **row, "library": library})
    _require(bool(_NAME.fullmatch(made.name)), made.name, _NAMES)
    pinned = all("==" in requirement for requirement in made.requirements)
    _require(pinned, made.name, "requirements are pinned with ==")
    return made


def _finding(script: Path, environments: Iterable[Environment]) -> Finding:
    """The finding of a script, from its header."""
    text = script.read_text("utf-8")
    header = _HEADER.match(text)
    metadata = tomllib.loads(_uncommented(header["toml"] if header else ""))
    try:
        record = metadata["tool"][_RECORD]
        python = metadata["requires-python"].removeprefix("==").removesuffix(".*")
        needs = (record["library"], python, tuple(metadata["dependencies"]))
        judged = (record["side"], record["target"])
    except KeyError as error:
        raise ValueError(f"{script.name}: its header, # /// script, has no key {error}") from None
    fitting = [
        e.name
        for e in environments
        if (e.library, e.python, e.requirements) == needs and judged in e.targets
    ]
    need = "no environment has its library, Python and dependencies, and judges its target"
    _require(len(fitting) == 1, script.name, need)
    title = ast.get_docstring(ast.parse(text))
    _require(bool(title), script.name, "the docstring must be the title of the finding")
    _require(bool(_NAME.fullmatch(script.stem)), script.name, _NAMES)
    own = {"id": script.stem, "script": script, "affected": fitting[0], "title": title}
    return _record(Finding, {**record, **own})


def _record(kind: type[_Record], row: Mapping[str, Any]) -> _Record:
    """One table of a file; raises ValueError for keys that are missing or unknown."""
    shown = str(row.get("id", row.get("name", kind.__name__.lower())))
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(row) - known)
    _require(not unknown, shown, f"unknown keys {unknown}; known are {sorted(known)}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{shown}: {error}") from None


def _require_unique(kind: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    _require(not twice, kind, f"{twice} are there twice; give each its own name")


def _require(condition: bool, place: str, text: str) -> None:
    if not condition:
        raise ValueError(f"{place}: {text}")
