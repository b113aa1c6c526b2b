"""mpi4py's `MPI.buffer`: bytes for messages, allocated by mpi4py or exported by another object."""

from __future__ import annotations

import mpi4py

from ...plan import Plan
from ...producers.base import FlatBytesProducer, flat_bytes

# Memory needs neither of them, and a test of memory must not start MPI.
mpi4py.rc.initialize = False
mpi4py.rc.finalize = False

from mpi4py import MPI  # noqa: E402 (after its settings)


class Mpi4pyProducer(FlatBytesProducer):
    """`MPI.buffer.allocate`, for read-only plans `MPI.buffer.frombuffer` of bytes."""

    name = "mpi4py"
    capabilities = flat_bytes(readonly=(False, True))

    def make(self, plan: Plan) -> MPI.buffer:
        if plan.readonly:
            return MPI.buffer.frombuffer(bytes(bytearray(plan.content())), readonly=True)
        memory = MPI.buffer.allocate(plan.nbytes)
        memory[:] = plan.content()
        return memory
