"""The Bazel of this machine, for tests that start it in a separate workspace."""

import shutil

# Debian 12 and 13 have 4.2.3 under this name; otherwise `bazel` is 7, which reads WORKSPACE only with these options.
BAZEL = shutil.which("bazel-4") or "bazel"
READ_WORKSPACE = [] if BAZEL != "bazel" else ["--noenable_bzlmod", "--enable_workspace"]
