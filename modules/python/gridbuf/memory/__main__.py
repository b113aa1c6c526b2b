"""`python -m gridbuf.memory run script.py …`: a program whose NumPy arrays have gridbuf's memory."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from . import numpy_allocator


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gridbuf.memory", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "run a program with gridbuf.memory.numpy_allocator()"
    run = commands.add_parser("run", help=text, description=text)
    run.add_argument("-m", dest="is_module", action="store_true", help="the program is a module")
    run.add_argument("program", help="path of a script, or name of a module with -m")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's arguments")
    return parser


def main() -> None:
    """Runs the program as `python` does; its exit code is that of the process."""
    parser = _parser()
    options = parser.parse_args()
    if not options.is_module and not Path(options.program).exists():
        parser.error(f"there is no file {options.program}; for a module, write -m before its name")
    sys.argv = [options.program, *options.arguments]
    numpy_allocator().install()
    if options.is_module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        return
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(options.program).resolve().parent)
    runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    main()
