"""Fails when a C++ file imports a module that its Bazel target does not declare.

Called by cc_module for each file: clang-scan-deps (P1689 output) reports the imports of the file after preprocessing.
"""

import argparse
import json
import pathlib
import subprocess
import sys


def scanner_beside(compiler: str) -> str:
    """/usr/bin/clang-19 → /usr/bin/clang-scan-deps-19: the scanner has the compiler's version and folder.

    Bazel 7 resolves links: /usr/lib/llvm-19/bin/clang → /usr/lib/llvm-19/bin/clang-scan-deps.
    """
    path = pathlib.Path(compiler)
    version = path.name.rpartition("-")[2]
    return str(path.with_name("clang-scan-deps" + (f"-{version}" if version.isdigit() else "")))


def label_of(module: str) -> str:
    """What goes into deps for a module. A module of gridbuf is in the folder of its name."""
    family, _, path = module.partition(".")
    return (
        f"@gridbuf//modules/{path.replace('.', '/')}"
        if family == "gridbuf" and path
        else f"the cc_module {module}"
    )


def main() -> int:
    ours, _, command = (lambda a: (a[: a.index("--")], None, a[a.index("--") + 1 :]))(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--label", required=True)
    parser.add_argument("--own", default="", help="the target's own module")
    parser.add_argument(
        "--allow", action="append", default=[], help="a module of a direct dependency"
    )
    parser.add_argument("--scan", required=True, help="where the scanner's JSON goes")
    parser.add_argument("--stamp", required=True)
    options = parser.parse_args(ours)

    scanner = scanner_beside(command[0])
    result = subprocess.run(
        [scanner, "-format=p1689", "--", *command], capture_output=True, text=True, check=False
    )
    if result.returncode:
        sys.stderr.write(result.stderr)
        return result.returncode
    pathlib.Path(options.scan).write_text(result.stdout)
    imports: set[str] = set()
    provides: set[str] = set()
    for rule in json.loads(result.stdout).get("rules", []):
        imports.update(entry["logical-name"] for entry in rule.get("requires", []))
        provides.update(entry["logical-name"] for entry in rule.get("provides", []))

    wrong = provides - {options.own}
    if wrong:
        print(
            f"{options.source}: defines module {', '.join(sorted(wrong))}, but {options.label} is the module "
            f"{options.own or '(none)'}; make the names equal",
            file=sys.stderr,
        )
        return 1
    undeclared = imports - set(options.allow) - {options.own}
    if undeclared:
        missing = ", ".join(sorted(label_of(name) for name in undeclared))
        print(
            f"{options.source}: imports {', '.join(sorted(undeclared))}, which no direct dependency of {options.label} "
            f"defines; add {missing} to deps (declared: {', '.join(sorted(options.allow)) or 'none'})",
            file=sys.stderr,
        )
        return 1
    pathlib.Path(options.stamp).write_text("")
    return 0


if __name__ == "__main__":
    sys.exit(main())
