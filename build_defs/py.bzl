"""Python targets in the project's environment: libraries, programs, and tests that run pytest."""

# Otherwise Bazel puts an `__init__.py` into the folder of the workspace. That folder has the name of the package, and `import
# gridbuf` would find it instead.
_NO_IMPLIED_PACKAGES = 0

# With --config=asan the interpreter is not instrumented, so the sanitizer's runtime must be loaded first, together with the
# C++ runtime, whose exceptions the sanitizer looks up when it starts. CPython keeps memory at exit, so leak detection is off;
# the tests count leaks.
_ASAN_RUNTIME = "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.asan-x86_64.so"
_ASAN_ENV = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
    "LD_PRELOAD": _ASAN_RUNTIME + ":/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "PYTHONMALLOC": "malloc",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}

# With --config=tsan the interpreter has the sanitizer (tools/free_threaded_python --tsan); a report makes the exit code 66.
# Otherwise pytest swallows the reports of tests that pass.
_TSAN_ENV = {
    "PYTEST_ADDOPTS": "--capture=sys",
    "TSAN_OPTIONS": "external_symbolizer_path=/usr/bin/llvm-symbolizer:suppressions=build_defs/tsan_suppressions.txt",
}

def gridbuf_py_library(name, **kwargs):
    """A py_library; here so that one file has all rules for Python."""
    native.py_library(name = name, srcs_version = "PY3", **kwargs)

def gridbuf_py_binary(name, **kwargs):
    """A py_binary run with the environment that bazelw made."""
    native.py_binary(
        name = name,
        legacy_create_init = _NO_IMPLIED_PACKAGES,
        python_version = "PY3",
        srcs_version = "PY3",
        **kwargs
    )

def gridbuf_py_test(name, srcs, deps = [], data = [], args = [], env = {}, peers = False, thorough = False, tags = [], **kwargs):
    """A test that runs pytest on its sources; fails when pytest finds no test in them, passes when all are skipped.

    Args:
      name: the target.
      srcs: the test files (and their conftest.py), all of one folder.
      deps: py_library targets.
      data: files the tests read.
      args: further arguments of pytest.
      env: environment variables.
      peers: whether the test uses the optional peers. It has the tag `peers`, and runs again when they are installed or
        removed. A test that does not say so may not skip for a missing package.
      thorough: whether some tests have the marker `pytest.mark.thorough`. They run in a second target, NAME with
        `_thorough_test` for `_test`, whose tag `thorough` keeps it out of `bazel test //...` (see .bazelrc). It has 15 minutes.
      tags: further tags.
      **kwargs: size, timeout, visibility, …
    """
    env = dict(env, PYTHONDONTWRITEBYTECODE = "1", GRIDBUF_TEST_USES_PEERS = "1" if peers else "0")
    variants = {name: (["-m", "'not thorough'"], [], {})}
    if thorough:
        variants[name.rpartition("_test")[0] + "_thorough_test"] = (["-m", "thorough"], ["thorough"], {"timeout": "long"})
    for variant, (selection, variant_tags, limits) in variants.items():
        native.py_test(
            name = variant,
            srcs = srcs + [Label("//build_defs:pytest_main.py")],
            main = Label("//build_defs:pytest_main.py"),
            args = ["$(location %s)" % src for src in srcs if src.split("/")[-1].split(":")[-1].startswith("test_")] + selection + args,
            data = data + ([Label("@gridbuf_python//:peers")] if peers else []) + select({
                str(Label("//build_defs:tsan")): [Label("//build_defs:tsan_suppressions.txt")],
                "//conditions:default": [],
            }),
            deps = deps,
            env = select({
                str(Label("//build_defs:asan")): dict(env, **_ASAN_ENV),
                str(Label("//build_defs:tsan")): dict(env, **_TSAN_ENV),
                "//conditions:default": env,
            }),
            legacy_create_init = _NO_IMPLIED_PACKAGES,
            python_version = "PY3",
            srcs_version = "PY3",
            tags = tags + variant_tags + (["peers"] if peers else []),
            **dict(kwargs, **limits)
        )

def gridbuf_py_main_test(name, main, env = {}, **kwargs):
    """A test that is one program of gridbuf: its exit code is the verdict.

    Args:
      name: the target.
      main: the program's label.
      env: environment variables.
      **kwargs: args, data, deps, size, timeout, tags, visibility, …
    """
    env = dict(env, PYTHONDONTWRITEBYTECODE = "1")
    native.py_test(
        name = name,
        srcs = [main],
        main = main,
        env = select({
            str(Label("//build_defs:asan")): dict(env, **_ASAN_ENV),
            "//conditions:default": env,
        }),
        legacy_create_init = _NO_IMPLIED_PACKAGES,
        python_version = "PY3",
        srcs_version = "PY3",
        **kwargs
    )
