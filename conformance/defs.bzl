"""`conformance_test`: judges the arrays of a library, or a function that takes arrays, as a Bazel test.

`gridbuf_conformance_test` judges the tensors of a C++ library.

    load("@gridbuf//conformance:defs.bzl", "conformance_test")

    conformance_test(
        name = "conformance",
        producer = "mylib.testing:Producer",
        deps = [":testing"],
    )

The test runs `gridbuf-conformance check`. It has the exit code of the command. The JUnit report is the report of the test
(`bazel-testlogs/…/test.xml`, one case for each rule), and the HTML page is an output of the test.
"""

load("//build_defs:py.bzl", "gridbuf_py_main_test")

def conformance_test(
        name,
        producer = None,
        consumer = None,
        deps = [],
        data = [],
        profile = "default",
        rules = None,
        storage = False,
        spec = [],
        known = [],
        seed = None,
        time_limit_s = None,
        isolate = True,
        **kwargs):
    """Judges one producer or one consumer.

    Args:
      name: the target.
      producer: what `check` takes: a name of `gridbuf-conformance list`, or `package.module:Class`, importable from `deps`.
      consumer: the same for a function that takes arrays. Give exactly one of producer and consumer.
      deps: py_library targets with the library and the producer's module.
      data: files they need.
      profile: "smoke", "default", "thorough".
      rules: only these rules: a list of ids and wildcards, as in ["DL-*", "XA-03"]; default: all.
      storage: whether the rules of GT4Py and of storages judge ordinary arrays, too.
      spec: editions of documents, as in ["array-api-2024.12", "dlpack-1.0"]: rules whose text is newer do not judge.
      known: files of known failures (labels).
      seed: varies the plans.
      time_limit_s: a plan that takes longer is a TIMEOUT; default: 10.
      isolate: whether the library runs in a separate process; False for sanitizers.
      **kwargs: size, timeout, tags, env, visibility, …
    """
    if (producer == None) == (consumer == None):
        fail("conformance_test %s: give either producer or consumer" % name)
    target = [producer] if consumer == None else ["--consumer", consumer]
    arguments = target + ["--profile", profile]
    if rules:
        arguments += ["--rules", "'%s'" % ",".join(rules)]
    if storage:
        arguments.append("--storage")
    if spec:
        arguments += ["--spec", ",".join(spec)]
    for file in known:
        arguments += ["--known", "$(location %s)" % file]
    if seed != None:
        arguments += ["--seed", str(seed)]
    if time_limit_s != None:
        arguments += ["--time-limit", str(time_limit_s)]
    if not isolate:
        arguments.append("--no-isolate")
    gridbuf_py_main_test(
        name = name,
        main = Label("//conformance:conformance_test_main.py"),
        args = arguments,
        data = data + known,
        deps = deps + [Label("//conformance:gridbuf_conformance")],
        **kwargs
    )

def gridbuf_conformance_test(
        name,
        srcs = [],
        deps = [],
        suite = None,
        copts = [],
        linkopts = [],
        data = [],
        known = [],
        profile = "default",
        rules = None,
        time_limit_s = None,
        isolate = True,
        **kwargs):
    """Judges the DLPack tensors of a C++ library: builds a shared library, and runs `check` on it.

    The shared library is the target NAME.so, for a debugger or a sanitizer.

    Args:
      name: the target.
      srcs: sources with `GRIDBUF_CONFORMANCE_SUITE(suite, Traits)`.
      deps: cc_library targets with the library.
      suite: the name of the suite, if there are several.
      copts: compile flags of srcs.
      linkopts: link flags of the shared library.
      data: files that the library needs.
      known: as in conformance_test.
      profile: as in conformance_test.
      rules: as in conformance_test; default: the rules on tensors.
      time_limit_s: as in conformance_test.
      isolate: as in conformance_test.
      **kwargs: size, timeout, tags, env, visibility, …
    """
    library = name + ".so"
    native.cc_binary(
        name = library,
        testonly = True,
        srcs = srcs,
        copts = copts,
        data = data,
        linkopts = linkopts,
        linkshared = True,
        deps = deps + [Label("//conformance:cc")],
    )
    conformance_test(
        name = name,
        data = [library],
        isolate = isolate,
        known = known,
        producer = "$(location %s)%s" % (library, ":" + suite if suite else ""),
        profile = profile,
        rules = rules,
        time_limit_s = time_limit_s,
        **kwargs
    )
