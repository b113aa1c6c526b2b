"""Two array types of a model. GT4Py, gridbuf and other users of these interfaces take them unchanged."""

# [host]
import numpy as np


class ModelField:
    """A field of my model, levels outermost. Its time levels must not be swapped while a stencil runs."""

    def __init__(self, shape, dims=("K", "J", "I"), halo=None, dtype="float64"):
        self.dims = tuple(dims)
        self.halo = halo or tuple((0, 0) for _ in shape)
        self.values = np.zeros(shape, dtype)
        self.users = 0

    def swap(self, other):
        """Exchanges the memory of two time levels."""
        if self.users or other.users:
            raise RuntimeError("a field is in use by a stencil; swap after the call")
        self.values, other.values = other.values, self.values

    def _acquire(self):
        self.users += 1

    def _release(self):
        self.users -= 1

    # The memory. NumPy reads this, and GT4Py for its CPU backends.
    @property
    def __array_interface__(self):
        return self.values.__array_interface__

    # The order of the dimensions.
    @property
    def __gt_dims__(self):
        return self.dims

    # The first point of the domain, always in the order I, J, K, then data dimensions.
    @property
    def __gt_origin__(self):
        lower = {name: pair[0] for name, pair in zip(self.dims, self.halo, strict=True)}
        data_dims = sorted((name for name in lower if name.isdigit()), key=int)
        return tuple(lower[name] for name in ("I", "J", "K", *data_dims) if name in lower)

    # All of the above, and the hooks that a stencil calls at its begin and end.
    @property
    def __gt_data_interface__(self):
        entry = dict(self.values.__array_interface__, dims=self.dims, halo=self.halo)
        return {None: entry | {"acquire": self._acquire, "release": self._release}}


# [/host]


# [device]
class MirroredField(ModelField):
    """The same with a second copy on a device. `acquire` updates a side."""

    def __init__(self, shape, dims=("K", "J", "I"), halo=None, dtype="float64"):
        super().__init__(shape, dims, halo, dtype)
        self.mirror = allocate_on_device(shape, dtype)
        self.newer = "host"  # or "device", or None

    def _to_host(self):
        if self.newer == "device":
            copy(self.values, self.mirror)
            self.newer = None

    def _to_device(self):
        if self.newer == "host":
            copy(self.mirror, self.values)
            self.newer = None

    def _wrote_host(self):
        self.newer = "host"

    def _wrote_device(self):
        self.newer = "device"

    # A consumer of these may write. So the side is updated, and marked as written.
    @property
    def __array_interface__(self):
        self._to_host()
        self._wrote_host()
        return self.values.__array_interface__

    @property
    def __cuda_array_interface__(self):
        self._to_device()
        self._wrote_device()
        return self.mirror.__cuda_array_interface__

    # A consumer of these calls the hooks.
    @property
    def __gt_data_interface__(self):
        meaning = {"dims": self.dims, "halo": self.halo}
        host = {"acquire": self._to_host, "touch": self._wrote_host}
        device = {"acquire": self._to_device, "touch": self._wrote_device}
        return {
            None: self.values.__array_interface__ | meaning | host,
            "gpu": self.mirror.__cuda_array_interface__ | meaning | device,
        }


import gridbuf  # noqa: E402


def allocate_on_device(shape, dtype):
    """Use your own allocation here. gridbuf's also runs without a GPU."""
    return gridbuf.allocate(shape, dtype, device="gpu")


def copy(target, source):
    """Use your own copy here."""
    gridbuf.copyto(target, source)


# [/device]
