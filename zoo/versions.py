"""Since when, and until when: the script of each finding on other releases of its library, by
bisection.

A release is tried under the Python of the environment in which the finding is recorded, for which
it must have a wheel. The environment's other packages have their pinned versions, or, if these
don't fit, versions that pip chooses. All scripts of an environment run on each release that is
installed, and each result is written at once, so that a later run resumes.

A defect may be fixed and return. So the newest release of each minor series is tried, on both sides
of each change. A change and its reversal within one series are not seen. The results have every
release that was tried.
"""

from __future__ import annotations

import datetime
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import scripts
import venvs
from records import Environment, Finding, order, write_records

CANNOT_RUN = "does not run"
"""The release does not install, or the script ends with neither of its two outcomes."""
_FINAL = re.compile(r"\d+(\.\d+)*(\.post\d+)?")


def releases(environment: Environment, python: Path) -> list[str]:
    """The final releases of the library that have a wheel for this Python, oldest first.

    Raises:
      venvs.CannotMake: the library is not a package of the index, or pip fails.
    """
    name = _requirement(environment).partition("==")[0].partition("[")[0]
    command = [*venvs.PIP, str(python), "index", "versions", "--only-binary=:all:", name]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Available versions: (.*)", done.stdout)
    if found is None:
        raise venvs.CannotMake(f"{environment.name}: pip lists no releases of {name}")
    return [v for v in reversed(found[1].split(", ")) if _FINAL.fullmatch(v)]


def _requirement(environment: Environment) -> str:
    """The requirement that pins the library itself: the first one.

    Raises:
      venvs.CannotMake: it is CPython, or something that is compiled for the zoo.
    """
    if not environment.requirements or environment.sources:
        raise venvs.CannotMake(f"{environment.name}: releases are tried of wheels only")
    return environment.requirements[0]


