"""The command `gridbuf-conformance`: its options, its help, and what becomes of errors.

The parser is here, what the commands do in `commands`. No input of a user ends in a traceback: what cannot
be understood is exit code 2 with one sentence that says what to write instead, a producer that cannot be
loaded is 4, and only a fault of the suite itself (3) prints where it happened, for the report to us.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console

from . import commands
from .driver import PLAN_LIMIT_S
from .known import KnownError
from .outcomes import ExitCode
from .profiles import profile_names
from .render import FORMATS
from .targets import CannotLoad
from .version import __version__

__all__ = ["UsageError", "main", "parser"]

UsageError = commands.UsageError

_PIPE_WIDTH = 100
_INTERRUPTED = 130
_MAX_TIME_LIMIT_S = 3600.0

_DESCRIPTION = """\
Judges makers of n-dimensional arrays against the published rules for exchanging them: the NumPy array
interface, the buffer protocol, DLPack, their agreement with each other, and the storage spec's allocation."""

_EPILOG = """\
start here:
  gridbuf-conformance survey                       every array library that is installed, one matrix
  gridbuf-conformance check numpy                  one of them, as a gate (exit code 1 if it fails)
  gridbuf-conformance check mylib/testing.py:Producer --report result.html
  gridbuf-conformance explain PB-01                what a rule asks, why, and how to keep it

exit codes:
  0  conforms                 3  the suite itself failed
  1  does not conform         4  the producer cannot be loaded
  2  wrong usage              5  nothing was judged

Each command has a help of its own: gridbuf-conformance check --help"""

_CHECK_EPILOG = """\
TARGET is the name of a built-in or installed producer (gridbuf-conformance list), package.module:Class, or
path/to/file.py:Class. A producer is a class with a name and a method produce(plan):

  import gridbuf_conformance as gc

  class Producer:
      name = "mylib"

      def produce(self, plan):
          if plan["dtype"] != "float64" or plan["byteorder"] != "native":
              return gc.Unsupported("float64 only")
          return mylib.from_bytes(plan.content(), plan["shape"])

With --consumer it is a function that is given an exporter and returns an array: the name of a known one
(gridbuf-conformance list consumers), package.module:function, or path/to/file.py:function.

examples:
  gridbuf-conformance check numpy
  gridbuf-conformance check numpy --rules 'DL-*,XA-03' --verbose
  gridbuf-conformance check mylib.testing:Producer --profile default --report junit.xml --report page.html
  gridbuf-conformance check mylib.testing:Producer --known known.toml --events run.jsonl
  gridbuf-conformance check --consumer numpy.from_dlpack
  gridbuf-conformance check --consumer mylib:asarray --rules 'DL-*,DP-*'
  gridbuf-conformance check mylib.testing:Producer --no-isolate        (under a debugger or a sanitizer)"""

_SURVEY_EPILOG = """\
The exit code is 0 whatever the libraries do: a survey looks, `check` judges. A library that crashes is a
row of the matrix, not the end of the survey. Exit code 4: a library that is installed, or that you named,
cannot be loaded; the others are in the matrix.

examples:
  gridbuf-conformance survey
  gridbuf-conformance survey numpy torch gridbuf
  gridbuf-conformance survey numpy mylib.testing:Producer --rules 'DL-*,DP-*'
  gridbuf-conformance survey --profile default --report survey.html --report survey.json
  gridbuf-conformance survey --consumers"""

_LIST_EPILOG = """\
examples:
  gridbuf-conformance list                       producers, and how to install those that are absent
  gridbuf-conformance list consumers
  gridbuf-conformance list exports               what consumers get: interfaces and variants
  gridbuf-conformance list rules
  gridbuf-conformance list rules --rules 'XA-*'"""

_EXPLAIN_EPILOG = """\
examples:
  gridbuf-conformance explain PB-01
  gridbuf-conformance explain 'DP-1*'
  gridbuf-conformance explain XA-08 --format md"""

_CONSUMER_HELP = "TARGET is a consumer: a function of one exporter that returns an array"

_REPLAY_EPILOG = """\
Every failure in a report ends in such a command. The plan is JSON; keys that are left out have their
default (plan.schema.json). Nothing is drawn at random, and Hypothesis is not needed.

examples:
  gridbuf-conformance replay numpy PB-01 '{"shape":[2,2],"layout":[1,0]}'
  gridbuf-conformance replay numpy 'PB-*' '{"shape":[0]}'
  gridbuf-conformance replay mylib.testing:Producer XA-18 '{}' --no-isolate
  gridbuf-conformance replay --consumer numpy.from_dlpack DL-10 '{"export":"dlpack:byte-offset"}'"""


_MERGE_EPILOG = """\
Files of the same run belong together, so a library in the same version, on the same Python and platform,
with the same profile may stand in one file only.

examples:
  gridbuf-conformance merge numpy.json torch.json --report matrix.html
  gridbuf-conformance merge run-1.jsonl survey.json --report all.json --report all.md"""

