"""Consumer checks of GT4Py's data interface: GT-02, GT-06, GT-07, GT-08, GT-10."""

from __future__ import annotations

from ...exports.consumption import Consumption
from ...outcomes import Verdict
from ...rules.consumer_common import taken
from ...rules.registry import consumer_check
from ...rules.verdicts import advise, fail, ok, unsupported

consumer_check("GT-02", "GT-06", "GT-08")(taken)


@consumer_check("GT-07")
def hooks_are_called_in_order(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted:
        return unsupported(f"refused: {c.error.type}")
    events = c.after.events
    if not events or events[0] != "acquire":
        return fail(
            "acquire before anything is read", f"hooks called: {', '.join(events) or 'none'}"
        )
    if "touch" in events:
        return fail("touch for written entries only", "touch was called, and nothing was written")
    if c.mistake is not None:
        return fail(*c.mistake, note="before acquire the memory holds old bytes")
    releases, acquires = events.count("release"), events.count("acquire")
    if c.export.variant.name != "none-hooks" and releases != acquires:
        return fail(
            f"release for each of {acquires} acquire", f"release was called {releases} times"
        )
    return ok()


@consumer_check("GT-10")
def device_memory_is_not_read_as_the_hosts(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted:
        return taken(c, control)
    if c.aliases or c.mistake is not None:
        return fail(
            "an error, or a copy from the device with a warning", "it was taken without a copy"
        )
    return advise("an error: there is no device", "it was accepted")
