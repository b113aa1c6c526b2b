// The functions that make storages: what was passed becomes a KindRequest.

module;

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

MemoryKind memory_of(StorageKind kind) {
  if (kind == StorageKind::kCpu) return MemoryKind::kHost;
  return kind == StorageKind::kCudaManaged ? MemoryKind::kManaged : MemoryKind::kDevice;
}

bool describes_device(const Arguments& given) {
  return is_given(given.device_layout) || is_given(given.device_alignment_size) ||
         is_given(given.device_defaults);
}

/// Refuses a layout of the device's buffer. Requires describes_device(given).
[[noreturn]] void raise_no_second(const Arguments& given, StorageKind kind) {
  const auto [name, value] = is_given(given.device_layout)
                                 ? std::pair("device_layout", given.device_layout)
                             : is_given(given.device_alignment_size)
                                 ? std::pair("device_alignment_size", given.device_alignment_size)
                                 : std::pair("device_defaults", given.device_defaults);
  const bool on_host = kind == StorageKind::kCpu;
  raise(ErrorClass::kValue,
        Problem{name, describe(value),
                "left out of a " + std::string(to_string(kind)) + " storage, which has one buffer",
                on_host ? "leave out device=None, or pass layout, alignment_size or backend"
                        : "pass layout, alignment_size or backend, or managed=\"gt4py\""});
}

KindRequest with_kind(const Request& request, const Arguments& given,
                      std::optional<StorageKind> found,
                      const std::optional<SecondLayout>& on_device) {
  const bool has_device =
      is_on(Side::kDevice, request.memory) || (describes_device(given) && given.device == nullptr);
  const StorageKind kind = storage_kind(has_device, given.managed, found);
  if (is_given(given.memory) && !is_shared(given.memory)) {
    raise(ErrorClass::kValue, Problem{"memory", describe(given.memory), "None or \"shared\"",
                                      "pass device and managed for memory of a device"});
  }
  if (request.resource != nullptr && memory_of(kind) != MemoryKind::kHost &&
      kind != StorageKind::kSoftwareManaged) {
    raise(ErrorClass::kValue,
          Problem{"memory", "\"shared\" of a " + std::string(to_string(kind)) + " storage",
                  "of a storage with a buffer on the host",
                  "leave it out, or pass managed=\"gt4py\""});
  }
  return {{.layout = request.layout,
           .dtype = request.dtype->type,
           .kind = kind,
           .populate = request.populate,
           .device_layout = second_layout(request, kind, given, on_device),
           .resource = request.resource},
          request.dtype};
}

}  // namespace

std::optional<bool> wished_device(const Arguments& given) {
  const std::optional<bool> passed = wants_gpu(given.device);
  if (passed) return passed;
  if (describes_device(given)) return true;
  const std::optional<Preset> preset = preset_of(given);
  if (preset) return preset->on_device;
  return std::nullopt;
}

std::optional<Layout> second_layout(const Request& request, StorageKind kind,
                                    const Arguments& given,
                                    const std::optional<SecondLayout>& found) {
  const bool passed = describes_device(given);
  if (!passed && !found) return std::nullopt;
  if (kind != StorageKind::kSoftwareManaged) {
    if (passed) raise_no_second(given, kind);
    return std::nullopt;
  }
  const Layout& first = request.layout;
  const Source source{
      .dtype = request.dtype,
      .like = {.shape = first.shape(),
               .layout = found ? found->layout : first.layout_map(),
               .alignment_bytes = found ? found->alignment_bytes : first.alignment_bytes(),
               .aligned_index = first.aligned_index(),
               .dims = first.dims(),
               .halo = first.halo()}};
  try {
    Layout second = resolve_like(source, {.backend = given.device_defaults,
                                          .layout = given.device_layout,
                                          .alignment_size = given.device_alignment_size})
                        .layout;
    if (second == first) return std::nullopt;
    return second;
  } catch (const PythonError&) {
    py::error_already_set error;
    error.value().attr("add_note")(
        "It is the layout of the device's buffer: device_layout, device_alignment_size, "
        "device_defaults.");
    error.restore();
    throw PythonError();
  }
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
    StorageSource source{{.dtype = object_of(data)->dtype,
                          .like = storage.array(reading_side(storage)).request(),
                          .memory = memory_of(storage.kind())},
                         managed_of(storage.kind())};
    if (!storage.has_two_layouts()) return source;
    const Layout second = storage.array(Side::kDevice).layout();
    SecondLayout found{second.layout_map(), second.alignment_bytes()};
    if (found != SecondLayout{source.like.layout, source.like.alignment_bytes}) {
      source.on_device = found;
    }
    return source;
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
    source.like.dims = with_starts_of(data, source.like.dims);
    source.like.aligned_index = {};  // A foreign array has none.
  }
  if (source.memory == MemoryKind::kManaged) source.managed = StorageKind::kCudaManaged;
  return source;
}

KindRequest resolve_storage(const Arguments& given) {
  if (given.data != nullptr) {
    return resolve_storage_like(storage_source_of(given.data, given.dims), given);
  }
  return with_kind(resolve(given), given, std::nullopt, std::nullopt);
}

KindRequest resolve_storage_like(const StorageSource& source, const Arguments& given) {
  if (source.on_device && given.managed == Py_None) {
    const StorageSource kept = kept_side(source, given);
    if (!kept.on_device) return resolve_storage_like(kept, given);
  }
  return with_kind(resolve_like(source, given), given, source.managed, source.on_device);
}

