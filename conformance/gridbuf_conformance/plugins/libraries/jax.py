"""JAX arrays on the CPU. They are immutable: plans that ask for writable memory are declined."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np

from ...plan import Plan
from ...producers.base import INTEGERS, HostProducer, row_major
from .numpy import numpy_dtype

_SPECIAL = tuple(
    name
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
    if hasattr(ml_dtypes, name) and hasattr(jax.numpy, name)
)
_DTYPES = ("float64", "float32", "float16", *INTEGERS, "bool", "complex64", "complex128", *_SPECIAL)


class JaxProducer(HostProducer):
    """`jax.numpy.array` of a copy, with 64-bit types switched on. Slices are copies."""

    name = "jax"
    no_views = "its views are new arrays"
    capabilities = row_major(_DTYPES, readonly=(True,))

    def __init__(self) -> None:
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_platforms", "cpu")

    def make(self, plan: Plan) -> jax.Array:
        special = plan.dtype in _SPECIAL
        dtype = np.dtype(getattr(ml_dtypes, plan.dtype)) if special else numpy_dtype(plan)
        content = np.frombuffer(plan.content(), dtype).reshape(plan.shape)
        return jax.numpy.array(content, copy=True).block_until_ready()


class DeletedProducer(JaxProducer):
    """Arrays after `delete()`, which is also what becomes of donated arguments."""

    name = "jax.deleted"
    has_memory = False

    def make(self, plan: Plan) -> jax.Array:
        result = super().make(plan)
        result.delete()
        return result


class KeysProducer(JaxProducer):
    """Arrays of keys of `jax.random`, an element type that no interface has words for."""

    name = "jax.keys"
    capabilities = row_major(("uint32",), max_nbytes=2**12, readonly=(True,))
    has_memory = False

    def make(self, plan: Plan) -> jax.Array:
        return (
            jax.random.key(0) if not plan.ndim else jax.random.split(jax.random.key(0), plan.shape)
        )


class TracedProducer(JaxProducer):
    """The tracers that a function sees under `jax.jit`: shapes and element types without memory."""

    name = "jax.traced"
    has_memory = False

    def make(self, plan: Plan) -> jax.Array:
        seen: list[jax.Array] = []
        jax.eval_shape(seen.append, super().make(plan))
        return seen[0]
