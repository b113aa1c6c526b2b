"""What cuda_library promises at analysis: `--config=cuda` insists on the toolkit."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _toolkit_required_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "needs the CUDA toolkit (--config=cuda was given), and none was found: set CUDA_HOME")
    return analysistest.end(env)

toolkit_required_test = analysistest.make(_toolkit_required_test_impl, expect_failure = True)
