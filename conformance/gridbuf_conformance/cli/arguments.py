"""The command `gridbuf-conformance`: its options, its help, and its exit codes for errors.

This module has the parser; `commands` has the actions. No input of a user ends in a traceback.
Wrong usage is exit code 2, with one sentence that says what to write instead. A producer that
cannot be loaded is 4. Only an error of the suite itself (3) prints a traceback, for a bug report.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from rich.console import Console

from ..config import TABLE, ConfigError, seconds, seed
from ..interfaces import modules
from ..known import KnownError, shipped
from ..outcomes import ExitCode
from ..plan.profiles import DEFAULT, PLAN_LIMIT_S, profile_names
from ..render import FORMATS
from ..rules.catalogue import VERSION as CATALOGUE, UnknownRule
from ..rules.scope import UnknownEdition
from ..targets import CannotLoad, WrongSide
from ..version import __version__
from .. import findings
from . import commands

UsageError = commands.UsageError

_PIPE_WIDTH = 100
_Value = TypeVar("_Value")

_DESCRIPTION = """\
Checks producers and consumers of n-dimensional arrays against the published texts: the NumPy array
interface, the CUDA array interface, the buffer protocol, DLPack, the GT data interface, their
agreement, and allocation."""

_EPILOG = """\
start here:
  gridbuf-conformance survey                 all installed array libraries, one matrix
  gridbuf-conformance check numpy            one library, as a gate (exit code 1 if it fails)
  gridbuf-conformance check mylib/testing.py:Producer --report result.html
  gridbuf-conformance explain PB-01          one rule: requirement, reason, how to comply
  gridbuf-conformance list findings          defects that the suite found in released libraries

exit codes of all commands (survey and merge: 0 whatever the libraries do):
{codes}

A library is named by its import name, its package or its own name: torch, PyTorch; PIL, pillow.
check, known and interop read [tool.{table}] of the nearest pyproject.toml that has it.

Each command has its own help: gridbuf-conformance check --help""".format(
    codes="\n".join(f"  {code.value:<5}{code.meaning}" for code in ExitCode), table=TABLE
)

_CHECK_EPILOG = """\
TARGET is the name of a library or of a producer (gridbuf-conformance list), package.module:Class,
or path/to/file.py:Class. Without TARGET, the targets of the configuration are judged. A producer is
a class with a name and a method produce(plan):

  import gridbuf_conformance as gc

  class Producer:
      name = "mylib"

      def produce(self, plan):
          if plan["dtype"] != "float64" or plan["byteorder"] != "native":
              return gc.Unsupported("float64 only")
          return mylib.from_bytes(plan.content(), plan["shape"])

A consumer is a function that takes an exporter and returns an array: the name of a library (all its
consumers) or of a consumer (gridbuf-conformance list consumers), package.module:function, or
path/to/file.py:function.

The table [tool.gridbuf-conformance] of pyproject.toml has the defaults of these options:

  [tool.gridbuf-conformance]
  producers = ["mylib.testing:Producer"]
  consumers = ["mylib:asarray"]
  known = ["ci/known.toml"]
  spec = ["array-api-2024.12", "dlpack-1.0"]

examples:
  gridbuf-conformance check numpy
  gridbuf-conformance check numpy --rules 'DL-*,XA-03' --verbose
  gridbuf-conformance check mylib.testing:Producer --profile default --report r.xml --report r.html
  gridbuf-conformance check mylib.testing:Producer --known known.toml --events run.jsonl
  gridbuf-conformance check --consumer numpy.from_dlpack
  gridbuf-conformance check --consumer mylib:asarray --rules 'DL-*,DP-*'
  gridbuf-conformance check
  gridbuf-conformance check mylib.testing:Producer --no-isolate   (for a debugger or a sanitizer)"""

_SURVEY_EPILOG = """\
The exit code is 0 whatever the libraries do; use `check` as a gate. A library that crashes is a row
of the matrix, not the end of the survey. Exit code 4: a library that is installed, or that you
named, cannot be loaded; the other libraries are in the matrix.

