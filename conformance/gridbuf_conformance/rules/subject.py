"""What a check looks at: the info on one array, its descriptors, and what the plan asked of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from ..abi import elements
from ..abi.descriptors import Descriptor, Rejected, sample_indices
from ..interfaces.dlpack_structs.descriptor import of_dlpack
from ..interfaces.descriptors import readers
from ..abi.elements import Element
from ..info import (
    NONE,
    ArrayInfo,
    CapsuleInfo,
    DataInterfaceInfo,
    ErrorInfo,
    ExchangeInfo,
    InterfaceInfo,
    LifeInfo,
    MappingInfo,
    Observation,
    PointerInfo,
    ProbeInfo,
    StreamInfo,
    StreamObjectInfo,
    StructInfo,
    Value,
    ViewInfo,
)
from ..plan import Plan
from ..plan.views import ViewMap
from .scope import Scope

_T = TypeVar("_T")


def _there(part: _T | None) -> _T:
    """A part that the rule's preconditions have made sure of."""
    if part is None:
        raise LookupError("the interface was not measured")
    return part


_ATTRIBUTES = {
    "AI": "__array_interface__",
    "AS": "__array_struct__",
    "CAI": "__cuda_array_interface__",
    "CS": "__cuda_stream__",
    "DX": "__dlpack_c_exchange_api__",
    "GTD": "__gt_data_interface__",
}


