"""The code in README.md and docs/ is a region of a file that the tests run: the printed code is tested code.

A fenced block preceded by `<!-- snippet: FILE#REGION -->` must equal the lines between `# [REGION]` and `# [/REGION]` (`//` in C++, `!` in Fortran).
The other Python blocks of a page are run alone, and `>>>` prints what the page shows. An exception that code shows must occur: see `checked`.
"""

import ast
import doctest
import os
import pathlib
import pkgutil
import re
import shlex
import signal
import subprocess
import sys
import textwrap

import gridbuf
import numpy as np
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
PEERS = dict.fromkeys(("gt4py", "mpi4py", "xarray", "torch"), "./bazelw --peers")
PEERS["ghex"] = "./bazelw --ghex"
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


# The end of a line that raises: `# raises TypeError`, or `# fails` for an assertion.
RAISES = re.compile(r"#.*\b(?:raises (\w+)|fails)\b.*$")


def checked(code: str) -> str:
    """The code with a check of each exception that it shows, by a comment `RAISES` or a `try` without `else`."""
    lines = code.splitlines()
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    for node in sorted(nodes, key=lambda node: node.end_lineno, reverse=True):
        indent = " " * node.col_offset
        check = [
            f"{indent}else:",
            f'{indent}    raise SystemExit("line {node.lineno} does not raise")',
        ]
        marked = not hasattr(node, "body") and RAISES.search(lines[node.end_lineno - 1])
        if marked:
            part = slice(node.lineno - 1, node.end_lineno)
            moved = [f"    {line}" for line in lines[part]]
            name = marked[1] or "AssertionError"
            lines[part] = [
                *(f"{indent}try:", *moved, f"{indent}except {name}:", f"{indent}    pass", *check)
            ]
        elif isinstance(node, ast.Try) and not node.orelse:
            end = node.handlers[-1].end_lineno
            lines[end:end] = check
    return "\n".join(lines) + "\n"


def test_an_exception_that_code_shows_must_occur():
    for line in (
        "int('x')  # raises ValueError",
        "assert False  # fails",
        "try:\n  x\nexcept NameError:\n  pass",
    ):
        exec(checked(line), {})
        with pytest.raises(SystemExit, match="line 1 does not raise"):
            exec(checked(re.sub("int.*\\)|assert False|  x", "  1", line).lstrip()), {})


