"""C++20 named modules for a Bazel without module support: `cc_module`, and the tests, binaries and extensions that import them.

One `cc_module` is one named module: one interface file, any number of implementation files. The rule precompiles the
interface to a `.pcm`, compiles that to an object, compiles the sources, and returns `CcInfo` (so plain cc_* targets link it)
plus `ModuleInfo` (so importers find the `.pcm`). All actions get the same flags of the C++ toolchain.

Four promises, each tested in build_defs/tests:
  * a file may import only modules of its target's direct `deps` (clang-scan-deps reads the imports; check_imports compares them);
  * two modules of one name in one closure fail at analysis;
  * an edited interface recompiles its importers, an edited implementation file recompiles only itself;
  * flags agree: the language standard and sanitizers of interface, object and importer are one list.

The attributes (`interface`, `srcs`, `deps`, `hdrs`) are those of the native module support in newer Bazel
(`module_interfaces`, `srcs`, `deps`, `hdrs`), so that a move there changes only this file.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

ModuleInfo = provider(
    doc = "The named modules that a target brings along.",
    fields = {
        "direct": "Depset of the module names that a direct dependent may import.",
        "interfaces": "Depset of struct(name, pcm, label): the interfaces of this target and of all it depends on.",
        "sources": "Depset of module interface source files, as they are shipped.",
    },
)

_STANDARD = ["-std=c++20"]

# In gridbuf's own workspace. In other workspaces the user's flags decide, for the user's targets and for gridbuf's.
_WARNINGS = ["-Wall", "-Wextra", "-Werror"]

# Optimised builds get glibc's fortified memcpy and related functions, inline functions that wrap the builtins. clang 19 loses
# their definitions if they come through a module ("undefined symbol: memcpy.inline"); drop this with a compiler that keeps them.
# Link-time optimisation is on, because only it inlines a module's functions across its border. lld reads these objects.
#
# Functions begin at cache lines. Otherwise their addresses depend on the functions before: np.from_dlpack of a Buffer became 1.15
# times slower after a change to code that it does not run.
_OPTIMISED = ["-U_FORTIFY_SOURCE", "-flto=thin", "-falign-functions=64"]
_OPTIMISED_LINK = ["-fuse-ld=lld"]

# A .pcm names the files it was made from, and clang 19 reopens them when it reports from them. Bazel's sandbox has another
# path for every action, so the files go into the .pcm and paths are kept relative to the working directory where clang can.
_PRECOMPILE = ["-Xclang", "-fmodules-embed-all-files", "-Xclang", "-fmodule-file-home-is-cwd"]

def _collect(deps):
    """The interfaces of all deps, checked for two modules of one name."""
    interfaces = depset(transitive = [dep[ModuleInfo].interfaces for dep in deps if ModuleInfo in dep])
    direct = [dep[ModuleInfo].direct for dep in deps if ModuleInfo in dep]
    return interfaces, depset(transitive = direct)

def _check_unique(label, module, interfaces):
    owners = {}
    if module:
        owners[module] = label
    for interface in interfaces.to_list():
        other = owners.get(interface.name)
        if other and other != interface.label:
            fail("module %s is defined twice: by %s and by %s; give one of them another name" %
                 (interface.name, other, interface.label))
        owners[interface.name] = interface.label

def _module_flags(interfaces):
    return ["-fmodule-file=%s=%s" % (interface.name, interface.pcm.path) for interface in interfaces.to_list()]

def _toolchain_flags(ctx, cc_toolchain, features, context, extra):
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + extra,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    return cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = variables,
    )

def _path_in_package(ctx, source):
    """The source's path below its package: files in two folders of a target may have one name."""
    prefix = ctx.label.package + "/"
    path = source.short_path
    return path[len(prefix):] if path.startswith(prefix) else source.basename

def _scan_imports(ctx, source, compiler_flags, compiler, inputs, allowed, own_module):
    """An action that fails when `source` imports what its target does not declare; returns its stamp in a list.

    None for a target of another repository: gridbuf's targets are checked in gridbuf's own workspace.
    """
    if ctx.label.workspace_root:
        return []
    stamp = ctx.actions.declare_file("_imports/%s/%s.ok" % (ctx.label.name, _path_in_package(ctx, source)))
    scan = ctx.actions.declare_file("_imports/%s/%s.json" % (ctx.label.name, _path_in_package(ctx, source)))
    ctx.actions.run(
        executable = ctx.executable._check_imports,
        arguments = [
            "--source=" + source.path,
            "--label=" + str(ctx.label),
            "--own=" + own_module,
            "--scan=" + scan.path,
            "--stamp=" + stamp.path,
        ] + ["--allow=" + name for name in allowed] +
        ["--", compiler] + compiler_flags + ["-x", "c++-module" if source.extension == "cppm" else "c++", "-c", source.path, "-o", source.path + ".o"],
        inputs = depset([source], transitive = [inputs]),
        outputs = [stamp, scan],
        mnemonic = "CppModuleScan",
        progress_message = "Reading the imports of %s" % source.short_path,
    )
    return [stamp]

