"""The dependencies of gridbuf's build, by the names that the Bazel builds of these libraries use.

A workspace that depends on gridbuf calls `gridbuf_dependencies()` once. Each repository is made only if the workspace has
none of that name. So a newer Bazel, or a workspace with the real modules, can replace it. All of them are local: Debian's
packages and the files that `bazelw --setup` unpacked. Bazel fetches nothing.
"""

load("//build_defs:aarch64_repository.bzl", "aarch64_repository")
load("//build_defs:component.bzl", "runtime_components", "write_component")
load("//build_defs:cuda_repository.bzl", "cuda_repository")
load("//build_defs:gridtools_repository.bzl", "gridtools_repository")
load("//build_defs:python_repository.bzl", "python_repository")
load("//build_defs:state.bzl", "state_path")

def _unpacked(repository_ctx, path):
    source = state_path(repository_ctx, path)
    if not source.exists:
        root = repository_ctx.path(Label("//:WORKSPACE")).dirname
        fail("%s is not there; run `%s/bazelw --setup` once" % (source, root))
    return source

def _state_repository_impl(repository_ctx):
    source = _unpacked(repository_ctx, repository_ctx.attr.path)
    for entry in source.readdir():
        repository_ctx.symlink(entry, entry.basename)
    module = repository_ctx.read("MODULE.bazel").partition("module(")[2].split('"')
    write_component(repository_ctx, module[1], module[3], repository_ctx.attr.licence, repository_ctx.attr.purl, ["LICENSE"])

_state_repository = repository_rule(
    implementation = _state_repository_impl,
    attrs = {
        "licence": attr.string(mandatory = True, doc = "SPDX expression; the text is its file LICENSE."),
        "path": attr.string(mandatory = True, doc = "Folder below gridbuf's state folder."),
        "purl": attr.string(mandatory = True, doc = "The package URL without the version, which its MODULE.bazel has."),
    },
    environ = ["GRIDBUF_STATE"],
    doc = "A source tree that `bazelw --setup` unpacked.",
    local = True,
)

def _glibc_repository_impl(repository_ctx):
    source = _unpacked(repository_ctx, "debian/glibc")
    libraries = source.readdir()
    aarch64 = state_path(repository_ctx, "aarch64/glibc")
    repository_ctx.file("glibc.bzl", "OLD_GLIBC = %s\n" % bool(libraries))
    repository_ctx.file("BUILD.bazel", """
cc_library(
    name = "glibc",
    linkopts = select({
        "@gridbuf//build_defs:cross_built": %s,
        "//conditions:default": %s,
    }),
    visibility = ["//visibility:public"],
)
""" % (["-L%s" % aarch64], ["-L%s" % source] if libraries else []))
    pinned = repository_ctx.execute(["dpkg", "--print-architecture"]).stdout.strip()
    runtime_components(repository_ctx, "", pinned if libraries else "")

_glibc_repository = repository_rule(
    implementation = _glibc_repository_impl,
    environ = ["GRIDBUF_STATE"],
    # The packages of the machine can be newer than at the last build.
    local = True,
    doc = "`:glibc`, an old C library to link extensions against, as `bazelw --setup` unpacked it; nothing where it could not.",
)

def _system_repository_impl(repository_ctx):
    for entry in repository_ctx.path(repository_ctx.attr.path).readdir():
        repository_ctx.symlink(entry, entry.basename)
    repository_ctx.symlink(repository_ctx.attr.build_file, "BUILD.bazel")

_system_repository = repository_rule(
    implementation = _system_repository_impl,
    attrs = {"build_file": attr.label(mandatory = True), "path": attr.string(mandatory = True)},
    doc = "A folder of the machine with a BUILD file of gridbuf.",
    local = True,
)

def _local(name, path):
    if not native.existing_rule(name):
        native.local_repository(name = name, path = path)

def _shim_repository_impl(repository_ctx):
    for path, content in repository_ctx.attr.files.items():
        repository_ctx.file(path, content)

_shim_repository = repository_rule(
    implementation = _shim_repository_impl,
    attrs = {"files": attr.string_dict(mandatory = True, doc = "Path → content.")},
    doc = "A small repository written in place, for what Bazel would otherwise fetch.",
)

def _shim(name, files):
    if not native.existing_rule(name):
        _shim_repository(name = name, files = dict(files, WORKSPACE = ""))

_RULES_CC = """

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
"""

# Debian's builds of Bazel leave native.bazel_version empty.
_BAZEL_7 = hasattr(native, "package_relative_label")

def gridbuf_dependencies():
    """Declares every external repository that gridbuf's targets name. Call it once, in WORKSPACE."""

    # Bazel's requirements. Debian's rules_cc is too new for Bazel 4.2.3; the shim replaces it.
    _local("bazel_skylib", "/usr/share/bazel/tools/skylib")
    _local("platforms", "/usr/share/bazel/tools/platforms")
    _local("rules_java", "/usr/share/bazel/rules/java")
    _local("rules_proto", "/usr/share/bazel/rules/proto")
    if _BAZEL_7:
        for rules in ["cc", "license", "python"]:
            _local("rules_" + rules, "/usr/share/bazel/rules/" + rules)
        _shim("zlib", {"BUILD": 'cc_library(name = "zlib", linkopts = ["-lz"], visibility = ["//visibility:public"])'})
    else:
        _shim("rules_cc", {"cc/BUILD": "", "cc/defs.bzl": _RULES_CC})
    _shim("remote_coverage_tools", {
        "BUILD": 'filegroup(name = "coverage_report_generator", srcs = [], visibility = ["//visibility:public"])',
    })

    if not native.existing_rule("com_google_absl"):
        _state_repository(
            name = "com_google_absl",
            path = "debian/abseil",
            licence = "Apache-2.0",
            purl = "pkg:github/abseil/abseil-cpp",
        )
    system_repositories(native.existing_rule)
    if not native.existing_rule("com_google_googletest"):
        _googletest()
    native.register_toolchains("@gridbuf_python//:toolchain")

def _googletest():
    _system_repository(name = "com_google_googletest", path = "/usr/src/googletest", build_file = Label("//third_party:googletest.BUILD"))

def system_repositories(is_there):
    """Declares what is this machine's, in WORKSPACE and for Bazel modules.

    Args:
      is_there: says whether the workspace has a name.
    """
    for name, rule, arguments in [
        ("gridbuf_glibc", _glibc_repository, {}),
        ("com_github_google_benchmark", _system_repository, {"path": "/usr", "build_file": Label("//third_party:benchmark.BUILD")}),
        ("nlohmann_json", _system_repository, {"path": "/usr/include/nlohmann", "build_file": Label("//third_party:nlohmann_json.BUILD")}),
        ("gridbuf_aarch64", aarch64_repository, {}),
        ("gridbuf_python", python_repository, {}),
        ("gridbuf_python_aarch64", python_repository, {"unpacked": "aarch64/env"}),
        ("gridbuf_cuda", cuda_repository, {}),
        ("gridtools", gridtools_repository, {}),
    ]:
        if not is_there(name):
            rule(name = name, **arguments)
