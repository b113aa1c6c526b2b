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

def _local(name, path):
    if not native.existing_rule(name):
        native.local_repository(name = name, path = path)

def _system(name, path, build_file):
    if not native.existing_rule(name):
        native.new_local_repository(name = name, path = path, build_file = build_file)

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
    if not native.existing_rule("gridbuf_glibc"):
        _glibc_repository(name = "gridbuf_glibc")
    _system("com_google_googletest", "/usr/src/googletest", "@gridbuf//third_party:googletest.BUILD")
    _system("com_github_google_benchmark", "/usr", "@gridbuf//third_party:benchmark.BUILD")
    _system("nlohmann_json", "/usr/include/nlohmann", "@gridbuf//third_party:nlohmann_json.BUILD")

    if not native.existing_rule("gridbuf_aarch64"):
        aarch64_repository(name = "gridbuf_aarch64")
    if not native.existing_rule("gridbuf_python"):
        python_repository(name = "gridbuf_python")
    if not native.existing_rule("gridbuf_python_aarch64"):
        python_repository(name = "gridbuf_python_aarch64", unpacked = "aarch64/env")
    if not native.existing_rule("gridbuf_cuda"):
        cuda_repository(name = "gridbuf_cuda")
    if not native.existing_rule("gridtools"):
        gridtools_repository(name = "gridtools")
    native.register_toolchains("@gridbuf_python//:toolchain")
