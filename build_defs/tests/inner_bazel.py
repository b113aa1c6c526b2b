"""The Bazel of this machine, for tests that start it in a separate workspace."""

import shutil

# Debian 12 and 13 have 4.2.3 under this name; where it is not there, `bazel` is 7, which must be told to read WORKSPACE.
BAZEL = shutil.which("bazel-4") or "bazel"
READ_WORKSPACE = [] if BAZEL != "bazel" else ["--noenable_bzlmod", "--enable_workspace"]
