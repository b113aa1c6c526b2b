// gridbuf.python.cupy: plain arrays on the GPU, which are CuPy's.
//
// Purpose. `gridbuf.zeros(shape, device="gpu")` is a `cupy.ndarray`, so that it goes wherever
// CuPy's arrays go. Its bytes come from CuPy's current allocator and not from gridbuf's, so that a
// pool that the user has set (CuPy's own, RMM) serves these arrays as it serves all others, and its
// limits hold. Buffers on a device need no CuPy: they are gridbuf.alloc's.
//
// Key choice. Only the bytes are CuPy's: strides, padding and the aligned address are those of the
// layout plan and of `place`, as for every other memory. A slightly larger block is taken and the
// array begins inside it.
//
// CuPy is imported by the first such call and never before. Where it, or a GPU, is missing, and on
// the emulated device, of which CuPy knows nothing, the error says what was looked for.

module;

#include <Python.h>

export module gridbuf.python.cupy;

import gridbuf.layout;
import gridbuf.python.numpy;
import gridbuf.python.object;

export namespace gridbuf::python {

/// A `cupy.ndarray` as `plan` says. `zeroed`: elements and padding are zeros, written on CuPy's
/// current stream. TypeError for dtypes that CuPy does not have; DeviceUnavailableError; CuPy's own
/// MemoryError.
py::object make_cupy_array(const Layout& plan, const DTypeRecord& dtype, bool zeroed);

/// Writes `value` to all elements, broadcast and cast as numpy.full does. Requires an array of the
/// function above.
void copy_into_cupy(PyObject* array, PyObject* value);

}  // namespace gridbuf::python
