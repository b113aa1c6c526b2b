"""`@gridbuf_cuda`: the CUDA toolkit, if the machine has it.

Searched in this order: CUDA_HOME, /usr/local/cuda, the PyPI toolkit wheels in the Python environment. `cuda.bzl` then
has CUDA_AVAILABLE and the path of nvcc. A module links with `:runtime_headers` and `:cudart_static`. Without a
toolkit the targets are empty and CUDA_AVAILABLE is False; `--config=cuda` turns that into an error.
"""

_FOUND = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "runtime_headers",
    hdrs = glob(["toolkit/include/**"]),
    includes = ["toolkit/include"],
)

cc_import(
    name = "cudart_static_archive",
    static_library = "{archive}",
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

def _cuda_repository_impl(repository_ctx):
    for folder in _candidates(repository_ctx):
        nvcc = repository_ctx.path(folder + "/bin/nvcc")
        for library in ["lib64", "lib", "targets/x86_64-linux/lib"]:
            archive = repository_ctx.path("%s/%s/libcudart_static.a" % (folder, library))
            if nvcc.exists and archive.exists:
                repository_ctx.symlink(folder, "toolkit")
                repository_ctx.file("marker.txt", repository_ctx.execute([nvcc, "--version"]).stdout)
                repository_ctx.file("BUILD.bazel", _FOUND.format(archive = "toolkit/%s/libcudart_static.a" % library))
                repository_ctx.file("cuda.bzl", '"""Where the CUDA toolkit is."""\n\nCUDA_AVAILABLE = True\nCUDA_HOME = "%s"\n' % folder)
                return
    repository_ctx.file("marker.txt", "none\n")
    repository_ctx.file("BUILD.bazel", _ABSENT)
    repository_ctx.file("cuda.bzl", '"""Where the CUDA toolkit is."""\n\nCUDA_AVAILABLE = False\nCUDA_HOME = ""\n')

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["CUDA_HOME", "GRIDBUF_ENVIRONMENT"],
    doc = "Finds the CUDA toolkit; makes empty targets where there is none.",
    local = True,
)
