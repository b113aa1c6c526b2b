"""`cuda_library`: CUDA sources behind a plain C border, or their stub where the toolkit is absent.

nvcc does not support C++20 modules. So `.cu` files and the headers that they share with a module have `extern "C"` functions
only, and the module's implementation file calls them. Without a toolkit the target is built from `stub_srcs`, whose functions
return "not available". With `--config=cuda` that is an error instead.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@gridbuf_cuda//:cuda.bzl", "CUDA_AVAILABLE", "CUDA_CROSS", "CUDA_HOME")

# Machine code for the GPUs of today's centres, and PTX of the newest for later ones.
_ARCHITECTURES = ["80", "90", "100"]

def _nvcc_flags(cc_toolchain):
    # Compressed, and without line numbers: kernels for several GPUs are most of the extension otherwise.
    flags = ["-std=c++17", "-O3", "--compiler-options", "-fPIC", "-Xfatbin", "-compress-all"]

    # Temporary files have names with the process's number, which would be in the object.
    flags += ["--objdir-as-tempdir"]
    for architecture in _ARCHITECTURES:
        flags += ["-gencode", "arch=compute_%s,code=sm_%s" % (architecture, architecture)]

    # The toolchain of --config=aarch64: nvcc calls its compiler instead of g++.
    if cc_toolchain.target_gnu_system_name == "aarch64-linux-gnu":
        flags += ["-ccbin", cc_toolchain.compiler_executable]
        flags += ["-Xcompiler", "--target=aarch64-linux-gnu,--sysroot=%s" % cc_toolchain.sysroot]
    newest = _ARCHITECTURES[-1]
    return flags + ["-gencode", "arch=compute_%s,code=compute_%s" % (newest, newest)]

def _cuda_objects_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    dep_infos = [dep[CcInfo] for dep in ctx.attr.deps]

    # As in cc_library: headers are included by their paths in their workspace, which may be external to another workspace.
    root = ctx.label.workspace_root
    include_roots = [root or ".", ctx.genfiles_dir.path + ("/" + root if root else "")]
    headers = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        quote_includes = depset(include_roots),
    )
    context = cc_common.merge_cc_infos(
        cc_infos = dep_infos + [CcInfo(compilation_context = headers)],
    ).compilation_context
    objects = []
    for source in ctx.files.srcs:
        object = ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, source.basename))
        ctx.actions.run(
            executable = CUDA_HOME + "/bin/nvcc",
            arguments = _nvcc_flags(cc_toolchain) + ["-I" + path for path in include_roots] + ["-c", source.path, "-o", object.path],
            inputs = depset([source] + ctx.files._nvcc_files, transitive = [context.headers]),
            outputs = [object],
            # nvcc runs g++, which it looks for on the PATH, and keeps its intermediate files in TMPDIR.
            env = {"PATH": CUDA_HOME + "/bin:/usr/local/bin:/usr/bin:/bin", "TMPDIR": "/tmp"},
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s with nvcc" % source.short_path,
        )
        objects.append(object)
    outputs = cc_common.create_compilation_outputs(objects = depset(objects), pic_objects = depset(objects))
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = outputs,
        linking_contexts = [info.linking_context for info in dep_infos],
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(compilation_context = context, linking_context = linking_context),
    ]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "srcs": attr.label_list(allow_files = [".cu"]),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
        "_nvcc_files": attr.label(default = Label("@gridbuf_cuda//:nvcc_files")),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)

def _cuda_missing_impl(ctx):
    fail(("%s needs the CUDA toolkit (--config=cuda was given), and none was found: set CUDA_HOME, or install it to " +
          "/usr/local/cuda, or the PyPI toolkit wheels into the environment") % ctx.label)

cuda_missing = rule(implementation = _cuda_missing_impl, doc = "Fails at analysis: the toolkit was insisted on.")

def cuda_library(name, srcs, stub_srcs, hdrs = [], deps = [], **kwargs):
    """CUDA code with a C border.

    Args:
      name: the target; a cc_library by its providers.
      srcs: `.cu` files, compiled for sm_80, sm_90, sm_100 and PTX.
      stub_srcs: `.cc` files with the same `extern "C"` functions, used without a toolkit.
      hdrs: the border: headers of `extern "C"` declarations.
      deps: further cc_library targets.
      **kwargs: visibility, tags.
    """

    # Tests build the stub on every machine, so that it stays correct on machines with a toolkit.
    native.cc_library(
        name = name + "_stub",
        srcs = stub_srcs,
        hdrs = hdrs,
        deps = deps,
        **kwargs
    )
    if CUDA_AVAILABLE:
        _cuda_objects(name = name + "_cuda", srcs = srcs, hdrs = hdrs, deps = deps + [Label("@gridbuf_cuda//:cudart_static")], **kwargs)
        native.alias(
            name = name,
            actual = select({
                str(Label("//build_defs:cross_built")): ":" + name + ("_cuda" if CUDA_CROSS else "_stub"),
                "//conditions:default": ":" + name + "_cuda",
            }),
            **kwargs
        )
        return
    cuda_missing(name = name + "_required", tags = ["manual"])
    native.alias(
        name = name,
        actual = select({
            str(Label("//build_defs:cuda_required")): ":" + name + "_required",
            "//conditions:default": ":" + name + "_stub",
        }),
        **kwargs
    )
