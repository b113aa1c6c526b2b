"""`build_number`: a source that says of which build a binary is, so that two binaries in a process know whether they may share objects."""

def _build_number_impl(ctx):
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    archives = [
        library.pic_static_library or library.static_library
        for dep in ctx.attr.deps
        for group in dep[CcInfo].linking_context.linker_inputs.to_list()
        for library in group.libraries
        if library.pic_static_library or library.static_library
    ]
    arguments = ctx.actions.args()
    arguments.add_all(depset(archives))
    ctx.actions.run_shell(
        inputs = archives,
        outputs = [source],
        arguments = [source.path, arguments],
        command = """out=$1; shift
printf '#include <cstdint>\\nextern "C" { extern const std::uint64_t gridbuf_build_number; const std::uint64_t gridbuf_build_number = 0x%s; }\\n' \\
  "$(cat "$@" | sha256sum | cut -c1-16)" > "$out" """,
        mnemonic = "BuildNumber",
        progress_message = "Numbering the build of %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([source]))]

build_number = rule(
    implementation = _build_number_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo], doc = "Libraries whose code and objects the binaries share.")},
    doc = "Makes NAME.cc, which defines `gridbuf_build_number`: a number of the archives of `deps` and all they need.",
)
