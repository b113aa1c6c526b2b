// The parameters of new storages.

module;

#include <pybind11/pybind11.h>

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

bool describes_device(const StorageKeywords& keywords) {
  const Keywords& passed = keywords.on_device;
  return is_given(passed.layout) || is_given(passed.alignment_size) || is_given(passed.backend);
}

/// Refuses a layout of the device's buffer. Requires describes_device(keywords).
[[noreturn]] void raise_no_second(const StorageKeywords& keywords, StorageKind kind) {
  const Keywords& passed = keywords.on_device;
  const auto [name, value] = is_given(passed.layout) ? std::pair("device_layout", passed.layout)
                             : is_given(passed.alignment_size)
                                 ? std::pair("device_alignment_size", passed.alignment_size)
                                 : std::pair("device_defaults", passed.backend);
  const bool on_host = kind == StorageKind::kCpu;
  raise(ErrorClass::kValue,
        Problem{name, describe(value),
                "left out of a " + std::string(to_string(kind)) + " storage, which has one buffer",
                on_host ? "leave out device=None, or pass layout, alignment_size or backend"
                        : "pass layout, alignment_size or backend, or managed=\"gt4py\""});
}

KindRequest with_kind(Request&& request, const StorageKeywords& keywords,
                      std::optional<StorageKind> found,
                      const std::optional<SecondLayout>& on_device) {
  const bool has_device = request.memory == DeviceType::kCuda ||
                          request.memory == DeviceType::kCudaManaged ||
                          (describes_device(keywords) && keywords.shared.device == nullptr);
  KindRequest made{std::move(request), storage_kind(has_device, keywords.managed, found)};
  made.device_layout = second_layout(made, made.kind, keywords, on_device);
  return made;
}

}  // namespace

std::optional<bool> wished_device(const StorageKeywords& keywords) {
  const std::optional<bool> passed = wants_gpu(keywords.shared.device);
  if (passed) return passed;
  if (describes_device(keywords)) return true;
  const std::optional<Preset> preset = preset_of(keywords.shared);
  if (preset) return preset->device == DeviceType::kCuda;
  return std::nullopt;
}

std::optional<Layout> second_layout(const Request& request, StorageKind kind,
                                    const StorageKeywords& keywords,
                                    const std::optional<SecondLayout>& found) {
  const bool passed = describes_device(keywords);
  if (!passed && !found) return std::nullopt;
  if (kind != StorageKind::kSoftwareManaged) {
    if (passed) raise_no_second(keywords, kind);
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
    Layout second = resolve_like(source, nullptr, keywords.on_device).layout;
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
          .managed = values[8],
          .on_device = {.backend = values[12], .layout = values[10], .alignment_size = values[11]}};
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
    source.like.aligned_index = {};  // A foreign array has none.
  }
  if (source.memory == DeviceType::kCudaManaged) source.managed = StorageKind::kCudaManaged;
  return source;
}

KindRequest resolve_storage(PyObject* shape, PyObject* dtype, const StorageKeywords& keywords) {
  return with_kind(resolve(shape, dtype, keywords.shared), keywords, std::nullopt, std::nullopt);
}

KindRequest resolve_storage_like(const StorageSource& source, PyObject* dtype,
                                 const StorageKeywords& keywords) {
  if (source.on_device && keywords.managed == Py_None) {
    const StorageSource kept = kept_side(source, keywords);
    if (!kept.on_device) return resolve_storage_like(kept, dtype, keywords);
  }
  return with_kind(resolve_like(source, dtype, keywords.shared), keywords, source.managed,
                   source.on_device);
}

StorageSource kept_side(StorageSource source, const StorageKeywords& keywords) {
  const bool has_device = wished_device(keywords).value_or(source.memory != DeviceType::kHost);
  if (!source.on_device || !has_device || keywords.managed != Py_None) return source;
  source.like.layout = source.on_device->layout;
  source.like.alignment_bytes = source.on_device->alignment_bytes;
  source.on_device.reset();
  return source;
}

}  // namespace gridbuf::python::storages
