"""The libraries that send, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any


def mpi_module() -> Any:
    """The module `mpi4py.MPI`; importing it starts MPI.

    Raises:
      ImportError: it is not there.
    """
    try:
        return importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(
            f"gridbuf.mpi needs mpi4py and an MPI library ({error}): pip install mpi4py, and mpich where there is no MPI"
        ) from error


def ghex_module(name: str) -> Any:
    """A module of GHEX. mpi4py is imported first: it brings the MPI library that GHEX is linked to."""
    mpi_module()
    return importlib.import_module(f"ghex.{name}")
