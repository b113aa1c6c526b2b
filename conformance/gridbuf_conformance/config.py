"""The configuration of a project: the table `[tool.gridbuf-conformance]` of its pyproject.toml.

`check`, `known`, `interop`, the pytest plugin and the functions of the API read it in the same way.
It is searched from the working directory upwards: the first pyproject.toml that has the table is
read. Files in it are relative to its folder. What a caller gives (an option, an argument) takes
precedence.

`replay` and `survey` do not read it: a replay command has all its options, and a survey is about
other libraries.

Every pytest imports this module, so it imports nothing of the judge.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from .plan.profiles import DEFAULT, PLAN_LIMIT_S, profile_of
from .targets import FILES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "gridbuf-conformance"
_MAX_LIMIT_S = 3600.0
_FILE = "pyproject.toml"


class ConfigError(ValueError):
    """A wrong configuration. The message has the file, the key and what is accepted."""


def seed(value: Any) -> int:
    """A seed; raises ValueError for other values."""
    if type(value) is not int or not 0 <= value < 2**32:
        raise ValueError(f"must be an integer in 0..{2**32 - 1}")
    return value


def seconds(value: Any) -> float:
    """A time limit; raises ValueError for other values."""
    if type(value) not in (int, float) or not 0 < value <= _MAX_LIMIT_S:
        raise ValueError(f"must be a number of seconds above 0, at most {_MAX_LIMIT_S:g}")
    return float(value)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("must be true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a string")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ValueError('must be a list of strings, as in ["a", "b"]')
    return tuple(filter(None, (one.strip() for one in given)))


def _profile(value: Any) -> str:
    return profile_of(_text(value)).name


def _key(check: Callable[[Any], Any], default: Any = (), **about: Any) -> Any:
    return field(default=default, metadata={"check": check, **about})


@dataclass(frozen=True)
class Interop:
    """The sub-table `interop`, for the scoreboard: its keys are options of the command."""

    library: tuple[str, ...] = _key(_texts)
    against: tuple[str, ...] = _key(_texts)
    compare: str = _key(_text, "", is_path=True)


@dataclass(frozen=True)
class Config:
    """All options of a run, with the values of a configuration. `file` is where they come from."""

    producers: tuple[str, ...] = _key(_texts, is_target=True)
    consumers: tuple[str, ...] = _key(_texts, is_target=True)
    profile: str = _key(_profile, DEFAULT)
    rules: tuple[str, ...] = _key(_texts)
    spec: tuple[str, ...] = _key(_texts)
    storage: bool = _key(_flag, False)
    known: tuple[str, ...] = _key(_texts, is_path=True)
    seed: int | None = _key(seed, None)
    time_limit: float = _key(seconds, PLAN_LIMIT_S)
    interop: Interop = field(default=Interop())
    file: Path | None = field(default=None, metadata={"is_key": False})

    def overridden(self, **given: Any) -> Config:
        """These options, with what a caller gave: every value that is not None."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    @property
    def options(self) -> dict[str, Any]:
        """The options of a run as the engine names them, except for the known failures."""
        return {
            "profile": self.profile,
            "rules": self.rules or None,
            "spec": self.spec,
            "storage": self.storage,
            "seed": self.seed,
            "time_limit_s": self.time_limit,
        }


def load(given: str | Path | bool | None = None) -> Config:
    """The configuration for an argument `config`: a file, None for a search, False for none.

    Raises ConfigError.
    """
    if given is False:
        return Config()
    if given is not None:
        return read(Path(str(given)))
    for folder in (Path.cwd(), *Path.cwd().parents):
        path = folder / _FILE
        if path.is_file() and TABLE in _tool(path):
            return read(path)
    return Config()


def read(path: Path) -> Config:
    """The configuration of a file; raises ConfigError if it has no table, or a wrong one."""
    table = _tool(path).get(TABLE)
    if not isinstance(table, dict):
        raise ConfigError(
            f"{_shown(path)} has no table [tool.{TABLE}]; add it, or leave --config out"
        )
    inner = table.get("interop", {})
    if not isinstance(inner, dict):
        raise ConfigError(
            f"{_shown(path)}: interop is {inner!r}, must be a table; its keys are {_keys(Interop)}"
        )
    values = _values(Config, {k: v for k, v in table.items() if k != "interop"}, path, TABLE)
    board = Interop(**_values(Interop, inner, path, f"{TABLE}.interop"))
    return Config(**values, interop=board, file=path)


def _tool(path: Path) -> Mapping[str, Any]:
    """The table `tool` of a file."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{_shown(path)} is not TOML: {error}; correct it there") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read {_shown(path)}: {reason}; name a TOML file") from None
    tool = document.get("tool", {})
    return tool if isinstance(tool, dict) else {}


def _values(kind: type, table: Mapping[str, Any], path: Path, name: str) -> dict[str, Any]:
    """The checked values of a table by field. A key has hyphens, a field has underscores."""
    known = {one.name.replace("_", "-"): one for one in fields(kind) if "check" in one.metadata}
    values = {}
    for key, value in table.items():
        place = f"{_shown(path)}, [tool.{name}]"
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise ConfigError(f"{place}: unknown key {key!r}; {hint}The keys are {_keys(kind)}")
        about = known[key].metadata
        try:
            checked = about["check"](value)
        except ValueError as error:
            text = str(error)
            said = text if text.startswith(f"{key} is") else f"{key} is {value!r}, {text}"
            raise ConfigError(f"{place}: {said}") from None
        values[known[key].name] = _placed(checked, path.parent, about)
    return values


def _keys(kind: type) -> str:
    return ", ".join(one.name.replace("_", "-") for one in fields(kind) if one.name != "file")


def _placed(value: Any, folder: Path, about: Mapping[str, Any]) -> Any:
    """Files and targets of a configuration, seen from the working directory."""
    if about.get("is_target"):
        return tuple(_seen(one, folder) if _is_file(one) else one for one in value)
    if about.get("is_path"):
        is_one = isinstance(value, str)
        placed = tuple(_file(one, folder) for one in ((value,) if is_one else value))
        return placed[0] if is_one else placed
    return value


def _is_file(target: str) -> bool:
    return (target.rpartition(":")[0] or target).endswith(FILES)


def _file(name: str, folder: Path) -> str:
    """A file of the folder. The name of a shipped file, as in known = ["numpy"], stays."""
    is_name = not Path(name).suffix and not (folder / name).exists()
    return name if is_name else _seen(name, folder)


def _seen(name: str, folder: Path) -> str:
    return os.path.normpath(os.path.join(os.path.relpath(folder), name))


def _shown(path: Path) -> str:
    return os.path.relpath(path)