class Subject:
    """One measured array: the produced one (`is_view` False), or what the plan's views made of it.

    `arrays` holds a descriptor for every interface whose metadata can be believed ("AI", "AS",
    "PB", "DL", "CAI"); `rejected` the id of the rule that each of the others breaks, None for
    elements that are not whole bytes.
    """

    def __init__(
        self,
        info: ArrayInfo,
        observation: Observation,
        plan: Plan | None,
        scope: Scope,
        root: Subject | None = None,
    ) -> None:
        self.info = info
        self.observation = observation
        self.plan = plan
        self.scope = scope
        self.root = root or self
        self.is_view = root is not None
        self.arrays: dict[str, Descriptor] = {}
        self.rejected: dict[str, str | None] = {}
        for name, read in readers(info).items():
            try:
                self.arrays[name] = read()
            except Rejected as rejection:
                self.rejected[name] = rejection.rule

    # -- the observed interfaces ------------------------------------------------------------------

    def has(self, interface: str) -> bool:
        """Whether the object has an interface at all, right or wrong.

        "DLPACK" is the method `__dlpack__`, "DL" a capsule that it gave, "DX" the exchange table of
        its type, "GTD" `__gt_data_interface__`.
        """
        if interface == "PB":
            return bool(self.views)
        main = self.info.main
        if interface == "DL":
            return main is not None and main.error is None
        parts = {
            "AI": self.info.ai,
            "AS": self.info.struct,
            "CAI": self.info.cai,
            "CS": self.info.cuda_stream,
            "DLPACK": main,
            "DX": self.info.exchange,
            "GTD": self.info.gt_data,
        }
        return parts[interface] is not None

    def probe_error(self, interface: str) -> bool:
        """Whether the very question for the interface's attribute raised."""
        probe = self.probes.get(_ATTRIBUTES.get(interface, "__dlpack__"))
        return interface != "PB" and probe is not None and probe.error is not None

    # -- info by theme ----------------------------------------------------------------------------

    @property
    def probes(self) -> dict[str, ProbeInfo]:
        return self.info.probes or {}

    @property
    def ai(self) -> InterfaceInfo:
        return _there(self.info.ai)

    @property
    def struct(self) -> StructInfo:
        return _there(self.info.struct)

    @property
    def cai(self) -> InterfaceInfo:
        return _there(self.info.cai)

    @property
    def cuda_stream(self) -> StreamObjectInfo:
        return _there(self.info.cuda_stream)

    @property
    def main(self) -> CapsuleInfo:
        return _there(self.info.main)

    @property
    def exchange(self) -> ExchangeInfo:
        return _there(self.info.exchange)

    @property
    def gt_data(self) -> DataInterfaceInfo:
        return _there(self.info.gt_data)

    @property
    def stream(self) -> StreamInfo:
        return _there(self.info.stream)

    @property
    def fields(self) -> dict[str, Value]:
        """The described items of the array interface's dict."""
        return _there(self.ai.fields)

    @property
    def cuda_fields(self) -> dict[str, Value]:
        """The described items of the CUDA array interface's dict."""
        return _there(self.cai.fields)

    @property
    def cuda_version(self) -> int:
        """The version that the CUDA array interface states, which picks the rules; 0 for none."""
        version = self.cuda_fields.get("version", NONE)
        return int(version.value) if version.t == "int" else 0

    @property
    def no_driver(self) -> str:
        """Why no driver could be asked about device memory; empty where one could."""
        driver = self.observation.driver
        return "" if driver.name else driver.reason

    @property
    def pending(self) -> dict[str, bool | None]:
        """Whether each way out of an object with pending work gave the bytes of that work."""
        pending = self.observation.pending
        return {} if pending is None else pending.seen

    @property
    def device_error(self) -> str:
        """What the device answered instead of working when streams were looked at, or nothing."""
        pending = self.observation.pending
        return self.info.device_error or (pending.error if pending is not None else None) or ""

    @cached_property
    def views(self) -> dict[str, ViewInfo]:
        """The buffer requests that were granted: name → fields of the view."""
        return {name: one.view for name, one in self.info.pb.items() if one.view is not None}

    @cached_property
    def refusals(self) -> dict[str, tuple[ErrorInfo, bool]]:
        """The buffer requests that were refused: name → (error, whether `view.obj` is NULL)."""
        return {
            name: (one.error, one.obj_is_null)
            for name, one in self.info.pb.items()
            if one.error is not None
        }

    @property
    def calls(self) -> dict[str, CapsuleInfo]:
        """What `__dlpack__` answered to each call."""
        return self.info.dlpack

    def call(self, name: str) -> CapsuleInfo:
        """What `__dlpack__` answered to one call; nothing where it was not made."""
        return self.info.dlpack.get(name, CapsuleInfo())

    @cached_property
    def capsules(self) -> dict[str, CapsuleInfo]:
        """The info on every capsule whose struct could be read, the held one included."""
        answers = {**self.calls, "held": self.info.main or CapsuleInfo()}
        return {name: one for name, one in answers.items() if one.is_tensor}

    def tensor(self, call: str) -> Descriptor | None:
        """The array that the capsule of one call describes, or None."""
        try:
            return of_dlpack(self.calls[call])
        except (KeyError, Rejected):
            return None

    @property
    def life(self) -> LifeInfo:
        return self.observation.life or LifeInfo()

    @property
    def mapping(self) -> dict[str, MappingInfo]:
        return self.info.mapping

    def pointer(self, interface: str) -> PointerInfo | None:
        """What the driver says of the address that an interface names."""
        mapping = self.mapping.get(interface)
        return None if mapping is None else mapping.pointer

    @property
    def walks(self) -> dict[str, str]:
        return {name: content for name, content in self.info.walk.items() if content is not None}

    # -- the request ------------------------------------------------------------------------------

    @property
    def asked(self) -> Plan:
        """The plan, for checks that have made sure that there is one."""
        if self.plan is None:
            raise LookupError("this object has no plan")
        return self.plan

    @cached_property
    def view_map(self) -> ViewMap | None:
        if self.plan is None:
            return None
        return self.plan.view_map if self.is_view else self.plan.without_views.view_map

    @property
    def asked_element(self) -> Element | None:
        """The element type of the plan."""
        if self.plan is None:
            return None
        return elements.of_plan(self.plan.dtype_info, self.plan.byteorder)

    @cached_property
    def expected_walk(self) -> str | None:
        """The bytes that the sampled elements must hold, in hex; None if the plan asks for none."""
        if self.plan is None or self.view_map is None or self.plan.fill is None:
            return None
        indices = sample_indices(self.view_map.shape)
        base_index = self.view_map.base_index
        return b"".join(self.plan.element_bytes(base_index(i)) for i in indices).hex()

    # -- comparing --------------------------------------------------------------------------------

    def others(self, interface: str) -> dict[str, Descriptor]:
        """The other interfaces' believable arrays over the same memory, no raw or indirect ones.

        The host's and the device's interface of one object may speak of two mirrors: those are not
        compared here.
        """
        mine = self.arrays.get(interface)
        return {
            name: array
            for name, array in self.comparable.items()
            if name != interface and (mine is None or mine.sides & array.sides)
        }

    @cached_property
    def comparable(self) -> dict[str, Descriptor]:
        """The arrays that can be compared with each other.

        An array interface without an address is only compared if it uses the object's own buffer
        (AI-17), and that buffer says more than plain bytes; arrays of pointers are left out.
        """
        return {
            name: array
            for name, array in self.arrays.items()
            if not array.is_indirect and (not array.is_raw or self._describes_own_buffer())
        }

    def stated_in_elements(self, interface: str) -> str | None:
        """Another interface whose byte strides are those of this one, multiplied by the item size.

        Only where the elements would overlap in part if these strides counted bytes.
        """
        mine = self.arrays[interface]
        strides = [stride for stride in mine.meaningful_strides if stride]
        if all(abs(stride) >= mine.itemsize for stride in strides):
            return None
        in_bytes = tuple(None if n is None else n * mine.itemsize for n in mine.meaningful_strides)
        for name, other in self.others(interface).items():
            if (other.shape, other.meaningful_strides) == (mine.shape, in_bytes):
                return name
        return None

    def _describes_own_buffer(self) -> bool:
        """Whether the array interface's array is in the object's own buffer, which has one, too.

        A buffer of bytes is only memory, and so is one of a single dimension under an array of
        several.
        """
        data, buffer = self.fields.get("data", NONE), self.arrays.get("PB")
        if data.t != "none" or buffer is None or buffer.itemsize == 1:
            return False
        return buffer.ndim > 1 or buffer.ndim == self.arrays["AI"].ndim

    def shares_memory_with_root(self, interface: str) -> bool:
        """Whether this view is in the memory of the produced array (and is not a copy of it)."""
        mine = self.arrays.get(interface)
        base = self.root.arrays.get(interface)
        return mine is not None and base is not None and overlap(mine, base)

    def expected_view(self, interface: str) -> Descriptor | None:
        """Where the plan's view operations put this view, from the produced array's descriptor."""
        base = self.root.arrays.get(interface)
        if base is None or self.view_map is None or base.shape != self.asked.shape:
            return None
        if not self.root.mapping.get(interface, MappingInfo()).read:
            return None  # strides that leave the block lead nowhere
        return replace(
            base,
            address=base.address + self.view_map.offset(base.strides),
            shape=self.view_map.shape,
            strides=self.view_map.strides(base.strides),
        )


def overlap(one: Descriptor, other: Descriptor) -> bool:
    """Whether two arrays' hulls share an address; an empty array shares none."""
    a, b = one.span, other.span
    return a is not None and b is not None and a[0] < b[1] and b[0] < a[1]
