module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

// ---- Spellings of earlier proposals. ----

struct OldSpelling {
  std::string_view name;
  std::string_view today;  // of plain arrays and buffers
  std::string_view of_storages = today;
};

constexpr OldSpelling kOldSpellings[] = {
    {"default_parameters", "its name is backend"},
    {"defaults", "its name is backend"},
    {"layout_map", "its name is layout"},
    {"order", "pass layout, or backend=\"C\" or \"F\""},
    {"ndims", "the number of dimensions is the length of shape; the attribute is ndim"},
    {"gpu", "pass device=\"gpu\" or device=None"},
    {"value", "its name is fill_value, of full and full_like"},
    {"alignment", "its name is alignment_size, and its unit is bytes, not elements"},
    {"default_origin", "its name is aligned_index"},
    {"axes", "its name is dims"},
    {"periodic",
     "a storage has no boundary condition; gridbuf.storage.fill_halo(field, \"periodic\") fills "
     "its halo"},
    {"mask", "name the dimensions that there are with dims"},
    {"halo", "only storages have a halo; for plain arrays and buffers pass aligned_index"},
    {"managed", "it belongs to storages; plain arrays and buffers take memory=\"managed\""},
    {"memory", "", "storages take device and managed; memory belongs to plain arrays and buffers"},
    {"shape", "the shape is that of data and cannot be overridden"},
};

[[noreturn]] void raise_unknown(const Signature& signature, PyObject* keyword,
                                std::string_view OldSpelling::* text) {
  for (const OldSpelling& old : kOldSpellings) {
    if (utf8(keyword) != old.name) continue;
    raise(ErrorClass::kType, std::string(signature.function) + "() has no parameter " +
                                 describe(keyword) + ": " + std::string(old.*text));
  }
  unexpected_keyword(signature, keyword);
  throw PythonError();
}

[[noreturn]] void raise_parameter(std::string_view name, PyObject* found, std::string_view bound,
                                  std::string_view advice,
                                  ErrorClass error_class = ErrorClass::kValue) {
  raise(error_class, Problem{name, describe(found), bound, advice});
}

// ---- One function per parameter: explicit, preset, source, fallback. ----

DeviceType choose_memory(const Keywords& keywords, const std::optional<Preset>& preset,
                         const Source* source) {
  const std::optional<bool> gpu = wants_gpu(keywords.device);
  if (const std::optional<DeviceType> named = to_memory_type(keywords.memory)) {
    const bool on_gpu = *named == DeviceType::kCuda || *named == DeviceType::kCudaManaged;
    if (gpu && *gpu != on_gpu) {
      raise_parameter(
          "device", keywords.device,
          (on_gpu ? "\"gpu\" with memory=" : "None with memory=") + describe(keywords.memory),
          "pass one of the two");
    }
    return *named;
  }
  if (gpu) return *gpu ? DeviceType::kCuda : DeviceType::kHost;
  if (preset) {
    return preset->device == DeviceType::kCuda ? DeviceType::kCuda : DeviceType::kHost;
  }
  return source != nullptr ? source->memory : DeviceType::kHost;
}

/// The aligned index that was passed.
Extents to_aligned_index(PyObject* object, const Dims& dims) {
  const int ndim = dims.size();
  const py::object entries = by_position(object, dims, "aligned_index", steal(PyLong_FromLong(0)));
  const Extents index = to_integers(entries.ptr(), "aligned_index");
  if (index.size() == ndim) return index;
  raise_parameter("aligned_index", object,
                  "one index per dimension, " + std::to_string(ndim) + " in all",
                  "leave it out for zeros");
}

/// Writes what the caller passed, or what the preset gives, over `wanted`, which holds the shape
/// and what the imitated array has.
void override_request(const Keywords& keywords, const std::optional<Preset>& preset,
                      LayoutRequest& wanted) {
  const int ndim = wanted.shape.size();
  if (is_given(keywords.dims)) wanted.dims = to_dims(keywords.dims, ndim);
  if (wanted.dims.empty()) wanted.dims = default_dims(ndim);
  if (is_given(keywords.halo)) wanted.halo = to_halo(keywords.halo, wanted.dims, wanted.shape);
  if (is_given(keywords.layout)) {
    wanted.layout = to_layout(keywords.layout, wanted.dims);
  } else if (preset) {
    wanted.layout = preset_layout(*preset, wanted.dims);
  }
  if (is_given(keywords.alignment_size)) {
    wanted.alignment_bytes = to_integer(keywords.alignment_size, "alignment_size");
  } else if (preset) {
    wanted.alignment_bytes = preset->alignment_bytes;
  }
  if (is_given(keywords.aligned_index)) {
    wanted.aligned_index = to_aligned_index(keywords.aligned_index, wanted.dims);
  }
}

