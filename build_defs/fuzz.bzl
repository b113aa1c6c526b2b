"""`cc_fuzz_test`: a libFuzzer target with a saved corpus, run by plain `bazelw test` for a few seconds.

A transition builds the program and all its libraries in a separate configuration, whatever the flags of the command. It has
the coverage instrumentation of libFuzzer and the address and undefined-behaviour sanitizers. So the code under test is
instrumented (the corpus grows with the code that it reaches), and no other build changes.

The test first runs every file of the corpus once, so that a fixed bug stays fixed. Then it looks for new inputs. It drops
them (`tools/attack --fuzz` keeps them), except a failing input: it prints that as base64. Add it to the corpus with its fix.
"""

load(":cc_module.bzl", "cc_module_binary")

_SANITIZE = "address,undefined"

def _instrumented_impl(_settings, _attr):
    return {
        "//build_defs:sanitizer": "asan",
        "//command_line_option:copt": [
            "-fsanitize=fuzzer-no-link," + _SANITIZE,
            "-fno-sanitize-recover=undefined",
            "-fno-omit-frame-pointer",
            "-O1",
            "-g1",
            # As in .bazelrc: without Abseil's warnings.
            "-Wno-deprecated-builtins",
        ],
        "//command_line_option:linkopt": [
            "-fsanitize=fuzzer," + _SANITIZE,
            "-fsanitize-link-c++-runtime",
            "-lubsan",
            "-fuse-ld=lld",
        ],
        "//command_line_option:platform_suffix": "fuzz",
        "//command_line_option:strip": "never",
    }

_instrumented = transition(
    implementation = _instrumented_impl,
    inputs = [],
    outputs = [
        "//build_defs:sanitizer",
        "//command_line_option:copt",
        "//command_line_option:linkopt",
        "//command_line_option:platform_suffix",
        "//command_line_option:strip",
    ],
)

_SCRIPT = """#!/bin/bash
# Replays the corpus, then fuzzes for {seconds} seconds, or as `tools/attack --fuzz` says.
set -euo pipefail
export ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=1"
# A shared runtime that a sanitized test would be given must not come before the program's own.
unset LD_PRELOAD
work="$TEST_TMPDIR"
found="${{GRIDBUF_FUZZ_CORPORA:-$work}}/{name}"
mkdir -p "$found"
options=(-artifact_prefix="$work/" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 {dictionary})
show() {{
  for artifact in "$work"/crash-* "$work"/timeout-* "$work"/oom-* "$work"/leak-*; do
    [ -f "$artifact" ] || continue
    echo "The failing input, base64:"; base64 "$artifact"
  done
}}
trap show EXIT
"{program}" "${{options[@]}}" {corpus}
"{program}" "${{options[@]}}" -max_total_time="${{GRIDBUF_FUZZ_SECONDS:-{seconds}}}" -max_len={max_bytes} "$found" $(dirname {first} )
"""

def _fuzz_test_impl(ctx):
    program = ctx.executable.program
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    dictionary = ctx.file.dictionary
    if not ctx.files.corpus:
        fail("a fuzz test needs a corpus: save at least one input that is right and one that is wrong")
    ctx.actions.write(
        script,
        _SCRIPT.format(
            name = ctx.label.name,
            program = program.short_path,
            corpus = " ".join(["'%s'" % seed.short_path for seed in ctx.files.corpus]),
            first = "'%s'" % ctx.files.corpus[0].short_path,
            dictionary = "-dict='%s'" % dictionary.short_path if dictionary else "",
            seconds = ctx.attr.seconds,
            max_bytes = ctx.attr.max_bytes,
        ),
        is_executable = True,
    )
    files = ctx.files.corpus + [program] + ([dictionary] if dictionary else [])
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files = files))]

_fuzz_test = rule(
    implementation = _fuzz_test_impl,
    attrs = {
        "corpus": attr.label_list(allow_files = True, mandatory = True),
        "dictionary": attr.label(allow_single_file = [".dict"]),
        "max_bytes": attr.int(default = 4096),
        "program": attr.label(executable = True, cfg = _instrumented, mandatory = True),
        "seconds": attr.int(default = 5),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    test = True,
)

def cc_fuzz_test(name, srcs, corpus, deps = [], dictionary = None, seconds = 5, max_bytes = 4096, tags = [], **kwargs):
    """A fuzz target as a test, with the tag `thorough`: it builds its libraries again, instrumented.

    Args:
      name: the test; `name_program` is the program, to be run by hand for longer.
      srcs: sources; one of them defines `LLVMFuzzerTestOneInput` with C linkage.
      corpus: the saved inputs, all of one folder.
      deps: cc_module and cc_library targets.
      dictionary: words that inputs are made of, in libFuzzer's format.
      seconds: how long the test looks for new inputs, after it has run the saved ones.
      max_bytes: the longest input that is tried.
      tags: further tags.
      **kwargs: size, timeout, visibility.
    """
    cc_module_binary(name = name + "_program", srcs = srcs, deps = deps, testonly = True, tags = ["manual"])
    _fuzz_test(
        name = name,
        program = ":" + name + "_program",
        corpus = corpus,
        dictionary = dictionary,
        seconds = seconds,
        max_bytes = max_bytes,
        tags = tags + ["thorough"],
        **kwargs
    )