examples:
  gridbuf-conformance survey
  gridbuf-conformance survey numpy torch gridbuf
  gridbuf-conformance survey numpy mylib.testing:Producer --rules 'DL-*,DP-*'
  gridbuf-conformance survey --profile default --report survey.html --report survey.json
  gridbuf-conformance survey numpy --consumer numpy
  gridbuf-conformance survey --consumers"""

_LIST_EPILOG = """\
examples:
  gridbuf-conformance list                   producers, and how to install absent libraries
  gridbuf-conformance list consumers
  gridbuf-conformance list libraries         the names of each library
  gridbuf-conformance list exports           interfaces and variants that test consumers
  gridbuf-conformance list findings          defects in released libraries, for reproduce and issue
  gridbuf-conformance list findings --library pytorch --severity memory --interface dlpack
  gridbuf-conformance list rules
  gridbuf-conformance list rules --rules 'XA-*'"""

_EXPLAIN_EPILOG = """\
examples:
  gridbuf-conformance explain PB-01
  gridbuf-conformance explain 'DP-1*' XA
  gridbuf-conformance explain jax-from-dlpack-null-deleter
  gridbuf-conformance explain XA-08 --format md"""

_CONSUMER_HELP = (
    "a consumer: a function that takes an exporter and returns an array; can be repeated"
)

_REPLAY_EPILOG = """\
Every failure in a report ends with such a command. The plan is JSON; keys that are left out have
their default (plan.schema.json). The command draws no random plans and does not need Hypothesis.

examples:
  gridbuf-conformance replay numpy PB-01 '{"shape":[2,2],"layout":[1,0]}'
  gridbuf-conformance replay numpy 'PB-*' '{"shape":[0]}'
  gridbuf-conformance replay mylib.testing:Producer XA-18 '{}' --no-isolate
  gridbuf-conformance replay --consumer numpy.from_dlpack DL-10 '{"export":"dlpack:byte-offset"}'"""


_MERGE_EPILOG = """\
Only one of the files may contain a library with the same version, Python, platform and profile.

examples:
  gridbuf-conformance merge numpy.json torch.json --report matrix.html
  gridbuf-conformance merge run-1.jsonl survey.json --report all.json --report all.md"""

_KNOWN_EPILOG = """\
The command checks each TARGET with the records of the file. It does not change reasons, links,
comments and records of other libraries and versions. Read the new records, and write down why each
failure is tolerated. Then use the file in a gate: check TARGET --known FILE.

examples:
  gridbuf-conformance known --update known.toml mylib.testing:Producer
  gridbuf-conformance known --update known.toml numpy torch --rules 'DL-*'
  gridbuf-conformance known --update known.toml --consumer mylib:asarray"""


_REPRODUCE_EPILOG = """\
FINDING is a name of `list findings`. The script needs the library, NumPy or ctypes, and nothing of
this suite. It ends with exit code 1 and a line `defect: ...` while the defect is there, and with 0
when it is gone. A process that dies is a child of the script. The first comment has the versions to
install.

examples:
  gridbuf-conformance reproduce jax-from-dlpack-null-deleter
  gridbuf-conformance reproduce jax-from-dlpack-null-deleter --output null_deleter.py
  gridbuf-conformance reproduce ctypes-fortran-granted | python -"""

_ISSUE_EPILOG = """\
FINDING is a name of `list findings`. The text is Markdown: title, versions, script, observed
behaviour, expected behaviour with its source, impact, suggested fix. The quoted lines at its top
are for you: where to report a matter of memory safety, whether the tracker knows the finding, the
argument against it. Remove them.

examples:
  gridbuf-conformance issue jax-from-dlpack-null-deleter
  gridbuf-conformance issue jax-from-dlpack-null-deleter --output issue.md"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line without the program name. The default is the command line of the process.

    Returns
    -------
    int
        The exit code, a value of `ExitCode`.

    Raises
    ------
    SystemExit
        With code 2 for options that the parser refuses; with code 0 after `--help` and `--version`.
    """
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
        # The reader (`| head`) has closed the pipe. Python would raise again when it closes the
        # stream.
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
    except (ConfigError, KnownError, UnknownEdition, UnknownRule, WrongSide) as error:
        _complain(errors, str(error))
        return ExitCode.USAGE
    except CannotLoad as error:
        _complain(errors, f"cannot load: {error}")
        return ExitCode.CANNOT_LOAD
    except KeyboardInterrupt:
        _complain(errors, "interrupted; no report was written")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception:
        errors.print(traceback.format_exc(), markup=False, highlight=False, soft_wrap=True)
        _complain(errors, "this is an error of the suite, not of the producer; please report it")
        return ExitCode.SUITE_ERROR


def _complain(console: Console, text: str) -> None:
    printable = text.encode(console.encoding or "ascii", "backslashreplace")
    console.print("error: ", style="bold red", end="", highlight=False)
    console.print(
        printable.decode(console.encoding or "ascii"), markup=False, highlight=False, soft_wrap=True
    )


def _console(stream: TextIO) -> Console:
    """A console on a stream; for a pipe or a file it is a little wider than rich's 80 columns."""
    is_piped = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(file=stream, highlight=False, width=_PIPE_WIDTH if is_piped else None)


