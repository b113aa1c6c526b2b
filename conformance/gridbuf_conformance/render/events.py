"""The event stream: everything a run finds out, one JSON object after the other, in the order it
happened.

The stream is the product; the report is one rendering of it (`report.Report.of`), and a progress
bar, a log or a dashboard are others. Each event is a dict with the key "event":

| event | when | other keys |
|---|---|---|
| `start` | once, first | `schema, suite, target, profile, seed, spec, rules` (ids) |
| `plan` | a plan was asked and judged | `n`, `of` (counts), `plan`, `result` (`Result.kind`) |
| `verdict` | a rule was found wanting on that plan | `rule, outcome, plan, expected, actual` |
| `shrunk` | a failing rule's plan was made smaller | `rule, outcome, plan, asked` (plans it took) |
| `known` | a record was replayed, at the end | `rule, place, plan, state, outcome, actual, note` |
| `rule` | once for each rule, at the end | `id, level, outcome, plans, failures, note` |
| `end` | once, last | `summary`, `plans` (counts by result), `notes`, `timing` |

Only `timing` differs between two runs with the same inputs; `state` is a `known.replays.State`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

Event = dict[str, Any]
Listener = Callable[[Event], None]


class EventLog:
    """Keeps the events of one run and hands each to a listener as it happens."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.events: list[Event] = []
        self._listener = listener

    def emit(self, event: str, **details: Any) -> None:
        """Adds one event."""
        entry = {"event": event, **details}
        self.events.append(entry)
        if self._listener is not None:
            self._listener(entry)


def to_json_lines(events: Iterable[Event]) -> str:
    """The events as JSON lines, each ended by a newline."""
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
