"""`@gridtools`: the headers of GridTools' C++ library, if they are installed. gridbuf's layouts are compared with them.

They are searched in this order: GRIDTOOLS_INCLUDE, Debian's libgridtools-dev, the wheel gridtools-cpp that GT4Py installs
(`./bazelw --peers`). `:headers` defines GRIDBUF_HAS_GRIDTOOLS if they are found. Otherwise it is empty, and the comparison
says that it did not run.
"""

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/gridtools/**"]),
    defines = {defines},
    # As system headers, to hide their warnings.
    includes = {includes},
)
"""

def _candidates(repository_ctx):
    environ = repository_ctx.os.environ
    folders = [environ.get("GRIDTOOLS_INCLUDE", ""), "/usr/include"]
    environment = environ.get("GRIDBUF_ENVIRONMENT")
    if environment:
        for site in ["3.11", "3.12", "3.13", "3.14"]:
            folders.append("%s/lib/python%s/site-packages/gridtools_cpp/data/include" % (environment, site))
    return [folder for folder in folders if folder]

def _gridtools_repository_impl(repository_ctx):
    for folder in _candidates(repository_ctx):
        headers = repository_ctx.path(folder + "/gridtools")
        if repository_ctx.path(folder + "/gridtools/storage/data_store.hpp").exists:
            repository_ctx.symlink(headers, "include/gridtools")
            repository_ctx.file("BUILD.bazel", _BUILD.format(defines = '["GRIDBUF_HAS_GRIDTOOLS"]', includes = '["include"]'))
            return
    repository_ctx.file("BUILD.bazel", _BUILD.format(defines = "[]", includes = "[]"))

gridtools_repository = repository_rule(
    implementation = _gridtools_repository_impl,
    environ = ["GRIDBUF_ENVIRONMENT", "GRIDBUF_PEERS", "GRIDTOOLS_INCLUDE"],
    doc = "Finds GridTools' headers; makes an empty target where there are none.",
    local = True,
)
