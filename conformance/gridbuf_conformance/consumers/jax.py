"""JAX's imports, with 64-bit numbers switched on.

By default JAX narrows every 64-bit number to 32 bits, as it says in its documentation and for all
ways in. That would hide what else becomes of such arrays, so it is switched off first.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.dlpack

__all__ = ["from_dlpack"]

jax.config.update("jax_enable_x64", True)


def from_dlpack(exporter: Any) -> jax.Array:
    """`jax.dlpack.from_dlpack`."""
    return jax.dlpack.from_dlpack(exporter)
