"""Writes compile_commands.json, so that clangd 19 and clang-tidy 19 see the files that Bazel compiles, modules included.

Builds the module interfaces first: clangd needs the .pcm files that the commands name.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGETS = "//modules/... + //benchmarks/..."


def bazel(*arguments: str) -> str:
    result = subprocess.run(
        [str(ROOT / "bazelw"), *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if result.returncode:
        sys.exit(f"bazelw {' '.join(arguments)} failed")
    return result.stdout


def entry(arguments: list[str], execution_root: str) -> dict[str, object] | None:
    """One entry for a compile or precompile of a file of ours."""
    for source in arguments:
        path = ROOT / source
        if (
            source.endswith((".cc", ".cppm"))
            and not source.startswith("external/")
            and path.is_file()
        ):
            break
    else:
        return None
    output = arguments[arguments.index("-o") + 1] if "-o" in arguments else None
    return {
        "directory": execution_root,
        "file": str(path),
        "arguments": arguments,
        "output": output,
    }


def main() -> None:
    bazel("build", "--keep_going", "--noshow_progress", "//modules/...")
    execution_root = bazel("info", "execution_root").strip()
    query = f'mnemonic("CppModulePrecompile|CppCompile", {TARGETS})'
    actions = json.loads(bazel("aquery", query, "--output=jsonproto"))["actions"]
    entries = [e for e in (entry(a["arguments"], execution_root) for a in actions) if e]
    path = ROOT / "compile_commands.json"
    path.write_text(json.dumps(entries, indent=1) + "\n")
    print(f"{path.name}: {len(entries)} files")


if __name__ == "__main__":
    main()
