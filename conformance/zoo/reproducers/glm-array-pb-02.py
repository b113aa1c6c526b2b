"""glm.array of vectors answers F_CONTIGUOUS|WRITABLE with memory that is not the array's."""

import ctypes as c
import subprocess
import sys

import glm

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


for _ in range(2000):
    array = glm.array(glm.dvec3(1), glm.dvec3(2))
    try:
        view = ask(array, 0x59)  # PyBUF_F_CONTIGUOUS | PyBUF_WRITABLE
    except (BufferError, ValueError) as error:
        print("refused:", error)
        break
    c.pythonapi.PyBuffer_Release(c.byref(view))
