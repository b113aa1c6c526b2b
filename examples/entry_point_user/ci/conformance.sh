#!/bin/sh
# The gate: exit code 0 if all judged rules hold or are known failures in known.toml.
# [shell]
mkdir -p reports
gridbuf-conformance check \
  --report reports/conformance.xml \
  --report reports/conformance.html \
  --report reports/conformance.md \
  --report reports/conformance.svg \
  --report reports/conformance.json
# [/shell]
