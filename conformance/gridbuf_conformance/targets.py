"""Targets: the text that names a producer or a consumer, and the import of that object.

A target is written as
- the name of a built-in producer or consumer, the name of an entry point, or any name of their
  library (`producers.find`, `named_consumers.find`),
- `package.module:Attribute`,
- `path/to/file.py:Attribute` (without attribute: `Producer`, or `consume`),
- `path/to/lib.so:suite`, a shared library of C++ (without suite: the only one;
  `producers.shared_library`).

The driver handles only the written form; the worker imports the object.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from .info.values import text_of
from .plan.consumer import Consumer, version_of
from .plan.producer import Producer

_SHARED_LIBRARIES = (".so", ".dylib")
FILES = (".py", *_SHARED_LIBRARIES)
"""How the name of a file ends that is a target."""
_DEFAULT_ATTRIBUTE = {"producer": "Producer", "consumer": "consume"}


class CannotLoad(Exception):
    """The producer or consumer cannot be loaded (exit code 4). The message has the remedy."""


class WrongSide(CannotLoad):
    """A consumer in a producer's place, or the reverse (wrong usage, exit code 2)."""


@contextlib.contextmanager
def loading(what: str) -> Iterator[None]:
    """Turns what the code of a target raises into CannotLoad."""
    try:
        yield
    except (CannotLoad, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise CannotLoad(f"{what}: {type(error).__name__}: {text_of(error)}") from error


@dataclass(frozen=True)
class Target:
    """A name that another process can resolve: `written` is the text of the user.

    `file` is the source file of the module, for modules that only their own process can import by
    name (a script, a test module). `side` is "producer" or "consumer".
    """

    written: str
    file: str | None = None
    side: str = "producer"

    @property
    def shown(self) -> str:
        """The written name, without an absolute path's folders, which no report contains."""
        return os.path.basename(self.written) if os.path.isabs(self.written) else self.written

    def to_dict(self) -> dict[str, Any]:
        return {"written": self.written, "file": self.file, "side": self.side}


def is_path(written: str) -> bool:
    """Whether a text names a module or a file, and not a registered producer or consumer."""
    return ":" in written or written.endswith(FILES)


def canonical(written: str, side: str) -> str:
    """The registered name of a target by any name of its library; other texts are unchanged."""
    with contextlib.suppress(LookupError):
        return written if is_path(written) else _registry(side).find(written).name
    return written


def _registry(side: str) -> Any:
    from . import named_consumers, producers  # only targets without a module need the registries

    return named_consumers if side == "consumer" else producers


def name_of(producer: str | type | Any, side: str = "producer") -> Target:
    """The target of an argument: a written name, a producer class of a module, or (for the side
    "consumer") a function of a module.

    Raises CannotLoad for objects that another process cannot import.
    """
    if isinstance(producer, str):
        return Target(canonical(producer, side), side=side)
    if side == "consumer":
        if not isinstance(getattr(producer, "__qualname__", None), str):
            raise CannotLoad(
                f"a {type(producer).__name__} object cannot be sent to the worker; "
                "pass a function, its name as package.module:function, or isolate=False "
                "to judge this object in this process"
            )
    elif not isinstance(producer, type):
        kind = type(producer)
        hint = (
            f"pass the class {kind.__name__}, or isolate=False to judge this object in this process"
        )
        raise CannotLoad(f"a producer object cannot be sent to the worker; {hint}")
    if "<locals>" in producer.__qualname__:
        raise CannotLoad(
            f"{producer.__qualname__} is defined inside a function, where no worker can import it; "
            "move it to the top of its module, or pass isolate=False"
        )
    module = sys.modules.get(producer.__module__)
    file = getattr(module, "__file__", None)
    if producer.__module__ == "__main__":
        if file is None:
            raise CannotLoad(
                f"{producer.__qualname__} was typed into an interactive session, where no worker "
                "finds it; put it into a file, or pass isolate=False"
            )
        return Target(f"{os.path.relpath(file)}:{producer.__qualname__}", side=side)
    return Target(f"{producer.__module__}:{producer.__qualname__}", file, side)


def is_shared_library(target: Any) -> bool:
    """Whether a target is a shared library: `path/to/lib.so`, or `path/to/lib.so:suite`."""
    if not isinstance(target, str):
        return False
    file = target if target.endswith(FILES) else target.rpartition(":")[0]
    return file.endswith(_SHARED_LIBRARIES)


def load(target: Target | str) -> Any:
    """The producer object or `Consumer` of a target. It imports the library: only workers call it.

    Raises CannotLoad for an unknown name, a failing import, and an object that is not a producer or
    consumer.
    """
    target = Target(target) if isinstance(target, str) else target
    if target.side == "consumer":
        return _consumer(target)
    with loading(target.written):
        found = _find(target)
        producer = found() if isinstance(found, type) else found
    if inspect.isroutine(producer):
        raise WrongSide(f"{target.written} is a consumer; write --consumer {target.written}")
    if not callable(getattr(producer, "produce", None)):
        raise CannotLoad(
            f"{target.written} is {type(producer).__name__}, which has no method produce(plan); "
            "name a producer class"
        )
    return producer


def _consumer(target: Target) -> Consumer:
    """The consumer of a target: a named one with what its entry says, or any function."""
    entry = _registry("consumer").entries().get(target.written)
    with loading(target.written):
        function = _find(target)
        if entry is not None and entry.needs:
            importlib.import_module(entry.needs)  # here, where an import may take its time
    if not callable(function):
        raise CannotLoad(
            f"{target.written} is {type(function).__name__}, which cannot be called; "
            "name a function of one exporter"
        )
    if entry is None:
        return Consumer(function, target.shown, version_of(function))
    return Consumer(function, entry.name, version_of(function, entry.needs), entry.takes)


def _find(target: Target) -> Any:
    place, colon, attribute = target.written.rpartition(":")
    if not colon:
        place, attribute = target.written, ""
    if target.side == "producer" and is_shared_library(target.written):
        from .producers.shared_library import suite_of  # only the worker loads a library

        return suite_of(place, attribute)
    if place.endswith(".py"):
        attribute = attribute or _DEFAULT_ATTRIBUTE[target.side]
        return _attribute(_module_of_file(place), attribute, target)
    if colon:
        return _attribute(_module(place, target.file), attribute, target)
    return _registered(place, target.side)


def _registered(name: str, side: str) -> Any:
    try:
        entry = _registry(side).find(name)
    except LookupError as error:
        raise CannotLoad(str(error)) from None
    if not entry.is_installed:
        hint = f"; install it with: {entry.install}" if entry.install else ""
        raise CannotLoad(f"{name}: {entry.missing} is not installed{hint}")
    if not entry.is_usable:
        raise CannotLoad(f"{name}: it needs a CUDA device, and this system shows none")
    return _find(Target(entry.target, side=side))


def _module(name: str, file: str | None) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        own_name = error.name is not None and (name + ".").startswith(error.name + ".")
        if file is None or not own_name:
            raise
        return _module_of_file(file)


def _module_of_file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise CannotLoad(f"there is no file {path}; paths are relative to the current directory")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(f"gridbuf_conformance_target_{name}", path)
    if spec is None or spec.loader is None:
        raise CannotLoad(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, dotted: str, target: Target) -> Any:
    found: Any = module
    for part in dotted.split("."):
        if not hasattr(found, part) and target.side == "consumer":
            raise CannotLoad(f"{target.written}: the module has no {dotted!r}; name a function")
        if not hasattr(found, part):
            near = [
                n for n, v in vars(module).items() if isinstance(v, type) and hasattr(v, "produce")
            ]
            classes = [n for n in near if getattr(module, n) is not Producer]
            hint = (
                f"producers there: {', '.join(classes)}"
                if classes
                else "it holds no producer class"
            )
            raise CannotLoad(f"{target.written}: the module has no {dotted!r}; {hint}")
        found = getattr(found, part)
    return found


def shown(producer: Any, side: str = "producer") -> str:
    """The name of a target in reports and replay commands, as a user writes it."""
    try:
        return name_of(producer, side).shown
    except CannotLoad:
        kind = producer if isinstance(producer, type) else type(producer)
        return f"{kind.__module__}:{kind.__qualname__}"
