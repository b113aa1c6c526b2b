"""Where the memory of a model goes: temporaries in a workspace, fields that processes share, digests."""

# [workspace]
import multiprocessing

import numpy as np

import gridbuf

space = gridbuf.memory.Workspace(8 * 2**30)  # addresses; no memory yet
assert space.committed == 0

with space.taken_by("diffusion"):
    flux = np.asarray(space)[: 2**23].view(np.float64)  # 2**20 values
    flux[:] = 0.5
    space.need(flux.nbytes)
assert space.peak == flux.nbytes
assert space.committed >= flux.nbytes  # the pages that the program has touched

space.trim()  # back to the system, until the next program touches them
assert space.committed < flux.nbytes
# [/workspace]


# [shared]
def heat(field, amount):
    field.domain_view[...] += amount  # of the parent's memory: no copy


if __name__ == "__main__":
    field = gridbuf.storage.zeros((64, 64, 32), halo=(2, 2, 0), memory="shared")
    worker = multiprocessing.get_context("spawn").Process(target=heat, args=(field, 0.5))
    worker.start()
    worker.join()
    assert (field.domain_view == 0.5).all()
    # [/shared]

    # [digest]
    other = gridbuf.storage.storage(field, layout=(2, 0, 1), alignment_size=64)
    assert gridbuf.digest(other) == gridbuf.digest(field)  # no layout changes it
    other[2, 2, 0] = np.nextafter(0.5, 1)  # the last bit of one value
    assert gridbuf.digest(other) != gridbuf.digest(field)
    # [/digest]

    # [report]
    print(gridbuf.memory.report())
    # [/report]
