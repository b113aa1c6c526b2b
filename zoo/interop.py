"""The scoreboard of released libraries: makes the settings of scoreboard/, and runs their pairs.

    python zoo/interop.py lock [NAME…] [--again]  write into scoreboard/NAME.toml what it installs
    python zoo/interop.py run [NAME…] [--again]   write scoreboard/NAME.json.gz; resumes
    python zoo/interop.py defects                 what trackers describe, and what the records show
    python zoo/interop.py page FILE.md            the page of all records, for the site, and
                                                  badges/NAME.svg for each library

`lock` keeps the versions that are locked already, and `run NAME` the cells that are there. So a
library that is added to a setting runs its own pairs only. `--again` chooses all versions again,
and runs all pairs. A setting with a `wheel` runs the pairs of that package, which is on no index:
`--wheel` names its file.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import interop_page
import venvs
from records import FOLDER, ROOT, Environment

from gridbuf_conformance.plugins.scoreboard import records

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS = FOLDER / "scoreboard"
CHANGES = FOLDER / "scoreboard_changes"
"""A page for each day of runs: what differs from the records before."""
_TIME_LIMIT_S = "60"
"""More than the default, so that an array on a busy machine is not a hang."""
_LOCK = "# Written by `interop.py lock`: all packages, with hashes.\n"


@dataclass(frozen=True)
class Setting:
    """An environment of several libraries, further consumers, and the libraries that its pairs are
    limited to.

    A further consumer is a function that takes an array and is not in the suite's list; its library
    is the module.
    """

    environment: Environment
    against: list[str]
    consumers: list[str]
    wheel: str

    @property
    def path(self) -> Path:
        """Its file."""
        return SETTINGS / f"{self.environment.name}.toml"

    @property
    def record(self) -> Path:
        """The file of its record."""
        return SETTINGS / f"{self.environment.name}.json.gz"


def settings() -> dict[str, Setting]:
    """The settings by name. Raises TypeError or KeyError for one that has other keys."""
    return {path.stem: _setting(path.stem, path) for path in sorted(SETTINGS.glob("*.toml"))}


def _setting(name: str, path: Path) -> Setting:
    row = tomllib.loads(path.read_text("utf-8"))
    own = {"requirements": tuple(row.pop("requirements")), "locked": row.pop("locked", "")}
    environment = Environment(name, "", "", row.pop("python"), **own)
    more = row.pop("consumers", []), row.pop("wheel", "")
    return Setting(environment, row.pop("against"), *more, **row)


def lock(name: str, again: bool) -> None:
    """Writes what the setting installs into its file; raises CannotMake if pip finds no versions
    that fit.
    """
    setting = settings()[name]
    environment = replace(setting.environment, locked="") if again else setting.environment
    by_hand = setting.path.read_text("utf-8").partition(_LOCK)[0].rstrip()
    text = f'{by_hand}\n\n{_LOCK}locked = """\n{venvs.lock(environment)}"""\n'
    setting.path.write_text(text, "utf-8")


def run(name: str, again: bool, folder: Path, wheel: Path | None = None) -> int:
    """Runs the pairs of a setting that its record does not have; 1 if it cannot be made or run."""
    setting = settings()[name]
    begin, part = time.monotonic(), folder / f"{name}.part.json"
    try:
        python = venvs.make(setting.environment, folder)
        if setting.wheel:
            venvs.add_wheel(python, setting.wheel, wheel)
    except venvs.CannotMake as error:
        print(error, flush=True)
        return 1
    old = records.load(setting.record) if setting.record.exists() else None
    if old and not again and not part.exists() and not [*moved(old, setting)]:
        records.save(old, part)
    more = [word for consumer in setting.consumers for word in ("--consumer", consumer)]
    names = [setting.wheel] if setting.wheel else _libraries(python) if more else setting.against
    libraries = ["--library", ",".join(names)]
    limit = ["--against", ",".join(setting.against)]
    command = [str(python), "-m", "gridbuf_conformance", "interop", *libraries, *more, *limit]
    command += ["--time-limit", _TIME_LIMIT_S]
    done = subprocess.run(
        [*command, "--save", str(part), "--resume"],
        env={**os.environ, **venvs.SILENT, "PYTHONPATH": str(venvs.SUITE)},
        stdout=subprocess.DEVNULL,
    )
    if not done.returncode:
        record = records.load(part)
        record.name = name
        if old and (lost := sorted({*old.libraries} - {*record.libraries})):
            print(
                f"{name}: {', '.join(lost)} could not be loaded in time, so the record stays; run "
                f"it again on an idle machine, or delete {setting.record} if they are gone",
                flush=True,
            )
            part.unlink()
            return 1
        if old:
            note_changes(old, record, CHANGES / f"{date.today()}.md")
        records.save(record, setting.record)
        part.unlink()
    minutes = (time.monotonic() - begin) / 60
    print(f"{name}: exit code {done.returncode}, {minutes:.0f} min", flush=True)
    return done.returncode


def note_changes(old: records.Record, new: records.Record, page: Path) -> None:
    """Prints what changed in a setting, and writes it into the page of the day."""
    versions = [
        f"{name} {old.libraries[name]} → {version}"
        for name, version in sorted(new.libraries.items())
        if old.libraries.get(name, version) != version
    ]
    changed = records.differences(old, new)
    print(*(f"  {line}" for line in (*versions, *changed)), sep="\n")
    title, *sections = f"# Scoreboard changes, {page.stem}\n".split("\n## ")
    if page.exists():
        title, *sections = page.read_text("utf-8").split("\n## ")
    found = {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}
    lines = [f"- `{line.replace('`', chr(39))}`" for line in (*versions, *changed)]
    found[new.name] = "\n".join(("", *(lines or ["No cell changed."]), ""))
    text = "".join(f"\n## {name}\n{section}" for name, section in sorted(found.items()))
    page.parent.mkdir(exist_ok=True)
    page.write_text(title + text, "utf-8")


def moved(record: records.Record, setting: Setting) -> Iterator[str]:
    """The libraries of a record that have another version in the lock: their cells are not of this
    setting.
    """
    locked = dict(re.findall(r"^(\S+)==(\S+) ", setting.environment.locked, re.MULTILINE))
    for name, version in record.libraries.items():
        wanted = locked.get(name.replace("_", "-"), version)
        if version.partition("+")[0] != wanted.partition("+")[0]:
            yield name


def _libraries(python: Path) -> list[str]:
    """The libraries of an environment that the suite knows."""
    code = (
        "from gridbuf_conformance.plugins.scoreboard import Selection\n"
        "cells = [cell for group in Selection().pairs() for cell in group]\n"
        "print(*sorted({name for cell in cells for name in (cell.source, cell.target)}))"
    )
    around = {**os.environ, "PYTHONPATH": str(venvs.SUITE)}
    done = subprocess.run(
        [str(python), "-c", code], env=around, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def compared() -> list[tuple[dict, str, str, str]]:
    """For each defect and setting: the row, the setting, what is expected ("found" or "absent"),
    and the outcome there.
    """
    rows = tomllib.loads((FOLDER / "interop_defects.toml").read_text("utf-8"))["defect"]
    known, result = settings(), []
    for row in rows:
        producer, consumer, array = row["cell"]
        for expected in ("found", "absent"):
            for name in row[expected]:
                path = known[name].record
                cells = records.load(path).cells if path.exists() else []
                cell = next((c for c in cells if c.key == (producer, consumer)), None)
                result.append((row, name, expected, cell.outcome(array) if cell else "no cell"))
    return result


def defects() -> int:
    """Prints the comparison; 1 if an expectation is not met that is not known to be wrong."""
    wrong = 0
    for row, name, expected, outcome in compared():
        is_met = (outcome == row["outcome"]) == (expected == "found") and outcome != "no cell"
        is_known = name in row.get("wrong", ())
        wrong += is_met == is_known
        print(
            "✓" if is_met else "✗",
            row["tracker"],
            " → ".join(row["cell"]),
            name,
            f"expected {expected}: {outcome}",
            "(its record was there before the row)" if name in row.get("seen", ()) else "",
            "(the expectation is wrong)" if is_known else "",
        )
    return int(wrong > 0)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command."""
    parser = argparse.ArgumentParser(
        "interop.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("lock", "run", "defects", "page"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--again", action="store_true", help="keep no versions and no cells")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".gridbuf/zoo", help="where environments are made"
    )
    parser.add_argument("--wheel", type=Path, help="the package of a setting that has a `wheel`")
    options = parser.parse_args(arguments)
    known = settings()
    found = [records.load(s.record) for s in known.values() if s.record.exists()]
    if options.command == "page":
        if len(options.names) != 1:
            parser.error("page needs the file to write: page matrix.md")
        file = Path(options.names[0])
        file.write_text(interop_page.render(found), "utf-8")
        interop_page.write_badges(found, file.parent / "badges")
        return 0
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no setting is {', '.join(unknown)}; there are {', '.join(known)}")
    if options.command == "defects":
        return defects()
    if options.command == "run":
        is_all = options.again or bool(options.names)
        names = options.names or [n for n, s in known.items() if is_all or not s.record.exists()]
        act = partial(run, again=options.again, folder=options.folder, wheel=options.wheel)
        return max(map(act, names), default=0)
    try:
        for name in options.names or known:
            lock(name, options.again)
    except venvs.CannotMake as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
