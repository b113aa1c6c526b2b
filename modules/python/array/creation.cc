// The functions that make plain arrays and buffers: what was passed becomes a Request.

module;

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

[[noreturn]] void raise_parameter(std::string_view name, PyObject* found, std::string_view bound,
                                  std::string_view advice,
                                  ErrorClass error_class = ErrorClass::kValue) {
  raise(error_class, Problem{name, describe(found), bound, advice});
}

// ---- One function per parameter: explicit, preset, source, fallback. ----

MemoryKind choose_memory(const Arguments& given, const std::optional<Preset>& preset,
                         const Source* source) {
  const std::optional<bool> gpu = wants_gpu(given.device);
  if (is_shared(given.memory)) {
    const bool on_gpu = gpu ? *gpu : preset && preset->on_device;
    return on_gpu ? MemoryKind::kDevice : MemoryKind::kHost;
  }
  if (given.memory != nullptr && PyUnicode_Check(given.memory) != 0 &&
      !memory_kind_named(utf8(given.memory)).ok()) {
    raise_parameter("memory", given.memory, "'host', 'shared', 'pinned', 'managed' or 'device'",
                    "leave it out for memory of the host");
  }
  if (const std::optional<MemoryKind> named = to_memory_kind(given.memory)) {
    const bool on_gpu = is_on(Side::kDevice, *named);
    if (gpu && *gpu != on_gpu) {
      raise_parameter(
          "device", given.device,
          (on_gpu ? "\"gpu\" with memory=" : "None with memory=") + describe(given.memory),
          "pass one of the two");
    }
    return *named;
  }
  if (gpu) return *gpu ? MemoryKind::kDevice : MemoryKind::kHost;
  if (preset) return preset->on_device ? MemoryKind::kDevice : MemoryKind::kHost;
  return source != nullptr ? source->memory : MemoryKind::kHost;
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
void override_request(const Arguments& given, const std::optional<Preset>& preset,
                      LayoutRequest& wanted) {
  const int ndim = wanted.shape.size();
  if (is_given(given.dims)) {
    const Dims before = std::exchange(wanted.dims, to_dims(given.dims, ndim));
    for (int axis = 0; axis < before.size() && axis < ndim; ++axis) {  // only the names are others
      if (before[axis].has_start()) {
        wanted.dims[axis] = wanted.dims[axis].starting_at(before[axis].start());
      }
    }
  }
  if (wanted.dims.empty()) wanted.dims = default_dims(ndim);
  if (is_given(given.lower)) wanted.dims = starting_at(given.lower, wanted.dims);
  if (is_given(given.halo)) wanted.halo = to_halo(given.halo, wanted.dims, wanted.shape);
  if (is_given(given.layout)) {
    wanted.layout = to_layout(given.layout, wanted.dims);
  } else if (preset) {
    wanted.layout = preset_layout(*preset, wanted.dims);
  }
  if (is_given(given.alignment_size)) {
    wanted.alignment_bytes = to_integer(given.alignment_size, "alignment_size");
  } else if (preset) {
    wanted.alignment_bytes = preset->alignment_bytes;
  }
  if (is_given(given.aligned_index)) {
    wanted.aligned_index = to_aligned_index(given.aligned_index, wanted.dims);
  }
}

/// Of memory="shared"; else null. multiprocessing learns to send it.
MemoryResource* resource_of(const Arguments& given) {
  if (!is_shared(given.memory)) return nullptr;
  py::module_::import("gridbuf._pickles").attr("teach_multiprocessing")();
  return &shared_resource();
}

Request resolve_all(LayoutRequest& wanted, DTypePtr dtype, const Source* source,
                    const Arguments& given) {
  const std::optional<Preset> preset = preset_of(given);
  Request request{.layout = {},
                  .dtype = std::move(dtype),
                  .populate = is_given(given.populate) && to_flag(given.populate, "populate"),
                  .memory = choose_memory(given, preset, source),
                  .resource = resource_of(given)};
  wanted.itemsize_bytes = request.dtype->type.itemsize_bytes();
  wanted.dtype_name = request.dtype->name;
  override_request(given, preset, wanted);
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
  return {.dtype = dtype_of(buffer),
          .like = array.request(),
          .memory = memory_kind(array.memory().device.type)};
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

std::optional<bool> wants_gpu(PyObject* device) {
  if (device == nullptr) return std::nullopt;
  if (device == Py_None) return false;
  const bool is_text = PyUnicode_Check(device) != 0;
  if (is_text && utf8(device) == kGpuKey) return true;
  raise_parameter("device", device, "None or \"gpu\"", "pass None for host memory",
                  is_text ? ErrorClass::kValue : ErrorClass::kType);
}

std::optional<Preset> preset_of(const Arguments& given) {
  if (!is_given(given.backend)) return std::nullopt;
  if (PyUnicode_Check(given.backend) == 0) {
    raise_parameter("backend", given.backend, "the name of a preset",
                    "pass a str such as \"gt:cpu_ifirst\"; gridbuf.presets() lists them",
                    ErrorClass::kType);
  }
  return value_of(find_preset(utf8(given.backend)));
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
    return source_of(side_buffer(data, Side::kHost, purpose).ptr(), array);
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

Request resolve(const Arguments& given) {
  if (given.data != nullptr) return resolve_like(source_of(given.data), given);
  RequestedDType requested = to_dtype(given.dtype);
  LayoutRequest wanted{.shape = to_shape(given.shape, requested.record->name)};
  for (const std::int64_t extent : requested.subarray) {
    if (wanted.shape.size() == kMaxNdim) {
      raise(ErrorClass::kValue,
            Problem{"dimensions of shape and dtype", "more than " + std::to_string(kMaxNdim),
                    "at most " + std::to_string(kMaxNdim), "use fewer dimensions"});
    }
    wanted.shape.push_back(extent);
  }
  return resolve_all(wanted, std::move(requested.record), nullptr, given);
}

Request resolve_like(const Source& source, const Arguments& given) {
  LayoutRequest wanted = source.like;
  if (!is_given(given.dtype)) return resolve_all(wanted, source.dtype, &source, given);
  RequestedDType requested = to_dtype(given.dtype);
  if (!requested.subarray.empty()) {
    raise_parameter("dtype", given.dtype, "a type without a shape", "pass its base type",
                    ErrorClass::kType);
  }
  return resolve_all(wanted, std::move(requested.record), &source, given);
}

namespace {

// ---- Filling. ----

py::object allocate_for(const Request& request, const ArrayOptions& zeroes) {
  ArrayOptions options = zeroes;
  options.populate = request.populate;
  options.memory = request.memory;
  options.resource = request.resource;
  if (options.resource != nullptr && options.memory != MemoryKind::kHost) {
    raise(ErrorClass::kValue,
          {"device", "\"gpu\" with memory=\"shared\"", "None: processes share memory of the host",
           "leave one of them out"});
  }
  return allocate_buffer(request.layout, request.dtype, options);
}

bool pads(const Request& request) { return has_padding(request.layout, request.dtype->type); }

/// A plain array in memory that only a GPU reads is CuPy's.
bool is_for_cupy(const Request& request) { return request.memory == MemoryKind::kDevice; }

py::object make_full(const Request& request, PyObject* fill_value) {
  if (is_for_cupy(request)) {
    py::object array = make_cupy_array(request.layout, *request.dtype, has_padding(request.layout));
    copy_into_cupy(array.ptr(), fill_value);
    return array;
  }
  if (!is_scalar(fill_value)) {
    const py::object buffer = allocate_for(request, {.zeroed_padding = pads(request)});
    py::object array = ndarray_of(buffer.ptr());
    copy_arrays(array.ptr(), as_ndarray(fill_value).ptr());  // Broadcasts, as numpy.full does.
    return array;
  }
  const py::object element = make_element(request.dtype->numpy.ptr(), fill_value);
  const py::object buffer = allocate_for(request, {.zeroed_padding = pads(request)});
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory();
  fill_memory(memory.block, memory.view, fields_of(element.ptr()).first_element);
  return ndarray_of(buffer.ptr());
}

template <bool zeroed>
py::object make_unfilled(const Request& request) {
  if (is_for_cupy(request)) return make_cupy_array(request.layout, *request.dtype, zeroed);
  return ndarray_of(allocate_for(request, {.zeroed = zeroed}).ptr());
}

/// A copy of the elements of `array`, in the layout of `request`.
py::object make_copy(const Request& request, const py::object& array) {
  if (is_for_cupy(request)) return make_full(request, array.ptr());
  py::object target = ndarray_of(allocate_for(request, {.zeroed_padding = pads(request)}).ptr());
  copy_arrays(target.ptr(), array.ptr());
  return target;
}

// Plain arrays are ndarrays over gridbuf's memory, and CuPy's where only a GPU reads it.

py::object allocate(const Arguments& given) { return allocate_for(resolve(given), {}); }
template <bool zeroed>
py::object unfilled(const Arguments& given) {
  return make_unfilled<zeroed>(resolve(given));
}
py::object ones(const Arguments& given) {
  return make_full(resolve(given), steal(PyLong_FromLong(1)).ptr());
}
py::object full(const Arguments& given) { return make_full(resolve(given), given.fill_value); }

py::object from_array(const Arguments& given) {
  const py::object data = importable_or_same(given.data, given.dims);
  py::object array;
  const Source source = source_of(data.ptr(), &array);
  const Request request = resolve_like(source, given);
  if (!array) array = ndarray_of(copy_of(data.ptr(), MemoryKind::kHost).ptr());
  return make_copy(request, array);
}

py::object plan(const Arguments& given) { return make_plan_object(resolve(given).layout); }

// ---- The table. ----

using New = Creation<kArrayKeywords>;
constexpr auto kAllocate = signature_of("allocate", {kShape, kDtype}, kArrayKeywords);
constexpr auto kPlan = signature_of("plan", {kShape, kDtype}, kArrayKeywords);
constexpr auto kFromArray = signature_of("from_array", {kData, kDtype}, kArrayKeywords);

PyMethodDef functions[] = {
    definition_of<kAllocate, allocate>(doc("allocate")),
    definition_of<kPlan, plan>(doc("plan")),
    definition_of<New::kEmpty, unfilled<false>>(doc("empty")),
    definition_of<New::kZeros, unfilled<true>>(doc("zeros")),
    definition_of<New::kOnes, ones>(doc("ones")),
    definition_of<New::kFull, full>(doc("full")),
    definition_of<New::kEmptyLike, unfilled<false>>(doc("empty_like")),
    definition_of<New::kZerosLike, unfilled<true>>(doc("zeros_like")),
    definition_of<New::kOnesLike, ones>(doc("ones_like")),
    definition_of<New::kFullLike, full>(doc("full_like")),
    definition_of<kFromArray, from_array>(doc("from_array")),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_creation_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
