"""Array types of one's own, which GT4Py, gridbuf and everybody who knows the interfaces take as they are."""

# [host]
import numpy as np


class ModelField:
    """A field of my model, levels outermost; nobody may swap its time levels while a stencil runs."""

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

    # The memory: NumPy reads this, and so does GT4Py for its CPU backends.
    @property
    def __array_interface__(self):
        return self.values.__array_interface__

    # The order of the dimensions.
    @property
    def __gt_dims__(self):
        return self.dims

    # Where the domain begins: in the order I, J, K, then data dimensions, whatever the order in memory.
    @property
    def __gt_origin__(self):
        lower = {name: pair[0] for name, pair in zip(self.dims, self.halo, strict=True)}
        data_dims = sorted((name for name in lower if name.isdigit()), key=int)
        return tuple(lower[name] for name in ("I", "J", "K", *data_dims) if name in lower)

    # All of that in one place, and who wants to know when a stencil begins and ends.
    @property
    def __gt_data_interface__(self):
        entry = dict(self.values.__array_interface__, dims=self.dims, halo=self.halo)
        return {None: entry | {"acquire": self._acquire, "release": self._release}}


# [/host]


# [device]
class MirroredField(ModelField):
    """The same with a second copy on a device. A side is brought up to date when somebody acquires it."""

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

    # Who takes these does not say what he will do: they are up to date, and count as written.
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

    # Who takes these does say it.
    @property
    def __gt_data_interface__(self):
        meaning = {"dims": self.dims, "halo": self.halo}
        host = {"acquire": self._to_host, "touch": self._wrote_host}
        device = {"acquire": self._to_device, "touch": self._wrote_device}
        return {
            None: self.values.__array_interface__ | meaning | host,
            "gpu": self.mirror.__cuda_array_interface__ | meaning | device,
        }


# [/device]

import gridbuf  # noqa: E402


def allocate_on_device(shape, dtype):
    """Yours is your own allocation; gridbuf's runs without a GPU, too."""
    return gridbuf.allocate(shape, dtype, device="gpu")


def copy(target, source):
    """Yours is your own copy."""
    gridbuf.copyto(target, source)
