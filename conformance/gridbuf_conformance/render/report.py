"""The report: the result of a run as data, as text, and as a file in one of the formats.

`Report.of(events)` makes one object for JSON from the event stream. Its keys are part of the public
API (schema `gridbuf-conformance-report/2`, in JSON Schema `report.schema.json`):

`schema`, `suite` (name, version), `target` (name, version, python, platform, and `side`: "producer"
or "consumer"), `profile`, `seed`, `spec` (the chosen editions), `summary` (count by outcome),
`plans` (count by answer of the producer), `rules` (id, level, outcome, plans, failures, note),
`notes` (omissions of the run, with reasons), `timing`.

A failure has `plan`, `expected`, `actual`, `note`, `drawing`, and `replay`, the command that
repeats it. Two runs with the same inputs differ only in `timing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from .. import render
from ..outcomes import FAILED, ExitCode, Outcome, exit_code_of
from .events import Event, to_json_lines

SCHEMA = "gridbuf-conformance-report/2"


class Report:
    """The result of one run. `str(report)` is the text of the terminal.

    Attributes
    ----------
    data : dict
        The report as an object for JSON.
    events : list
        The event stream of the run.
    """

    def __init__(self, data: dict[str, Any], events: Sequence[Event] = ()) -> None:
        self.data = data
        self.events = list(events)

    @classmethod
    def of(cls, events: Sequence[Event]) -> Report:
        """Makes a report from the event stream of a finished run.

        Parameters
        ----------
        events : sequence of dict
            The event stream.

        Returns
        -------
        Report
            The report of the run.

        Raises
        ------
        ValueError
            If the event `start` or `end` is missing.
        """
        named = {event["event"]: event for event in events}
        if not {"start", "end"} <= named.keys():
            raise ValueError(
                "the event stream has no start or no end; pass the events of a finished run"
            )
        start, end = named["start"], named["end"]
        rules = [event for event in events if event["event"] == "rule"]
        return cls(
            {
                **{key: start[key] for key in ("schema", "suite", "target", "profile", "seed")},
                "spec": start.get("spec", []),
                "summary": end["summary"],
                "plans": end["plans"],
                "rules": [{k: v for k, v in rule.items() if k != "event"} for rule in rules],
                "notes": end["notes"],
                "timing": end["timing"],
            },
            events,
        )

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each selected rule by id, in the order of the catalogue."""
        return {rule["id"]: rule["outcome"] for rule in self.data["rules"]}

    @property
    def failed(self) -> tuple[str, ...]:
        """The sorted ids of the rules whose outcomes make the exit code 1."""
        return tuple(sorted(id_ for id_, outcome in self.outcomes.items() if outcome in FAILED))

    @property
    def exit_code(self) -> int:
        """0 conformant, 1 not conformant, 3 the suite failed, 5 none judged (`outcomes.ExitCode`).

        Nothing was judged if no rule was selected, if each is blocked by one that was not selected,
        or if the target declined every plan or export.
        """
        code = exit_code_of(Outcome(outcome) for outcome in self.outcomes.values())
        declined_all = bool(self.data["plans"]) and set(self.data["plans"]) <= {
            "unsupported",
            "refused",
        }
        if code is ExitCode.CONFORMANT and declined_all:
            code = ExitCode.NOTHING_SELECTED
        return int(code)

    def to_json(self) -> str:
        """The report as indented JSON text with a final newline."""
        return render.to_json([self.data])

    def save(self, path: str | Path) -> None:
        """Writes the report to a file.

        Parameters
        ----------
        path : str or Path
            The file. Its suffix selects the format (`FORMATS`).

        Raises
        ------
        ValueError
            If `FORMATS` does not have the suffix.
        """
        path = Path(path)
        render = FORMATS.get(path.suffix)
        if render is None:
            raise ValueError(
                f"no report format has the suffix {path.suffix!r}; use one of {', '.join(FORMATS)}"
            )
        path.write_text(render(self), encoding="utf-8")

    def __str__(self) -> str:
        from rich.console import Console

        from . import console

        text = StringIO()
        console.render(self.data, Console(file=text, width=100, no_color=True, highlight=False))
        return text.getvalue()

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.data["summary"].items())
        return f"<Report of {self.data['target']['name']}: {counts or 'nothing selected'}>"


def _rendered(suffix: str) -> Callable[[Report], str]:
    return lambda report: render.FORMATS[suffix]([report.data], ())


FORMATS: dict[str, Callable[[Report], str]] = {
    **{suffix: _rendered(suffix) for suffix in render.FORMATS},
    ".jsonl": lambda report: to_json_lines(report.events),
}
"""The function for each suffix that turns a report into text: `render`'s, the event stream."""
