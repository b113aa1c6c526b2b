"""The command `interop`: runs the scoreboard, or reads its records."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cli.arguments import add_config, seconds_of
from ...cli.commands import Consoles, UsageError, require_place, settings_of, text_of
from ...config import Config
from ...outcomes import ExitCode
from ...plan.profiles import PLAN_LIMIT_S
from ...targets import canonical
from .. import scoreboard as board
from . import page

if TYPE_CHECKING:
    from ...cli.arguments import Commands

_EPILOG = """\
Each cell is a producer, a consumer and 98 arrays. Two libraries share a process; a crash or a hang
is an outcome. Without --compare the exit code is 0 whatever the libraries do; with it, 1 says that
a cell changed. The table [tool.gridbuf-conformance.interop] of pyproject.toml has the defaults of
--library, --against and --compare.

examples:
  gridbuf-conformance interop
  gridbuf-conformance interop --library numpy --against PyTorch,jax --report interop.html
  gridbuf-conformance interop --producer mylib.testing:Producer --against numpy --save seen.json
  gridbuf-conformance interop --producer mylib.testing:Producer --against numpy --compare seen.json
  gridbuf-conformance interop --read seen.json --script 'numpy torch.from_dlpack read-only int32'"""


def add(command: Commands) -> None:
    """Adds the command to the parser."""
    text = "pass a fixed set of arrays between installed libraries and record what arrives"
    interop = command.add_parser("interop", help=text, description=text, epilog=_EPILOG)
    for name, what in (
        ("library", "only pairs with these libraries, comma-separated"),
        ("against", "the other side of these pairs (default: all installed libraries)"),
    ):
        interop.add_argument(f"--{name}", metavar="NAMES", help=what)
    for side in ("producer", "consumer"):
        interop.add_argument(
            f"--{side}",
            dest=f"{side}s",
            metavar="TARGET",
            action="append",
            default=[],
            help=f"one more {side}, as `check` takes it; "
            "its library is its module or file; can be repeated",
        )
    add_config(interop)
    interop.add_argument("--save", type=Path, metavar="FILE", help="write the record")
    interop.add_argument(
        "--resume", action="store_true", help="keep the cells of the file of --save"
    )
    interop.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="exit code 1 if a cell differs from this record",
    )
    interop.add_argument(
        "--read", type=Path, metavar="FILE", action="append", default=[],
        help="show this record and run nothing; can be repeated for --report",
    )  # fmt: skip
    interop.add_argument("--report", type=Path, metavar="PATH", help="write the page (.html)")
    interop.add_argument(
        "--script",
        metavar="CELL",
        help="with --read: print a program that repeats 'PRODUCER CONSUMER ARRAY'",
    )
    interop.add_argument(
        "--time-limit",
        type=seconds_of,
        metavar="SECONDS",
        help=f"an array that takes longer is a hang (default: {PLAN_LIMIT_S:g})",
    )
    interop.set_defaults(run=run)


def run(options: Namespace, consoles: Consoles) -> int:
    """Runs the scoreboard, or reads its records.

    Returns 1 if a cell differs from the expected record, and 5 if no pair was run.
    """
    settings = settings_of(options)
    paths = [path for path in (options.save, options.report) if path]
    for path in paths:
        require_place(path)
    if options.report and options.report.suffix != ".html":
        raise UsageError(f"--report {options.report}: the page of interop ends in .html")
    if options.script and not options.read:
        raise UsageError("--script is a cell of a record; name the record with --read FILE")
    is_plain = not (options.save or options.read)  # a run to look at, or for a new expectation
    compared = options.compare or (is_plain and settings.interop.compare) or None
    try:
        expected = board.load(Path(compared)) if compared else None
        records = [board.load(path) for path in options.read]
        records = records or [_fresh(options, settings, consoles)]
    except (board.RecordError, LookupError) as error:
        raise UsageError(text_of(error)) from None
    if options.script:
        consoles.out.print(_script(records[0], options.script), markup=False, soft_wrap=True)
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
            f"differences from {compared}: {len(lines)}", markup=False, soft_wrap=True
        )
    if not records[-1].cells:
        return ExitCode.NOTHING_SELECTED
    return ExitCode.NOT_CONFORMANT if lines else ExitCode.CONFORMANT


def _fresh(options: Namespace, settings: Config, consoles: Consoles) -> Any:
    def on_pair(number: int, count: int, title: str, record: Any) -> None:
        if options.save:
            board.save(record, options.save)
        consoles.err.print(f"[{number}/{count}] {title}", markup=False, soft_wrap=True)

    selection = board.Selection(
        _names(options.library, settings.interop.library),
        _names(options.against, settings.interop.against),
        settings.producers,
        settings.consumers,
    )
    resumes = options.resume and options.save and options.save.exists()
    done = board.load(options.save) if resumes else None
    return board.run(selection, done=done, time_limit_s=settings.time_limit, on_pair=on_pair)


def _names(given: str | None, configured: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return configured
    return tuple(filter(None, (name.strip() for name in given.split(","))))


def _script(record: Any, text: str) -> str:
    producer, consumer, array = (*text.split(" ", 2), "", "")[:3]
    producer, consumer = canonical(producer, "producer"), canonical(consumer, "consumer")
    cell = next((cell for cell in record.cells if cell.key == (producer, consumer)), None)
    if cell is None or array not in board.ARRAYS:
        raise UsageError(
            f"--script {text!r} must be 'PRODUCER CONSUMER ARRAY', "
            f"with a cell of the record and one of the arrays {', '.join(board.ARRAYS)}"
        )
    return board.standalone(record, cell, array).rstrip()
