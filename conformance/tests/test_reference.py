"""docs/conformance.md names every command, option, profile, format and exit code, and none that is
not there.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from gridbuf_conformance import ExitCode, cli, producers, pytest_plugin, render
from gridbuf_conformance.plan import profiles

DOCUMENT = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
(COMMANDS,) = (
    action.choices
    for action in cli.parser()._actions
    if isinstance(action, argparse._SubParsersAction)
)


def section(heading: str) -> str:
    """The text below a heading that starts so, up to the next."""
    found = re.search(
        rf"^## `?{re.escape(heading)}.*?\n(.*?)(?=^## |\Z)", DOCUMENT, re.DOTALL | re.MULTILINE
    )
    assert found, f"no section {heading}"
    return found[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section(command):
    assert section(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_named(command):
    text = section(command) + (section("survey") if command == "check" else "")
    for action in COMMANDS[command]._actions:
        for option in action.option_strings:
            assert f"`{option}" in text or option in ("-h", "--help"), f"{command} {option}"


def pytest_options() -> set[str]:
    """The plugin's own options, as it registers them, and pytest's that the document speaks of."""
    parser = pytest.Parser(_ispytest=True)
    pytest_plugin.pytest_addoption(parser)
    own = {name for group in parser._groups for option in group.options for name in option.names()}
    return own | {"--runxfail"}


def test_no_option_is_invented():
    known = {o for parser in COMMANDS.values() for a in parser._actions for o in a.option_strings}
    assert set(re.findall(r"`(--[\w-]+)", DOCUMENT)) <= known | pytest_options()


def test_every_option_of_the_plugin_is_named():
    named = set(re.findall(r"`(--[\w-]+)", section("From pytest, Bazel and C++")))
    assert pytest_options() <= named


def test_profiles_formats_and_exit_codes():
    assert re.findall(r"^\| `(\w+)` \|", section("Profiles"), re.MULTILINE) == list(
        profiles.PROFILES
    )
    formats = re.findall(r"^\| `(\.\w+)` \|", section("Report formats"), re.MULTILINE)
    assert sorted(formats) == sorted(render.FORMATS)
    codes = re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)
    assert codes == [str(code.value) for code in ExitCode]


def test_the_number_of_producers():
    assert f"{len(producers.BUILT_IN)} producers" in section("list")
