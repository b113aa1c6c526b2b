"""Wheels, each as a folder with one `.whl`, because the name of the file is known only after the build.

`python_wheel` packages a package with an extension; tools/pep517 calls it for `pip wheel`. `hatchling_wheel` runs the
standard backend that `pip install` of the folder runs.
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
            "--python-tag=" + PYTHON_TAG,
            "--extension-suffix=" + ctx.attr.extension_suffix,
        ] + ["--component=" + file.path for file in ctx.files.components],
        inputs = ctx.files.files + ctx.files.licenses + ctx.files.components + [ctx.file.pyproject, ctx.file.readme, listing],
        outputs = [folder],
        mnemonic = "PythonWheel",
        progress_message = "Making the wheel %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([folder]), runfiles = ctx.runfiles(files = [folder]))]

_python_wheel = rule(
    implementation = _python_wheel_impl,
    attrs = {
        "components": attr.label_list(allow_files = True, doc = "What write_component made, of all that the extension has in it."),
        "extension_suffix": attr.string(mandatory = True, doc = "e.g. .cpython-311-x86_64-linux-gnu.so"),
        "files": attr.label_list(allow_files = True, mandatory = True),
        "licenses": attr.label_list(allow_files = True, doc = "The `license-files` of the pyproject.toml."),
        "pyproject": attr.label(allow_single_file = [".toml"], mandatory = True),
        "readme": attr.label(allow_single_file = [".md"], mandatory = True),
        "strip": attr.string(doc = "The folder above the package, as a path in the workspace."),
        "_make_wheel": attr.label(default = Label("//build_defs:make_wheel"), executable = True, cfg = "exec"),
    },
    doc = "A wheel from a pyproject.toml and the files of a package with an extension, tagged for this Python and by auditwheel.",
)

def python_wheel(**kwargs):
    """A wheel of a package with an extension, for the processor that is built for.

    Args:
      **kwargs: name, components, files, licenses, pyproject, readme, strip, visibility.
    """
    _python_wheel(
        extension_suffix = select({
            str(Label("//build_defs:cross_built")): EXTENSION_SUFFIX.replace("x86_64", "aarch64"),
            "//conditions:default": EXTENSION_SUFFIX,
        }),
        **kwargs
    )

def _hatchling_wheel_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run(
        executable = ctx.executable._run_hatchling,
        arguments = [folder.path, ctx.label.package] + [file.path for file in ctx.files.srcs],
        inputs = ctx.files.srcs,
        outputs = [folder],
        mnemonic = "HatchlingWheel",
        progress_message = "Making the wheel %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([folder]), runfiles = ctx.runfiles(files = [folder]))]

hatchling_wheel = rule(
    implementation = _hatchling_wheel_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = True, mandatory = True, doc = "pyproject.toml and all that it names."),
        "_run_hatchling": attr.label(default = Label("//build_defs:run_hatchling"), executable = True, cfg = "exec"),
    },
    doc = "The wheel of a pure Python project, the package of this target, as hatchling builds it from its pyproject.toml.",
)
