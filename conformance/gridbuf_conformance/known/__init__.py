"""Known failures: the records of a file, the results of their replays, and the file's update."""

from .records import (
    KEYS,
    OUTCOMES,
    SIDES,
    Known,
    KnownError,
    KnownFailures,
    alike,
    covered,
    library_of,
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
    "library_of",
    "parse",
    "plan_of",
    "read",
    "shipped",
]
