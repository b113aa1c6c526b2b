// Conversions of numbers, and what is left to NumPy.

module;

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.support;
import gridbuf.transfer.convert;
import gridbuf.transfer.numbers;

namespace gridbuf::python::elements {
namespace {

std::optional<Number> integer_of(const DType& type, Number smallest) {
  switch (type.bits()) {
    case 8:
      return smallest;
    case 16:
      return static_cast<Number>(static_cast<int>(smallest) + 1);
    case 32:
      return static_cast<Number>(static_cast<int>(smallest) + 2);
    case 64:
      return static_cast<Number>(static_cast<int>(smallest) + 3);
    default:
      return std::nullopt;
  }
}

// ---- What NumPy does. ----

bool overlap(const Elements& a, const Elements& b) {
  const auto hull_a = byte_hull(a.view);
  const auto hull_b = byte_hull(b.view);
  if (!hull_a || !hull_b) return true;
  return a.first + hull_a->lowest_bytes < b.first + hull_b->highest_bytes &&
         b.first + hull_b->lowest_bytes < a.first + hull_a->highest_bytes;
}

bool target_overlaps(const Job& job) {
  return overlap(job.target, job.source) || (job.mask && overlap(job.target, *job.mask));
}

/// What is read, by someone who may not read all of it before he writes.
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

// ---- Conversions. ----

/// Whether a cast may meet a number that it cannot keep, of which NumPy warns.
bool may_be_flagged(Number to, Number from) {
  if (from >= Number::kFloat16) return true;
  return to == Number::kFloat16;  // Whose largest number is 65504.
}

bool is_complex_to_real(Number to, Number from) {
  return from >= Number::kComplex64 && to < Number::kComplex64 && to != Number::kBool;
}

/// NumPy's warning, in NumPy's words.
void warn_of_lost_parts(PyObject* target) {
  if (is_empty(fields_of(target).shape)) return;
  const py::object module = steal(PyImport_ImportModule("numpy.exceptions"));
  const py::object warning = steal(PyObject_GetAttrString(module.ptr(), "ComplexWarning"));
  check(
      PyErr_WarnEx(warning.ptr(), "Casting complex values to real discards the imaginary part", 1));
}

/// One number that is converted once and then written everywhere.
absl::StatusOr<ConversionFlags> convert_one(const Job& job, Number to, Number from,
                                            const ConvertOptions& options) {
  std::array<std::byte, 16> element;
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
  Mask mask;
  if (job.mask) mask = {job.mask->first, job.mask->view};
  const ConvertOptions options{.target_is_swapped = !to_type.is_native(),
                               .source_is_swapped = !from_type.is_native(),
                               .where = job.mask ? &mask : nullptr};
  if (!job.mask && repeats_one_element(job.source.view)) {
    return value_of(convert_one(job, to, from, options));
  }
  return value_of(moved(job.target.view, [&] {
    return convert_elements(job.target.first, job.target.view, to, job.source.first,
                            job.source.view, from, options);
  }));
}

}  // namespace

std::optional<Number> number_of(const DType& type) {
  switch (type.kind()) {
    case Kind::kBool:
      return Number::kBool;
    case Kind::kInt:
      return integer_of(type, Number::kInt8);
    case Kind::kUint:
      return integer_of(type, Number::kUint8);
    case Kind::kFloat:
      if (type.bits() == 16) return Number::kFloat16;
      if (type.bits() == 32) return Number::kFloat32;
      if (type.bits() == 64) return Number::kFloat64;
      return std::nullopt;
    case Kind::kComplex:
      if (type.bits() == 64) return Number::kComplex64;
      if (type.bits() == 128) return Number::kComplex128;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

void copy_numbers(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
                  const CopyRule& rule) {
  const Number to_number = *number_of(to->type);
  const Number from_number = *number_of(from->type);
  if (is_complex_to_real(to_number, from_number)) warn_of_lost_parts(target);
  Kept kept{share(source), share(rule.mask)};
  Job job = make_job(target, to, source, from, rule.mask);
  if (may_be_flagged(to_number, from_number) && target_overlaps(job)) {
    kept = keep_overlapping(target, to, source, from, rule.mask);
    job = make_job(target, to, kept.source.ptr(), from, kept.mask.ptr());
  }
  if (!convert(job, to->type, from->type).any()) return;
  let_numpy(target, kept, nullptr);
}

void copy_by_numpy_apart(PyObject* target, const DTypePtr& to, PyObject* source,
                         const DTypePtr& from, const CopyRule& rule) {
  if (!to || !from) {  // Objects do not overlap with other elements.
    return let_numpy(target, {share(source), share(rule.mask)}, rule.casting);
  }
  let_numpy(target, keep_overlapping(target, to, source, from, rule.mask), rule.casting);
}

}  // namespace gridbuf::python::elements