def bisected(
    names: Sequence[str], known: Mapping[str, str], state_of: Callable[[str], str]
) -> dict[str, str]:
    """The state of each release that was tried: enough of them to know where the defect begins and
    ends, each time.

    `names` are the releases, oldest first. `known` has the states of some, at least one with the
    defect. `state_of` tries a release.
    """
    states = dict(known)

    def settle(*more: str) -> None:
        """Tries releases, and those between neighbours that differ."""
        waiting = [*more]
        while waiting:
            states.update({name: state_of(name) for name in waiting if name not in states})
            places = [number for number, name in enumerate(names) if name in states]
            differ = (
                names[(low + high) // 2]
                for low, high in zip(places, places[1:])
                if high - low > 1 and states[names[low]] != states[names[high]]
            )
            waiting = [*islice(differ, 1)]

    settle(names[0], names[-1])
    settle(*series(_since_it_runs(names, states)))
    return states


def _since_it_runs(names: Sequence[str], states: Mapping[str, str]) -> Sequence[str]:
    """The releases from the oldest on that ran."""
    return names[min(names.index(name) for name in states if states[name] != CANNOT_RUN) :]


def series(names: Iterable[str]) -> list[str]:
    """The newest release of each minor series ("1.26"); `names` are the releases, oldest first."""
    return [*{order(name).release[:2]: name for name in names}.values()]


def bisect(
    environment: Environment, findings: Sequence[Finding], folder: Path, tell: Callable[[str], None]
) -> None:
    """Bisects all findings of an environment, and writes what each release came to into their
    scripts.

    Raises:
      venvs.CannotMake: without the interpreter, or if there are no other releases.
    """
    python = venvs.interpreter(environment.python)
    names = releases(environment, python)
    recorded = _requirement(environment).partition("==")[2]
    if recorded not in names:
        raise venvs.CannotMake(f"{environment.name}: pip does not list {recorded}")
    known = {finding.id: {recorded: scripts.SHOWN} for finding in findings}
    for finding in findings:
        earlier = tried(finding.releases).items()
        known[finding.id].update((name, state) for name, state in earlier if name in names)

    def write(finding: Finding, **more: Any) -> None:
        ordered = sorted(known[finding.id].items(), key=lambda item: order(item[0]))
        by_state: dict[str, list[str]] = {}
        for release, state in ordered:
            by_state.setdefault(state, []).append(release)
        write_records(finding.script, {"releases": {**by_state, **more}})

    def state_of(id_: str, release: str) -> str:
        if release not in known[id_]:
            for each, state in _states(environment, release, findings, folder).items():
                known[each][release] = state
            for finding in findings:  # at once, so that a later run resumes
                write(finding)
            told = ", ".join(f"{each} {states[release]}" for each, states in known.items())
            tell(f"{_name(environment)} {release}: {told}")
        return known[id_][release]

    for finding in findings:
        bisected(names, {**known[finding.id]}, partial(state_of, finding.id))
    for finding in findings:
        write(
            finding,
            date=datetime.date.today().isoformat(),
            package=_name(environment).partition("[")[0],
            python=environment.python,
            listed=len(names),
            series=len(series(_since_it_runs(names, known[finding.id]))),
        )


def _name(environment: Environment) -> str:
    return _requirement(environment).partition("==")[0]


def _states(
    environment: Environment, release: str, findings: Sequence[Finding], folder: Path
) -> dict[str, str]:
    """What the script of each finding says on one release."""
    states = dict.fromkeys((finding.id for finding in findings), CANNOT_RUN)
    for others in _others(environment, release):
        other = replace(
            environment,
            name=f"versions-{environment.name}",
            version=release,
            requirements=(f"{_name(environment)}=={release}", *others),
            extensions=False,
        )
        try:
            python = venvs.make(other, folder, tools=())
        except (venvs.CannotMake, subprocess.TimeoutExpired):
            continue
        for finding in findings:
            state = scripts.outcome(scripts.run(finding, python))
            if state != scripts.UNKNOWN:
                states[finding.id] = state
        venvs.discard(other, folder)
        if {*states.values()} != {CANNOT_RUN}:
            break
    return states


def _others(environment: Environment, release: str) -> list[list[str]]:
    """The environment's other packages, pinned and free. jaxlib has the releases of jax."""
    pinned = [
        f"jaxlib=={release}" if text.startswith("jaxlib==") else text
        for text in environment.requirements[1:]
    ]
    free = [re.split("[=<>]", text)[0] for text in environment.requirements[1:]]
    return [pinned, [p if p.startswith("jaxlib==") else f for p, f in zip(pinned, free)]]


def tried(record: Mapping[str, Any]) -> dict[str, str]:
    """The state of each release that was tried, the oldest first."""
    states = (scripts.SHOWN, scripts.GONE, CANNOT_RUN)
    found = {name: state for state in states for name in record.get(state, ())}
    return {name: found[name] for name in sorted(found, key=order)}


def _ran(states: Mapping[str, str]) -> list[str]:
    """The releases that ran, oldest first."""
    return [name for name, state in states.items() if state != CANNOT_RUN]


def intervals(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The first and the last release of each range that has the defect, oldest first."""
    states = tried(record)
    grouped = groupby(_ran(states), lambda name: states[name])
    ranges = [[*names] for state, names in grouped if state == scripts.SHOWN]
    return [(names[0], names[-1]) for names in ranges]


def fixed_in(record: Mapping[str, Any]) -> str:
    """The first release after the last one with the defect; empty if all that are newer have it."""
    ran = _ran(tried(record))
    after = ran[ran.index(last(record)) + 1 :]
    return after[0] if after else ""


def last(record: Mapping[str, Any]) -> str:
    """The newest release that has the defect."""
    return intervals(record)[-1][1]


def is_newest(record: Mapping[str, Any]) -> bool:
    """Whether the newest release that was tried has the defect."""
    return last(record) == [*tried(record)][-1]


def told(record: Mapping[str, Any]) -> str:
    """One sentence: where the defect begins and ends, of the releases that ran."""
    states = tried(record)
    ran = ["", *_ran(states), ""]
    newest = "the newest" if is_newest(record) else "the newest that runs"
    ranges = []
    for first, end in intervals(record):
        before, after = ran[ran.index(first) - 1], ran[ran.index(end) + 1]
        since = f"not in {before}" if before else "the oldest that runs"
        until = f"not in {after}" if after else newest
        ranges.append(f"since {first} ({since}), until {end} ({until})")
    signs = {scripts.SHOWN: "✗", scripts.GONE: "✓", CANNOT_RUN: "–"}
    list_ = ", ".join(f"{name} {signs[state]}" for name, state in states.items())
    each = ", each minor series from the oldest that runs" if "series" in record else ""
    return (
        f"{', and '.join(ranges)}; "
        f"tried {len(states)} of {record['listed']} releases of {record['package']}{each}: {list_}"
    )
