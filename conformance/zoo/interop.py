"""The scoreboard of released libraries: makes the settings of interop.toml, runs their pairs, and compares.

python conformance/zoo/interop.py lock [NAME…]           write locks/NAME.txt: what a setting installs, with hashes
python conformance/zoo/interop.py run [NAME…] [--again]  write interop/NAME.json; resumes. What --again changes is printed
python conformance/zoo/interop.py defects                what trackers describe, and what the records show
python conformance/zoo/interop.py page FILE.html         the page of all records
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import venvs
from records import FOLDER, Environment

from gridbuf_conformance.interop import page, records

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["compared", "main", "settings"]

RECORDS = FOLDER / "interop"
_ROOT = FOLDER.parents[1]


def settings() -> dict[str, tuple[Environment, list[str], list[str]]]:
    """The settings by name: what is installed, further consumers, and the libraries that the pairs are limited to."""
    rows = tomllib.loads((FOLDER / "interop.toml").read_text("utf-8"))["environment"]
    return {
        row["name"]: (
            Environment(row["name"], "", "", row["python"], tuple(row["requirements"]), "newest"),
            row.get("consumers", []),
            row["against"],
        )
        for row in rows
    }


def run(names: list[str], again: bool, folder: Path) -> int:
    """Runs settings; 1 if one cannot be made or run."""
    codes = []
    for number, name in enumerate(names, 1):
        environment, consumers, against = settings()[name]
        begin, path = time.monotonic(), RECORDS / f"{name}.json"
        part = folder / f"{name}.part.json"
        if path.exists() and not again:
            continue
        try:
            python = venvs.make(environment, folder)
        except venvs.CannotMake as error:
            print(f"{number}/{len(names)} {error}", flush=True)
            codes.append(1)
            continue
        more = [part for consumer in consumers for part in ("--consumer", consumer)]
        libraries = ["--library", ",".join(_libraries(python) if more else against)]
        limit = ["--against", ",".join(against)]
        command = [str(python), "-m", "gridbuf_conformance", "interop", *libraries, *more, *limit]
        done = subprocess.run(
            [*command, "--save", str(part), "--resume"],
            env={**os.environ, **venvs.SILENT, "PYTHONPATH": str(venvs.SUITE)},
            stdout=subprocess.DEVNULL,
        )
        codes.append(done.returncode)
        if not done.returncode:
            record = records.load(part)
            record.name = name
            RECORDS.mkdir(exist_ok=True)
            if path.exists():
                print(
                    *(f"  {line}" for line in records.differences(records.load(path), record)),
                    sep="\n",
                )
            records.save(record, path)
            part.unlink()
        minutes = (time.monotonic() - begin) / 60
        print(
            f"{number}/{len(names)} {name}: exit code {done.returncode}, {minutes:.0f} min",
            flush=True,
        )
    return max(codes, default=0)


def _libraries(python: Path) -> list[str]:
    """The libraries of an environment that the suite knows."""
    code = (
        "from gridbuf_conformance.interop import Selection; "
        "print(*sorted({c.source for g in Selection().pairs() for c in g} | {c.target for g in Selection().pairs() for c in g}))"
    )
    done = subprocess.run(
        [str(python), "-c", code], env={**os.environ, "PYTHONPATH": str(venvs.SUITE)}, capture_output=True, text=True, check=True
    )  # fmt: skip
    return done.stdout.split()


def compared() -> list[tuple[dict, str, str, str]]:
    """For each defect and setting: the row, the setting, what is expected ("found" or "absent"), and the outcome there."""
    rows = tomllib.loads((FOLDER / "interop_defects.toml").read_text("utf-8"))["defect"]
    result = []
    for row in rows:
        producer, consumer, array = row["cell"]
        for expected in ("found", "absent"):
            for name in row[expected]:
                path = RECORDS / f"{name}.json"
                cells = records.load(path).cells if path.exists() else []
                cell = next((c for c in cells if c.key == (producer, consumer)), None)
                result.append((row, name, expected, cell.outcome(array) if cell else "no cell"))
    return result


def defects() -> int:
    """Prints the comparison; 1 if an expectation is not met."""
    wrong = 0
    for row, name, expected, outcome in compared():
        is_met = (outcome == row["outcome"]) == (expected == "found") and outcome != "no cell"
        wrong += not is_met
        print(
            "✓" if is_met else "✗",
            row["tracker"],
            " → ".join(row["cell"]),
            name,
            f"expected {expected}: {outcome}",
            "(its record was there before the row)" if name in row.get("seen", ()) else "",
        )
    return int(wrong > 0)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command."""
    parser = argparse.ArgumentParser(
        "interop.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("lock", "run", "defects", "page"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--again", action="store_true", help="run settings that have a record, too")
    parser.add_argument(
        "--folder", type=Path, default=_ROOT / ".gridbuf/zoo", help="where environments are made"
    )
    options = parser.parse_args(arguments)
    if options.command == "page":
        if len(options.names) != 1:
            parser.error("page needs the file to write: page scoreboard.html")
    elif unknown := [name for name in options.names if name not in settings()]:
        parser.error(f"no setting is {', '.join(unknown)}; there are {', '.join(settings())}")
    if options.command == "run":
        return run(options.names or list(settings()), options.again, options.folder)
    if options.command == "lock":
        try:
            for name in options.names or settings():
                print(venvs.lock(settings()[name][0]), flush=True)
        except venvs.CannotMake as error:
            print(error, file=sys.stderr)
            return 1
        return 0
    if options.command == "defects":
        return defects()
    paths = [RECORDS / f"{name}.json" for name in settings()]
    found = [records.load(path) for path in paths if path.exists()]
    Path(options.names[0]).write_text(page.render(found), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
