"""How much a run asks, by name."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT = "default"
"""The profile of a gate, from whichever entry point it starts."""
PLAN_LIMIT_S = 10.0
"""The time for one plan, unless a caller gives another."""


@dataclass(frozen=True)
class Profile:
    """How much a run asks: plans of each kind (`strategies`), and new plans that shrinking may ask.

    `threads`: whether eight threads also export each array, or call a consumer, at the same time.
    What they meet depends on the load of the machine, so no other profile asks that. `time_box_s`:
    instead of one round with seed 0, rounds with new seeds until this time has passed.
    """

    name: str
    general: int
    boundary: int
    rank: int
    huge: int
    shrink_per_rule: int
    shrink_in_all: int
    time_box_s: float | None = None
    threads: bool = False


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("smoke", 40, 30, 8, 6, shrink_per_rule=25, shrink_in_all=200),
        Profile("default", 200, 120, 16, 16, shrink_per_rule=150, shrink_in_all=1500),
        Profile("thorough", 2000, 1200, 60, 40, shrink_per_rule=600, shrink_in_all=10_000),
        Profile("threads", 40, 30, 8, 6, shrink_per_rule=25, shrink_in_all=200, threads=True),
        Profile("soak", 600, 400, 30, 20, 300, 3000, time_box_s=15 * 60.0),
    )
}
"""By name. The first three are the same on every run; "soak" takes a new seed each time and reports
it.
"""


def profile_names() -> tuple[str, ...]:
    """The names that `profile` may have."""
    return tuple(PROFILES)


def profile_of(name: str) -> Profile:
    """The profile of that name; raises ValueError naming the ones there are."""
    found = PROFILES.get(name)
    if found is None:
        raise ValueError(f"profile is {name!r}, must be one of {', '.join(PROFILES)}; pick one")
    return found
