"""`python_wheel`: a wheel from a pyproject.toml and the files of one package, as a folder that holds the one `.whl`.

The wheel's name is known only when it is built (auditwheel decides the manylinux tag), hence a folder. tools/pep517 calls
this for `pip wheel`.
"""

load("@gridbuf_python//:python.bzl", "EXTENSION_SUFFIX", "PYTHON_TAG")

def _python_wheel_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    listing = ctx.actions.declare_file(ctx.label.name + ".files")
    ctx.actions.write(listing, "".join(["%s\t%s\n" % (file.path, file.short_path) for file in ctx.files.files]))
    ctx.actions.run(
        executable = ctx.executable._make_wheel,
        arguments = [
            "--pyproject=" + ctx.file.pyproject.path,
            "--files=" + listing.path,
            "--strip=" + ctx.attr.strip,
            "--out=" + folder.path,
        ] + (["--python-tag=" + PYTHON_TAG, "--extension-suffix=" + EXTENSION_SUFFIX] if ctx.attr.binary else []) +
        ["--extra=" + file.path for file in ctx.files.licenses],
        inputs = ctx.files.files + ctx.files.licenses + [ctx.file.pyproject, ctx.file.readme, listing],
        outputs = [folder],
        mnemonic = "PythonWheel",
        progress_message = "Making the wheel %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([folder]), runfiles = ctx.runfiles(files = [folder]))]

python_wheel = rule(
    implementation = _python_wheel_impl,
    attrs = {
        "binary": attr.bool(doc = "Whether the package has an extension; the wheel is then tagged for this Python and by auditwheel."),
        "files": attr.label_list(allow_files = True, mandatory = True),
        "licenses": attr.label_list(allow_files = True),
        "pyproject": attr.label(allow_single_file = [".toml"], mandatory = True),
        "readme": attr.label(allow_single_file = [".md"], mandatory = True),
        "strip": attr.string(doc = "The folder above the package, as a path in the workspace."),
        "_make_wheel": attr.label(default = Label("//build_defs:make_wheel"), executable = True, cfg = "exec"),
    },
    doc = "A wheel from a pyproject.toml and a package's files.",
)
