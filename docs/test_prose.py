"""The English of the project: phrases that slow readers down do not come back. CONTRIBUTING.md has the rules."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (
    ".ci",
    "benchmarks",
    "build_defs",
    "conformance",
    "docs",
    "examples",
    "modules",
    "third_party",
    "tools",
    "zoo",
)
SUFFIXES = {
    "", ".BUILD", ".bazel", ".bazelrc", ".bzl", ".c", ".cc", ".cppm", ".cu", ".f90", ".h", ".hpp", ".html", ".in", ".inc", ".j2",
    ".md", ".py", ".pyi", ".toml", ".txt", ".yml",
}  # fmt: skip
# Records of measurements and findings, data, and the history of names.
LEFT_OUT = re.compile(
    r"/(corpus|vectors|\.?hypothesis|golden|__pycache__|\.\w+_cache)/|docs/performance\.md|CHANGELOG|LICENSE|gridbuf-survey\.html|gpu_check\.md|test_prose\.py"
)

# A phrase, and what to write instead.
PHRASES = {
    r"whoever|nobody|somebody": "the user, the caller, the library; or the passive",
    r"(?<![\"*])shall(?![\"*])": "must, or the present tense",
    r"want of": "out of, without",
    r"mend(?:s|ed|ing)?": "fix",
    r"by the way": "leave it out",
    r"it came to|comes? to harm|came to harm|dies over": "the result is, is corrupted, ends",
    r"all the same": "still",
    r"for ever": "until the process ends, never ends",
    r"of (?:its|their|his) own": "private, separate, new",
    r"lent|lends?|lending": "export, pass",
    r"(?<!-)beside": "next to, besides",
    r"(?<!there )(?:is|are|was|were) no (?!longer|more|less|greater|smaller|larger|later|other)": "is not a",
    r"guests?|accused|accus(?:e|es|ation)|convict(?:s|ed)?|guilty|blame[ds]?": "the library under test",
    r"whom|anybody|everybody|who(?: else)? (?:is|are|was|has|can|may|must|waits|frees|owns|holds|uses|writes|reads|says|sends|knows)": (
        "name the noun: the user, the caller, the current side"
    ),
    r"(?<!hull )lies?(?! on\b)|lay(?! out\b)|stands(?! for\b)": "is, has",
    r"likewise|ado|in peace": "too, also, the same for; normally",
    r"anew|afresh|once more": "again",
    r"hence|thus|thereby|thereof|therein|whence|lest|upon|till": "so, with it, in it, on, until",
    r"merely|mere|in vain|to be had|none but": "only, without a use, is not available",
    r"may mean (?:more|less)": "name what it can have besides",
    r"as (?:it|they) (?:is|are)(?=[.,;:)]|$)": "unchanged, in its present form",
    r"by (?:itself|themselves)": "alone, without a caller",
    r"for (?:it|they|there) (?:is|are|has|have|may|would|follows)": "because",
    r"speed of memory": "a measured ratio with its case",
}

# Names of fields and arguments, and words that tests misspell.
NOT_MISSPELLED = ("nd", "inout", "nin", "chek", "reson", "fro")


def findings(text: str) -> list[str]:
    return [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match.group().strip()!r}; write: {instead}"
        for phrase, instead in PHRASES.items()
        for match in re.finditer(rf"\b(?:{phrase})\b", text, re.IGNORECASE)
    ]


def test_phrases_are_found_with_their_line() -> None:
    found = findings("This fixes it.\nNobody shall mend what is no array.")
    assert [text.split("; ")[0] for text in found] == [
        "line 2: 'Nobody'", "line 2: 'shall'", "line 2: 'mend'", "line 2: 'is no'",
    ]  # fmt: skip
    assert not findings('The verb of that sentence is *shall*, in the data "shall".')
    assert not findings("There is no GPU, and the stream is no longer in use.")


def texts() -> list[Path]:
    files = [path for path in ROOT.iterdir() if path.suffix in SUFFIXES and path.is_file()]
    for folder in FOLDERS:
        files += (
            path
            for path in (ROOT / folder).rglob("*")
            if path.suffix in SUFFIXES and path.is_file()
        )
    files = [path for path in files if not LEFT_OUT.search(path.relative_to(ROOT).as_posix())]
    assert len(files) > 500, "the sources are not here"
    return files


def test_no_text_has_them() -> None:
    found = [
        f"{path.relative_to(ROOT)}, {text}"
        for path in texts()
        for text in findings(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_words_are_spelled_as_codespell_knows_them() -> None:
    command = [sys.executable, "-m", "codespell_lib", "-L", ",".join(NOT_MISSPELLED), *texts()]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
