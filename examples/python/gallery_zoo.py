"""Findings of the suite in released libraries, by interface and severity. docs/gallery.md shows their numbers."""

# [data]
from collections import Counter

from gridbuf_conformance import findings

chosen = [finding for finding in findings.load().values() if not finding.contested]
numbers = Counter((finding.interface, finding.severity) for finding in chosen)

severities = sorted({severity for _, severity in numbers})
print(f"{'':24}", *(f"{severity:>8}" for severity in severities))
for interface in sorted({interface for interface, _ in numbers}):
    row = [numbers[interface, severity] for severity in severities]
    print(f"{interface:24}", *(f"{number:8}" for number in row))
# [/data]