Request resolve_all(LayoutRequest& wanted, DTypePtr dtype, const Source* source,
                    const Keywords& keywords) {
  const std::optional<Preset> preset = preset_of(keywords);
  Request request{.layout = {},
                  .dtype = std::move(dtype),
                  .populate = is_given(keywords.populate) && to_flag(keywords.populate, "populate"),
                  .memory = choose_memory(keywords, preset, source)};
  wanted.itemsize_bytes = request.dtype->type.itemsize_bytes();
  wanted.dtype_name = request.dtype->name;
  override_request(keywords, preset, wanted);
  // The text of an error is made only if there is one.
  const LayoutFault fault = plan_layout(wanted, request.layout);
  if (!fault.ok()) {
    check_alignment_size(wanted.alignment_bytes);
    raise(make_plan(wanted).status());
  }
  return request;
}

// ---- What an imitated array has. ----

Source source_of_buffer(PyObject* buffer) {
  const Array& array = array_in(buffer);
  return {.dtype = dtype_of(buffer), .like = array.request(), .memory = array.memory().device.type};
}

/// The Buffer whose elements a plain array shows, all of them and in this order; null if none.
PyObject* buffer_behind(const NdarrayFields& array) {
  if (array.base == nullptr || !is_buffer(array.base)) return nullptr;
  const BufferDescriptor& memory = array_in(array.base).memory();
  const bool same = array.first_element == memory.first_element() &&
                    array.shape == memory.view.shape &&
                    array.strides_bytes == memory.view.strides_bytes &&
                    array.dtype == dtype_of(array.base)->numpy.ptr();
  return same ? array.base : nullptr;
}

AttributeName gt_dims_name("__gt_dims__");
AttributeName dims_name("dims");

/// An integer for both ends, or a pair.
HaloWidth to_halo_width(PyObject* entry) {
  if (!is_sequence(entry)) return HaloWidth::symmetric(to_integer(entry, "halo"));
  const Extents ends = to_integers(entry, "halo");
  if (ends.size() != 2) {
    raise_parameter("halo", entry, "an integer or a pair (lower, upper) for each dimension",
                    "pass 2 for two points at both ends, (2, 0) for two at the lower end");
  }
  return {ends[0], ends[1]};
}

[[noreturn]] void raise_halo_length(PyObject* halo, Py_ssize_t length, int ndim) {
  // Halos of three entries for every number of dimensions are an earlier proposal's.
  raise_parameter("halo", halo,
                  "one entry per dimension, " + std::to_string(ndim) +
                      (length == 3 ? " in all, not three for arrays of any dimensions" : " in all"),
                  "pass an integer or a pair (lower, upper) for each",
                  length == 3 ? ErrorClass::kType : ErrorClass::kValue);
}

}  // namespace

void check_alignment_size(std::int64_t bytes) {
  if (bytes >= 1 && bytes <= kMaxAlignmentBytes) return;
  raise(ErrorClass::kValue, Problem{"alignment_size", std::to_string(bytes),
                                    "an integer from 1 to " + std::to_string(kMaxAlignmentBytes),
                                    "pass 1 for no constraint"});
}

Keywords to_keywords(std::span<PyObject* const> values) {
  return {values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7]};
}

void raise_missing(const Signature& signature, int position) {
  raise(ErrorClass::kType, std::string(signature.function) + "() is underdetermined: " +
                               signature.names[static_cast<std::size_t>(position)] +
                               " is missing; pass it as argument " + std::to_string(position + 1));
}

void unknown_keyword(const Signature& signature, PyObject* keyword) {
  raise_unknown(signature, keyword, &OldSpelling::today);
}
void unknown_storage_keyword(const Signature& signature, PyObject* keyword) {
  raise_unknown(signature, keyword, &OldSpelling::of_storages);
}

std::optional<bool> wants_gpu(PyObject* device) {
  if (device == nullptr) return std::nullopt;
  if (device == Py_None) return false;
  const bool is_text = PyUnicode_Check(device) != 0;
  if (is_text && utf8(device) == kGpuKey) return true;
  raise_parameter("device", device, "None or \"gpu\"", "pass None for host memory",
                  is_text ? ErrorClass::kValue : ErrorClass::kType);
}

