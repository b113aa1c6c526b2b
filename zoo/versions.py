"""Since when, and until when: the script of each finding on other releases of its library, by
bisection.

A release is tried under the Python of the environment in which the finding is recorded, for which
it must have a wheel. The environment's other packages have their pinned versions, or, if these
don't fit, versions that pip chooses. All scripts of an environment run on each release that is
installed, and each result is written at once, so that a later run resumes.

The bisection assumes that a defect appears once and disappears once. The results have every release
that was tried.
"""

from __future__ import annotations

import datetime
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
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


def bisected(names: Sequence[str], recorded: str, state_of: Callable[[str], str]) -> dict[str, str]:
    """The state of each release that was tried: enough of them to know the first and the last with
    the defect.

    `names` are the releases, oldest first, `recorded` one that has the defect. `state_of` tries a
    release.
    """
    states = {recorded: scripts.SHOWN}

    def has(name: str) -> bool:
        if name not in states:
            states[name] = state_of(name)
        return states[name] == scripts.SHOWN

    middle = names.index(recorded)
    for ordered in (names[: middle + 1], names[middle:][::-1]):
        # The last of `ordered` has the defect; the first that has it is looked for.
        low, high = 0, len(ordered) - 1
        if has(ordered[low]):
            continue
        while high - low > 1:
            between = (low + high) // 2
            low, high = (low, between) if has(ordered[between]) else (between, high)
    return states


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
    known = {finding.id: tried(finding.releases) for finding in findings}

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
        known[finding.id].update(bisected(names, recorded, partial(state_of, finding.id)))
    for finding in findings:
        write(
            finding,
            date=datetime.date.today().isoformat(),
            package=_name(environment).partition("[")[0],
            python=environment.python,
            listed=len(names),
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


def _ran(record: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """The releases that ran, oldest first: those before the defect, those with it, and those after
    it.
    """
    states = tried(record)
    names = [name for name, state in states.items() if state != CANNOT_RUN]
    shown = [number for number, name in enumerate(names) if states[name] == scripts.SHOWN]
    first, last = shown[0], shown[-1] + 1
    return names[:first], names[first:last], names[last:]


def fixed_in(record: Mapping[str, Any]) -> str:
    """The first release without the defect; empty if all that are newer have it."""
    after = _ran(record)[2]
    return after[0] if after else ""


def last(record: Mapping[str, Any]) -> str:
    """The newest release that has the defect."""
    return _ran(record)[1][-1]


def is_newest(record: Mapping[str, Any]) -> bool:
    """Whether the newest release that was tried has the defect."""
    return last(record) == [*tried(record)][-1]


def told(record: Mapping[str, Any]) -> str:
    """One sentence: the first and the last release with the defect, of those that ran."""
    before, shown, after = _ran(record)
    states = tried(record)
    newest = "the newest" if is_newest(record) else "the newest that runs"
    since = f"not in {before[-1]}" if before else "the oldest that runs"
    until = f"not in {after[0]}" if after else newest
    signs = {scripts.SHOWN: "✗", scripts.GONE: "✓", CANNOT_RUN: "–"}
    list_ = ", ".join(f"{name} {signs[state]}" for name, state in states.items())
    return (
        f"since {shown[0]} ({since}), until {shown[-1]} ({until}); "
        f"tried {len(states)} of {record['listed']} releases of {record['package']}: {list_}"
    )
