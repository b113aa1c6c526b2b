// gridbuf.python.copyto: `gridbuf.copyto`, from any array into any other.
//
// Purpose. numpy.copyto for everything that offers memory: arrays of any library, Buffers,
// storages, memory of a device. What it means is numpy.copyto's: shapes broadcast, `casting` says
// which conversions are allowed, `where` masks, overlapping arrays come out as if the source had
// been read first.
//
// Key choice. Both ends are brought to the form that somebody below this module can copy between,
// and then it is one call: two ndarrays over host memory (gridbuf.python.elements), two Buffers of
// which a device has at least one (gridbuf.python.buffer), or storages, whose dimensions have names
// and which know which of their sides is current (gridbuf.storage, in Python). What a device cannot
// do itself, conversions and masks, is done on the host and carried over.
//
// Two ndarrays, the usual case, take none of these steps: their fields are read in place.

module;

#include <Python.h>

export module gridbuf.python.copyto;

export namespace gridbuf::python {

/// Adds `copyto` to `module`. Called once, by the extension's initialisation.
void add_copyto_function(PyObject* module);

}  // namespace gridbuf::python
