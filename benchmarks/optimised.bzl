"""`optimised`: targets built with `-c opt -O3` whatever the command line says.

A benchmark of an unoptimised build measures the compiler. So that `./bazelw run //benchmarks` is right without further
options, what it measures goes through this rule. `--config=opt` asks for the same, and then nothing is built twice.
"""

_MODE = "//command_line_option:compilation_mode"
_COPT = "//command_line_option:copt"

def _transition_impl(settings, _attr):
    copts = settings[_COPT]
    return {
        _COPT: copts if "-O3" in copts else copts + ["-O3"],
        _MODE: "opt",
    }

_optimise = transition(
    implementation = _transition_impl,
    inputs = [_COPT],
    outputs = [_COPT, _MODE],
)

def _optimised_impl(ctx):
    runfiles = ctx.runfiles()
    for dep in ctx.attr.deps:
        runfiles = runfiles.merge(dep[DefaultInfo].default_runfiles)
    python = [dep[PyInfo] for dep in ctx.attr.deps if PyInfo in dep]
    return [
        DefaultInfo(
            # Of a program its executable alone; Bazel would otherwise name its sources too.
            files = depset(transitive = [
                depset([dep.files_to_run.executable]) if dep.files_to_run.executable else dep.files
                for dep in ctx.attr.deps
            ]),
            runfiles = runfiles,
        ),
        PyInfo(
            transitive_sources = depset(transitive = [info.transitive_sources for info in python]),
            imports = depset(transitive = [info.imports for info in python]),
        ),
    ]

optimised = rule(
    implementation = _optimised_impl,
    attrs = {
        "deps": attr.label_list(cfg = _optimise, doc = "Programs, or Python libraries with their extensions."),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    doc = "The same targets, built with optimisation; usable as `deps` of Python targets and as `data`.",
)
