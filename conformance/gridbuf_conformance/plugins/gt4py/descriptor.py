"""The descriptor of one entry of `__gt_data_interface__`."""

from __future__ import annotations

from dataclasses import replace

from ...abi.descriptors import Descriptor
from ...abi.device import LEGACY_STREAM
from ...info import NONE, EntryInfo
from ...interfaces.array_interface.descriptor import DictRules, address_and_flag, of_fields, present
from ...interfaces.dlpack_structs.structs import CUDA

_GT = DictRules("GT-01", *("GT-02",) * 9)


def of_entry(info: EntryInfo, key: str) -> Descriptor:
    """The descriptor of one entry of `__gt_data_interface__`, `key` being "None" or "gpu".

    Raises `Rejected` with GT-02 for an entry that describes no array.
    """
    fields = present(info.fields, ("shape", "typestr", "data"), _GT)
    array = of_fields("GT", fields, _GT, lambda: address_and_flag(fields["data"], _GT))
    stream = fields.get("stream", NONE)
    named = stream.value if stream.t == "int" and stream.value else None
    if key == "None":
        return array
    return replace(array, interface="CAI", device=(CUDA, 0), stream=named or LEGACY_STREAM)
