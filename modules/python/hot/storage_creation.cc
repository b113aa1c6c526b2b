// The functions that make storages (benchmark `allocate-small`).

module;

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "modules/python/support/docstrings.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

/// Zeroing less than this is shorter than handing the GIL to another thread and back.
constexpr std::int64_t kLongBytes = std::int64_t{1} << 20;

DeviceType memory_of(StorageKind kind) {
  if (kind == StorageKind::kCpu) return DeviceType::kHost;
  return kind == StorageKind::kCudaManaged ? DeviceType::kCudaManaged : DeviceType::kCuda;
}

KindRequest with_kind(Request&& request, PyObject* managed, std::optional<StorageKind> found) {
  const bool on_device =
      request.memory == DeviceType::kCuda || request.memory == DeviceType::kCudaManaged;
  return {std::move(request), storage_kind(on_device, managed, found)};
}

/// Storages: host, device or both, by `device` and `managed`.
struct StorageFrontEnd {
  using Keywords = StorageKeywords;
  using Request = KindRequest;
  static constexpr auto& kKeywordNames = kStorageKeywordNames;
  static constexpr auto& to_keywords = to_storage_keywords;
  static constexpr auto& unknown_keyword = unknown_storage_keyword;
  static constexpr auto& resolve = resolve_storage;

  static Request from_data(PyObject* data, PyObject* dtype, const Keywords& keywords) {
    return resolve_storage_like(storage_source_of(data, keywords.shared.dims), dtype, keywords);
  }
  static py::object make_empty(const Request& request) { return allocate_storage(request, false); }
  static py::object make_zeros(const Request& request) { return allocate_storage(request, true); }
  /// Cast and broadcast as numpy.full does.
  static py::object make_filled(const Request& request, PyObject* fill_value) {
    const py::object elements = is_scalar(fill_value)
                                    ? make_element(request.dtype->numpy.ptr(), fill_value)
                                    : readable_on_host(fill_value);
    py::object made = allocate_storage(request);
    assign(*object_of(made.ptr()), storage_of(made.ptr()), elements.ptr());
    return made;
  }
};
using Functions = Creation<StorageFrontEnd>;

/// The functions of the package gridbuf.storage, which imports them as "_storage_" and the name.
PyMethodDef package_functions[] = {
    {"empty", method(Functions::empty), METH_FASTCALL | METH_KEYWORDS, doc("_storage_empty")},
    {"zeros", method(Functions::zeros), METH_FASTCALL | METH_KEYWORDS, doc("_storage_zeros")},
    {"ones", method(Functions::ones), METH_FASTCALL | METH_KEYWORDS, doc("_storage_ones")},
    {"full", method(Functions::full), METH_FASTCALL | METH_KEYWORDS, doc("_storage_full")},
    {"empty_like", method(Functions::empty_like), METH_FASTCALL | METH_KEYWORDS,
     doc("_storage_empty_like")},
    {"zeros_like", method(Functions::zeros_like), METH_FASTCALL | METH_KEYWORDS,
     doc("_storage_zeros_like")},
    {"ones_like", method(Functions::ones_like), METH_FASTCALL | METH_KEYWORDS,
     doc("_storage_ones_like")},
    {"full_like", method(Functions::full_like), METH_FASTCALL | METH_KEYWORDS,
     doc("_storage_full_like")},
};

}  // namespace

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

py::object allocate_storage(const KindRequest& request, bool zeroed) {
  const StorageRequest wanted{.layout = request.layout,
                              .dtype = request.dtype->type,
                              .kind = request.kind,
                              .zeroed = zeroed,
                              .populate = request.populate};
  const bool is_long = request.kind != StorageKind::kCpu || request.populate ||
                       (zeroed && request.layout.total_bytes() >= kLongBytes);
  const auto allocate = [&] { return Storage::allocate(wanted); };
  return make_storage(value_of(is_long ? run_without_gil(allocate) : allocate()), request.dtype);
}

py::object allocate_storage(const KindRequest& request) {
  return allocate_storage(request, has_padding(request.layout));
}

void add_storage_functions(PyObject* module) {
  const py::object package = make_text("gridbuf.storage");
  for (PyMethodDef& definition : package_functions) {
    const std::string name = std::string("_storage_") + definition.ml_name;
    const py::object function = steal(PyCFunction_NewEx(&definition, module, package.ptr()));
    check(PyModule_AddObjectRef(module, name.c_str(), function.ptr()));
  }
}

}  // namespace gridbuf::python::storages
