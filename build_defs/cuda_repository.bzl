"""`@gridbuf_cuda`: the CUDA toolkit, if there is one.

It is searched in this order: CUDA_HOME, /usr/local/cuda, the PyPI toolkit wheels in the Python environment. `cuda.bzl`
then has CUDA_AVAILABLE and the path of nvcc. A module links with `:runtime_headers` and `:cudart_static`. Without a
toolkit the targets are empty and CUDA_AVAILABLE is False. `--config=cuda` turns that into an error.

With `--config=aarch64` the same nvcc compiles for aarch64, and the runtime is the one of CUDA 13 that `bazelw --aarch64`
unpacked. CUDA_CROSS is whether that is there and fits.
"""

load("//build_defs:component.bzl", "installed_component", "no_component", "write_component")
load("//build_defs:state.bzl", "state_path")

_FOUND = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "runtime_headers",
    hdrs = glob(["toolkit/include/**"]),
    includes = ["toolkit/include"],
)

cc_import(
    name = "cudart_static_archive",
    static_library = {archive},
)

cc_library(
    name = "cudart_static",
    linkopts = ["-ldl", "-lrt", "-pthread"],
    deps = [":cudart_static_archive", ":runtime_headers"],
)

filegroup(
    name = "nvcc_files",
    srcs = ["marker.txt"],
)
"""

_ABSENT = """
package(default_visibility = ["//visibility:public"])

cc_library(name = "runtime_headers")

cc_library(name = "cudart_static")

filegroup(
    name = "nvcc_files",
    srcs = ["marker.txt"],
)
"""

def _candidates(repository_ctx):
    environ = repository_ctx.os.environ
    folders = [environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    environment = environ.get("GRIDBUF_ENVIRONMENT")
    if environment:
        for site in ["3.11", "3.12", "3.13", "3.14"]:
            folders.append("%s/lib/python%s/site-packages/nvidia/cu13" % (environment, site))
    return [folder for folder in folders if folder]

_PATHS = """\"\"\"Where the CUDA toolkit is.\"\"\"

CUDA_AVAILABLE = {available}
CUDA_CROSS = {cross}
CUDA_HOME = "{home}"
"""

def _installed(*folders):
    """The `.dist-info` folders of the runtime."""
    entries = [entry for folder in folders if folder.exists for entry in folder.readdir()]
    return [entry for entry in entries if entry.basename.startswith("nvidia_cuda_runtime-")]

def _write_component(repository_ctx, toolkit):
    """The runtime: a package of PyPI, whose `.dist-info` is above the toolkit or in it, or a toolkit of NVIDIA's installer."""
    infos = _installed(toolkit.get_child("dist-info"), toolkit.dirname.dirname)
    if infos:
        return installed_component(repository_ctx, infos[0])
    header = repository_ctx.read(toolkit.get_child("include").get_child("cuda_runtime_api.h"))
    number = int(header.partition("#define CUDART_VERSION")[2].split("\n")[0].strip())
    return write_component(
        repository_ctx,
        name = "nvidia-cuda-runtime",
        version = "%d.%d" % (number // 1000, number % 1000 // 10),
        licence = "LicenseRef-NVIDIA-Proprietary",
        purl = "pkg:generic/nvidia-cuda-runtime",
        texts = [toolkit.get_child("EULA.txt")],
    )

def _cuda_repository_impl(repository_ctx):
    cross = state_path(repository_ctx, "aarch64/cuda/nvidia/cu13/lib/libcudart_static.a")
    no_component(repository_ctx)
    no_component(repository_ctx, "cross_component")
    for folder in _candidates(repository_ctx):
        nvcc = repository_ctx.path(folder + "/bin/nvcc")
        for library in ["lib64", "lib", "targets/x86_64-linux/lib"]:
            archive = repository_ctx.path("%s/%s/libcudart_static.a" % (folder, library))
            if nvcc.exists and archive.exists:
                version = repository_ctx.execute([nvcc, "--version"]).stdout
                has_cross = cross.exists and "release 13." in version
                archives = {"//conditions:default": "toolkit/%s/libcudart_static.a" % library}
                if has_cross:
                    repository_ctx.symlink(cross, "aarch64/libcudart_static.a")
                    (info,) = _installed(state_path(repository_ctx, "aarch64/cuda"))
                    installed_component(repository_ctx, info, "cross_component")
                    archives["@gridbuf//build_defs:cross_built"] = "aarch64/libcudart_static.a"
                repository_ctx.symlink(folder, "toolkit")
                _write_component(repository_ctx, repository_ctx.path(folder))
                repository_ctx.file("marker.txt", version)
                repository_ctx.file("BUILD.bazel", _FOUND.format(archive = "select(%s)" % archives))
                repository_ctx.file("cuda.bzl", _PATHS.format(available = True, cross = has_cross, home = folder))
                return
    repository_ctx.file("marker.txt", "none\n")
    repository_ctx.file("BUILD.bazel", _ABSENT)
    repository_ctx.file("cuda.bzl", _PATHS.format(available = False, cross = False, home = ""))

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["CUDA_HOME", "GRIDBUF_AARCH64", "GRIDBUF_ENVIRONMENT", "GRIDBUF_STATE"],
    doc = "Finds the CUDA toolkit; makes empty targets where there is none.",
    local = True,
)
