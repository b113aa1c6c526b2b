"""An array over the memory of a library, with DLPack: NumPy does the work."""

# [grid]
import ctypes

import numpy as np


class Grid:
    """Elements in C order. The memory is of ctypes here, and of your library in your class."""

    def __init__(self, shape, dtype="float64", readonly=False):
        self.shape, self.dtype, self.readonly = shape, np.dtype(dtype), readonly
        self._memory = (ctypes.c_char * (int(np.prod(shape)) * self.dtype.itemsize))()

    @property
    def __array_interface__(self):
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (ctypes.addressof(self._memory), self.readonly),
        }

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return np.asarray(self).__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self):
        return np.asarray(self).__dlpack_device__()


# [/grid]

if __name__ == "__main__":
    # [use]
    grid = Grid((3, 4))
    tensor = np.from_dlpack(grid)  # torch.from_dlpack(grid) gives PyTorch's tensor
    tensor[...] = 1.0
    del grid  # The memory lives as long as the tensor.
    assert tensor.sum() == 12.0
    # [/use]
