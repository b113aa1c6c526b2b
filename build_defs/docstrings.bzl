"""Python files with whole docstrings, from sources that have each shared text once (see expand_docstrings.py)."""

def _expanded_docstrings_impl(ctx):
    made = []
    for source in ctx.files.srcs:
        # The place of the source, for which a genrule has no label.
        made.append(ctx.actions.declare_file(source.short_path[len(ctx.label.package) + 1:]))
        ctx.actions.run(
            executable = ctx.executable._expand,
            arguments = [source.path, made[-1].path],
            inputs = [source],
            outputs = [made[-1]],
            mnemonic = "ExpandDocstrings",
        )
    return [DefaultInfo(files = depset(made), runfiles = ctx.runfiles(files = made))]

expanded_docstrings = rule(
    implementation = _expanded_docstrings_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".py", ".pyi"], mandatory = True, doc = "Files of this package."),
        "_expand": attr.label(default = Label("//build_defs:expand_docstrings"), executable = True, cfg = "exec"),
    },
    doc = "The files with whole docstrings. In runfiles and wheels they have the places of their sources.",
)
