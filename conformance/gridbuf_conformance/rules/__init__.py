"""The rules: a folder a group, with rows (`rules.toml`) and a pure function for each check.

A check takes a `Subject` (the measurements of one array) or a `Consumption`, and returns a
`Verdict`. It fails only on proof: what the info leaves open is PASS with a note, UNSUPPORTED or
UNTESTED, never FAIL. Preconditions, levels and merging are the judge's business, not the checks'.
"""

from ..interfaces import modules
from . import catalogue
from .registry import CHECKS, CONSUMER_CHECKS
from .subject import Subject

__all__ = ["CHECKS", "CONSUMER_CHECKS", "Subject", "catalogue"]

modules("producer"), modules("consumer")  # importing them registers the checks
catalogue.VERSION = catalogue.digest()  # a check or a row that is forgotten is an error here
