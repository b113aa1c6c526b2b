"""How the conformance suite makes arrays of the types in fields.py.

gridbuf-conformance check producer.py:Producer
"""

# [producer]
import gridbuf_conformance as gc
import numpy as np
from fields import MirroredField, ModelField

import gridbuf.testing


class Producer(gc.Producer):
    name = "mymodel"
    kind = ModelField
    capabilities = gc.Capabilities(
        dtypes=("float64", "float32", "int32"),
        readonly=(False,),
        layouts="C",
        dims=True,
        halo=True,
        max_ndim=5,
        max_nbytes=2**24,
    )

    def produce(self, plan):
        shape, dtype = plan["shape"], plan["dtype"]
        dims = plan["dims"] or gridbuf.plan(shape).dims
        if not all(name in ("I", "J", "K") or name.isdigit() for name in dims):
            return gc.Unsupported("a ModelField is over I, J, K and numbers")
        field = self.kind(shape, dims, plan["halo"], dtype)
        field.values[...] = np.frombuffer(plan.content(), dtype).reshape(shape)
        return field

    def apply_view(self, field, operation):
        return gc.Unsupported("a ModelField has no views")


# [/producer]


class OnDevice(Producer):
    """MirroredField. The suite reads device memory through gridbuf's device table, emulated or CUDA."""

    name = "mymodel.mirrored"
    kind = MirroredField
    capabilities = gc.Capabilities(**Producer.capabilities.__dict__ | {"devices": ("gpu",)})

    def __init__(self):
        gridbuf.testing.emulated_device()  # leave this line out where there is a GPU

    def device_table(self):
        return gridbuf.testing.device_table()
