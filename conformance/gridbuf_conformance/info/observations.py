"""What is measured of one produced object: the array, its view, its life."""

from __future__ import annotations

from dataclasses import dataclass, field

from .arrays import ArrayInfo, ErrorInfo, InterfaceInfo, NamingInfo, Value

__all__ = [
    "INTERFACE_ATTRIBUTES",
    "BufferLifeInfo",
    "CapsuleLifeInfo",
    "DriverInfo",
    "DropInfo",
    "GrowthInfo",
    "LifeInfo",
    "LossInfo",
    "Observation",
    "PendingInfo",
    "RaceInfo",
    "ResizeInfo",
    "TwoViewsInfo",
]


@dataclass
class TwoViewsInfo:
    """Two open views of one buffer, one of which was released."""

    refused: bool = False
    unchanged: bool | None = None
    same_address: bool | None = None


@dataclass
class BufferLifeInfo:
    """Reference counts around eight requests, and two views in both release orders."""

    references: list[int] = field(default_factory=lambda: [0, 0])
    two_views: list[TwoViewsInfo] = field(default_factory=list)


@dataclass
class GrowthInfo:
    """(live bytes, live blocks) gained in each round of repetitions."""

    iterations: int = 0
    rounds: list[list[int]] = field(default_factory=list)


@dataclass
class CapsuleLifeInfo:
    """Counted calls of deleters, and what repetition leaves behind; None where it was not tried.

    `again` says what a later call of `__dlpack__` returned in place of a new capsule; nothing else
    is known then. `references_without_gil`: how many to the object before and after a deleter ran
    on another thread that could not have the GIL; empty where that was not tried.
    """

    again: str = ""
    error: ErrorInfo | None = None
    deleter: bool = False
    unconsumed_calls: int = 0
    destructor_called_deleter: bool | None = None
    name: str | None = None
    name_after: str | None = None
    unconsumed_growth: GrowthInfo = field(default_factory=GrowthInfo)
    consumed_growth: GrowthInfo | None = None
    foreign_thread: bool = False
    references_without_gil: list[int] = field(default_factory=list)
    references: list[int] = field(default_factory=lambda: [0, 0])


@dataclass
class LossInfo:
    """A survivor whose memory was gone, or given to others, and the drop that preceded.

    `dropped` is empty where nothing was dropped and another array was made. `before` and `after`
    are the bytes of the sampled elements, in hexadecimal; both are empty for unmapped memory.
    """

    dropped: str
    survivor: str
    before: str = ""
    after: str = ""


@dataclass
class DropInfo:
    """One order in which holders were dropped: memory that was lost, descriptions that changed."""

    order: list[str]
    lost: list[LossInfo] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


@dataclass
class ResizeInfo:
    """A resizing method called while memory was held; `refused` is the type of the error."""

    refused: str | None = None
    mapped: bool = True
    same_address: bool = True
    allowed_after: bool | None = None


@dataclass
class LifeInfo:
    """Which objects keep memory alive and which free it; None where it was not tried."""

    dict_drop: DropInfo | None = None
    cai_references: list[int] | None = None
    buffer: BufferLifeInfo | None = None
    capsule: CapsuleLifeInfo | None = None
    drops: list[DropInfo] | None = None
    resizes: dict[str, dict[str, ResizeInfo]] = field(default_factory=dict)


@dataclass
class RaceInfo:
    """What each of several threads read at the same time, and `LifeInfo.resizes` after they had
    given everything back.
    """

    infos: list[ArrayInfo] = field(default_factory=list)
    resizes: dict[str, dict[str, ResizeInfo]] = field(default_factory=dict)


@dataclass
class PendingInfo:
    """Whether each way out of an object with pending work gave that work's bytes (`streams`)."""

    error: str | None = None
    seen: dict[str, bool | None] = field(default_factory=dict)


@dataclass
class DriverInfo:
    """Which driver answered for device memory, or why none did."""

    name: str | None = None
    reason: str = ""


INTERFACE_ATTRIBUTES = (
    "__array_interface__",
    "__array_struct__",
    "__cuda_array_interface__",
    "__dlpack__",
    "__dlpack_c_exchange_api__",
    "__gt_data_interface__",
)
"""The attributes of the interfaces, of which an object without a buffer must have one."""


@dataclass
class Observation:
    """All that was measured of one product: it, its views, a second product, and their life.

    `gt4py` holds GT4Py's attributes by name. `live` marks an object without a plan, `has_memory` is
    False where the producer says that its objects have no memory to export, `exports_move` where it
    says that each export is another array. `origins` names, by group, the types of other libraries
    that answer for the object (`measure.origin`). `view_unchanged`: the view that was open while
    views of other shapes were requested.
    """

    type: str
    map_known: bool
    live: bool
    has_memory: bool = True
    exports_move: bool = False
    root: ArrayInfo = field(default_factory=ArrayInfo)
    origins: dict[str, str] = field(default_factory=dict)
    repeated: list[ArrayInfo] = field(default_factory=list)
    gt4py: dict[str, Value] = field(default_factory=dict)
    domain_starts: list[Value] | None = None
    naming: NamingInfo | None = None
    array_attribute: InterfaceInfo | None = None
    view: ArrayInfo | None = None
    second: ArrayInfo | None = None
    view_unchanged: bool | None = None
    life: LifeInfo | None = None
    race: RaceInfo | None = None
    pending: PendingInfo | None = None
    driver: DriverInfo = field(default_factory=DriverInfo)
    switched_off: list[str] = field(default_factory=list)

    def origin(self, group: str) -> str:
        """The type of another library that answers for what the rules of a group are about."""
        return self.origins.get("DL" if group == "DP" else group, "")

    @property
    def has_interface(self) -> bool:
        """Whether the object has an interface, right or wrong, or a question for one raised.
        `__cuda_stream__` of a stream counts as one."""
        probes = self.root.probes or {}
        found = (probes[name] for name in INTERFACE_ATTRIBUTES if name in probes)
        refusals = [one.error for one in self.root.pb.values()]
        is_buffer = any(error is None or error.type != "TypeError" for error in refusals)
        # `memoryview` raises TypeError for a `__buffer__` that returns something else (PB-28).
        is_buffer |= bool(self.root.python.methods) or self.root.cuda_stream is not None
        return is_buffer or any(probe.present or probe.error is not None for probe in found)

    @property
    def exports_nothing(self) -> bool:
        """Whether every export was refused, and the producer does not say that this is right."""
        info = self.root
        answers = (info.ai, info.struct, info.cai, info.main, info.gt_data, info.cuda_stream)
        given = any(answer is not None and answer.error is None for answer in answers)
        granted = any(one.view is not None for one in info.pb.values())
        return self.has_memory and not (given or granted or info.exchange is not None)
