"""Where `bazelw` puts what it sets up."""

def state_path(repository_ctx, path):
    """The path of a file or folder below gridbuf's state folder.

    Args:
      repository_ctx: of a repository rule with GRIDBUF_STATE in its `environ`.
      path: relative to the state folder.

    Returns:
      a path, which may not exist.
    """
    root = repository_ctx.path(Label("//:WORKSPACE")).dirname
    state = repository_ctx.os.environ.get("GRIDBUF_STATE", str(root) + "/.gridbuf")
    return repository_ctx.path(state + "/" + path)
