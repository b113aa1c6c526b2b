// The private functions below `gridbuf.stream`, `gridbuf.testing` and the device section of
// `gridbuf.show_config`.
//
// Whatever may wait for a stream runs without the GIL: work of the emulated device may be Python,
// and runs on the thread that waits. An atexit callback tells gridbuf.device that the interpreter
// ends: arrays that die later leave device memory to the system, as the driver may be gone.

module;

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/device/testing/device_table.h"

module gridbuf.python;

import gridbuf.device.testing;

namespace gridbuf::python {
namespace {

using namespace pybind11::literals;

std::optional<emulated::Operation> to_operation(py::handle object) {
  if (object.is_none()) return std::nullopt;
  if (PyUnicode_Check(object.ptr()) == 0) {
    raise(ErrorClass::kType,
          {"operation", describe(object.ptr()), "a str or None", "pass None for any operation"});
  }
  return value_of(emulated::operation(utf8(object.ptr())));
}

// The class of that name in the error table.
ErrorClass to_error_class(py::handle name) {
  const std::string_view text = utf8(name.ptr());
  std::string known;
  for (const ErrorRow& row : kErrorTable) {
    if (row.python_name == text) return row.error_class;
    known.append(known.empty() ? "" : ", ").append(row.python_name);
  }
  raise(ErrorClass::kValue, {"error", std::string(text), "one of " + known, "pass one of these"});
}

/// The handle of a stream from a Python integer. TypeError for other kinds (bool too), ValueError
/// for 0, negative numbers and those beyond 64 bits. The driver says whether the stream lives.
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

StreamHandle exchange_stream(py::handle stream) {
  return exchange_current_stream(to_stream_handle(stream.ptr()));
}

template <auto function>
void act_on_stream(py::handle stream) {
  const StreamHandle handle = to_stream_handle(stream.ptr());
  check((value_of(device_driver())->*function)(handle));
}

StreamHandle create_stream(py::handle blocking) {
  const StreamKind kind =
      to_flag(blocking.ptr(), "blocking") ? StreamKind::kBlocking : StreamKind::kNonBlocking;
  return value_of(value_of(device_driver())->create_stream(kind));
}

void synchronize(py::handle stream) {
  DeviceDriver& driver = *value_of(device_driver());
  if (stream.is_none()) {
    check(run_without_gil([&driver] { return driver.synchronize_device(); }));
    return;
  }
  const StreamHandle handle = to_stream_handle(stream.ptr());
  check(run_without_gil([&driver, handle] { return driver.synchronize(handle); }));
}

py::object get_table() {
  const gridbuf_device_table* table = value_of(device_table());
  return steal(
      PyCapsule_New(const_cast<gridbuf_device_table*>(table), kDeviceTableCapsule, nullptr));
}

std::int64_t inject_fault(py::handle operation, py::handle first_call, py::handle call_count,
                          py::handle error, py::handle message, py::handle when_run,
                          py::handle delay) {
  emulated::Fault fault{.operation = to_operation(operation),
                        .first_call = to_integer(first_call.ptr(), "call"),
                        .call_count = to_integer(call_count.ptr(), "count"),
                        .when_run = to_flag(when_run.ptr(), "when_run"),
                        .delay_milliseconds = to_integer(delay.ptr(), "milliseconds")};
  if (fault.first_call < 1) {
    raise(ErrorClass::kValue,
          {"call", std::to_string(fault.first_call), "1 or more", "count the next call as 1"});
  }
  if (!error.is_none()) fault.error = make_error(to_error_class(error), utf8(message.ptr()));
  return emulated_driver().faults().inject(fault);
}

py::dict get_statistics() {
  const EmulatedStatistics now = emulated_driver().statistics();
  return py::dict("live_blocks"_a = now.live_blocks, "live_bytes"_a = now.live_bytes,
                  "held_bytes"_a = now.held_bytes, "peak_live_bytes"_a = now.peak_live_bytes,
                  "pending_operations"_a = now.pending_operations,
                  "live_streams"_a = now.live_streams,
                  "host_to_device_bytes"_a = now.host_to_device_bytes,
                  "device_to_host_bytes"_a = now.device_to_host_bytes);
}

bool switch_emulated(py::handle on) { return switch_emulated_device(to_flag(on.ptr(), "on")); }
void remove_fault(py::handle number) {
  emulated_driver().faults().remove(to_integer(number.ptr(), "number"));
}
std::int64_t count_calls(py::handle operation) {
  return emulated_driver().faults().calls(to_operation(operation));
}

void set_capacity(py::handle capacity) {
  const std::int64_t bytes =
      capacity.is_none() ? INT64_MAX : to_integer(capacity.ptr(), "capacity_bytes");
  check(check_length("capacity_bytes", bytes));
  emulated_driver().set_capacity(bytes);
}

}  // namespace

void add_device_functions(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  core.def("_device_current_stream", [] { return current_stream(); })
      .def("_device_exchange_stream", exchange_stream)
      .def("_device_check_stream", act_on_stream<&DeviceDriver::check_stream>)
      .def("_device_create_stream", create_stream)
      .def("_device_destroy_stream", act_on_stream<&DeviceDriver::destroy_stream>)
      .def("_device_synchronize", synchronize)
      .def("_device_switch_emulated", switch_emulated)
      .def("_device_emulated_is_on", [] { return emulated_device_is_on(); })
      .def("_device_info", [] { return py::dict(py::cast(run_without_gil(device_info))); })
      .def("_device_table", get_table)
      .def("_device_inject", inject_fault)
      .def("_device_remove_fault", remove_fault)
      .def("_device_calls", count_calls)
      .def("_device_live_bytes", [] { return py::dict(py::cast(device_live_bytes())); })
      .def("_device_statistics", get_statistics)
      .def("_device_set_capacity", set_capacity);
  // From then on device memory is left to the system.
  py::module_::import("atexit").attr("register")(py::cpp_function([] { note_process_exit(); }));
}

}  // namespace gridbuf::python
