"""Checks one object. The suite checks only what its interfaces state."""

# [check]
import array

import gridbuf_conformance as gc

report = gc.check(array.array("d", [1.0, 2.0, 3.0]))
assert report.exit_code == 0, report
# [/check]