StorageSource kept_side(StorageSource source, const Arguments& given) {
  const bool has_device = wished_device(given).value_or(source.memory != MemoryKind::kHost);
  if (!source.on_device || !has_device || given.managed != Py_None) return source;
  source.like.layout = source.on_device->layout;
  source.like.alignment_bytes = source.on_device->alignment_bytes;
  source.on_device.reset();
  return source;
}

namespace {

/// A halo is valid where all ranks fill their fields with one value. A field like another one
/// belongs to its decomposition.
py::object with_depth(py::object made, const Arguments& given, bool is_equal_everywhere) {
  const Storage& storage = storage_of(made.ptr());
  if (storage.halo() == no_halo(storage.ndim())) return made;
  if (given.data != nullptr && is_storage(given.data)) {
    check(storage.copy_halo_depth(storage_of(given.data), /*valid=*/false));
  }
  if (is_equal_everywhere) check(storage.mark_halo_valid(storage.halo()));
  return made;
}

template <Zeroed zeroed>
py::object unfilled(const Arguments& given) {
  return with_depth(allocate_storage(resolve_storage(given), zeroed), given,
                    zeroed == Zeroed::kAll);
}

/// Cast and broadcast as numpy.full does.
py::object filled(const Arguments& given, PyObject* value) {
  KindRequest request = resolve_storage(given);
  const py::object elements =
      is_scalar(value) ? make_element(request.dtype->numpy.ptr(), value) : readable_on_host(value);
  py::object made = allocate_storage(std::move(request), Zeroed::kPadding);
  assign(*object_of(made.ptr()), storage_of(made.ptr()), elements.ptr());
  return with_depth(std::move(made), given, is_scalar(value));
}
py::object ones(const Arguments& given) { return filled(given, steal(PyLong_FromLong(1)).ptr()); }
py::object full(const Arguments& given) { return filled(given, given.fill_value); }

using New = Creation<kStorageKeywords>;
constexpr ArrayParameter kDeviceData{"device_data", &Arguments::device_data};
constexpr ArrayParameter kSyncState{"sync_state", &Arguments::sync_state};
constexpr ArrayParameter kCopy{"copy", &Arguments::copy};

constexpr auto kAsStorage = signature_of("as_storage", {kData, kDeviceData, kSyncState},
                                         kStorageKeywords, /*required=*/0, /*positional=*/2);
constexpr auto kStorage =
    signature_of("storage", {kData, kDeviceData, kDtype, kCopy, kSyncState, kShape},
                 kStorageKeywords, /*required=*/0, /*positional=*/2);
constexpr Signature<Arguments, 1> kFromC{"from_c", 1, 1, {{{"capsule", &Arguments::data}}}};
constexpr Signature<Arguments, 1> kToC{"to_c", 1, 1, {{{"storage", &Arguments::data}}}};

PyMethodDef functions[] = {
    definition_of<New::kEmpty, unfilled<Zeroed::kNothing>>(doc("_storage_empty")),
    definition_of<New::kZeros, unfilled<Zeroed::kAll>>(doc("_storage_zeros")),
    definition_of<New::kOnes, ones>(doc("_storage_ones")),
    definition_of<New::kFull, full>(doc("_storage_full")),
    definition_of<New::kEmptyLike, unfilled<Zeroed::kNothing>>(doc("_storage_empty_like")),
    definition_of<New::kZerosLike, unfilled<Zeroed::kAll>>(doc("_storage_zeros_like")),
    definition_of<New::kOnesLike, ones>(doc("_storage_ones_like")),
    definition_of<New::kFullLike, full>(doc("_storage_full_like")),
    definition_of<kAsStorage, wrap_memory>(doc("_storage_as_storage")),
    definition_of<kStorage, storage_from>(doc("_storage_storage")),
    definition_of<kFromC, from_c>(doc("_storage_from_c")),
    definition_of<kToC, to_c>(doc("_storage_to_c")),
};

}  // namespace

py::object allocate_storage(KindRequest&& request, Zeroed zeroed) {
  StorageRequest& wanted = request.storage;
  const bool second_is_padded = wanted.device_layout && has_padding(*wanted.device_layout);
  const bool pads = second_is_padded || has_padding(wanted.layout, wanted.dtype);
  wanted.zeroed = zeroed == Zeroed::kAll || (zeroed == Zeroed::kPadding && pads);
  const bool is_long = wanted.kind != StorageKind::kCpu || wanted.populate ||
                       (wanted.zeroed && wanted.layout.total_bytes() >= kLongBytes);
  const auto allocate = [&] { return Storage::allocate(wanted); };
  absl::StatusOr<Storage> made = is_long ? run_without_gil(allocate) : allocate();
  if (!made.ok()) raise(made.status());
  return make_object(wanted.kind, request.dtype, [&] { return *std::move(made); });
}

void add_storage_functions(PyObject* module) {
  const py::object package = make_text("gridbuf.storage");  // whose functions they are
  for (PyMethodDef& definition : functions) {
    const std::string name = std::string("_storage_") + definition.ml_name;
    const py::object function = steal(PyCFunction_NewEx(&definition, module, package.ptr()));
    check(PyModule_AddObjectRef(module, name.c_str(), function.ptr()));
  }
}

}  // namespace gridbuf::python::storages
