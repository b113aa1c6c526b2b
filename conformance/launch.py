"""What `bazel run //conformance` starts: the command from outside, as an installed script does."""

import sys

from gridbuf_conformance.cli import main

sys.exit(main())
