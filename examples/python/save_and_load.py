"""Storages in files of NumPy, and pickles."""

# [save]
import numpy as np

import gridbuf.storage

field = gridbuf.storage.zeros((20, 20, 8), backend="gt:cpu_ifirst", halo=(2, 2, 0))
field.domain_view[...] = 288.0

np.save("restart.npy", field)  # with the halo, in C order, without padding
restored = gridbuf.storage.storage(
    np.load("restart.npy", mmap_mode="r"), backend="gt:cpu_ifirst", halo=(2, 2, 0)
)
assert (restored == field).all()
assert restored.strides == field.strides and restored.halo == field.halo
# [/save]

# [domain]
np.save("output.npy", field.domain_view)
assert np.load("output.npy").shape == (16, 16, 8)
restored = gridbuf.storage.zeros_like(field)  # layout, alignment and halo of the field
restored.domain_view[...] = np.load("output.npy", mmap_mode="r")
assert (restored == field).all()
# [/domain]

# [several]
surface = gridbuf.storage.ones((20, 20), dims="IJ", backend="gt:cpu_ifirst", halo=(2, 2))
np.savez("model.npz", temperature=field, surface=surface)
with np.load("model.npz") as file:
    surface[...] = file["surface"]
    field[...] = file["temperature"]
# [/several]

# [in_place]
file = np.load("restart.npy", mmap_mode="r+")
in_file = gridbuf.storage.as_storage(file, halo=(2, 2, 0))
in_file.domain_view[...] += 1.0
file.flush()
assert np.load("restart.npy")[2, 2, 0] == 289.0
# [/in_place]

# [pickle]
import pathlib  # noqa: E402
import pickle  # noqa: E402

pathlib.Path("restart.pickle").write_bytes(pickle.dumps(field))
restored = pickle.loads(pathlib.Path("restart.pickle").read_bytes())
assert restored.strides == field.strides and restored.halo == field.halo
assert (restored == field).all()
# [/pickle]

# [device]
import gridbuf.testing  # noqa: E402

gridbuf.testing.emulated_device()  # leave this line out where there is a GPU

managed = gridbuf.storage.zeros((20, 20, 8), backend="gt:gpu", halo=(2, 2, 0))
managed += 1.0  # on the device
np.save("managed.npy", managed)  # gridbuf copies the device's elements to the host first
assert (np.load("managed.npy") == 1.0).all()

on_device = gridbuf.storage.storage(managed, managed=None)  # no buffer on the host
np.save("device.npy", gridbuf.storage.storage(on_device, device=None))  # a copy on the host
assert (np.load("device.npy") == 1.0).all()
assert isinstance(pickle.loads(pickle.dumps(on_device)), gridbuf.storage.GPUStorage)
# [/device]