def _cc_module_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features + ["module_maps", "header_modules", "layering_check", "parse_headers"],
    )
    module = ctx.attr.module
    interfaces, importable = _collect(ctx.attr.deps)
    _check_unique(ctx.label, module, interfaces)

    dep_infos = [dep[CcInfo] for dep in ctx.attr.deps]
    deps_info = cc_common.merge_cc_infos(cc_infos = dep_infos)
    headers = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs))
    context = cc_common.merge_cc_infos(
        cc_infos = dep_infos + [CcInfo(compilation_context = headers)],
    ).compilation_context

    optimised = ctx.var["COMPILATION_MODE"] == "opt"
    warnings = _WARNINGS if ctx.workspace_name == "gridbuf" else []
    copts = _STANDARD + warnings + (_OPTIMISED if optimised else []) + ctx.attr.copts
    flags = _toolchain_flags(ctx, cc_toolchain, features, context, copts)
    compiler = cc_common.get_tool_for_action(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME)
    pcms = depset([interface.pcm for interface in interfaces.to_list()])
    inputs = depset(transitive = [context.headers, pcms, cc_toolchain.all_files])
    allowed = importable.to_list()

    objects = []
    exported = interfaces
    if module:
        source = ctx.file.interface
        stamp = _scan_imports(ctx, source, flags, compiler, inputs, allowed, module)
        pcm = ctx.actions.declare_file("%s/%s.pcm" % (ctx.label.name, module))
        ctx.actions.run(
            executable = compiler,
            arguments = flags + _PRECOMPILE + _module_flags(interfaces) +
                        ["-x", "c++-module", "--precompile", source.path, "-o", pcm.path],
            inputs = depset([source] + stamp, transitive = [inputs]),
            outputs = [pcm],
            mnemonic = "CppModulePrecompile",
            progress_message = "Precompiling module %s" % module,
        )
        own = struct(name = module, pcm = pcm, label = ctx.label)
        exported = depset([own], transitive = [interfaces])
        module_object = ctx.actions.declare_file("%s/%s.pic.o" % (ctx.label.name, module))
        ctx.actions.run(
            executable = compiler,
            # The .pcm already contains what only the preprocessor reads.
            arguments = flags + ["-Wno-unused-command-line-argument"] + _module_flags(interfaces) + ["-c", pcm.path, "-o", module_object.path],
            inputs = depset([pcm], transitive = [inputs]),
            outputs = [module_object],
            mnemonic = "CppModuleCompile",
            progress_message = "Compiling module %s" % module,
        )
        objects.append(module_object)

    # Not cc_common.compile: afterwards Bazel keeps as inputs only what the compiler lists in its .d file, clang 19 lists no
    # .pcm there, and an edited interface would not rebuild the objects of its importers.
    visible = allowed + ([module] if module else [])
    private_headers = ctx.files.hdrs + [source for source in ctx.files.srcs if source.extension == "h"]
    for source in ctx.files.srcs:
        if source.extension not in ["cc", "cpp"]:
            continue
        stamp = _scan_imports(ctx, source, flags, compiler, depset(private_headers, transitive = [inputs]), visible, module)
        path = _path_in_package(ctx, source)
        object = ctx.actions.declare_file("_objs/%s/%s.pic.o" % (ctx.label.name, path[:-len(source.extension) - 1]))
        ctx.actions.run(
            executable = compiler,
            arguments = flags + _module_flags(exported) + ["-c", source.path, "-o", object.path],
            inputs = depset(
                [source] + stamp + private_headers + [interface.pcm for interface in exported.to_list()],
                transitive = [inputs],
            ),
            outputs = [object],
            mnemonic = "CppCompile",
            progress_message = "Compiling %s" % source.short_path,
        )
        objects.append(object)

    outputs = cc_common.create_compilation_outputs(
        pic_objects = depset(objects),
        objects = depset(objects),
    )
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = outputs,
        linking_contexts = [info.linking_context for info in dep_infos],
        user_link_flags = ctx.attr.linkopts + (_OPTIMISED_LINK if optimised else []),
        # A target without an interface is a test, a program or an extension: other targets do not refer to its objects.
        alwayslink = not module,
        disallow_dynamic_library = True,
    )
    runfiles = ctx.runfiles(files = ctx.files.data)
    for dep in ctx.attr.deps + ctx.attr.data:
        runfiles = runfiles.merge(dep[DefaultInfo].default_runfiles)
    return [
        DefaultInfo(files = depset([interface.pcm for interface in exported.to_list()] if module else []), runfiles = runfiles),
        CcInfo(
            # Only headers: the .pcm files are in ModuleInfo, so that only importers depend on them.
            compilation_context = context,
            linking_context = linking_context,
        ),
        ModuleInfo(
            direct = depset([module] if module else []),
            interfaces = exported,
            sources = depset([ctx.file.interface] if module else [], transitive = [
                dep[ModuleInfo].sources
                for dep in ctx.attr.deps
                if ModuleInfo in dep
            ]),
        ),
        OutputGroupInfo(
            compilation_outputs = depset(outputs.pic_objects),
            all_objects = depset(outputs.pic_objects, transitive = [
                dep[OutputGroupInfo].all_objects
                for dep in ctx.attr.deps
                if ModuleInfo in dep
            ]),
        ),
    ]