std::optional<Preset> preset_of(const Keywords& keywords) {
  if (!is_given(keywords.backend)) return std::nullopt;
  if (PyUnicode_Check(keywords.backend) == 0) {
    raise_parameter("backend", keywords.backend, "the name of a preset",
                    "pass a str such as \"gt:cpu_ifirst\"; gridbuf.presets() lists them",
                    ErrorClass::kType);
  }
  return value_of(find_preset(utf8(keywords.backend)));
}

Halo to_halo(PyObject* object, const Dims& dims, const Extents& shape) {
  const py::object entries = by_position(object, dims, "halo", steal(PyLong_FromLong(0)));
  object = entries.ptr();
  if (!is_sequence(object)) {
    raise_parameter("halo", object, "a sequence with an integer or a pair for each dimension",
                    "pass one entry per dimension, such as (2, 2, 0)", ErrorClass::kType);
  }
  const Py_ssize_t length = PySequence_Size(object);
  if (length < 0) throw PythonError();
  if (length != shape.size()) raise_halo_length(object, length, shape.size());
  Halo halo;
  for (Py_ssize_t axis = 0; axis < length; ++axis) {
    const py::object entry = steal(PySequence_GetItem(object, axis));
    halo.push_back(to_halo_width(entry.ptr()));
  }
  check(validate_halo(halo, shape));
  return halo;
}

std::optional<Dims> declared_dims(PyObject* object, int ndim) {
  py::object declared = optional_attribute(object, gt_dims_name);
  if (declared) {
    if (PyCallable_Check(declared.ptr()) != 0) {
      declared = steal(PyObject_CallNoArgs(declared.ptr()));
    }
    return to_dims(declared.ptr(), ndim);
  }
  const py::object names = optional_attribute(object, dims_name);
  if (!names) return std::nullopt;
  try {
    return to_dims(names.ptr(), ndim);
  } catch (const PythonError&) {
    // An attribute of that name with other contents (xarray's own names) declares nothing.
    if (take_error(PyExc_ValueError) || take_error(PyExc_TypeError)) return std::nullopt;
    throw;
  }
}

std::optional<Dims> dims_behind(PyObject* ndarray) {
  PyObject* const buffer = buffer_behind(fields_of(ndarray));
  if (buffer == nullptr) return std::nullopt;
  return array_in(buffer).layout().dims();
}

Source source_of(PyObject* data, py::object* array) {
  if (is_buffer(data)) {
    const bool on_host = is_host_readable(array_in(data).memory().device.type);
    if (array != nullptr && on_host) *array = ndarray_of(data);
    return source_of_buffer(data);
  }
  if (is_storage(data)) {
    const Purpose purpose = array != nullptr ? Purpose::kReading : Purpose::kParameters;
    return source_of(side_buffer(data, DeviceType::kHost, purpose).ptr(), array);
  }
  py::object read = as_ndarray(data);
  const NdarrayFields fields = fields_of(read.ptr());
  PyObject* const buffer = buffer_behind(fields);
  Source source;
  if (buffer != nullptr) {
    source = source_of_buffer(buffer);
  } else {
    const int ndim = fields.shape.size();
    source = {.dtype = record_of(fields.dtype),
              .like = {.shape = fields.shape,
                       .layout = layout_of(fields.shape, fields.strides_bytes),
                       .dims = declared_dims(data, ndim).value_or(default_dims(ndim))}};
  }
  if (array != nullptr) *array = std::move(read);
  return source;
}

Request resolve(PyObject* shape, PyObject* dtype, const Keywords& keywords) {
  RequestedDType requested = to_dtype(dtype);
  LayoutRequest wanted{.shape = to_shape(shape, requested.record->name)};
  for (const std::int64_t extent : requested.subarray) {
    if (wanted.shape.size() == kMaxNdim) {
      raise(ErrorClass::kValue,
            Problem{"dimensions of shape and dtype", "more than " + std::to_string(kMaxNdim),
                    "at most " + std::to_string(kMaxNdim), "use fewer dimensions"});
    }
    wanted.shape.push_back(extent);
  }
  return resolve_all(wanted, std::move(requested.record), nullptr, keywords);
}

Request resolve_like(const Source& source, PyObject* dtype, const Keywords& keywords) {
  LayoutRequest wanted = source.like;
  if (!is_given(dtype)) return resolve_all(wanted, source.dtype, &source, keywords);
  RequestedDType requested = to_dtype(dtype);
  if (!requested.subarray.empty()) {
    raise_parameter("dtype", dtype, "a type without a shape", "pass its base type",
                    ErrorClass::kType);
  }
  return resolve_all(wanted, std::move(requested.record), &source, keywords);
}

}  // namespace gridbuf::python
