"""Known failures: the records of a file, what their replays come to in a run, and how a file is
updated.
"""

from .records import (
    KEYS,
    OUTCOMES,
    SIDES,
    Known,
    KnownError,
    KnownFailures,
    alike,
    covered,
    parse,
    plan_of,
    read,
    shipped,
)

__all__ = [
    "KEYS",
    "OUTCOMES",
    "SIDES",
    "Known",
    "KnownError",
    "KnownFailures",
    "alike",
    "covered",
    "parse",
    "plan_of",
    "read",
    "shipped",
]
