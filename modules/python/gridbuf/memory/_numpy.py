"""`numpy_allocator`: gridbuf's memory for arrays that NumPy makes."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, SupportsIndex, TypeVar, cast

from .. import _core

_Function = TypeVar("_Function", bound=Callable[..., Any])

# The handlers that the open `with` blocks of a context will restore, the innermost first.
_replaced: ContextVar[tuple[Any, ...]] = ContextVar("replaced", default=())


class numpy_allocator:
    """Let NumPy take the memory of new arrays from gridbuf, in a `with` block, a function or a program.

    Every array that NumPy makes there begins at the alignment, also the temporary arrays of
    expressions. Blocks of 2 MiB and more are on huge pages and come from gridbuf's cache, so a freed
    array serves the next one of about its length. Shorter blocks come from the C library.

    Parameters
    ----------
    alignment : int, default 64
        Of the first element, in bytes: a power of two from 16 to 1048576.
    huge_pages : bool, default True
        Whether blocks of 2 MiB and more use huge pages, where the system and
        `configure(huge_pages=)` allow them.
    keep : bool, default True
        Whether freed blocks of 2 MiB and more are kept for the next arrays, up to
        `configure(cache_limit_bytes=)`. False gives them back to the system at once.

    Raises
    ------
    TypeError
        A parameter has a wrong kind.
    ValueError
        `alignment` is out of bounds.

    Notes
    -----
    An array keeps its memory after the end of the block. As NEP 49 says, the setting belongs to the
    context: a task of asyncio inherits that of its creator, and a new thread begins with NumPy's own
    allocator, except after `install`. `with` blocks of one object may nest. Rules: docs/spec.md 2.28 to 2.33.

    Examples
    --------
    >>> import gridbuf
    >>> import numpy
    >>> with gridbuf.memory.numpy_allocator(alignment=128):
    ...     field = numpy.arange(12.0) * 2
    >>> field.ctypes.data % 128
    0
    >>> @gridbuf.memory.numpy_allocator()
    ... def double(field):
    ...     return field * 2
    >>> gridbuf.alloc_info(double(field))["alignment_size"]
    64
    """

    def __init__(
        self, alignment: SupportsIndex = 64, huge_pages: bool = True, keep: bool = True
    ) -> None:
        self._handler = _core._numpy_handler(alignment, huge_pages, keep)

    def __enter__(self) -> None:
        replaced = _core._set_numpy_handler(self._handler)
        _replaced.set((replaced, *_replaced.get()))

    def __exit__(self, *error: object) -> None:
        replaced, *outer = _replaced.get()
        _replaced.set(tuple(outer))
        _core._set_numpy_handler(replaced)

    def __call__(self, function: _Function) -> _Function:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} is a generator, whose caller would have the allocator, too;"
                " use a `with` block inside that does not yield"
            )

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            with self:
                return function(*arguments, **keywords)

        @functools.wraps(function)
        async def run(*arguments: Any, **keywords: Any) -> Any:
            with self:
                return await function(*arguments, **keywords)

        return cast(_Function, run if inspect.iscoroutinefunction(function) else call)

    def install(self) -> None:
        """Use it from now on, in this thread and in threads that `threading` starts later.

        Call it at the start of the program. Threads that run already, and threads that C code
        starts, keep NumPy's own allocator.

        Notes
        -----
        `python -m gridbuf.memory run script.py` calls it before a script, and so does the variable
        GRIDBUF_NUMPY_ALLOCATOR=1 when gridbuf is imported. For new threads it replaces
        `threading.Thread.start`. Rules: docs/spec.md 2.32.
        """
        global _installed
        _core._set_numpy_handler(self._handler)
        first, _installed = _installed is None, self._handler
        if first:
            _set_in_new_threads()


_installed: Any = None


def _set_in_new_threads() -> None:
    """NumPy's setting is a context variable, and a new thread has an empty context."""
    start = threading.Thread.start

    @functools.wraps(start)
    def start_with_allocator(thread: threading.Thread) -> None:
        run, attributes = thread.run, vars(thread)
        before = {"run": attributes["run"]} if "run" in attributes else {}

        def restore() -> None:
            attributes.pop("run", None)
            attributes.update(before)

        def begin() -> None:
            restore()
            _core._set_numpy_handler(_installed)
            run()

        attributes["run"] = begin
        try:
            start(thread)
        except BaseException:
            restore()
            raise

    threading.Thread.start = start_with_allocator  # type: ignore[assignment, method-assign]
