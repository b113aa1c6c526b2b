"""What a run asks for: plans of arrays, element types, view operations, and how plans are drawn."""

from .plan import (
    ALIGNMENT_LIMIT_BYTES,
    DEVICES,
    DTYPES,
    KEYS,
    NDIM_LIMIT,
    UNTOUCHED_FROM_BYTES,
    NoContent,
    Plan,
    fill_bytes,
)

__all__ = [
    "ALIGNMENT_LIMIT_BYTES",
    "DEVICES",
    "DTYPES",
    "KEYS",
    "NDIM_LIMIT",
    "UNTOUCHED_FROM_BYTES",
    "NoContent",
    "Plan",
    "fill_bytes",
]
