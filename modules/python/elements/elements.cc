module;

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.elements;

import gridbuf.error;
import gridbuf.interface.dtype;
import gridbuf.layout;
import gridbuf.python.numpy;
import gridbuf.python.object;
import gridbuf.transfer;
import gridbuf.transfer.convert;

namespace gridbuf::python {
namespace {

/// Below this a copy is shorter than handing the GIL to another thread and back.
constexpr std::int64_t kLongCopyBytes = std::int64_t{1} << 20;

std::int64_t nbytes_of(const StridedView& view) {
  return view.itemsize_bytes * checked::product(view.shape.span()).value_or(0);
}

/// The result of `work`, which touches no Python object; run without the GIL if it moves many
/// bytes.
template <class Work>
auto moved(const StridedView& target, Work&& work) {
  return nbytes_of(target) < kLongCopyBytes ? work() : run_without_gil(work);
}

// ---- What stands in the way. ----

void check_writable(const NdarrayFields& target) {
  if (!target.readonly) return;
  raise(ErrorClass::kValue, Problem{"dst", "read-only", "memory that may be written",
                                    "pass a writable array, or copy into a new one"});
}

/// A view as its elements are seen at the target's indices. `name` is for the message.
StridedView broadcast(const StridedView& view, const Extents& shape, std::string_view name) {
  if (view.shape == shape) return view;
  absl::StatusOr<StridedView> seen = broadcast_to(view, shape);
  if (seen.ok()) return *std::move(seen);
  raise(ErrorClass::kValue,
        Problem{std::string(name) + "'s shape", to_string(view.shape),
                "one that NumPy broadcasts to " + to_string(shape),
                "copy into a part of that shape, or add dimensions with array[:, None]"});
}

/// As in NumPy, leading extents of 1 that are too many are dropped, of the source alone.
StridedView without_leading_ones(StridedView source, int ndim) {
  while (source.ndim() > ndim && source.shape[0] == 1) {
    source.shape.erase(0);
    source.strides_bytes.erase(0);
  }
  return source;
}

// ---- Who moves them. ----

enum class Way : std::uint8_t {
  kBytes,    // the elements of both are the same bytes
  kSwapped,  // … in the other order
  kNumbers,  // the engine converts them
  kNumPy,    // what the engine has no word for
};

bool are_equal(PyObject* a, PyObject* b) {
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  check(equal);
  return equal != 0;
}

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

/// What the engine calls the type; nothing for those that it does not convert (long double, too).
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

Way way_between(PyObject* target_dtype, const DTypePtr& target, PyObject* source_dtype,
                const DTypePtr& source) {
  if (!target || !source) return Way::kNumPy;
  if (target_dtype == source_dtype) return Way::kBytes;
  const DType& to = target->type;
  const DType& from = source->type;
  if (to.kind() == Kind::kStructured || from.kind() == Kind::kStructured) {
    return are_equal(target_dtype, source_dtype) ? Way::kBytes : Way::kNumPy;
  }
  if (to == from) return Way::kBytes;
  if (to == from.byteswapped()) return Way::kSwapped;
  return number_of(to) && number_of(from) ? Way::kNumbers : Way::kNumPy;
}

// ---- Both ends, as the engine takes them. ----

/// Where the elements of an ndarray are; its fields may change when Python code runs.
struct Elements {
  std::byte* first;
  StridedView view;
};

Elements elements_of(NdarrayFields&& fields, std::int64_t itemsize_bytes) {
  return {fields.first_element,
          {.shape = fields.shape,
           .strides_bytes = fields.strides_bytes,
           .itemsize_bytes = itemsize_bytes}};
}

/// Warnings and finalizers are Python code, which may give an array another type.
void check_type(PyObject* array, const DTypePtr& expected, std::string_view name) {
  if (dtype_of_ndarray(array) == expected->numpy.get()) return;
  raise(ErrorClass::kValue,
        Problem{std::string(name) + "'s dtype", describe(dtype_of_ndarray(array)),
                expected->name + ", as it was when the copy began",
                "set dtypes before or after the copy"});
}

/// What is copied, broadcast to one shape.
struct Job {
  Elements target;
  Elements source;
  std::optional<Elements> mask;
};

Job make_job(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
             PyObject* mask) {
  check_type(target, to, "dst");
  check_type(source, from, "src");
  NdarrayFields fields = fields_of(target);
  check_writable(fields);
  Job job{.target = elements_of(std::move(fields), to->type.itemsize_bytes()),
          .source = elements_of(fields_of(source), from->type.itemsize_bytes()),
          .mask = {}};
  const Extents& shape = job.target.view.shape;
  if (!(job.source.view.shape == shape)) {
    job.source.view = broadcast(without_leading_ones(job.source.view, shape.size()), shape, "src");
  }
  if (mask != nullptr) {
    job.mask = elements_of(fields_of(mask), 1);
    job.mask->view = broadcast(job.mask->view, shape, "where");
  }
  return job;
}

bool repeats_one_element(const StridedView& view) {
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.shape[axis] != 1 && view.strides_bytes[axis] != 0) return false;
  }
  return !is_empty(view.shape);
}

void copy_bytes(const Job& job, std::int64_t swap_unit_bytes) {
  const auto& [target, source, mask] = job;
  if (!mask && swap_unit_bytes == 1 && repeats_one_element(source.view)) {
    return fill_memory(target.first, target.view, source.first);
  }
  const CopyOptions options{.swap_unit_bytes = swap_unit_bytes};
  check(moved(target.view, [&] {
    return mask ? copy_elements_where(target.first, target.view, source.first, source.view,
                                      mask->first, mask->view, options)
                : copy_elements(target.first, target.view, source.first, source.view, options);
  }));
}

// ---- What NumPy does. ----

