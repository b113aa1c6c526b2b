// The parameters of new storages.

module;

#include <Python.h>

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

DeviceType memory_of(StorageKind kind) {
  if (kind == StorageKind::kCpu) return DeviceType::kHost;
  return kind == StorageKind::kCudaManaged ? DeviceType::kCudaManaged : DeviceType::kCuda;
}

KindRequest with_kind(Request&& request, PyObject* managed, std::optional<StorageKind> found) {
  const bool on_device =
      request.memory == DeviceType::kCuda || request.memory == DeviceType::kCudaManaged;
  return {std::move(request), storage_kind(on_device, managed, found)};
}

}  // namespace

StorageKeywords to_storage_keywords(std::span<PyObject* const> values) {
  if (values[0] != nullptr && values[9] != nullptr) {
    raise(ErrorClass::kType, "backend and defaults are one parameter; pass backend alone");
  }
  return {.shared = {.backend = values[0] != nullptr ? values[0] : values[9],
                     .device = values[1],
                     .layout = values[2],
                     .alignment_size = values[3],
                     .aligned_index = values[4],
                     .dims = values[5],
                     .populate = values[6],
                     .halo = values[7]},
          .managed = values[8]};
}

std::optional<StorageKind> to_managed(PyObject* managed) {
  if (managed == nullptr) return std::nullopt;
  if (managed == Py_None) return StorageKind::kGpu;
  const bool is_text = PyUnicode_Check(managed) != 0;
  if (is_text && utf8(managed) == "gt4py") return StorageKind::kSoftwareManaged;
  if (is_text && utf8(managed) == "cuda") return StorageKind::kCudaManaged;
  raise(is_text ? ErrorClass::kValue : ErrorClass::kType,
        Problem{"managed", describe(managed), "None, \"gt4py\" or \"cuda\"",
                "pass None to synchronise by yourself"});
}

StorageSource storage_source_of(PyObject* data, PyObject* dims) {
  if (is_storage(data)) {
    const Storage& storage = storage_of(data);
    return {{.dtype = object_of(data)->dtype,
             .like = storage.array(reading_side(storage)).request(),
             .memory = memory_of(storage.kind())},
            managed_of(storage.kind())};
  }
  StorageSource source;
  if (is_ndarray(data) || is_buffer(data) || is_scalar(data)) {
    source = {source_of(data)};
  } else {
    Meaning meaning;
    const py::object buffer = import_or_none(
        data, dims, {.sync = true, .allow_copied = true, .purpose = Purpose::kReading}, &meaning);
    source = {source_of(buffer ? buffer.ptr() : data)};
    source.like.halo = meaning.halo;
    source.like.aligned_index = {};  // A foreign array has none.
  }
  if (source.memory == DeviceType::kCudaManaged) source.managed = StorageKind::kCudaManaged;
  return source;
}

KindRequest resolve_storage(PyObject* shape, PyObject* dtype, const StorageKeywords& keywords) {
  return with_kind(resolve(shape, dtype, keywords.shared), keywords.managed, std::nullopt);
}

KindRequest resolve_storage_like(const StorageSource& source, PyObject* dtype,
                                 const StorageKeywords& keywords) {
  return with_kind(resolve_like(source, dtype, keywords.shared), keywords.managed, source.managed);
}

}  // namespace gridbuf::python::storages
