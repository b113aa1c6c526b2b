"""`system`: the extension of MODULE.bazel with the repositories that are this machine's. Bazel 4 does not read this file."""

load(":dependencies.bzl", "system_repositories")

def _system_impl(_module_ctx):
    system_repositories(lambda _name: False)

system = module_extension(
    implementation = _system_impl,
    doc = "Debian's packages and what `bazelw --setup` unpacked; what has a Bazel module comes as one.",
)
