// Who reads and writes which side: the few functions that know of waiting and of Python's lock.

module;

#include <Python.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

/// A Buffer over the side's memory, with the storage's parameters; `share`, if there is one, is its
/// owner. What gridbuf does to a storage's memory is ordered on the current stream before the
/// memory is handed over.
py::object buffer_over(const Storage& storage, const DTypePtr& dtype, Side side,
                       Owner share = nullptr) {
  return adopt_buffer_of(dtype, [&]() noexcept -> BufferState {
    BufferState state{.memory = storage.memory(side),
                      .dims = storage.dims(),
                      .layout = storage.layout(),
                      .aligned_index = storage.aligned_index(),
                      .alignment_bytes = storage.alignment_bytes()};
    if (share != nullptr) state.memory.owner = std::move(share);
    state.facts.resource_name = "storage";
    state.facts.device = state.memory.device;
    if (state.memory.device.type != DeviceType::kHost) state.facts.stream = current_stream();
    return state;
  });
}

}  // namespace

void up_to_date(const Storage& storage, Side side) {
  if (storage.is_ready(side)) return;
  check(run_unlocked(storage, [&] { return storage.read(side); }));
}

Side reading_side(const Storage& storage) {
  return storage.has(Side::kHost) ? Side::kHost : Side::kDevice;
}

Side exporting_side(const Storage& storage) {
  return storage.has(Side::kDevice) ? Side::kDevice : Side::kHost;
}

py::object own_buffer(const Storage& storage, const DTypePtr& dtype, Side side) {
  return buffer_over(storage, dtype, side);
}

py::object shown_buffer(const Storage& storage, const DTypePtr& dtype, Side side) {
  // There is no other side that has to know.
  if (storage.kind() == StorageKind::kCpu && side == Side::kHost) {
    return buffer_over(storage, dtype, side);
  }
  Owner share = value_of(
      run_unlocked(storage, [&] { return storage.export_side(side, !storage.readonly()); }));
  return buffer_over(storage, dtype, side, std::move(share));
}

py::object own_ndarray(const Storage& view, const DTypePtr& dtype, bool readonly, PyObject* base) {
  const BufferDescriptor memory = view.memory(Side::kHost);
  return make_ndarray(*dtype, memory.view, memory.first_element(), readonly || memory.readonly,
                      base);
}

py::object host_elements(const StorageObject& object, const Storage& view) {
  if (view.has(Side::kHost)) {
    up_to_date(view, Side::kHost);
    const py::object owner = own_buffer(view, object.dtype, Side::kHost);
    return own_ndarray(view, object.dtype, /*readonly=*/true, owner.ptr());
  }
  up_to_date(view, Side::kDevice);
  const py::object on_device = own_buffer(view, object.dtype, Side::kDevice);
  return ndarray_of(copy_of(on_device.ptr(), MemoryKind::kHost).ptr());
}

void touch(const StorageObject& object, Side side) {
  if (object.touch == nullptr) return;
  const py::object& hook = side == Side::kHost ? object.touch->host : object.touch->device;
  if (hook) steal(PyObject_CallNoArgs(hook.ptr()));
}

Writing::Writing(const StorageObject& object, const Storage& view, Side side, Coverage coverage)
    : object_(object), view_(view), side_(side) {
  check(run_unlocked(view_, [&] { return view_.begin_write(side_, coverage); }));
}

Writing::~Writing() {
  // After an error the marks stay: something may have been written.
  if (open_) view_.end_write(side_);
}

void Writing::done() {
  open_ = false;
  view_.end_write(side_);
  touch(object_, side_);
}

}  // namespace gridbuf::python::storages

namespace gridbuf::python {

void touch_storage(PyObject* storage, Side side) {
  storages::touch(*storages::object_of(storage), side);
}

}  // namespace gridbuf::python
