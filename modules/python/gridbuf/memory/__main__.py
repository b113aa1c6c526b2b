"""`python -m gridbuf.memory run script.py …`: a program whose NumPy arrays have gridbuf's memory."""

from __future__ import annotations

import argparse
import builtins
import os
import pkgutil
import runpy
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from . import numpy_allocator


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gridbuf.memory", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "run a program with gridbuf.memory.numpy_allocator()"
    usage = "%(prog)s [-h] [-m] program [argument ...]"
    run = commands.add_parser("run", help=text, description=text, usage=usage)
    run.add_argument("-m", dest="is_module", action="store_true", help="the program is a module")
    run.add_argument("program", help="path of a script, or name of a module with -m")
    return parser


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The command line up to the program, and the program's own arguments, which argparse would change."""
    words = [place for place, text in enumerate(arguments) if not text.startswith("-")]
    end = words[1] + 1 if len(words) > 1 else len(arguments)
    return arguments[:end], arguments[end:]


def _run_script(path: str) -> None:
    """Runs a script as `python` does: `__file__` is absolute, and `sys.argv[0]` stays as it was given."""
    loader = SourceFileLoader("__main__", path)
    code = loader.source_to_code(loader.get_data(path), path)
    main = ModuleType("__main__")
    vars(main).update(__file__=path, __loader__=loader, __builtins__=builtins)
    sys.modules["__main__"] = main
    exec(code, vars(main))


def main() -> None:
    """Runs the program as `python` does; its exit code is that of the process."""
    parser = _parser()
    own, arguments = _split(sys.argv[1:])
    options = parser.parse_args(own)
    path = os.path.join(Path.cwd(), options.program)  # as `python` writes it, with each `./`
    if not options.is_module and not Path(path).exists():
        parser.error(f"there is no file {options.program}; for a module, write -m before its name")
    sys.argv = [options.program, *arguments]
    numpy_allocator().install()
    if options.is_module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        return
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(path).resolve().parent)
    if pkgutil.get_importer(path) is None and not path.endswith(".pyc"):
        _run_script(path)
    else:
        runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main()
