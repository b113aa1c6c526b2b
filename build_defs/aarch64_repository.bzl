"""`@gridbuf_aarch64`: the C++ toolchain of `--config=aarch64`, on a machine with another processor.

It is clang and lld of this machine, with the headers and libraries that `bazelw --aarch64` unpacked as their sysroot. Bazel makes
the repository only when `--config=aarch64` names it. `:cc_toolchain` is for `--extra_toolchains`.
"""

load("//build_defs:component.bzl", "runtime_components")
load("//build_defs:state.bzl", "state_path")

_BUILD = """
load("@bazel_tools//tools/cpp:unix_cc_toolchain_config.bzl", "cc_toolchain_config")
load("@rules_cc//cc:defs.bzl", "cc_toolchain")

toolchain(
    name = "cc_toolchain",
    target_compatible_with = [
        "@platforms//cpu:aarch64",
        "@platforms//os:linux",
    ],
    toolchain = ":clang",
    toolchain_type = "@bazel_tools//tools/cpp:toolchain_type",
)

filegroup(name = "empty")

cc_toolchain(
    name = "clang",
    all_files = ":empty",
    ar_files = ":empty",
    as_files = ":empty",
    compiler_files = ":empty",
    dwp_files = ":empty",
    linker_files = ":empty",
    objcopy_files = ":empty",
    strip_files = ":empty",
    supports_param_files = 1,
    toolchain_config = ":config",
)

# As Bazel sets up this machine's clang, for another target and with lld.
cc_toolchain_config(
    name = "config",
    abi_libc_version = "local",
    abi_version = "local",
    builtin_sysroot = "{sysroot}",
    compile_flags = [
        "--target=aarch64-linux-gnu",
        "-U_FORTIFY_SOURCE",
        "-fstack-protector",
        "-Wall",
        "-Wthread-safety",
        "-Wself-assign",
        "-Wunused-but-set-parameter",
        "-Wno-free-nonheap-object",
        "-fcolor-diagnostics",
        "-fno-omit-frame-pointer",
    ],
    compiler = "clang",
    cpu = "aarch64",
    cxx_builtin_include_directories = ["{sysroot}"] + {resources},
    dbg_compile_flags = ["-g"],
    host_system_name = "local",
    link_flags = [
        "--target=aarch64-linux-gnu",
        "-fuse-ld=lld",
        "-Wl,-no-as-needed",
        "-Wl,-z,relro,-z,now",
    ],
    link_libs = ["-lstdc++", "-lm"],
    opt_compile_flags = [
        "-g0",
        "-O2",
        "-D_FORTIFY_SOURCE=1",
        "-DNDEBUG",
        "-ffunction-sections",
        "-fdata-sections",
    ],
    opt_link_flags = ["-Wl,--gc-sections"],
    # So that lld reads objects, and no archiver has to know aarch64.
    supports_start_end_lib = True,
    target_libc = "local",
    target_system_name = "aarch64-linux-gnu",
    tool_paths = {{
        "ar": "/usr/bin/ar",
        "cpp": "{clang}",
        "dwp": "/usr/bin/dwp",
        "gcc": "{clang}",
        "gcov": "/usr/bin/gcov",
        "ld": "/usr/bin/ld",
        "llvm-cov": "/usr/bin/llvm-cov",
        "nm": "/usr/bin/nm",
        "objcopy": "/usr/bin/objcopy",
        "objdump": "/usr/bin/objdump",
        "strip": "/usr/bin/strip",
    }},
    toolchain_identifier = "gridbuf-aarch64",
    unfiltered_compile_flags = [
        "-no-canonical-prefixes",
        "-Wno-builtin-macro-redefined",
        "-D__DATE__=\\"redacted\\"",
        "-D__TIMESTAMP__=\\"redacted\\"",
        "-D__TIME__=\\"redacted\\"",
    ],
)
"""

def _aarch64_repository_impl(repository_ctx):
    root = state_path(repository_ctx, "aarch64/root")
    if not root.exists:
        fail("%s is not there; run `bazelw --aarch64` once" % root)
    clang = repository_ctx.which(repository_ctx.os.environ.get("CC", "clang-19"))

    # The compiler reports its headers by either path, depending on flags.
    resources = [
        repository_ctx.execute([clang, "-print-resource-dir"] + flags).stdout.strip()
        for flags in [[], ["-no-canonical-prefixes"]]
    ]
    repository_ctx.file("BUILD.bazel", _BUILD.format(
        clang = clang,
        resources = resources,
        sysroot = root,
    ))
    runtime_components(repository_ctx, str(root), "arm64" if state_path(repository_ctx, "aarch64/glibc/libc.so").exists else "")

aarch64_repository = repository_rule(
    implementation = _aarch64_repository_impl,
    environ = ["CC", "GRIDBUF_AARCH64", "GRIDBUF_STATE"],
    doc = "A toolchain of this machine's clang for aarch64.",
    local = True,
)
