"""What a check looks at: the info on one array, its descriptors, and what the plan asked of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from .. import elements
from ..descriptors import Descriptor, Rejected, of_dlpack, readers, sample_indices
from ..elements import Element
from ..plan import Plan
from ..views import ViewMap

__all__ = ["Subject", "overlap"]


_KEYS = {
    "AI": "ai",
    "AS": "as",
    "CAI": "cai",
    "DLPACK": "main",
    "DX": "exchange",
    "GTD": "gt_data",
}
_ATTRIBUTES = {
    "AI": "__array_interface__",
    "AS": "__array_struct__",
    "CAI": "__cuda_array_interface__",
    "DX": "__dlpack_c_exchange_api__",
    "GTD": "__gt_data_interface__",
}


class Subject:
    """One measured array: the produced one (`is_view` False), or what the plan's views made of it.

    `arrays` holds a descriptor for every interface whose metadata can be believed ("AI", "AS", "PB", "DL", "CAI");
    `rejected` the id of the rule that each of the others breaks, None for elements that are no whole bytes.
    """

    def __init__(
        self,
        info: dict[str, Any],
        observation: dict[str, Any],
        plan: Plan | None,
        root: Subject | None = None,
    ) -> None:
        self.info = info
        self.observation = observation
        self.plan = plan
        self.root = root or self
        self.is_view = root is not None
        self.arrays: dict[str, Descriptor] = {}
        self.rejected: dict[str, str | None] = {}
        for name, read in readers(info).items():
            try:
                self.arrays[name] = read()
            except Rejected as rejection:
                self.rejected[name] = rejection.rule

    # -- what is there --------------------------------------------------------------------------------

    def has(self, interface: str) -> bool:
        """Whether the object has an interface at all, right or wrong.

        "DLPACK" is the method `__dlpack__`, "DL" a capsule that it gave, "DX" the exchange table of its type, "GTD"
        `__gt_data_interface__`.
        """
        if interface == "PB":
            return bool(self.views)
        if interface == "DL":
            return "error" not in self.info.get("main", {"error": None})
        return _KEYS[interface] in self.info

    def probe_error(self, interface: str) -> bool:
        """Whether the very question for the interface's attribute raised."""
        attribute = _ATTRIBUTES.get(interface, "__dlpack__")
        return interface != "PB" and "error" in self.info["probes"].get(attribute, {})

    # -- info by theme ---------------------------------------------------------------------------------

    @property
    def fields(self) -> dict[str, Any]:
        """The described items of the array interface's dict."""
        return cast("dict[str, Any]", self.info["ai"]["fields"])

    @property
    def cuda_fields(self) -> dict[str, Any]:
        """The described items of the CUDA array interface's dict."""
        return cast("dict[str, Any]", self.info["cai"]["fields"])

    @property
    def cuda_version(self) -> int:
        """The version that the CUDA array interface states: it picks the rules. 0 where it states none."""
        version = self.cuda_fields.get("version", {})
        return version["value"] if version.get("t") == "int" else 0

    @property
    def no_driver(self) -> str:
        """Why nobody could be asked about device memory; empty where somebody could."""
        driver = self.observation["driver"]
        return "" if driver["name"] else driver["reason"]

    @property
    def device_error(self) -> str:
        """What the device answered instead of working, where streams were to be looked at; usually nothing."""
        pending = self.observation.get("pending") or {}
        return str(self.info.get("device_error") or pending.get("error", ""))

    @cached_property
    def views(self) -> dict[str, dict[str, Any]]:
        """The buffer requests that were granted: name → fields of the view."""
        return {name: part["view"] for name, part in self.info["pb"].items() if "view" in part}

    @cached_property
    def refusals(self) -> dict[str, dict[str, Any]]:
        """The buffer requests that were refused: name → {"error", "obj_is_null"}."""
        return {name: part for name, part in self.info["pb"].items() if "error" in part}

    @property
    def calls(self) -> dict[str, dict[str, Any]]:
        """What `__dlpack__` answered to each call."""
        return cast("dict[str, dict[str, Any]]", self.info.get("dlpack", {}))

    @cached_property
    def capsules(self) -> dict[str, dict[str, Any]]:
        """The info on every capsule whose struct could be read, the held one included."""
        answers = {**self.calls, "held": self.info.get("main", {})}
        return {name: part for name, part in answers.items() if "deleter" in part}

    def tensor(self, call: str) -> Descriptor | None:
        """The array that the capsule of one call describes, or None."""
        try:
            return of_dlpack(self.calls[call])
        except (KeyError, Rejected):
            return None

    @property
    def life(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.observation.get("life", {}))

    @property
    def mapping(self) -> dict[str, dict[str, Any]]:
        return cast("dict[str, dict[str, Any]]", self.info["mapping"])

    @property
    def walks(self) -> dict[str, str]:
        return cast("dict[str, str]", self.info.get("walk", {}))

    # -- what was asked ---------------------------------------------------------------------------------

    @property
    def asked(self) -> Plan:
        """The plan, for checks that have made sure that there is one."""
        if self.plan is None:
            raise LookupError("nobody asked for this object")
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
        """The bytes that the sampled elements must hold, in hexadecimal; None if the plan asks for none."""
        if self.plan is None or self.view_map is None or self.plan.fill is None:
            return None
        indices = sample_indices(self.view_map.shape)
        base_index = self.view_map.base_index
        return b"".join(self.plan.element_bytes(base_index(i)) for i in indices).hex()

    # -- comparing --------------------------------------------------------------------------------------

    def others(self, interface: str) -> dict[str, Descriptor]:
        """The believable arrays of the other interfaces over the same memory, raw and indirect ones left out.

        The host's and the device's interface of one object may speak of two mirrors: those are not compared here.
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

        An array interface that exports plain bytes (AI-17) is only compared by what it is, not with the
        buffer that it borrows from; arrays of pointers are left out.
        """
        return {
            name: array
            for name, array in self.arrays.items()
            if not array.is_indirect and not array.is_raw
        }

    def shares_memory_with_root(self, interface: str) -> bool:
        """Whether this view lies in the produced array's memory (and is no copy of it)."""
        mine = self.arrays.get(interface)
        base = self.root.arrays.get(interface)
        return mine is not None and base is not None and overlap(mine, base)

    def expected_view(self, interface: str) -> Descriptor | None:
        """Where the plan's view operations put this view, computed from the produced array's descriptor."""
        base = self.root.arrays.get(interface)
        if base is None or self.view_map is None or base.shape != self.asked.shape:
            return None
        if not self.root.mapping.get(interface, {}).get("read", True):
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
