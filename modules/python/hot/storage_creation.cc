// The functions that make storages (promise `create-numpy`).

module;

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "modules/python/support/docstrings.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

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

py::object allocate_storage(const KindRequest& request, bool zeroed) {
  const StorageRequest wanted{.layout = request.layout,
                              .dtype = request.dtype->type,
                              .kind = request.kind,
                              .zeroed = zeroed,
                              .populate = request.populate,
                              .device_layout = request.device_layout};
  const bool is_long = request.kind != StorageKind::kCpu || request.populate ||
                       (zeroed && request.layout.total_bytes() >= kLongBytes);
  const auto allocate = [&] { return Storage::allocate(wanted); };
  absl::StatusOr<Storage> made = is_long ? run_without_gil(allocate) : allocate();
  if (!made.ok()) raise(made.status());
  return make_storage(*std::move(made), request.dtype);
}

py::object allocate_storage(const KindRequest& request) {
  const bool second_is_padded = request.device_layout && has_padding(*request.device_layout);
  return allocate_storage(request,
                          second_is_padded || has_padding(request.layout, request.dtype->type));
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
