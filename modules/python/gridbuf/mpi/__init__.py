"""Fields over several processes: which rank has which part of a grid, and how halos are filled from the neighbours.

A `Decomposition` cuts the dimensions of a grid, by their names, into one part per rank of an MPI communicator. Each rank
makes storages for its part, with a halo. A `HaloExchange` fills the halos with the values of the neighbours.

>>> import gridbuf.mpi, gridbuf.storage
>>> grid = gridbuf.mpi.Decomposition({"I": 128, "J": 96}, periodic="I")
>>> halo = ((2, 2), (2, 2), (0, 0))
>>> shape = grid.local_shape((128, 96, 40), dims="IJK", halo=halo)
>>> u = gridbuf.storage.zeros(shape, dims="IJK", halo=halo)
>>> exchange = gridbuf.mpi.HaloExchange(grid, u)
>>> exchange(u)

A dimension that the decomposition does not name is not cut, and its halo is not exchanged. An exchange sends points of the
domain into the halo of the neighbour, one message per neighbour for all fields. Of a storage on a device only the boxes that
are sent and received are copied.

There are two engines: GHEX where it is installed (`pip install ghex`) and supports the fields, else mpi4py alone
(`pip install mpi4py mpich`). mpi4py is imported when the first decomposition is made.
"""

from ._decomposition import Decomposition
from ._exchange import HaloExchange, PendingExchange
from ._failures import HaloExchangeError

__all__ = [
    "Decomposition",
    "HaloExchange",
    "HaloExchangeError",
    "PendingExchange",
]


def __dir__() -> list[str]:
    return __all__
