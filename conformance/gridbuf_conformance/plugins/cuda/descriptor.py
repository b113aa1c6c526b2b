"""The descriptor of a `__cuda_array_interface__` dict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...abi.descriptors import Descriptor
from ...abi.device import LEGACY_STREAM
from ...info import NONE, ArrayInfo, InterfaceInfo
from ...interfaces.array_interface.descriptor import DictRules, address_and_flag, of_fields, present
from ...interfaces.dlpack_structs.structs import CUDA

_CAI = DictRules(
    *("CAI-01", "CAI-02", "CAI-03", "CAI-04", "CAI-04"),
    *("CAI-04", "CAI-12", "CAI-11", "CAI-05", "CAI-07"),
)


def of_cuda_interface(info: InterfaceInfo) -> Descriptor:
    """The descriptor of a `__cuda_array_interface__` dict; raises `Rejected` with the broken rule.

    Before version 3 there was no word on streams: everything is ordered behind the legacy default
    stream.
    """
    fields = present(info.fields, ("shape", "typestr", "data", "version"), _CAI)
    array = of_fields("CAI", fields, _CAI, lambda: address_and_flag(fields["data"], _CAI))
    version, stream = fields["version"], fields.get("stream", NONE)
    named = stream.value if stream.t == "int" and stream.value else None
    has_streams = version.t == "int" and version.value >= 3
    return replace(array, device=(CUDA, 0), stream=named if has_streams else LEGACY_STREAM)


def readers(info: ArrayInfo) -> dict[str, Callable[[], Descriptor]]:
    """The interface, if the object has it, with the function that reads or rejects what it says."""
    dictionary = info.cai
    if dictionary is None or dictionary.error is not None:
        return {}
    return {"CAI": lambda: of_cuda_interface(dictionary)}