_KNOWN_EPILOG = """\
Each TARGET is checked with the file's records. Reasons, links and comments stay as they are; records of
other libraries and versions too. Read what was added, and say why it is tolerated. Then, as a gate:
check TARGET --known FILE.

examples:
  gridbuf-conformance known --update known.toml mylib.testing:Producer
  gridbuf-conformance known --update known.toml numpy torch --rules 'DL-*'
  gridbuf-conformance known --update known.toml --consumer mylib:asarray"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code. `arguments` default to the process's."""
    _enter_users_folder()
    try:
        grammar = parser()
        options = grammar.parse_args(arguments)
        if options.run is None:
            grammar.print_help(sys.stderr)
            return int(ExitCode.USAGE)
        code = _run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain again while it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.CONFORMANT)
    return int(code)


def _run(options: argparse.Namespace) -> int:
    errors = _console(sys.stderr)
    try:
        code: int = options.run(options, commands.Consoles(_console(sys.stdout), errors))
        return code
    except commands.UsageError as error:
        _complain(errors, str(error))
        return ExitCode.USAGE
    except KnownError as error:
        _complain(errors, str(error))
        return ExitCode.USAGE
    except CannotLoad as error:
        _complain(errors, f"cannot load the producer: {error}")
        return ExitCode.CANNOT_LOAD
    except KeyboardInterrupt:
        _complain(errors, "interrupted; nothing was written")
        return _INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception:
        errors.print(traceback.format_exc(), markup=False, highlight=False, soft_wrap=True)
        _complain(errors, "this is a fault of the suite, not of the producer; please report it")
        return ExitCode.SUITE_ERROR


def _complain(console: Console, text: str) -> None:
    printable = text.encode(console.encoding or "ascii", "backslashreplace")
    console.print("error: ", style="bold red", end="", highlight=False)
    console.print(
        printable.decode(console.encoding or "ascii"), markup=False, highlight=False, soft_wrap=True
    )


def _console(stream: TextIO) -> Console:
    """A console on a stream; into a pipe or a file it is a little wider than rich's 80 columns."""
    is_piped = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(file=stream, highlight=False, width=_PIPE_WIDTH if is_piped else None)


def _enter_users_folder() -> None:
    """Makes relative paths mean what the user meant, and modules beside them importable.

    `bazel run` starts programs in a folder of its own and names the user's in BUILD_WORKING_DIRECTORY.
    """
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
    folder = os.environ.get("BUILD_WORKING_DIRECTORY")
    if folder and os.path.isdir(folder):
        os.chdir(folder)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction["_Subparser"]

# The parser ------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    top = _parser(
        argparse.ArgumentParser, "gridbuf-conformance", description=_DESCRIPTION, epilog=_EPILOG
    )
    version = f"gridbuf-conformance {__version__}"
    top.add_argument("--version", action="version", version=version)
    top.set_defaults(run=None)
    command = top.add_subparsers(metavar="COMMAND", parser_class=_Subparser)
    _add_survey(command)
    _add_check(command)
    _add_list(command)
    _add_explain(command)
    _add_replay(command)
    _add_merge(command)
    _add_known(command)
    return top


def _parser(
    kind: type[argparse.ArgumentParser], prog: str, **texts: Any
) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    return kind(prog=prog, formatter_class=formatter, allow_abbrev=False, **texts)


class _Subparser(argparse.ArgumentParser):
    """A command's parser: like the top one it keeps the line breaks of its texts."""

    def __init__(self, **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"formatter_class": formatter, "allow_abbrev": False, **options})


def _add_survey(command: _Commands) -> None:
    text = "check every installed library (or those named) and print one matrix"
    survey = command.add_parser("survey", help=text, description=text, epilog=_SURVEY_EPILOG)
    survey.add_argument("names", metavar="NAME", nargs="*", help="producers, as `check` takes them")
    _add_side(survey, "--consumers", "survey consumers instead; NAMEs are functions")
    _add_selection(survey, profile="smoke")
    _add_report(survey, f"default: {commands.SURVEY_REPORT} in the current folder")
    _add_known_files(survey)
    _add_running(survey)
    survey.set_defaults(run=commands.survey)


def _add_check(command: _Commands) -> None:
    text = "judge one producer or consumer: the gate for continuous integration"
    check = command.add_parser("check", help=text, description=text, epilog=_CHECK_EPILOG)
    check.add_argument("target", metavar="TARGET")
    _add_side(check, "--consumer", _CONSUMER_HELP)
    _add_selection(check, profile="default")
    _add_report(check)
    check.add_argument(
        "--events", type=Path, metavar="PATH", help="write the event stream as JSON lines"
    )
    check.add_argument(
        "-v", "--verbose", action="store_true", help="list every rule, not only failures"
    )
    _add_known_files(check)
    _add_running(check)
    check.set_defaults(run=commands.check)


