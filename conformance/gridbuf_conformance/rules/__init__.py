"""The checks: for each rule of the catalogue that is judged, one pure function from facts to a verdict.

A check takes a `Subject` (what was measured of one array) and returns a `Verdict`. It convicts only on
proof: what the facts leave open is PASS with a note, UNSUPPORTED or UNTESTED, never FAIL. Preconditions,
levels and merging are the judge's business, not the checks'.
"""

from . import (
    ai,
    array_struct,
    cai,
    consume_cai,
    consume_dl,
    consume_dp,
    consume_dx,
    consume_gt,
    consume_host,
    dl,
    dp,
    dx,
    gt,
    pb,
    xa,
)
from .consumer_registry import CONSUMER_CHECKS, ConsumerCheck
from .registry import CHECKS, Check
from .subject import Subject

__all__ = [
    "CHECKS",
    "CONSUMER_CHECKS",
    "Check",
    "ConsumerCheck",
    "Subject",
    "ai",
    "array_struct",
    "cai",
    "consume_cai",
    "consume_dl",
    "consume_dp",
    "consume_dx",
    "consume_gt",
    "consume_host",
    "dl",
    "dp",
    "dx",
    "gt",
    "pb",
    "xa",
]
