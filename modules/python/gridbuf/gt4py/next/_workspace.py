"""The temporaries of DaCe programs in memory of the caller: GT4Py's mode EXTERNAL (1.2.1 and newer)."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from importlib import import_module
from inspect import signature
from typing import Any, SupportsIndex

from ...memory import Workspace
from .._library import definitions

_DACE = "gt4py.next.program_processors.runners.dace.workflow"


def workspace(
    limit: SupportsIndex | None = None, *, device_limit: SupportsIndex | None = None
) -> dict[Any, Workspace]:
    """Return the memory for temporaries that GT4Py takes as `external_workspace` (docs/spec.md 12.98).

    Parameters
    ----------
    limit : int, optional
        Bytes on the host. Default: the memory of the machine, of which only pages that a program touches are used.
    device_limit : int, optional
        Bytes on the GPU: as many as the largest program needs. Default: none.

    Returns
    -------
    dict of DeviceType to Workspace
        All programs use the same memory, one after another. Keep it as long as the programs.

    Raises
    ------
    ValueError, MemoryError, DeviceUnavailableError
        As of `gridbuf.memory.Workspace`.

    See Also
    --------
    dace_backend : the same with a guard against two programs at once.
    """
    made = {definitions.DeviceType.CPU: Workspace(limit)}
    if device_limit is not None:
        made[definitions.DeviceType.CUDA] = Workspace(device_limit, device="gpu")
    return made


def dace_backend(workspace: dict[Any, Workspace], **config: Any) -> Any:
    """Return GT4Py's DaCe backend with temporaries in `workspace` (docs/spec.md 12.98).

    Parameters
    ----------
    workspace : dict of DeviceType to Workspace
        What `workspace()` returned. Backends may share it.
    **config
        Of GT4Py's `DaCeConfig` (before 1.2.3 of `make_dace_backend`): `gpu`, `auto_optimize` and more.

    Returns
    -------
    DaCeBackend
        A backend whose programs take the workspace while they run: two at once, of two threads, are a ValueError with both
        names. Programs of a GPU may still run when the call returns; the next one waits on the same stream.

    Raises
    ------
    ImportError
        GT4Py is older than 1.2.1, or DaCe is not installed.
    ValueError
        `auto_optimize` is False: GT4Py then ignores the workspace.
    """
    backend: Any = import_module(f"{_DACE}.backend")
    if config.get("auto_optimize") is False:
        raise ValueError(
            "auto_optimize is False, but must be left out: only optimised programs have temporaries in a workspace"
        )
    config["external_workspace"] = workspace
    if hasattr(backend, "make_dace_toolchain"):  # GT4Py 1.2.3
        factory: Any = import_module(f"{_DACE}.factory")
        plain = backend.make_dace_toolchain(factory.DaCeConfig(**config))
    elif "external_workspace" in signature(backend.make_dace_backend).parameters:
        plain = backend.make_dace_backend(**{"gpu": False, **config})
    else:
        raise ImportError(
            "dace_backend needs GT4Py 1.2.1 or newer, which lets the caller own temporaries; upgrade gt4py"
        )

    class GuardedBackend(type(plain)):  # type: ignore[misc]
        def load_artifact(self, artifact: Any) -> Any:
            return _Guarded(super().load_artifact(artifact), artifact, self.external_workspace)

    values = {f.name: getattr(plain, f.name) for f in dataclasses.fields(plain) if f.init}
    return GuardedBackend(**values)


class _Guarded:
    """A program that has the workspaces to itself while it is called."""

    def __init__(self, program: Any, artifact: Any, workspaces: dict[Any, Workspace]) -> None:
        self._program = program
        self._workspaces = [*workspaces.values()]
        library = getattr(artifact, "library_path", None)
        self._name = "a program" if library is None else library.stem.removeprefix("lib")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        with ExitStack() as taken:
            for space in self._workspaces:
                taken.enter_context(space.taken_by(self._name))
            return self._program(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)
