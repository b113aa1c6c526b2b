// Conversions of numbers, and what is left to NumPy, which converts in blocks: numpy.copyto needs
// no copy of an array, and lets other threads run meanwhile.

module;

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.support;
import gridbuf.transfer;

namespace gridbuf::python::elements {
namespace {

// ---- What NumPy does. ----

bool overlap(const Elements& a, const Elements& b) {
  const auto hull_a = byte_hull(a.view);
  const auto hull_b = byte_hull(b.view);
  if (!hull_a || !hull_b) return true;
  return a.first + hull_a->lowest_bytes < b.first + hull_b->highest_bytes &&
         b.first + hull_b->lowest_bytes < a.first + hull_a->highest_bytes;
}

/// What is read, by code that may write before it has read all of it.
struct Kept {
  py::object source;
  py::object mask;  // may be none
};

py::object copied_if_overlapping(const Elements& target, PyObject* array, const DTypePtr& dtype) {
  const Elements elements = elements_of(fields_of(array), dtype->type.itemsize_bytes());
  if (!overlap(target, elements)) return share(array);
  return steal(PyObject_CallMethod(array, "copy", nullptr));
}

/// Source and mask, copied where they share memory with the target: NumPy notices that only for
/// some arrays, and of those that one line of a conversion has overwritten nothing is left to read
/// again.
Kept keep_overlapping(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
                      PyObject* mask) {
  const Elements written = elements_of(fields_of(target), to->type.itemsize_bytes());
  Kept kept{copied_if_overlapping(written, source, from), share(mask)};
  if (mask != nullptr) {
    kept.mask = copied_if_overlapping(written, mask, record_of(dtype_of_ndarray(mask)));
  }
  return kept;
}

void let_numpy(PyObject* target, const Kept& kept, PyObject* casting) {
  copy_by_numpy(target, kept.source.ptr(), casting == nullptr ? unsafe_casting() : casting,
                kept.mask.ptr());
}

// ---- NumPy, in blocks. ----

/// What a block of the source takes at most.
constexpr std::int64_t kBlockBytes = std::int64_t{1} << 24;

/// Whether NumPy never warns of such a conversion: then nothing shows that it is called more than
/// once.
bool never_warns(const DType& to, const DType& from) {
  const auto is_integer = [](const DType& type) {
    return type.kind() == Kind::kBool || type.kind() == Kind::kInt || type.kind() == Kind::kUint;
  };
  const bool is_wide = to.kind() == Kind::kComplex || (to.kind() == Kind::kFloat && to.bits() > 16);
  return is_integer(from) && (is_integer(to) || is_wide);
}

/// The axis with the smallest stride, or the largest; -1 if the view is one element, repeated.
int axis_of(const StridedView& view, bool smallest) {
  int found = -1;
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.shape[axis] == 1 || view.strides_bytes[axis] == 0) continue;
    const auto distance = [&](int a) { return std::abs(view.strides_bytes[a]); };
    if (found < 0 || (distance(axis) < distance(found)) == smallest) found = axis;
  }
  return found;
}

/// NumPy converts between different layouts ten times as slowly as between equal ones.
bool pays_in_blocks(const Job& job, PyObject* source) {
  const int target_axis = axis_of(job.target.view, true);
  const int source_axis = axis_of(job.source.view, true);
  return is_long(job.target.view) && job.target.view.shape == fields_of(source).shape &&
         target_axis >= 0 && source_axis >= 0 && target_axis != source_axis;
}

/// array[:, …, begin:end], along `axis`.
py::object part_of(PyObject* array, int axis, std::int64_t begin, std::int64_t end) {
  const py::object first = steal(PyLong_FromLongLong(begin));
  const py::object last = steal(PyLong_FromLongLong(end));
  const py::object points = steal(PySlice_New(first.ptr(), last.ptr(), nullptr));
  const py::object all = steal(PySlice_New(nullptr, nullptr, nullptr));
  const py::object index = steal(PyTuple_New(axis + 1));
  for (int i = 0; i <= axis; ++i) {
    PyTuple_SET_ITEM(index.ptr(), i, Py_NewRef(i < axis ? all.ptr() : points.ptr()));
  }
  return steal(PyObject_GetItem(array, index.ptr()));
}

