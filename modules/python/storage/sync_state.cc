// `SyncState`: which side is current, as users see it.

module;

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.base;
import gridbuf.python.support;
import gridbuf.storage.sync;

namespace gridbuf::python::storages {
namespace {

using SyncStateClass = py::class_<SyncState, std::shared_ptr<SyncState>>;

PyObject* flag_class = nullptr;  // An enum.IntFlag, kept for good.

/// SyncState(state=SYNC_CLEAN)
py::object make_new(PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"state", nullptr};
  PyObject* given = nullptr;
  const bool parsed = PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:SyncState",
                                                  const_cast<char**>(names), &given) != 0;
  if (!parsed) throw PythonError();
  const std::int64_t state = given == nullptr ? kSyncClean : to_integer(given, "state");
  if (state != kSyncClean && state != kSyncHostDirty && state != kSyncDeviceDirty) {
    raise(ErrorClass::kValue,
          Problem{"state", std::to_string(state),
                  "SYNC_CLEAN (0), SYNC_HOST_DIRTY (1) or SYNC_DEVICE_DIRTY (2)",
                  "say which of two whole buffers is current; both at once has no meaning"});
  }
  return py::cast(std::shared_ptr<SyncState>(value_of(SyncState::make(static_cast<int>(state)))));
}

std::string text_of(const SyncState& object) {
  const int state = object.state();
  std::string text;
  if ((state & kSyncHostDirty) != 0) text = "SYNC_HOST_DIRTY";
  if ((state & kSyncDeviceDirty) != 0) {
    text += text.empty() ? "SYNC_DEVICE_DIRTY" : " | SYNC_DEVICE_DIRTY";
  }
  return "SyncState(" + (text.empty() ? std::string("SYNC_CLEAN") : text) + ")";
}

constexpr char kDocumentation[] =
    "SyncState(state=SyncState.SYNC_CLEAN)\n--\n\n"
    "Which of a storage's two buffers is current; all views of a storage share one.\n\n"
    "Make one only to say it of two buffers that as_storage or storage takes. It belongs to the\n"
    "storage that it was passed to, for good.";

}  // namespace

void add_sync_state_type(PyObject* module) {
  const py::dict flags;
  flags["SYNC_CLEAN"] = kSyncClean;
  flags["SYNC_HOST_DIRTY"] = kSyncHostDirty;
  flags["SYNC_DEVICE_DIRTY"] = kSyncDeviceDirty;
  py::object flag = py::module_::import("enum").attr("IntFlag")(
      "SyncFlag", flags, py::arg("module") = "gridbuf.storage");
  flag_class = flag.ptr();
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  SyncStateClass type(core, "SyncState", py::module_local(), py::is_final(), kDocumentation);
  type.def_property_readonly(
          "state",
          [](const SyncState& object) {
            return py::reinterpret_borrow<py::object>(flag_class)(object.state());
          },
          "SYNC_CLEAN: both buffers are equal. SYNC_HOST_DIRTY: the host's is newer somewhere.\n"
          "SYNC_DEVICE_DIRTY: the device's is. Both flags, where regions of both kinds exist.")
      .def("__repr__", text_of);
  for (const auto& entry : flags) type.attr(entry.first) = flag.attr(entry.first);
  close_class<make_new>(type, "gridbuf.storage");
  core.add_object("SyncFlag", flag);
  flag.release();
}

py::object make_sync_state(const std::shared_ptr<SyncState>& state) { return py::cast(state); }

std::shared_ptr<SyncState> to_sync_state(PyObject* object) {
  if (!py::isinstance<SyncState>(object)) {
    raise(ErrorClass::kType,
          Problem{"sync_state", describe(object), "a gridbuf.storage.SyncState",
                  "pass SyncState(SyncState.SYNC_HOST_DIRTY) if data is current, or the sync_state "
                  "of the storage that the buffers are from"});
  }
  return py::cast<std::shared_ptr<SyncState>>(py::handle(object));
}

}  // namespace gridbuf::python::storages