_cc_module = rule(
    implementation = _cc_module_impl,
    attrs = {
        "copts": attr.string_list(doc = "Further compile flags of this target alone."),
        "data": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo], doc = "cc_module and cc_library targets."),
        "hdrs": attr.label_list(allow_files = [".h", ".inc"]),
        "interface": attr.label(allow_single_file = [".cppm"]),
        "linkopts": attr.string_list(),
        "module": attr.string(doc = "The module's name; empty for sources that only import."),
        "srcs": attr.label_list(allow_files = [".cc", ".cpp", ".h"]),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
        "_check_imports": attr.label(
            default = Label("//build_defs:check_imports"),
            executable = True,
            cfg = "exec",
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)

def cc_module(name, module, interface, srcs = [], hdrs = [], deps = [], **kwargs):
    """One named C++20 module.

    Args:
      name: the target.
      module: the module's name, e.g. "gridbuf.layout". One name, one target.
      interface: the module interface unit, a `.cppm` file.
      srcs: implementation units (`module gridbuf.layout;`).
      hdrs: headers that the global module fragment includes (borders to C or CUDA).
      deps: cc_module and cc_library targets. Only modules named here may be imported.
      **kwargs: copts, linkopts, data, visibility, tags, testonly.
    """
    _cc_module(name = name, module = module, interface = interface, srcs = srcs, hdrs = hdrs, deps = deps, **kwargs)

def cc_module_sources(name, srcs, deps = [], **kwargs):
    """Sources that import modules and do not export a module: the body of a test, a program or an extension."""
    _cc_module(name = name, srcs = srcs, deps = deps, **kwargs)

def cc_module_test(name, srcs, deps = [], data = [], copts = [], linkopts = [], testonly = True, **kwargs):
    """A cc_test whose sources import modules."""
    cc_module_sources(name = name + "_objects", srcs = srcs, deps = deps, copts = copts, testonly = testonly, tags = ["manual"])
    native.cc_test(name = name, deps = [":" + name + "_objects"], data = data, linkopts = linkopts, linkstatic = True, **kwargs)

def cc_module_binary(name, srcs, deps = [], data = [], copts = [], linkopts = [], testonly = False, **kwargs):
    """A cc_binary whose sources import modules."""
    cc_module_sources(name = name + "_objects", srcs = srcs, deps = deps, copts = copts, testonly = testonly, tags = ["manual"])
    native.cc_binary(name = name, deps = [":" + name + "_objects"], data = data, linkopts = linkopts, linkstatic = True, testonly = testonly, **kwargs)

def py_module_extension(name, srcs, deps = [], copts = [], linkopts = [], exports = None, **kwargs):
    """A Python extension `NAME.so` with sources that import modules. It needs only glibc at run time.

    Args:
      name: the extension's import name, below the folder of its package if it has one
        (`gridbuf/_core`); the file is `name.so`.
      srcs: sources; one of them defines `PyInit_<name>`.
      deps: modules and libraries. `@gridbuf_python//:pybind11` or `:headers` is among them.
      copts: further compile flags.
      linkopts: further link flags.
      exports: a linker version script; default: only `PyInit_<name>` is visible.
      **kwargs: visibility, tags.
    """
    cc_module_sources(name = name + "_objects", srcs = srcs, deps = deps, copts = copts + ["-fvisibility=hidden"], tags = ["manual"])
    if not exports:
        exports = name + "_exports.lds"
        native.genrule(
            name = name + "_exports",
            outs = [exports],
            cmd = "echo '{ global: PyInit_%s; local: *; };' > $@" % name.split("/")[-1],
        )
    module_shared_library(name = name + ".so", deps = [":" + name + "_objects"], exports = exports, linkopts = linkopts, **kwargs)

def module_shared_library(name, deps, exports, linkopts = [], **kwargs):
    """A shared library of modules that needs only glibc at run time, on systems as old as a wheel's.

    Args:
      name: the file.
      deps: targets of cc_module_sources, whose objects are all linked.
      exports: a linker version script.
      linkopts: further link flags.
      **kwargs: visibility, tags.
    """
    native.cc_binary(
        name = name,
        deps = deps + [exports] + select({
            str(Label("//build_defs:sanitized")): [],
            # An old glibc, so that the library runs on old systems.
            "//conditions:default": [Label("//build_defs:glibc_symbols"), "@gridbuf_glibc//:glibc"],
        }),
        linkshared = True,
        linkstatic = True,
        # Links the C++ runtime statically; sanitizer builds share that of the process.
        # lld, because gold keeps thread-local symbols visible against the version script.
        linkopts = linkopts + ["-fuse-ld=lld", "-Wl,--version-script=$(location %s)" % exports] + select({
            str(Label("//build_defs:sanitized")): [],
            "//conditions:default": ["-Wl,--as-needed", "-l:libstdc++.a", "-static-libgcc"],
        }) + select({
            # Names of internal functions are a tenth of the wheel.
            str(Label("//build_defs:optimised")): ["-Wl,-s"],
            "//conditions:default": [],
        }),
        **kwargs
    )