/// Each block is copied into the target's order before NumPy converts it.
void let_numpy_in_blocks(PyObject* target, PyObject* source, const Job& job) {
  const int axis = axis_of(job.target.view, false);
  const std::int64_t extent = job.target.view.shape[axis];
  const std::int64_t bytes_of_a_point = checked::product(job.target.view.shape.span()).value_or(0) /
                                        extent * job.source.view.itemsize_bytes;
  const std::int64_t points = std::max<std::int64_t>(1, kBlockBytes / bytes_of_a_point);
  const py::object numpy = steal(PyImport_ImportModule("numpy"));
  const py::object empty_like = steal(PyObject_GetAttrString(numpy.ptr(), "empty_like"));
  for (std::int64_t begin = 0; begin < extent; begin += points) {
    const std::int64_t end = std::min(begin + points, extent);
    const py::object to = part_of(target, axis, begin, end);
    const py::object from = part_of(source, axis, begin, end);
    const py::object ordered = steal(PyObject_CallFunctionObjArgs(
        empty_like.ptr(), to.ptr(), dtype_of_ndarray(source), nullptr));
    copy_arrays(ordered.ptr(), from.ptr());
    copy_by_numpy(to.ptr(), ordered.ptr(), unsafe_casting(), nullptr);
  }
}

// ---- Conversions. ----

std::optional<Number> number_of(const DType& type) {
  const std::int64_t bits = type.bits();
  switch (type.kind()) {
    case Kind::kInt:
      if (bits == 32) return Number::kInt32;
      if (bits == 64) return Number::kInt64;
      return std::nullopt;
    case Kind::kFloat:
      if (bits == 16) return Number::kFloat16;
      if (bits == 32) return Number::kFloat32;
      if (bits == 64) return Number::kFloat64;
      return std::nullopt;
    case Kind::kNarrow:
      if (type.is_native() && type.dlpack()->code == kDlpackBfloat) return Number::kBfloat16;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

/// One number that is converted once and then written everywhere.
absl::StatusOr<ConversionFlags> convert_one(const Job& job, Number to, Number from,
                                            const ConvertOptions& options) {
  std::array<std::byte, 8> element;
  const StridedView one{.itemsize_bytes = job.target.view.itemsize_bytes};
  absl::StatusOr<ConversionFlags> flags =
      convert_elements(element.data(), one, to, job.source.first,
                       {.itemsize_bytes = job.source.view.itemsize_bytes}, from, options);
  if (flags.ok()) fill_memory(job.target.first, job.target.view, element.data());
  return flags;
}

ConversionFlags convert(const Job& job, const DType& to_type, const DType& from_type) {
  const Number to = *number_of(to_type);
  const Number from = *number_of(from_type);
  const ConvertOptions options{.target_is_swapped = !to_type.is_native(),
                               .source_is_swapped = !from_type.is_native()};
  if (repeats_one_element(job.source.view)) {
    return value_of(convert_one(job, to, from, options));
  }
  return value_of(moved(job.target.view, [&] {
    return convert_elements(job.target.first, job.target.view, to, job.source.first,
                            job.source.view, from, options);
  }));
}

}  // namespace

bool is_converted_here(const DType& to, const DType& from) {
  const std::optional<Number> to_number = number_of(to);
  const std::optional<Number> from_number = number_of(from);
  return to_number && from_number && can_convert(*to_number, *from_number);
}

void copy_numbers(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from) {
  Kept kept{share(source), py::object()};
  Job job = make_job(target, to, source, from, nullptr);
  // An integer is always kept as a float.
  if (from->type.kind() != Kind::kInt && overlap(job.target, job.source)) {
    kept = keep_overlapping(target, to, source, from, nullptr);
    job = make_job(target, to, kept.source.ptr(), from, nullptr);
  }
  if (!convert(job, to->type, from->type).any()) return;
  let_numpy(target, kept, nullptr);
}

void copy_by_numpy_apart(PyObject* target, const DTypePtr& to, PyObject* source,
                         const DTypePtr& from, const CopyRule& rule) {
  if (!to || !from) {  // Objects do not overlap with other elements.
    return let_numpy(target, {share(source), share(rule.mask)}, rule.casting);
  }
  const Job job = make_job(target, to, source, from, rule.mask);
  if (rule.mask == nullptr && never_warns(to->type, from->type) && pays_in_blocks(job, source) &&
      !overlap(job.target, job.source)) {
    return let_numpy_in_blocks(target, source, job);
  }
  let_numpy(target, keep_overlapping(target, to, source, from, rule.mask), rule.casting);
}

}  // namespace gridbuf::python::elements