def _add_list(command: _Commands) -> None:
    text = "list the producers, the consumers, the exports that these get, or the rules"
    listing = command.add_parser("list", help=text, description=text, epilog=_LIST_EPILOG)
    what = ("producers", "consumers", "exports", "rules")
    listing.add_argument("what", nargs="?", default="producers", choices=what)
    listing.add_argument("--rules", metavar="PATTERNS", help="only these rules, e.g. 'DL-*,XA-03'")
    listing.set_defaults(run=commands.list_what)


def _add_explain(command: _Commands) -> None:
    text = "say what a rule asks, why, and how to keep it"
    explain = command.add_parser("explain", help=text, description=text, epilog=_EXPLAIN_EPILOG)
    explain.add_argument("ids", metavar="ID", nargs="+", help="rule ids or patterns")
    explain.add_argument(
        "--format",
        choices=("text", "md"),
        default="text",
        help="text for the terminal, md for Markdown; of '*' a whole page (default: text)",
    )
    explain.set_defaults(run=commands.explain)


def _add_replay(command: _Commands) -> None:
    text = "judge one rule on one plan again"
    replay = command.add_parser("replay", help=text, description=text, epilog=_REPLAY_EPILOG)
    replay.add_argument("target", metavar="TARGET")
    _add_side(replay, "--consumer", _CONSUMER_HELP)
    replay.add_argument("rule", metavar="RULE", help="a rule id, or a pattern of ids")
    replay.add_argument("plan", metavar="PLAN-JSON")
    _add_report(replay)
    replay.add_argument(
        "--events", type=Path, metavar="PATH", help="write the event stream as JSON lines"
    )
    _add_isolation(replay)
    replay.set_defaults(run=commands.replay)


def _add_merge(command: _Commands) -> None:
    text = "put reports of several runs into one: the matrix of many libraries"
    merge = command.add_parser("merge", help=text, description=text, epilog=_MERGE_EPILOG)
    what = "a .json report or survey, or a .jsonl event stream"
    merge.add_argument("files", metavar="FILE", nargs="+", type=Path, help=what)
    _add_report(merge)
    merge.set_defaults(run=commands.merge)


def _add_known(command: _Commands) -> None:
    text = "bring a file of known failures up to date"
    known = command.add_parser("known", help=text, description=text, epilog=_KNOWN_EPILOG)
    known.add_argument(
        "--update",
        type=Path,
        metavar="FILE",
        required=True,
        help="cut out what passes, append what fails with an empty reason; made if it is not there",
    )
    known.add_argument(
        "targets", metavar="TARGET", nargs="+", help="producers, as `check` takes them"
    )
    _add_side(known, "--consumer", _CONSUMER_HELP)
    _add_selection(known, profile="default")
    _add_running(known)
    known.set_defaults(run=commands.known)


def _add_side(command: argparse.ArgumentParser, option: str, text: str) -> None:
    """The option that turns a command to the other side: `options.side` is what is judged."""
    command.add_argument(
        option, dest="side", action="store_const", const="consumer", default="producer", help=text
    )


def _add_selection(command: argparse.ArgumentParser, profile: str) -> None:
    names = profile_names()
    command.add_argument(
        "--profile",
        choices=names,
        default=profile,
        help=f"how many plans are tried: {', '.join(names)} (default: {profile})",
        metavar="NAME",
    )
    command.add_argument("--rules", metavar="PATTERNS", help="only these rules, e.g. 'DL-*,XA-03'")


def _add_report(command: argparse.ArgumentParser, remark: str = "") -> None:
    suffixes = ", ".join(FORMATS)
    command.add_argument(
        "--report",
        type=Path,
        metavar="PATH",
        action="append",
        default=[],
        help=f"write a report, its format by suffix: {suffixes}; may be given again"
        + (f" ({remark})" if remark else ""),
    )


def _add_known_files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="failures on record, as TOML; may be given again, later files over earlier ones",
    )


def _add_running(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        help="vary the plans; same seed, same plans (default: 0; a new one for the profile soak)",
    )
    _add_isolation(command)


def _add_isolation(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--time-limit",
        type=_seconds,
        default=PLAN_LIMIT_S,
        metavar="SECONDS",
        help=f"what hangs longer on one plan is a TIMEOUT (default: {PLAN_LIMIT_S:g})",
    )
    command.add_argument(
        "--no-isolate",
        dest="isolate",
        action="store_false",
        help="run the producer in this process: for debuggers and sanitizers, a crash ends all",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _MAX_TIME_LIMIT_S:
        bound = f"a number of seconds above 0, at most {_MAX_TIME_LIMIT_S:g}"
        raise argparse.ArgumentTypeError(f"{text!r} must be {bound}")
    return seconds


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:20]) < 2**32 and len(text) <= 20):
        raise argparse.ArgumentTypeError(f"{text!r} must be an integer in 0..{2**32 - 1}")
    return int(text)
