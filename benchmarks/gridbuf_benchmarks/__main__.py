"""`./bazelw run //benchmarks`, or `python -m gridbuf_benchmarks` where gridbuf is installed."""

import sys

from gridbuf_benchmarks.cli import main

if __name__ == "__main__":
    sys.exit(main())
