"""gridbuf: n-dimensional buffers for grid codes.

Arrays in a layout of your choice, padded, and aligned at an index of your choice. Any library can use them without a copy.

There are two kinds:

* plain arrays: `empty`, `zeros`, `ones`, `full`, their `_like` forms and `from_array` return `numpy.ndarray`;
* `allocate` returns a `Buffer`, which has names for its dimensions and exports the array interface, the buffer
  protocol, DLPack, `__gt_dims__` and `__gt_origin__`.

>>> import gridbuf
>>> field = gridbuf.zeros((3, 4, 5), backend="gt:cpu_ifirst")
>>> field.strides
(8, 64, 256)
>>> print(gridbuf.plan((3, 4), layout=(1, 0), alignment_size=64).padded_shape)
(8, 4)

`import gridbuf` is enough for the modules `gridbuf.gt4py`, `.mpi`, `.storage`, `.testing` and `.xarray`: each is imported when
it is first used.
"""

import importlib
from typing import TYPE_CHECKING

from ._config import show_config
from ._core import (
    Buffer,
    DeviceUnavailableError,
    GTNoSuchBufferError,
    LayoutPlan,
    SyncConflictError,
    allocate,
    as_buffer,
    as_cupy,
    as_numpy,
    copyto,
    declare_dims,
    empty,
    empty_like,
    from_array,
    from_interface,
    full,
    full_like,
    get_dims,
    get_origin,
    ones,
    ones_like,
    plan,
    presets,
    register_preset,
    zeros,
    zeros_like,
)
from ._digest import digest
from ._dims import Dim, half
from ._owns import owns
from ._stream import stream
from ._version import __version__
from .call import (
    IJ,
    IJK,
    IK,
    JK,
    Alignment,
    Axes,
    DefaultParameters,
    DType,
    ExpensiveCopyWarning,
    Field,
    FieldType,
    I,
    J,
    K,
    LayoutMap,
    SlowFieldWarning,
    StaleHaloError,
    StaleHaloWarning,
    Stencil,
    set_halo_check,
    stencil,
)
from .memory import alloc_info, get_num_threads, set_num_threads

__all__ = [
    "IJ",
    "IJK",
    "IK",
    "JK",
    "Alignment",
    "Axes",
    "Buffer",
    "DType",
    "DefaultParameters",
    "DeviceUnavailableError",
    "Dim",
    "ExpensiveCopyWarning",
    "Field",
    "FieldType",
    "GTNoSuchBufferError",
    "I",
    "J",
    "K",
    "LayoutMap",
    "LayoutPlan",
    "SlowFieldWarning",
    "StaleHaloError",
    "StaleHaloWarning",
    "Stencil",
    "SyncConflictError",
    "__version__",
    "alloc_info",
    "allocate",
    "as_buffer",
    "as_cupy",
    "as_numpy",
    "copyto",
    "declare_dims",
    "digest",
    "empty",
    "empty_like",
    "from_array",
    "from_interface",
    "full",
    "full_like",
    "get_dims",
    "get_num_threads",
    "get_origin",
    "half",
    "ones",
    "ones_like",
    "owns",
    "plan",
    "presets",
    "register_preset",
    "set_halo_check",
    "set_num_threads",
    "show_config",
    "stencil",
    "stream",
    "zeros",
    "zeros_like",
]

if TYPE_CHECKING:
    from . import gt4py as gt4py
    from . import mpi as mpi
    from . import storage as storage
    from . import testing as testing
    from . import xarray as xarray
else:
    _LAZY = ("gt4py", "mpi", "storage", "testing", "xarray")

    def __dir__():
        return [*__all__, "call", "memory", *_LAZY]

    def __getattr__(name):
        if name not in _LAZY:
            raise AttributeError(f"module 'gridbuf' has no attribute {name!r}")
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ImportError as error:  # `hasattr`, `inspect` and `help` expect an AttributeError
            raise AttributeError(str(error)) from error
