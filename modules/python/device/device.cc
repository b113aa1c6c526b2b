module;

#include <Python.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/device/registry/device_table.h"

module gridbuf.python.device;

import gridbuf.alloc.devices.table;
import gridbuf.alloc.devices;
import gridbuf.alloc.emulated;
import gridbuf.base;
import gridbuf.python.arguments;
import gridbuf.python.object;

namespace gridbuf::python {
namespace {

py::object none() { return share(Py_None); }

py::object from_handle(StreamHandle stream) { return steal(PyLong_FromUnsignedLongLong(stream)); }

// The arguments of a private function, whose callers are ours: the count alone is checked.
template <std::size_t kCount>
std::array<PyObject*, kCount> take(PyObject* const* arguments, Py_ssize_t count) {
  if (count != static_cast<Py_ssize_t>(kCount)) {
    raise(ErrorClass::kType,
          "takes " + std::to_string(kCount) + " arguments, not " + std::to_string(count));
  }
  std::array<PyObject*, kCount> taken{};
  for (std::size_t i = 0; i < kCount; ++i) taken[i] = arguments[i];
  return taken;
}

std::optional<emulated::Operation> to_operation(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  if (PyUnicode_Check(object) == 0) {
    raise(ErrorClass::kType,
          {"operation", describe(object), "a str or None", "pass None for any operation"});
  }
  return value_of(emulated::operation(utf8(object)));
}

// The class of that name in the error table.
ErrorClass to_error_class(PyObject* name) {
  const std::string_view text = utf8(name);
  for (const ErrorRow& row : kErrorTable) {
    if (row.python_name == text) return row.error_class;
  }
  std::string known;
  for (const ErrorRow& row : kErrorTable) {
    known.append(known.empty() ? "" : ", ").append(row.python_name);
  }
  raise(ErrorClass::kValue, {"error", std::string(text), "one of " + known,
                             "pass an exception class that gridbuf raises"});
}

// --- Streams -------------------------------------------------------------------------------------

PyObject* get_current_stream(PyObject*, PyObject*) {
  return guarded([] { return from_handle(current_stream()); });
}

PyObject* exchange_stream(PyObject*, PyObject* stream) {
  return guarded(
      [stream] { return from_handle(exchange_current_stream(to_stream_handle(stream))); });
}

PyObject* check_stream(PyObject*, PyObject* stream) {
  return guarded([stream] {
    const StreamHandle handle = to_stream_handle(stream);
    check(value_of(device_driver())->check_stream(handle));
    return none();
  });
}

PyObject* create_stream(PyObject*, PyObject* blocking) {
  return guarded([blocking] {
    const StreamKind kind =
        to_flag(blocking, "blocking") ? StreamKind::kBlocking : StreamKind::kNonBlocking;
    return from_handle(value_of(value_of(device_driver())->create_stream(kind)));
  });
}

PyObject* destroy_stream(PyObject*, PyObject* stream) {
  return guarded([stream] {
    const StreamHandle handle = to_stream_handle(stream);
    check(value_of(device_driver())->destroy_stream(handle));
    return none();
  });
}

PyObject* synchronize(PyObject*, PyObject* stream) {
  return guarded([stream] {
    DeviceDriver& driver = *value_of(device_driver());
    if (stream == Py_None) {
      check(run_without_gil([&driver] { return driver.synchronize_device(); }));
      return none();
    }
    const StreamHandle handle = to_stream_handle(stream);
    check(run_without_gil([&driver, handle] { return driver.synchronize(handle); }));
    return none();
  });
}

// --- The choice of a device ----------------------------------------------------------------------

PyObject* switch_emulated(PyObject*, PyObject* on) {
  return guarded(
      [on] { return steal(PyBool_FromLong(switch_emulated_device(to_flag(on, "on")) ? 1 : 0)); });
}

PyObject* emulated_is_on(PyObject*, PyObject*) {
  return guarded([] { return steal(PyBool_FromLong(emulated_device_is_on() ? 1 : 0)); });
}

PyObject* get_facts(PyObject*, PyObject*) {
  return guarded([] {
    const auto facts = run_without_gil([] { return device_facts(); });
    py::object result = steal(PyDict_New());
    for (const auto& [key, text] : facts) {
      check(PyDict_SetItem(result.ptr(), make_text(key).ptr(), make_text(text).ptr()));
    }
    return result;
  });
}

PyObject* get_table(PyObject*, PyObject*) {
  return guarded([] {
    const gridbuf_device_table* table = value_of(device_table());
    return steal(
        PyCapsule_New(const_cast<gridbuf_device_table*>(table), kDeviceTableCapsule, nullptr));
  });
}

// --- The emulated device -------------------------------------------------------------------------

PyObject* inject_fault(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([arguments, count] {
    const auto [operation, first_call, call_count, error, message, when_run, delay] =
        take<7>(arguments, count);
    emulated::Fault fault{.operation = to_operation(operation),
                          .first_call = to_integer(first_call, "call"),
                          .call_count = to_integer(call_count, "count"),
                          .when_run = to_flag(when_run, "when_run"),
                          .delay_milliseconds = to_integer(delay, "milliseconds")};
    if (fault.first_call < 1) {
      raise(ErrorClass::kValue,
            {"call", std::to_string(fault.first_call), "1 or more", "count the next call as 1"});
    }
    if (error != Py_None) fault.error = make_error(to_error_class(error), utf8(message));
    return steal(PyLong_FromLongLong(emulated_driver().faults().inject(fault)));
  });
}

PyObject* remove_fault(PyObject*, PyObject* number) {
  return guarded([number] {
    emulated_driver().faults().remove(to_integer(number, "number"));
    return none();
  });
}

PyObject* count_calls(PyObject*, PyObject* operation) {
  return guarded([operation] {
    return steal(PyLong_FromLongLong(emulated_driver().faults().calls(to_operation(operation))));
  });
}

PyObject* get_statistics(PyObject*, PyObject*) {
  return guarded([] {
    const EmulatedStatistics now = emulated_driver().statistics();
    return steal(Py_BuildValue(
        "{sLsLsLsLsLsLsLsL}", "live_blocks", now.live_blocks, "live_bytes", now.live_bytes,
        "held_bytes", now.held_bytes, "peak_live_bytes", now.peak_live_bytes, "pending_operations",
        now.pending_operations, "live_streams", now.live_streams, "host_to_device_bytes",
        now.host_to_device_bytes, "device_to_host_bytes", now.device_to_host_bytes));
  });
}

PyObject* set_capacity(PyObject*, PyObject* capacity) {
  return guarded([capacity] {
    const std::int64_t bytes =
        capacity == Py_None ? INT64_MAX : to_integer(capacity, "capacity_bytes");
    check(check_length("capacity_bytes", bytes));
    emulated_driver().set_capacity(bytes);
    return none();
  });
}

// --- The end -------------------------------------------------------------------------------------

PyObject* note_exit(PyObject*, PyObject*) {
  note_process_exit();
  return none().release().ptr();
}

PyMethodDef exit_callback = {"_device_note_exit", note_exit, METH_NOARGS,
                             "From now on device memory is left to the system."};

void register_exit_callback() {
  const py::object atexit = steal(PyImport_ImportModule("atexit"));
  const py::object callback = steal(PyCFunction_New(&exit_callback, nullptr));
  steal(PyObject_CallMethod(atexit.ptr(), "register", "O", callback.ptr()));
}

template <class Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {
    {"_device_current_stream", get_current_stream, METH_NOARGS, "The handle of this thread."},
    {"_device_exchange_stream", exchange_stream, METH_O, "Sets it and returns the one before."},
    {"_device_check_stream", check_stream, METH_O, "Raises unless the driver knows the stream."},
    {"_device_create_stream", create_stream, METH_O, "A new stream; the argument: blocking."},
    {"_device_destroy_stream", destroy_stream, METH_O, "Destroys what _device_create_stream made."},
    {"_device_synchronize", synchronize, METH_O, "Waits for a stream; None: the whole device."},
    {"_device_switch_emulated", switch_emulated, METH_O, "Switches it; returns what it was."},
    {"_device_emulated_is_on", emulated_is_on, METH_NOARGS, "Whether it is switched on."},
    {"_device_facts", get_facts, METH_NOARGS, "For show_config: {key: text}."},
    {"_device_table", get_table, METH_NOARGS, "The C table, in a capsule."},
    {"_device_inject", method(inject_fault), METH_FASTCALL,
     "operation, call, count, error name or None, message, when_run, milliseconds."},
    {"_device_remove_fault", remove_fault, METH_O, "Takes back what _device_inject returned."},
    {"_device_calls", count_calls, METH_O, "How often an operation of the emulated device ran."},
    {"_device_statistics", get_statistics, METH_NOARGS, "Of the emulated device."},
    {"_device_set_capacity", set_capacity, METH_O, "Of the emulated device, in bytes; None: all."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

StreamHandle to_stream_handle(PyObject* object) {
  if (PyBool_Check(object) != 0 || PyIndex_Check(object) == 0) {
    raise(ErrorClass::kType, {"stream", describe(object), "an int, the handle of a stream",
                              "pass 1 for the legacy default stream"});
  }
  const py::object number = steal(PyNumber_Index(object));
  const StreamHandle handle = PyLong_AsUnsignedLongLong(number.ptr());
  if (handle == static_cast<StreamHandle>(-1) && PyErr_Occurred() != nullptr) {
    if (!take_error(PyExc_OverflowError)) throw PythonError();
    raise(ErrorClass::kValue, {"stream", describe(number.ptr()), "from 1 to 2^64 - 1",
                               "pass 1 for the legacy default stream"});
  }
  check(check_stream_number(handle));
  return handle;
}

void add_device_functions(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  register_exit_callback();
}

}  // namespace gridbuf::python
