"""`@gridbuf_python`: the Python that gridbuf builds for and tests with.

It is the environment that bazelw made from the lock files: GRIDBUF_ENVIRONMENT, which bazelw sets. When the Bazel of another
workspace builds, it is the last one that bazelw made for the default interpreter. Targets: `:toolchain` (Bazel's Python
toolchain bound to it), `:headers` (Python.h), `:numpy` and `:pybind11` (their headers), `:nanobind` (its library, which it ships as source),
and `python.bzl` with the tags of the interpreter. nanobind is an optional peer; `HAS_NANOBIND` says whether it is installed.

With `--config=aarch64` the headers are those of `@gridbuf_python_aarch64`, which is the same for the environment that
`bazelw --aarch64` made. Its interpreter runs under emulation.
"""

load("//build_defs:component.bzl", "installed_component", "no_component")
load("//build_defs:state.bzl", "state_path")

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{interpreter}",
    # Debian does not install `python` by default, for which the stub of a py_binary would otherwise search.
    stub_shebang = "#!{interpreter}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    target_compatible_with = {constraints},
    toolchain = ":runtime_pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

cc_library(
    name = "headers{suffix}",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)

cc_library(
    name = "pybind11{suffix}",
    hdrs = glob(["pybind11_include/**"]),
    includes = ["pybind11_include"],
    deps = [":headers{suffix}"],
)

cc_library(
    name = "numpy{suffix}",
    hdrs = glob(["numpy_include/**/*.h"]),
    includes = ["numpy_include"],
    deps = [":headers{suffix}"],
)

cc_library(
    name = "nanobind{suffix}",
    srcs = glob(["nanobind/src/nb_combined.cpp"], allow_empty = True),
    hdrs = glob(
        ["nanobind/include/**", "nanobind/ext/robin_map/include/**"],
        allow_empty = True,
    ),
    # As in nanobind's build: it overlays C structs of CPython.
    copts = ["-std=c++17", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNDEBUG", "-w"],
    includes = ["nanobind/include", "nanobind/ext/robin_map/include"],
    textual_hdrs = glob(["nanobind/src/*"], allow_empty = True),
    deps = [":headers{suffix}"],
)

# Tests depend on this, so that installing or removing the optional peers runs them again.
filegroup(
    name = "peers",
    srcs = ["peers.txt"],
)
"""

_LIBRARIES = ["headers", "pybind11", "numpy", "nanobind"]

_BY_PROCESSOR = """
alias(
    name = "{name}",
    actual = select({{
        "@gridbuf//build_defs:cross_built": "@gridbuf_python_aarch64//:{name}",
        "//conditions:default": ":{name}_here",
    }}),
)
"""

_QUERY = """
import importlib.metadata, json, os, sys, sysconfig
import numpy
import pybind11
try:
    import nanobind
except ImportError:
    nanobind = None
print(json.dumps({
    "include": sysconfig.get_paths()["include"],
    "numpy": numpy.get_include(),
    "pybind11": pybind11.get_include(),
    "pybind11_info": str(importlib.metadata.distribution("pybind11").locate_file("pybind11-%s.dist-info" % pybind11.__version__)),
    "nanobind": nanobind and os.path.dirname(nanobind.__file__),
    "suffix": sysconfig.get_config_var("EXT_SUFFIX"),
    "tag": "cp%d%d" % sys.version_info[:2],
}))
"""

def _environment(repository_ctx):
    if repository_ctx.attr.unpacked:
        unpacked = state_path(repository_ctx, repository_ctx.attr.unpacked)
        return str(unpacked) if unpacked.exists else None
    environ = repository_ctx.os.environ
    if environ.get("GRIDBUF_ENVIRONMENT"):
        return environ["GRIDBUF_ENVIRONMENT"]
    remembered = state_path(repository_ctx, "environment")
    if not remembered.exists:
        root = repository_ctx.path(Label("//:WORKSPACE")).dirname
        fail("the Python environment does not exist; run `%s/bazelw --setup` once" % root)
    return repository_ctx.read(remembered).strip()

def _python_repository_impl(repository_ctx):
    environment = _environment(repository_ctx)
    if not environment:
        no_component(repository_ctx)
        # So that queries find the names.
        repository_ctx.file("BUILD.bazel", "".join([
            'cc_library(name = "%s", visibility = ["//visibility:public"])\n' % name
            for name in _LIBRARIES
        ]))
        return
    python = environment + "/bin/python"
    result = repository_ctx.execute([python, "-c", _QUERY])
    if result.return_code:
        fail("%s does not answer: %s" % (python, result.stderr))
    facts = json.decode(result.stdout)
    repository_ctx.symlink(facts["include"], "include")
    repository_ctx.symlink(facts["numpy"], "numpy_include")
    repository_ctx.symlink(facts["pybind11"], "pybind11_include")
    installed_component(repository_ctx, repository_ctx.path(facts["pybind11_info"]))
    if facts["nanobind"]:
        repository_ctx.symlink(facts["nanobind"], "nanobind")
    repository_ctx.file("peers.txt", repository_ctx.os.environ.get("GRIDBUF_PEERS", "none") + "\n")
    cross_built = bool(repository_ctx.attr.unpacked)
    build = _BUILD.format(
        constraints = ["@platforms//cpu:aarch64"] if cross_built else [],
        interpreter = python,
        suffix = "" if cross_built else "_here",
    )
    if not cross_built:
        build += "".join([_BY_PROCESSOR.format(name = name) for name in _LIBRARIES])
    repository_ctx.file("BUILD.bazel", build)
    repository_ctx.file("python.bzl", "\n".join([
        '"""Info on the interpreter that gridbuf builds for."""',
        "",
        'EXTENSION_SUFFIX = "%s"' % facts["suffix"],
        'PYTHON_TAG = "%s"' % facts["tag"],
        "HAS_NANOBIND = %s" % bool(facts["nanobind"]),
        "",
    ]))

python_repository = repository_rule(
    implementation = _python_repository_impl,
    attrs = {"unpacked": attr.string(doc = "The environment, below gridbuf's state folder; default: this machine's.")},
    environ = ["GRIDBUF_AARCH64", "GRIDBUF_ENVIRONMENT", "GRIDBUF_PEERS", "GRIDBUF_STATE"],
    doc = "Binds Bazel's Python toolchain and the headers of NumPy and pybind11 to the environment that bazelw made.",
    local = True,
)
