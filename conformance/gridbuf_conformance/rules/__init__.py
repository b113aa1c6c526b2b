"""The rules: a folder a group, with rows (`rules.toml`) and a pure function for each check.

A check takes a `Subject` (the measurements of one array) or a `Consumption`, and returns a
`Verdict`. It fails only on proof: what the info leaves open is PASS with a note, UNSUPPORTED or
UNTESTED, never FAIL. Preconditions, levels and merging are the judge's business, not the checks'.
A rule that a variant names, and that has no check of consumers, has the usual one
(`host_consumers.judge_results`).
"""

from ..exports import interfaces
from ..interfaces import modules
from . import catalogue
from .host_consumers import judge_results
from .registry import CHECKS, CONSUMER_CHECKS
from .subject import Subject

__all__ = ["CHECKS", "CONSUMER_CHECKS", "Subject", "catalogue"]

modules("producer"), modules("consumer")  # importing them registers the checks
for _interface in interfaces().values():
    for _variant in _interface.variants.values():
        judge_results(*(rule for rule in _variant.rules if rule not in CONSUMER_CHECKS))
catalogue.VERSION = catalogue.digest()  # a check or a row that is forgotten is an error here