def _enter_users_folder() -> None:
    """Makes the user's folder current, for relative paths, and makes its modules importable.

    `bazel run` starts programs in another folder and names the user's folder in
    BUILD_WORKING_DIRECTORY.
    """
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
    folder = os.environ.get("BUILD_WORKING_DIRECTORY")
    if folder and os.path.isdir(folder):
        os.chdir(folder)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction["_Subparser"]

# The parser
# ------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line.

    Returns
    -------
    argparse.ArgumentParser
        The parser with all commands.
    """
    top = _parser(
        argparse.ArgumentParser, "gridbuf-conformance", description=_DESCRIPTION, epilog=_EPILOG
    )
    version = f"gridbuf-conformance {__version__}, catalogue {CATALOGUE}"
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
    for module in modules("command"):
        module.add(command)
    _add_finding(command, "reproduce", _REPRODUCE_EPILOG, commands.reproduce)
    _add_finding(command, "issue", _ISSUE_EPILOG, commands.issue)
    return top


def _parser(
    kind: type[argparse.ArgumentParser], prog: str, **texts: Any
) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    return kind(prog=prog, formatter_class=formatter, allow_abbrev=False, **texts)


class _Subparser(argparse.ArgumentParser):
    """The parser of a command. Like the top parser it keeps the line breaks of its texts."""

    def __init__(self, **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"formatter_class": formatter, "allow_abbrev": False, **options})


def _add_survey(command: Commands) -> None:
    text = "check all installed libraries (or the named ones) and print one matrix"
    survey = command.add_parser("survey", help=text, description=text, epilog=_SURVEY_EPILOG)
    _add_targets(survey, "a producer, as `check` takes it; default: all installed producers")
    survey.add_argument(
        "--consumers", dest="all_consumers", action="store_true", help="all installed consumers"
    )
    _add_selection(survey, "smoke")
    _add_report(survey, f"default: {commands.SURVEY_REPORT} in the current folder")
    _add_known_files(survey)
    _add_running(survey)
    survey.set_defaults(run=commands.survey)


def _add_check(command: Commands) -> None:
    text = "judge producers and consumers: a gate for continuous integration"
    check = command.add_parser("check", help=text, description=text, epilog=_CHECK_EPILOG)
    _add_targets(check, "a producer; default: the producers and consumers of the configuration")
    add_config(check)
    _add_selection(check)
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


def _add_list(command: Commands) -> None:
    text = "list producers, consumers, libraries, exports that test consumers, rules, or findings"
    listing = command.add_parser("list", help=text, description=text, epilog=_LIST_EPILOG)
    what = ("producers", "consumers", "libraries", "exports", "rules", "findings")
    listing.add_argument("what", nargs="?", default="producers", choices=what)
    listing.add_argument("--rules", metavar="PATTERNS", help="only these rules, e.g. 'DL-*,XA-03'")
    for name in findings.FILTERS:
        text = f"only findings of this {name}, in any case"
        listing.add_argument(f"--{name}", metavar="NAME", help=text)
    listing.set_defaults(run=commands.list_what)


def _add_explain(command: Commands) -> None:
    text = "print a rule (requirement, reason, how to comply), a group of rules, or a finding"
    explain = command.add_parser("explain", help=text, description=text, epilog=_EXPLAIN_EPILOG)
    explain.add_argument(
        "ids", metavar="ID", nargs="+", help="rule ids, patterns, groups, or findings"
    )
    explain.add_argument(
        "--format",
        choices=("text", "md"),
        default="text",
        help="text for the terminal, md for Markdown; with '*' a whole page (default: text)",
    )
    explain.set_defaults(run=commands.explain)


def _add_replay(command: Commands) -> None:
    text = "judge one rule on one plan again"
    replay = command.add_parser("replay", help=text, description=text, epilog=_REPLAY_EPILOG)
    replay.add_argument("producers", metavar="TARGET", nargs="?", type=lambda text: [text])
    _add_consumer(replay)
    replay.add_argument("rule", metavar="RULE", help="a rule id, or a pattern of ids")
    replay.add_argument("plan", metavar="PLAN-JSON")
    _add_report(replay)
    replay.add_argument(
        "--events", type=Path, metavar="PATH", help="write the event stream as JSON lines"
    )
    replay.add_argument(
        "--threads",
        action="store_true",
        help="several threads export the array at the same time, as in the profile threads",
    )
    _add_scope(replay)
    _add_isolation(replay)
    replay.set_defaults(run=commands.replay)


def _add_merge(command: Commands) -> None:
    text = "combine reports of several runs: the matrix of many libraries"
    merge = command.add_parser("merge", help=text, description=text, epilog=_MERGE_EPILOG)
    what = "a .json report or survey, or a .jsonl event stream"
    merge.add_argument("files", metavar="FILE", nargs="+", type=Path, help=what)
    _add_report(merge)
    merge.set_defaults(run=commands.merge)


def _add_known(command: Commands) -> None:
    text = "update a file of known failures"
    known = command.add_parser("known", help=text, description=text, epilog=_KNOWN_EPILOG)
    known.add_argument(
        "--update",
        type=Path,
        metavar="FILE",
        required=True,
        help="remove records that pass, append new failures with an empty reason; "
        "create the file if needed",
    )
    _add_targets(known, "a producer, as `check` takes it; default: those of the configuration")
    add_config(known)
    _add_selection(known)
    _add_running(known)
    known.set_defaults(run=commands.known)


_FINDING_HELP = {
    "reproduce": "print the script that shows a finding without the suite",
    "issue": "print an issue on a finding for the tracker of its library",
}


def _add_finding(command: Commands, name: str, epilog: str, act: Any) -> None:
    text = _FINDING_HELP[name]
    parser = command.add_parser(name, help=text, description=text, epilog=epilog)
    parser.add_argument("finding", metavar="FINDING", help="a name of `list findings`")
    parser.add_argument("--output", type=Path, metavar="PATH", help="write it to a file instead")
    parser.set_defaults(run=act)


def _add_targets(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("producers", metavar="TARGET", nargs="*", help=text)
    _add_consumer(command)


def _add_consumer(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--consumer",
        dest="consumers",
        metavar="TARGET",
        action="append",
        default=[],
        help=_CONSUMER_HELP,
    )


def add_config(command: argparse.ArgumentParser) -> None:
    """`options.config` is a file, None for a search, or False for none."""
    command.add_argument(
        "--config",
        metavar="FILE",
        help=f"read [tool.{TABLE}] of this file (default: of the nearest pyproject.toml that has "
        "the table, from the current folder upwards)",
    )
    command.add_argument(
        "--no-config", dest="config", action="store_false", default=None, help="read no file"
    )


def _add_selection(command: argparse.ArgumentParser, profile: str = "") -> None:
    names = profile_names()
    command.add_argument(
        "--profile",
        choices=names,
        default=profile or None,
        help=f"number of plans: {', '.join(names)} (default: {profile or DEFAULT})",
        metavar="NAME",
    )
    command.add_argument("--rules", metavar="PATTERNS", help="only these rules, e.g. 'DL-*,XA-03'")
    _add_scope(command)


def _add_scope(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--storage",
        action=argparse.BooleanOptionalAction,
        help="judge arrays without GT4Py's attributes, too, "
        "by the rules of GT4Py and of storages (GT-*, XA-17)",
    )
    command.add_argument(
        "--spec",
        metavar="EDITIONS",
        help="editions of documents, e.g. array-api-2024.12,dlpack-1.0: "
        "rules whose text is newer do not judge",
    )


def _add_report(command: argparse.ArgumentParser, remark: str = "") -> None:
    suffixes = ", ".join(FORMATS)
    command.add_argument(
        "--report",
        type=Path,
        metavar="PATH",
        action="append",
        default=[],
        help=f"write a report; the suffix selects the format: {suffixes}; can be repeated"
        + (f" ({remark})" if remark else ""),
    )


def _add_known_files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        action="append",
        help=f"known failures: a TOML file, or one of the suite's ({', '.join(shipped())}); "
        "can be repeated, later files override earlier files",
    )


def _add_running(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        help="vary the plans; the same seed gives the same plans (default: 0; for soak a new seed)",
    )
    _add_isolation(command)


def _add_isolation(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--time-limit",
        type=seconds_of,
        metavar="SECONDS",
        help=f"a plan that takes longer is a TIMEOUT (default: {PLAN_LIMIT_S:g})",
    )
    command.add_argument(
        "--no-isolate",
        dest="isolate",
        action="store_false",
        help="run the producer in this process, for debuggers and sanitizers; "
        "a crash ends the command",
    )


def seconds_of(text: str) -> float:
    """A time limit of the command line."""
    try:
        return seconds(float(text))
    except ValueError:
        return _checked(seconds, None, text)


def _seed(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= 20
    return _checked(seed, int(text) if is_number else None, text)


def _checked(check: Callable[[Any], _Value], value: Any, text: str) -> _Value:
    try:
        return check(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None
