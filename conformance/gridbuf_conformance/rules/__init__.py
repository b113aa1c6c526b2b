"""The checks: for each rule of the catalogue that is judged, one pure function from info to a verdict.

A check takes a `Subject` (the measurements of one array) and returns a `Verdict`. It fails only on
proof: what the info leaves open is PASS with a note, UNSUPPORTED or UNTESTED, never FAIL. Preconditions,
levels and merging are the judge's business, not the checks'.
"""

from . import (
    agreement,
    array_interface,
    array_struct,
    buffer_protocol,
    consume_cuda_array_interface,
    consume_data_interface,
    consume_dlpack_exchange,
    consume_dlpack_protocol,
    consume_dlpack_structs,
    consume_host_interfaces,
    cuda_array_interface,
    dlpack_exchange,
    dlpack_protocol,
    dlpack_structs,
    gt4py_protocol,
    storage_spec,
)
from .consumer_registry import CONSUMER_CHECKS, ConsumerCheck
from .registry import CHECKS, Check
from .subject import Subject

__all__ = [
    "CHECKS",
    "CONSUMER_CHECKS",
    "Check",
    "ConsumerCheck",
    "Subject",
    "agreement",
    "array_interface",
    "array_struct",
    "buffer_protocol",
    "consume_cuda_array_interface",
    "consume_data_interface",
    "consume_dlpack_exchange",
    "consume_dlpack_protocol",
    "consume_dlpack_structs",
    "consume_host_interfaces",
    "cuda_array_interface",
    "dlpack_exchange",
    "dlpack_protocol",
    "dlpack_structs",
    "gt4py_protocol",
    "storage_spec",
]
