"""`python -m gridbuf_conformance`: the same as the command `gridbuf-conformance`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