bool overlap(const Elements& a, const Elements& b) {
  const auto hull_a = byte_hull(a.view);
  const auto hull_b = byte_hull(b.view);
  if (!hull_a || !hull_b) return true;
  return a.first + hull_a->lowest_bytes < b.first + hull_b->highest_bytes &&
         b.first + hull_b->lowest_bytes < a.first + hull_a->highest_bytes;
}

/// What is read, by someone who may not read all of it before he writes.
struct Kept {
  Ref source;
  Ref mask;  // may be none
};

Ref copied_if_overlapping(const Elements& target, PyObject* array, const DTypePtr& dtype) {
  const Elements elements = elements_of(fields_of(array), dtype->type.itemsize_bytes());
  if (!overlap(target, elements)) return Ref::share(array);
  return Ref::steal(PyObject_CallMethod(array, "copy", nullptr));
}

/// Source and mask, copied where they share memory with the target: NumPy notices that only for
/// some arrays, and of those that one line of a conversion has overwritten nothing is left to read
/// again.
Kept keep_overlapping(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
                      PyObject* mask) {
  const Elements written = elements_of(fields_of(target), to->type.itemsize_bytes());
  Kept kept{copied_if_overlapping(written, source, from), Ref::share(mask)};
  if (mask != nullptr) {
    kept.mask = copied_if_overlapping(written, mask, record_of(dtype_of_ndarray(mask)));
  }
  return kept;
}

void let_numpy(PyObject* target, const Kept& kept, PyObject* casting) {
  copy_by_numpy(target, kept.source.get(), casting == nullptr ? unsafe_casting() : casting,
                kept.mask.get());
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
  const Ref module = Ref::steal(PyImport_ImportModule("numpy.exceptions"));
  const Ref warning = Ref::steal(PyObject_GetAttrString(module.get(), "ComplexWarning"));
  check(
      PyErr_WarnEx(warning.get(), "Casting complex values to real discards the imaginary part", 1));
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

/// Converts numbers. Where one of them cannot be kept, NumPy does it all again, and says so in its
/// own way: a warning, an exception or nothing, as numpy.errstate has it.
void copy_numbers(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
                  const CopyRule& rule) {
  const Number to_number = *number_of(to->type);
  const Number from_number = *number_of(from->type);
  if (is_complex_to_real(to_number, from_number)) warn_of_lost_parts(target);
  Kept kept{Ref::share(source), Ref::share(rule.mask)};
  if (may_be_flagged(to_number, from_number)) {
    kept = keep_overlapping(target, to, source, from, rule.mask);
  }
  const Job job = make_job(target, to, kept.source.get(), from, kept.mask.get());
  if (!convert(job, to->type, from->type).any()) return;
  let_numpy(target, kept, nullptr);
}

}  // namespace

bool is_same_type(const DTypePtr& a, const DTypePtr& b) {
  return way_between(a->numpy.get(), a, b->numpy.get(), b) == Way::kBytes;
}

PyObject* to_casting(PyObject* object) {
  static constexpr std::string_view kNames[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
  if (object == nullptr) return nullptr;
  if (PyUnicode_Check(object) == 0) {
    raise(ErrorClass::kType,
          Problem{"casting", describe(object), "a str", "pass \"same_kind\" or \"unsafe\""});
  }
  const std::string_view text = utf8(object);
  if (text == "unsafe") return unsafe_casting();  // The one that is known by its address.
  for (const std::string_view name : kNames) {
    if (text == name) return object;
  }
  raise(ErrorClass::kValue,
        Problem{"casting", describe(object), R"("no", "equiv", "safe", "same_kind" or "unsafe")",
                "pass one of them, as to numpy.copyto"});
}

void check_cast(PyObject* from, PyObject* to, PyObject* casting) {
  if (from == to || casting == nullptr || casting == unsafe_casting()) return;
  if (can_cast(from, to, casting)) return;
  raise(ErrorClass::kType,
        Problem{"src's dtype", describe(from),
                "one that casting=" + describe(casting) + " turns into " + describe(to),
                "pass casting=\"unsafe\" for values that may change, or src.astype(...)"});
}

void copy_memory(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                 const StridedView& source) {
  check(moved(target, [&] { return copy_elements(target_block, target, source_block, source); }));
}

void fill_memory(std::byte* target_block, const StridedView& target, const std::byte* element) {
  const std::span bytes(element, static_cast<std::size_t>(target.itemsize_bytes));
  check(moved(target, [&] { return fill_elements(target_block, target, bytes); }));
}

void copy_arrays(PyObject* target, PyObject* source, const CopyRule& rule) {
  PyObject* const target_dtype = dtype_of_ndarray(target);
  PyObject* const source_dtype = dtype_of_ndarray(source);
  // Records are kept by a bounded cache; these shares outlive whatever runs below.
  const DTypePtr to = record_or_none(target_dtype);
  const DTypePtr from = target_dtype == source_dtype ? to : record_or_none(source_dtype);
  const Way way = way_between(target_dtype, to, source_dtype, from);
  check_cast(source_dtype, target_dtype, rule.casting);
  switch (way) {
    case Way::kBytes:
      return copy_bytes(make_job(target, to, source, from, rule.mask), 1);
    case Way::kSwapped:
      return copy_bytes(make_job(target, to, source, from, rule.mask),
                        from->type.swap_unit_bytes());
    case Way::kNumbers:
      return copy_numbers(target, to, source, from, rule);
    case Way::kNumPy:
      if (!to || !from) {  // Objects do not overlap with other elements.
        return let_numpy(target, {Ref::share(source), Ref::share(rule.mask)}, rule.casting);
      }
      return let_numpy(target, keep_overlapping(target, to, source, from, rule.mask), rule.casting);
  }
}

}  // namespace gridbuf::python
