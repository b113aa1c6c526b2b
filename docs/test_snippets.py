"""The code in README.md and docs/ is a region of a file that the tests run: the printed code is tested code.

A fenced block preceded by `<!-- snippet: FILE#REGION -->` must equal the lines between `# [REGION]` and `# [/REGION]` (`//` in C++, `!` in Fortran).
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

import pytest
from gridbuf_conformance import named_consumers, producers

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "modules", "conformance")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(p for d in FOLDERS for p in (ROOT / d).rglob("*.md"))])
SNIPPET = re.compile(r"<!-- (?:c\+\+ )?snippet: (\S+)#(\w+) -->\n+```[\w+]*\n(.*?)```", re.DOTALL)
EXAMPLES = sorted((ROOT / "examples/python").glob("*.py"))
# An example whose text has the line `    mpiexec -n 4 python …` is a program of four ranks.
RANKS = re.compile(r"^ *(?:# )?mpiexec -n (\d+) python", re.MULTILINE)
# What installs the libraries that examples need, if they are missing.
PEERS = dict.fromkeys(("gt4py", "mpi4py", "xarray", "ghex"), "./bazelw --peers")
PEERS["zarr"] = "pip install zarr"


def snippets() -> list[tuple[pathlib.Path, str, str, str]]:
    return [(d, *found) for d in DOCUMENTS for found in SNIPPET.findall(d.read_text())]


def region(path: pathlib.Path, name: str) -> str:
    mark = r"^ *(?:#|//|!) "
    found = re.search(
        rf"{mark}\[{name}\]\n(.*?){mark}\[/{name}\]$", path.read_text(), re.DOTALL | re.MULTILINE
    )
    assert found, f"{path} has no region [{name}]"
    return textwrap.dedent(found[1])


def test_the_readme_has_snippets():
    assert [d for d, *_ in snippets() if d == ROOT / "README.md"]


@pytest.mark.parametrize(
    "document, path, name, code", snippets(), ids=lambda v: getattr(v, "name", None)
)
def test_snippet_is_the_region_it_names(document, path, name, code):
    assert textwrap.dedent(code).strip() == region(ROOT / path, name).strip()


def launcher(ranks: int) -> list[str]:
    """The command that starts a program on so many ranks: the launcher that is installed next to this Python, with mpi4py's MPI."""
    mpiexec = pathlib.Path(sys.prefix) / "bin/mpiexec"
    if not mpiexec.exists():
        pytest.skip(
            f"NOT run: it is a program of {ranks} ranks and {mpiexec} is not there; ./bazelw --peers"
        )
    return [str(mpiexec), "-n", str(ranks)]


def run(program, tmp_path):
    """Runs it as a user does: a fresh interpreter in an empty folder (compiled stencils and pictures go there)."""
    ranks = RANKS.search(program.read_text())
    # `-m mpi4py` ends all ranks when one of them raises, where the others would wait for it.
    options = ("-m", "mpi4py") if ranks else ()
    path = os.pathsep.join(str(pathlib.Path(entry).resolve()) for entry in sys.path if entry)
    environ = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg", "HOME": str(tmp_path)}
    done = subprocess.run(
        [*(launcher(int(ranks[1])) if ranks else ()), sys.executable, *options, str(program)],
        cwd=tmp_path,
        env={**environ, "GT_CACHE_ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    missing = re.search(r"No module named '(\w+)", done.stderr)
    if done.returncode and missing and missing[1] in PEERS:
        hint = PEERS[missing[1]]
        pytest.skip(f"NOT run: it needs {missing[1]}, which is not installed; {hint}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("document", ["README.md", "docs/index.md"])
def test_the_front_page_prints_what_it_shows(document, tmp_path):
    (found,) = re.findall(
        r"<!-- output: (\S+) -->\n```text\n(.*?)```", (ROOT / document).read_text(), re.DOTALL
    )
    assert run(ROOT / found[0], tmp_path) == found[1]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(example, tmp_path):
    run(example, tmp_path)


def printed() -> list:
    """The Python code of the READMEs: that of a page in the order printed, and each block of README.md alone."""
    pages = {
        page: re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
        for page in ("README.md", "conformance/README.md")
    }
    assert all(pages.values()), "a README without Python code"
    whole = [pytest.param("\n".join(blocks), id=page) for page, blocks in pages.items()]
    numbered = enumerate(pages["README.md"], 1)
    return whole + [pytest.param(block, id=f"README.md, block {n}") for n, block in numbered]


@pytest.mark.parametrize("code", printed())
def test_the_code_of_a_readme_runs_as_printed(code, tmp_path):
    program = tmp_path / "printed.py"
    program.write_text(code)
    run(program, tmp_path)


# Packages on the package index that hints name and that no lock file has.
KNOWN = set(
    "av blosc2 ctranslate2 cupy-cuda12x drjit iree-base-runtime mlx numba-cuda onnxruntime paddlepaddle pyqt6 pyside6"
    " pyside6-essentials scikit-learn skia-python tensorflow-cpu usd-core vtk warp-lang zarr".split()
)
LOCKED = {
    name
    for suffix in ("lock", "pin")
    for path in (ROOT / "third_party/python").glob(f"*.{suffix}")
    for name in re.findall(r"^([\w-]+)==", path.read_text(), re.MULTILINE)
}
INSTALL = re.compile(r"pip install ([^\n\"\\`,;:{}()#&]+)")


def hints() -> set[tuple[str, str]]:
    """What messages, documents and examples say to install, and where."""
    sources = [
        path
        for folder in ("modules/python/gridbuf", "conformance/gridbuf_conformance", "examples")
        for suffix in ("py", "yml")
        for path in (ROOT / folder).rglob(f"*.{suffix}")
    ]
    found = {
        (command.strip(), str(path.relative_to(ROOT)))
        for path in [*sources, *DOCUMENTS]
        for command in INSTALL.findall(path.read_text())
    }
    entries = (*producers.BUILT_IN.values(), *named_consumers.BUILT_IN.values())
    return found | {
        (command.strip(), entry.name)
        for entry in entries
        for command in INSTALL.findall(entry.install or "")
    }


@pytest.mark.parametrize("command, where", sorted(hints()))
def test_a_hint_names_packages_that_exist(command, where):
    """gridbuf's own packages are not on the package index: they are installed from a folder of wheels."""
    words = shlex.split(command)
    own = (
        {"gridbuf", "gridbuf-conformance", "dist", "wheels", "…"}
        if "--find-links" in words
        else set()
    )
    named = {
        re.split(r"[\[<>=]", word)[0].lower().replace("_", "-")
        for word in words
        if not word.startswith(("-", ".")) and "/" not in word
    }
    unknown = named - own - LOCKED - KNOWN
    assert not unknown, f"{where}: pip install {command}: not on the package index: {unknown}"


LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(document):
    text = re.sub(r"```.*?```|`[^`]*`", "", document.read_text(), flags=re.DOTALL)
    dead = [target for target in LINK.findall(text) if not (document.parent / target).exists()]
    assert not dead
