"""Text from a producer, made safe and short.

Texts of a producer (an error, the name of a type, a format string) appear on terminals, in XML and
in HTML. It may hold terminal escapes, characters XML cannot carry, lone surrogates that no encoder
takes, or a million characters. Every renderer passes such text through `clean` and `shorten`, so
that no report can be broken or forged by a producer.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

# Bidirectional overrides reorder what a reader sees of the text around them; the other members of
# the category Cf (joiners, soft hyphens) are part of normal text and stay.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SHOWN_AS_CODE = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})

_ROOM_FOR_A_COUNT = 80
_ALWAYS_SHOWN = ("shape", "dtype")


def _visible(character: str) -> str:
    if character == "\n":
        return character
    if character == "\t":
        return "    "
    if character in _BIDI or unicodedata.category(character) in _SHOWN_AS_CODE:
        return character.encode("unicode_escape", "backslashreplace").decode("ascii")
    return character


def clean(value: object) -> str:
    r"""The text of `value`; characters that harm a terminal or an XML file are spelled as `\x1b`.

    Line breaks stay, tabs become spaces; other control characters, lone surrogates, unassigned code
    points and bidirectional overrides become their escape.
    """
    text = value if isinstance(value, str) else str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text.replace("\r\n", "\n")))


def one_line(value: object) -> str:
    """`clean`, and line breaks as spaces: a name must not be able to add a line."""
    return clean(value).replace("\n", " ")


def shorten(text: str, limit_chars: int) -> str:
    """At most about `limit_chars` characters of `text`: its beginning and its end.

    The omitted part is counted, unless the limit is too small for that.
    """
    if len(text) <= limit_chars:
        return text
    if limit_chars < _ROOM_FOR_A_COUNT:
        tail = limit_chars // 3
        return f"{text[: limit_chars - tail - 1]}…{text[-tail:]}"
    head = limit_chars * 3 // 4
    tail = limit_chars - head
    left_out = len(text) - head - tail
    return f"{text[:head]} … ({left_out:,} characters left out) … {text[-tail:]}"


def plural(count: int, noun: str) -> str:
    """`1 plan`, `2 plans`, `1,204 plans`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def describe_plan(plan: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """A plan in one line: its shape and dtype, then every key that differs from `defaults`."""
    shown = [
        f"{key}={clean(_literal(plan[key]))}"
        for key in plan
        if key in _ALWAYS_SHOWN or key not in defaults or not _same(plan[key], defaults[key])
    ]
    return " ".join(shown)


def _literal(value: Any) -> str:
    """JSON that a reader can paste back into a plan; str() for what JSON does not know."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def _same(left: Any, right: Any) -> bool:
    """Equality in which a tuple equals a list of the same entries: JSON knows only lists."""
    return _literal(left) == _literal(right)
