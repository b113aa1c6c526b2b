// The functions that allocate storages.

module;

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {

// ---- Requests. ----

StorageKeywords to_storage_keywords(std::span<PyObject* const> values) {
  return {.shared = {.backend = values[0],
                     .device = values[1],
                     .layout = values[2],
                     .alignment_size = values[3],
                     .aligned_index = values[4],
                     .dims = values[5],
                     .populate = values[6],
                     .halo = values[7],
                     .preset_name = "defaults"},
          .managed = values[8]};
}

std::optional<Managed> to_managed(PyObject* managed) {
  if (managed == nullptr) return std::nullopt;
  if (managed == Py_None) return Managed::kNone;
  const bool is_text = PyUnicode_Check(managed) != 0;
  if (is_text && utf8(managed) == "gt4py") return Managed::kSoftware;
  if (is_text && utf8(managed) == "cuda") return Managed::kCuda;
  raise(is_text ? ErrorClass::kValue : ErrorClass::kType,
        Problem{"managed", describe(managed), "None, \"gt4py\" or \"cuda\"",
                "pass None to synchronise by yourself"});
}

Managed managed_of(StorageKind kind) {
  if (kind == StorageKind::kSoftwareManaged) return Managed::kSoftware;
  return kind == StorageKind::kCudaManaged ? Managed::kCuda : Managed::kNone;
}

namespace {

bool is_gpu(MemoryKind kind) { return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged; }

MemoryKind memory_of_kind(StorageKind kind) {
  switch (kind) {
    case StorageKind::kCpu:
      return MemoryKind::kHost;
    case StorageKind::kCudaManaged:
      return MemoryKind::kManaged;
    case StorageKind::kGpu:
    case StorageKind::kSoftwareManaged:
      break;
  }
  return MemoryKind::kDevice;
}

StorageSource source_of_storage(const StorageObject& object) {
  const Storage& storage = object.storage;
  StorageSource source;
  const Side side = storage.has(Side::kHost) ? Side::kHost : Side::kDevice;
  source.shared = {.dtype = object.dtype,
                   .like = storage.array(side).request(),
                   .memory = memory_of_kind(storage.kind())};
  // Host memory says nothing of who would manage a device's.
  if (storage.has(Side::kDevice)) source.managed = managed_of(storage.kind());
  return source;
}

StorageOrder with_kind(Request request, PyObject* managed, const StorageSource* source) {
  const std::optional<Managed> wanted = to_managed(managed);
  const std::optional<Managed> found = source != nullptr ? source->managed : std::nullopt;
  const Managed chosen = wanted.value_or(found.value_or(Managed::kSoftware));
  const bool on_device = is_gpu(request.memory);
  return {.request = std::move(request), .kind = storage_kind(on_device, chosen)};
}

}  // namespace

StorageSource storage_source_of(PyObject* data, PyObject* dims) {
  if (is_storage(data)) return source_of_storage(*object_of(data));
  StorageSource source;
  if (is_ndarray(data) || is_buffer(data) || is_scalar(data)) {
    source.shared = source_of(data);
  } else {
    Meaning meaning;
    const py::object buffer = import_or_none(
        data, dims, {.sync = true, .allow_copied = true, .purpose = Purpose::kReading}, &meaning);
    source.shared = source_of(buffer ? buffer.ptr() : data);
    source.shared.like.halo = meaning.halo;
    source.shared.like.aligned_index = {};  // A foreign array has none.
  }
  if (source.shared.memory == MemoryKind::kManaged) source.managed = Managed::kCuda;
  return source;
}

StorageOrder resolve_storage(PyObject* shape, PyObject* dtype, const StorageKeywords& keywords) {
  return with_kind(resolve(shape, dtype, keywords.shared), keywords.managed, nullptr);
}

StorageOrder resolve_storage_like(const StorageSource& source, PyObject* dtype,
                                  const StorageKeywords& keywords) {
  return with_kind(resolve_like(source.shared, dtype, keywords.shared), keywords.managed, &source);
}

bool has_padding(const StorageOrder& order) { return has_padding(order.request.layout); }

namespace {

/// Zeroing less than this is shorter than handing the GIL to another thread and back.
constexpr std::int64_t kLongBytes = std::int64_t{1} << 20;

}  // namespace

py::object allocate_storage(const StorageOrder& order, bool zeroed) {
  const Request& request = order.request;
  const StorageRequest wanted{.layout = request.layout,
                              .dtype = request.dtype->type,
                              .kind = order.kind,
                              .zeroed = zeroed,
                              .populate = request.populate};
  const bool is_long = order.kind != StorageKind::kCpu || request.populate ||
                       (zeroed && request.layout.total_bytes() >= kLongBytes);
  const auto allocate = [&] { return Storage::allocate(wanted); };
  return make_storage(value_of(is_long ? run_without_gil(allocate) : allocate()), request.dtype);
}

// ---- Filling. ----

namespace {

/// Cast and broadcast as numpy.full does.
py::object make_full(const StorageOrder& order, PyObject* fill_value) {
  const DTypeRecord& dtype = *order.request.dtype;
  py::object elements;
  if (is_scalar(fill_value)) {
    elements = make_element(dtype.numpy.ptr(), fill_value);
  } else {
    elements = readable_on_host(fill_value);
  }
  py::object made = allocate_storage(order, has_padding(order));
  assign(*object_of(made.ptr()), storage_of(made.ptr()), elements.ptr());
  return made;
}

// ---- The functions. ----

/// Storages: host, device or both, by `device` and `managed`.
struct StorageDoor {
  using Keywords = StorageKeywords;
  using Request = StorageOrder;
  static constexpr auto& kKeywordNames = kStorageKeywordNames;

  static Keywords to_keywords(std::span<PyObject* const> values) {
    return to_storage_keywords(values);
  }
  static void unknown_keyword(const Signature& signature, PyObject* keyword) {
    unknown_storage_keyword(signature, keyword);
  }
  static Request resolve(PyObject* shape, PyObject* dtype, const Keywords& keywords) {
    return resolve_storage(shape, dtype, keywords);
  }
  static Request from_data(PyObject* data, PyObject* dtype, const Keywords& keywords) {
    return resolve_storage_like(storage_source_of(data, keywords.shared.dims), dtype, keywords);
  }
  static py::object make_empty(const Request& order) { return allocate_storage(order, false); }
  static py::object make_zeros(const Request& order) { return allocate_storage(order, true); }
  static py::object make_filled(const Request& order, PyObject* fill_value) {
    return make_full(order, fill_value);
  }
};
using Functions = Creation<StorageDoor>;

// ---- The table. ----

template <class Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// The parameters that all functions share, as their documentation and signature say them.
#define GRIDBUF_STORAGE_KEYWORDS                                                                 \
  "defaults=None, device=..., layout=None, alignment_size=None, aligned_index=None, dims=None, " \
  "populate=False, halo=None, managed=...)\n--\n\n"
#define GRIDBUF_STORAGE_ERRORS                                                                \
  "\n\nSizes are in elements, alignment_size is in bytes. Each keyword is looked up in this " \
  "order: passed, defaults' preset,\ndata, fallback. The class follows from device and "      \
  "managed. Raises TypeError for values of a wrong kind,\nValueError for values out of "      \
  "bounds, MemoryError, and DeviceUnavailableError where there is no device."

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef functions[] = {
    {"_storage_empty", method(Functions::empty), kFast,
     "empty(shape, dtype='float64', *, " GRIDBUF_STORAGE_KEYWORDS
     "A storage with undefined elements." GRIDBUF_STORAGE_ERRORS},
    {"_storage_zeros", method(Functions::zeros), kFast,
     "zeros(shape, dtype='float64', *, " GRIDBUF_STORAGE_KEYWORDS
     "A storage of zeros." GRIDBUF_STORAGE_ERRORS},
    {"_storage_ones", method(Functions::ones), kFast,
     "ones(shape, dtype='float64', *, " GRIDBUF_STORAGE_KEYWORDS
     "A storage of ones." GRIDBUF_STORAGE_ERRORS},
    {"_storage_full", method(Functions::full), kFast,
     "full(shape, fill_value, dtype='float64', *, " GRIDBUF_STORAGE_KEYWORDS
     "A storage of fill_value, cast as numpy.full casts it." GRIDBUF_STORAGE_ERRORS},
    {"_storage_empty_like", method(Functions::empty_like), kFast,
     "empty_like(data, dtype=None, *, " GRIDBUF_STORAGE_KEYWORDS
     "A storage with undefined elements; what is not given is taken from "
     "data." GRIDBUF_STORAGE_ERRORS},
    {"_storage_zeros_like", method(Functions::zeros_like), kFast,
     "zeros_like(data, dtype=None, *, " GRIDBUF_STORAGE_KEYWORDS
     "A storage of zeros; what is not given is taken from data." GRIDBUF_STORAGE_ERRORS},
    {"_storage_ones_like", method(Functions::ones_like), kFast,
     "ones_like(data, dtype=None, *, " GRIDBUF_STORAGE_KEYWORDS
     "A storage of ones; what is not given is taken from data." GRIDBUF_STORAGE_ERRORS},
    {"_storage_full_like", method(Functions::full_like), kFast,
     "full_like(data, fill_value, dtype=None, *, " GRIDBUF_STORAGE_KEYWORDS
     "A storage of fill_value; what is not given is taken from data." GRIDBUF_STORAGE_ERRORS},
    {"_storage_as_storage", method(as_storage_function), kFast,
     "as_storage(data=None, device_data=None, *, sync_state=None, " GRIDBUF_STORAGE_KEYWORDS
     "A storage over the memory of data and device_data, whatever library made them; never a copy\n"
     "of what was given. Both are kept alive. sync_state says which of two buffers is current; for "
     "those\nof a storage it is that storage's own. Raises ValueError for parameters that the "
     "memory does not have." GRIDBUF_STORAGE_ERRORS},
    {"_storage_storage", method(storage_function), kFast,
     "storage(data=None, device_data=None, *, dtype=None, copy=True, sync_state=None, "
     "shape=None, " GRIDBUF_STORAGE_KEYWORDS
     "A storage with a copy of data; with copy=False as_storage, or empty if there is no data but "
     "a shape." GRIDBUF_STORAGE_ERRORS},
    {"_restore_storage", method(restore_storage), METH_FASTCALL, "For unpickling."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_storage_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python::storages
