"""What is measured of one call of a consumer."""

from __future__ import annotations

from dataclasses import dataclass, field

from .arrays import ArrayInfo, ErrorInfo, Value

__all__ = [
    "CallInfo",
    "ConsumerObservation",
    "ConsumptionInfo",
    "ExportInfo",
    "LookInfo",
    "TensorCounts",
]


@dataclass
class TensorCounts:
    """What became of a tensor that was handed out; `name` and `armed` while its capsule is held."""

    versioned: bool = False
    deleter: bool = False
    deleter_calls: int = 0
    destructor_calls: int = 0
    metadata_unchanged: bool = True
    name: str | None = None
    armed: bool = False


@dataclass
class ExportInfo:
    """The observations of one exporter up to one moment; an interface fills the fields that it has.

    `calls` are the keywords of each `__dlpack__` call, `free` says whether the memory was given
    back, `references` how many the consumer has to the exporter (negative if it released others').
    """

    calls: list[dict[str, Value]] = field(default_factory=list)
    handed_out: list[TensorCounts] = field(default_factory=list)
    native_deleter: bool = False
    table_calls: list[str] = field(default_factory=list)
    owned: list[TensorCounts] = field(default_factory=list)
    reads: int = 0
    handle: int | None = None
    exported: list[ExportInfo] | None = None
    destroyed: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    releases: list[int] = field(default_factory=list)
    metadata_unchanged: bool = True
    method_grants: int = 0
    method_releases: list[bool] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    has_hooks: bool = False
    free: bool = False
    references: int = 0


@dataclass
class LookInfo:
    """One look at a result with its library's own eyes (`measure.eyes`): the shape and the texts of
    the sampled numbers, or the signal of which the process died. All None: nothing was to be seen.
    """

    shape: list[int] | None = None
    values: list[str] | None = None
    died: str | None = None


@dataclass
class CallInfo:
    """The call of one of several threads: what it raised, or what it returned."""

    error: ErrorInfo | None = None
    result: ArrayInfo | None = None


@dataclass
class ConsumptionInfo:
    """One call of a consumer: what it raised or returned, and what the exporter saw.

    `returned`: when the call ended; `kept`: when the suite had dropped the exporter, and the result
    lived; `after`: when the result was gone, too. `block` is the memory's (low, high). `looks`: the
    result as its own library sees it. `keywords`: the arguments of the call beyond the exporter.
    `calls`: of several threads, each; the other fields are then about the first one that took the
    export.
    """

    error: ErrorInfo | None = None
    asked: bool = False
    block: list[int] = field(default_factory=lambda: [0, 0])
    gives_bytes: bool = False
    unchanged: bool = True
    result: ArrayInfo | None = None
    looks: dict[str, LookInfo] = field(default_factory=dict)
    keywords: dict[str, bool | str | None] = field(default_factory=dict)
    calls: list[CallInfo] = field(default_factory=list)
    returned: ExportInfo = field(default_factory=ExportInfo)
    kept: ExportInfo = field(default_factory=ExportInfo)
    after: ExportInfo = field(default_factory=ExportInfo)


@dataclass
class ConsumerObservation:
    """One export in front of a consumer, and its plain form where that was asked.

    `others` are further calls with the same export, each with one keyword of the consumer.
    """

    export: str
    main: ConsumptionInfo
    control: ConsumptionInfo | None = None
    others: list[ConsumptionInfo] = field(default_factory=list)
