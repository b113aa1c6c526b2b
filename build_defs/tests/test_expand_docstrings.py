"""Docstrings and signatures that refer to others are expanded; a reference to nothing ends the build."""

from __future__ import annotations

import ast
import textwrap

import pytest
from expand_docstrings import expand_docstrings, expand_keywords

FIRST = '''\
def first(shape, layout):
    """Do.

    Parameters
    ----------
    shape : int
        Extents. Default: 1.
    layout : callable
        An order that takes so many words to explain that they do not fit into one line of a text.
        Default: C order.

    Raises
    ------
    ValueError
        A value is out of bounds.
    """
'''
SECOND = '''
class Kind:
    def second(self, layout, shape):
        """Do otherwise.

        Parameters
        ----------
        layout : as in `first`
            Default: that of `data`.
        shape : as in `first`

        Raises
        ------
        ValueError : as in `first`
        """
'''


def docstring(source: str, name: str) -> str:
    found = (n for n in ast.walk(ast.parse(source)) if getattr(n, "name", "") == name)
    return ast.get_docstring(next(found)) or ""


def test_entries_and_defaults_are_expanded_at_their_indentation() -> None:
    expanded = expand_docstrings(FIRST + SECOND)
    assert expanded.startswith(FIRST)
    assert docstring(expanded, "second") == textwrap.dedent("""\
        Do otherwise.

        Parameters
        ----------
        layout : callable
            An order that takes so many words to explain that they do not fit into one line of a
            text. Default: that of `data`.
        shape : int
            Extents. Default: 1.

        Raises
        ------
        ValueError
            A value is out of bounds.""")


def test_a_reference_may_be_to_an_entry_that_is_one_itself() -> None:
    third = SECOND.replace("`first`", "`Kind.second`").replace("Kind:", "Other:")
    expanded = expand_docstrings(FIRST + SECOND + third)
    _, _, one, other = expanded.split("Parameters\n")
    assert one[: one.index("Raises")] == other[: other.index("Raises")]


def test_sections_are_those_of_the_other_docstring() -> None:
    third = """
def third(shape, layout):
    '''Do it again.

    Parameters, Raises : as in `first`
    '''
""".replace("'''", 3 * chr(34))
    expanded = expand_docstrings(FIRST + third)
    assert docstring(expanded, "third") == docstring(FIRST, "first").replace("Do.", "Do it again.")
    with pytest.raises(SystemExit, match="there is no text for Notes"):
        expand_docstrings(FIRST + third.replace("Raises", "Notes"))


@pytest.mark.parametrize(("old", "new"), [("`first`", "`third`"), ("shape : as", "dims : as")])
def test_a_reference_to_nothing_ends_the_build(old: str, new: str) -> None:
    with pytest.raises(SystemExit, match="has no text for"):
        expand_docstrings(FIRST + SECOND.replace(old, new))


STUB = """\
class Shared(TypedDict, total=False):
    device: str | None  # = None
    populate: bool  # = False

def plain(
    shape: tuple[int, ...] | None = None, **keywords: Unpack[Shared]
) -> None: ...
def more(
    *,
    copy: bool = True,
    **keywords: Unpack[Shared],
) -> None: ...
"""


def test_keywords_have_their_defaults_and_one_star() -> None:
    plain, more = ast.parse(expand_keywords(STUB)).body[1:]
    assert ast.unparse(plain.args) == (
        "shape: tuple[int, ...] | None=None, *, device: str | None=None, populate: bool=False"
    )
    assert ast.unparse(more.args) == (
        "*, copy: bool=True, device: str | None=None, populate: bool=False"
    )
