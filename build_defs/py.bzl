"""Python targets in the project's environment: libraries, programs, and tests that run pytest."""

# Bazel would otherwise put an `__init__.py` into the folder of the workspace, which has the name of our package: `import
# gridbuf` would find that folder instead.
_NO_IMPLIED_PACKAGES = 0

def gridbuf_py_library(name, **kwargs):
    """A py_library; here so that one file knows how Python is built."""
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

def gridbuf_py_test(name, srcs, deps = [], data = [], args = [], env = {}, peers = False, **kwargs):
    """A test that runs pytest on its sources; fails when pytest finds no test in them.

    Args:
      name: the target.
      srcs: the test files (and their conftest.py), all of one folder.
      deps: py_library targets.
      data: files the tests read.
      args: further arguments of pytest.
      env: environment variables.
      peers: whether the test uses the optional peers; it then runs again when they are installed or removed.
      **kwargs: size, timeout, tags, visibility, …
    """
    native.py_test(
        name = name,
        srcs = srcs + [Label("//build_defs:pytest_main.py")],
        main = Label("//build_defs:pytest_main.py"),
        args = ["$(location %s)" % src for src in srcs if src.split("/")[-1].split(":")[-1].startswith("test_")] + args,
        data = data + ([Label("@gridbuf_python//:peers")] if peers else []),
        deps = deps,
        env = dict(env, PYTHONDONTWRITEBYTECODE = "1"),
        legacy_create_init = _NO_IMPLIED_PACKAGES,
        python_version = "PY3",
        srcs_version = "PY3",
        **kwargs
    )
