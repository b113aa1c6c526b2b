#!/bin/sh
# The gate: exit code 0 if all judged rules hold or are known failures in known.toml.
# [shell]
mkdir -p reports
gridbuf-conformance check tinygrid \
  --known ci/known.toml \
  --report reports/conformance.xml \
  --report reports/conformance.html \
  --report reports/conformance.md \
  --report reports/conformance.svg \
  --report reports/conformance.json
# [/shell]