def run(program, tmp_path, allowed=(0,), timeout=240, ranks=None):
    """Runs it as a user does: a fresh interpreter in an empty folder (compiled stencils and pictures go there)."""
    code = program.read_text()
    found = RANKS.search(code)
    ranks = ranks or (found and int(found[1]))
    copy = tmp_path / program.name
    copy.write_text(checked(code))
    # `-m mpi4py` ends all ranks when one of them raises, where the others would wait for it.
    options = ("-m", "mpi4py") if ranks else ()
    # The other examples may be imported.
    folders = [*filter(None, sys.path), program.parent]
    path = os.pathsep.join(str(pathlib.Path(entry).resolve()) for entry in folders)
    environ = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg", "HOME": str(tmp_path)}
    done = subprocess.run(
        [*(launcher(ranks) if ranks else ()), sys.executable, *options, str(copy)],
        cwd=tmp_path,
        env={**environ, "GT_CACHE_ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    missing = re.search(r"No module named '(\w+)", done.stderr)
    if done.returncode and missing and missing[1] in PEERS:
        hint = PEERS[missing[1]]
        pytest.skip(f"NOT run: it needs {missing[1]}, which is not installed; {hint}")
    assert done.returncode in allowed, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("document", ["README.md", "docs/index.md"])
def test_the_front_page_prints_what_it_shows(document, tmp_path):
    (found,) = re.findall(
        r"<!-- output: (\S+) -->\n```text\n(.*?)```", (ROOT / document).read_text(), re.DOTALL
    )
    assert run(ROOT / found[0], tmp_path) == found[1]


OUTPUT = re.compile(
    r"<!-- output: (examples/python/\S+\.py) on (\d+) ranks -->\n+```text\n(.*?)```", re.DOTALL
)


@pytest.mark.parametrize(
    "example, ranks, text",
    [
        pytest.param(*found, id=f"{d.stem}, {pathlib.Path(found[0]).stem} on {found[1]}")
        for d in DOCUMENTS
        for found in OUTPUT.findall(d.read_text())
    ],
)
def test_a_page_shows_what_the_ranks_print(example, ranks, text, tmp_path):
    """As a part of what they print. `checked` adds lines, so numbers of lines are not compared."""
    printed = run(ROOT / example, tmp_path, ranks=int(ranks)).replace(f"{tmp_path}/", "")
    without_lines = [re.sub(r"\.py:\d+", ".py", words) for words in (text, printed)]
    assert without_lines[0] in without_lines[1]


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


FENCE = re.compile(r"(<!-- [^\n]* -->\n+)?^( *)```(\w*)\n(.*?)```", re.DOTALL | re.MULTILINE)
# Pages whose code is run by another test, or is not of gridbuf.
ELSEWHERE = {
    "README.md": "the tests above",
    "conformance/README.md": "the tests above",
    "conformance/cc/README.md": "Bazel's language",
    "docs/how-to/extend-the-suite.md": "test_add_a_rule.py and test_extend_the_suite.py",
}


def blocks() -> list:
    """The Python code of the pages that is not a region of a file."""
    return [
        pytest.param(
            page, textwrap.dedent(code), id=f"{page}:{text.count(chr(10), 0, found.start()) + 1}"
        )
        for page, text in ((str(d.relative_to(ROOT)), d.read_text()) for d in DOCUMENTS)
        for found in FENCE.finditer(text)
        for marked, _, language, code in [found.groups()]
        if language == "python" and "snippet:" not in (marked or "") and page not in ELSEWHERE
    ]


# How a program ends, if a page says that it does not end normally.
ENDS = {
    "# a segmentation fault": (-signal.SIGSEGV,),
    "# can be a segmentation fault": (-signal.SIGSEGV, 0),  # on CPython 3.11 of Debian 12 it is one
    "# ends the process": (-signal.SIGABRT,),
}


@pytest.mark.parametrize("page, code", blocks())
def test_the_code_of_a_page_does_what_it_says(page, code, tmp_path):
    version = re.search(r"defects of NumPy ([\d.]+\d)", (ROOT / page).read_text())
    if version and version[1] != np.__version__:
        pytest.skip(f"NOT run: {page} is about NumPy {version[1]}, this is {np.__version__}")
    program = tmp_path / "printed.py"
    program.write_text(code)
    if "# never returns" in code:
        with pytest.raises(subprocess.TimeoutExpired):
            run(program, tmp_path, timeout=10)
    else:
        run(program, tmp_path, *(allowed for words, allowed in ENDS.items() if words in code))


@pytest.mark.parametrize(
    "session",
    [
        pytest.param(code, id=f"{d.relative_to(ROOT)}, {code.split(chr(10))[0]}")
        for d in DOCUMENTS
        for *_, code in FENCE.findall(d.read_text())
        if code.startswith(">>>")
    ],
)
def test_a_session_prints_what_the_page_shows(session):
    """A part of a line may be "...". A failure is an exception that has what was printed."""
    test = doctest.DocTestParser().get_doctest(session, {"gridbuf": gridbuf}, "page", None, 0)
    doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(test)


def python_of(page: pathlib.Path) -> str:
    """All Python code of a page, in the order printed; not the files of Bazel."""
    return "\n".join(
        textwrap.dedent(found[4])
        for found in FENCE.finditer(page.read_text())
        if found[3] == "python" and not re.search("BUILD|WORKSPACE|MODULE", found[1] or "")
    )


def test_each_name_is_defined_on_its_page(tmp_path):
    for page in DOCUMENTS:
        name = str(page.relative_to(ROOT))
        if name not in ELSEWHERE:
            (tmp_path / f"{name.replace('/', '__')}.py").write_text(python_of(page))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F821"]
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# The modules and classes of the reference, with their section of the page; empty: anywhere.
REFERENCE = {
    "gridbuf": "",
    "gridbuf.memory": "## Host memory",
    "gridbuf.testing": "## Devices",
    "gridbuf.call": "## Stencils",
    "gridbuf.mpi": "### `gridbuf.mpi`",
    "gridbuf.xarray": "### `gridbuf.xarray`",
    "gridbuf.storage": "## `gridbuf.storage`",
    "gridbuf.gt4py.cartesian": "### `gridbuf.gt4py.cartesian`",
    "gridbuf.gt4py.next": "### `gridbuf.gt4py.next`",
    "gridbuf.Buffer": "## `gridbuf.Buffer`",
    "gridbuf.LayoutPlan": "## `gridbuf.LayoutPlan`",
    "gridbuf.storage.Storage": "## `gridbuf.storage`",
}


@pytest.mark.parametrize("name, section", REFERENCE.items())
def test_the_reference_has_each_public_name(name, section):
    page = (ROOT / "docs/reference/python-api.md").read_text()
    text, earlier = page, page[page.index("## Spellings of earlier proposals") :]
    if section:
        end = rf"^{section.partition(' ')[0]} |\Z"
        text = re.search(rf"^{section}\n(.*?)(?:{end})", page, re.DOTALL | re.MULTILINE)[1]
    words = set(re.findall(r"\w+", " ".join(re.findall("`[^`\n]+`", text + earlier))))
    try:
        found = pkgutil.resolve_name(name)
    except (AttributeError, ImportError) as error:
        pytest.skip(f"NOT tested: {error}")
    names = getattr(found, "__all__", None) or [n for n in dir(found) if not n.startswith("_")]
    assert not sorted(set(names) - words)


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
