"""The promise of cc_module at analysis: module names are unique."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _duplicate_module_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "module gridbuf.build_test.base is defined twice")
    return analysistest.end(env)

duplicate_module_test = analysistest.make(_duplicate_module_test_impl, expect_failure = True)
