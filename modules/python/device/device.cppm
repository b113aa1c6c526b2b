// gridbuf.python.device: devices, streams and the emulated device, as Python sees them.
//
// Purpose. The functions below `gridbuf.stream`, `gridbuf.testing` and the device section of
// `gridbuf.show_config`. They are private (`gridbuf._core._device_…`): what users call is written
// in Python over them, where context managers and documentation are easier to write and to read.
//
// Key choices. Whatever may wait for a stream runs without the GIL, because work of the emulated
// device may be Python (NumPy inside a kernel) and runs on the thread that waits. And when the
// interpreter begins to go, an atexit callback says so to gridbuf.device: arrays that die
// after that moment leave device memory to the system, for the driver may be gone before them.
module;

#include <Python.h>

export module gridbuf.python.device;

import gridbuf.device;

export namespace gridbuf::python {

/// The handle of a stream from a Python integer. TypeError for other kinds (bool too), ValueError
/// for 0, negative numbers and those beyond 64 bits. Whether the stream lives is the driver's to
/// say.
StreamHandle to_stream_handle(PyObject* object);

/// Adds the functions to `module`, and registers the callback for the end. Called once, by the
/// extension's initialisation.
void add_device_functions(PyObject* module);

}  // namespace gridbuf::python
