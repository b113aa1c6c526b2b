// gridbuf.python.call: the protocol of a stencil's call, for Python.
//
// Purpose. `gridbuf.call` (Python) says what a stencil is; this module calls one. Whatever the
// fields are (ndarrays, Buffers, storages, arrays of other libraries), a call goes through the same
// steps: acquire all, read their interfaces again, bind them (gridbuf.call: dimensions, origins,
// domain, checks), copy in what only the other side has, run, copy back, touch what was written,
// release all.
//
// Key choice: the steps are a `Session`, and every step of every field is an attempt. What one
// raises ends the steps before `run`, but never touching and releasing: each of those is attempted
// for each field, whatever the others raised. The first exception is the call's; later ones hang on
// it, so that nothing is lost. A field that was acquired is released, exactly once.
//
// Nothing is kept between calls: a `Caller` holds what was declared, and no field, shape or
// verdict. It holds no function either, so it can be part of no cycle.
//
// All functions need the GIL.

module;

#include <Python.h>

#include <climits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

export module gridbuf.python.call;

import gridbuf.call;
import gridbuf.device;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.support;
import gridbuf.storage;

export namespace gridbuf::python {

/// Adds `_make_caller` and `_set_call_helpers` to `module`. Called once, by the extension's
/// initialisation.
void add_call_functions(PyObject* module);

}  // namespace gridbuf::python

// What the implementation files share.
namespace gridbuf::python::calls {

/// What Python's part lends: functions, and the classes of warnings. Kept for good.
struct Helpers {
  PyObject* explain = nullptr;    // (stencil, args, kwargs): raises why they do not fit
  PyObject* on_device = nullptr;  // (function, args, kwargs, places, arrays): runs it there
  PyObject* later = nullptr;      // (first, later, field, step): hangs an exception on another
  PyObject* note = nullptr;       // (exception, field, step): says where it was raised
  PyObject* copy_warning = nullptr;
  PyObject* slow_warning = nullptr;
};
Helpers& helpers();

/// A field's parameter, beyond its rule.
struct FieldSpec {
  py::object name;
  DTypePtr dtype;
  int parameter = 0;  // its index among the parameters
  bool is_written = true;
};

/// What was declared.
struct CallerSpec {
  std::string name;
  std::string backend;  // "" for none

  // Parameters: positional ones, then keyword-only ones; origin and domain are not among them.
  std::vector<py::object> parameters;
  std::vector<bool> is_required;
  int positional_only = 0;
  int positional = 0;
  bool takes_more = false;           // *args
  bool takes_more_keywords = false;  // **kwargs
  bool passes_origin = false;
  bool passes_domain = false;

  std::vector<FieldRule> rules;
  std::vector<FieldSpec> fields;
  bool writes_are_declared = false;
  Side side = Side::kHost;
  bool copies_wrong_device = true;
};

/// What a call was given, sorted; all borrowed. A place is an index of `positional`, or ~index of
/// `values`, or kNowhere.
inline constexpr int kNowhere = INT_MIN;
struct Passed {
  std::vector<PyObject*> positional;
  std::vector<PyObject*> names;
  std::vector<PyObject*> values;
  std::vector<int> places;     // of the fields
  PyObject* origin = nullptr;  // null and None: not given
  PyObject* domain = nullptr;  // the same
};

/// Sorts the arguments; false if they do not fit the parameters.
bool sort_passed(const CallerSpec& spec, PyObject* args, PyObject* kwargs, Passed& passed);

/// What origin= and domain= say. TypeError and ValueError.
CallRequest to_request(const CallerSpec& spec, const Passed& passed);

/// Runs the whole protocol; what `function` returned.
py::object run_call(const CallerSpec& spec, Passed& passed, PyObject* function);

}  // namespace gridbuf::python::calls
