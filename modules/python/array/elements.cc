// Copies between ndarrays, by gridbuf.transfer and NumPy.

module;

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

/// Where the elements of an ndarray are; its fields may change when Python code runs.
struct Seen {
  std::byte* first;
  StridedView view;
};

/// What is copied, broadcast to one shape.
struct Job {
  Seen target;
  Seen source;
  std::optional<Seen> mask;
  const ElementParts* parts;  // of the target's type
};

Seen elements_of(const NdarrayFields& fields, std::int64_t itemsize_bytes) {
  return {fields.first_element,
          {.shape = fields.shape,
           .strides_bytes = fields.strides_bytes,
           .itemsize_bytes = itemsize_bytes}};
}

/// The result of `work`, which touches no Python object.
template <class Work>
auto moved(const StridedView& target, const Work& work) {
  return is_long_copy(target) ? run_without_gil(work) : work();
}

bool repeats_one_element(const StridedView& view) {
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.shape[axis] != 1 && view.strides_bytes[axis] != 0) return false;
  }
  return !is_empty(view.shape);
}

// ---- Checks. ----

/// Warnings and finalizers are Python code, which may give an array another type.
void check_type(PyObject* array, const DTypePtr& expected, std::string_view name) {
  if (dtype_of_ndarray(array) == expected->numpy.ptr()) return;
  raise(ErrorClass::kValue,
        Problem{std::string(name) + "'s dtype", describe(dtype_of_ndarray(array)),
                expected->name + ", as it was when the copy began",
                "set dtypes before or after the copy"});
}

/// Makes the view that of its elements at the target's indices. `name` is for the message.
void broadcast(StridedView& view, const Extents& shape, std::string_view name) {
  if (view.shape == shape) return;
  absl::StatusOr<StridedView> seen = broadcast_to(view, shape);
  if (!seen.ok()) {
    raise(ErrorClass::kValue,
          Problem{std::string(name) + "'s shape", to_string(view.shape),
                  "one that NumPy broadcasts to " + to_string(shape),
                  "copy into a part of that shape, or add dimensions with array[:, None]"});
  }
  view = *std::move(seen);
}

/// Raises the error of types, shapes and writability; runs no Python code before it returns.
Job make_job(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
             PyObject* mask) {
  check_type(target, to, "dst");
  check_type(source, from, "src");
  const NdarrayFields fields = fields_of(target);
  if (fields.readonly) {
    raise(ErrorClass::kValue, Problem{"dst", "read-only", "memory that may be written",
                                      "pass a writable array, or copy into a new one"});
  }
  Job job{.target = elements_of(fields, to->type.itemsize_bytes()),
          .source = elements_of(fields_of(source), from->type.itemsize_bytes()),
          .mask = {},
          .parts = to->type.parts()};
  const Extents& shape = job.target.view.shape;
  StridedView& seen = job.source.view;
  // As in NumPy, leading extents of 1 that are too many are dropped, of the source alone.
  while (seen.ndim() > shape.size() && seen.shape[0] == 1) {
    seen.shape.erase(0);
    seen.strides_bytes.erase(0);
  }
  broadcast(seen, shape, "src");
  if (mask != nullptr) {
    job.mask = elements_of(fields_of(mask), 1);
    broadcast(job.mask->view, shape, "where");
  }
  return job;
}

// ---- Conversions. ----

bool overlap(const Seen& a, const Seen& b) {
  const auto hull_a = byte_hull(a.view);
  const auto hull_b = byte_hull(b.view);
  if (!hull_a || !hull_b) return true;
  return a.first + hull_a->lowest_bytes < b.first + hull_b->highest_bytes &&
         b.first + hull_b->lowest_bytes < a.first + hull_a->highest_bytes;
}

/// The array, or a copy if it shares memory with the target: NumPy notices only some overlaps, and
/// a conversion may be repeated.
py::object apart_from(const Seen& target, PyObject* array, const DTypePtr& dtype) {
  const Seen elements = elements_of(fields_of(array), dtype->type.itemsize_bytes());
  if (!overlap(target, elements)) return share(array);
  return steal(PyObject_CallMethod(array, "copy", nullptr));
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
bool pays_to_reorder(const Job& job, PyObject* source) {
  const int target_axis = axis_of(job.target.view, true);
  const int source_axis = axis_of(job.source.view, true);
  return is_long_copy(job.target.view) && job.target.view.shape == fields_of(source).shape &&
         target_axis >= 0 && source_axis >= 0 && target_axis != source_axis;
}

/// Has NumPy convert blocks, each copied into the target's order before. It may warn once for each.
void convert_in_blocks(PyObject* target, PyObject* source, const Job& job, PyObject* casting) {
  constexpr std::int64_t kBlockBytes = std::int64_t{1} << 24;
  const int axis = axis_of(job.target.view, false);
  const std::int64_t extent = job.target.view.shape[axis];
  const std::int64_t points =
      std::max<std::int64_t>(1, kBlockBytes / (nbytes(job.source.view) / extent + 1));
  const py::object targets = steal(PyObject_CallMethod(target, "swapaxes", "ii", 0, axis));
  const py::object sources = steal(PyObject_CallMethod(source, "swapaxes", "ii", 0, axis));
  const py::object numpy = steal(PyImport_ImportModule("numpy"));
  for (std::int64_t begin = 0; begin < extent; begin += points) {
    const py::object to = steal(PySequence_GetSlice(targets.ptr(), begin, begin + points));
    const py::object from = steal(PySequence_GetSlice(sources.ptr(), begin, begin + points));
    const py::object ordered = steal(
        PyObject_CallMethod(numpy.ptr(), "empty_like", "OO", to.ptr(), dtype_of_ndarray(source)));
    copy_arrays(ordered.ptr(), from.ptr());
    copy_by_numpy(to.ptr(), ordered.ptr(), casting, nullptr);
  }
}

/// Converts by gridbuf.transfer; true if NumPy warns of a number.
bool convert_numbers(const Job& job, const DType& to_type, const DType& from_type) {
  const Number to = *number_of(to_type);
  const Number from = *number_of(from_type);
  const auto& [target, source, mask, parts] = job;
  const ConvertOptions options{.target_is_swapped = !to_type.is_native(),
                               .source_is_swapped = !from_type.is_native()};
  if (!repeats_one_element(source.view)) {
    return value_of(moved(target.view, [&] {
      return convert_elements(target.first, target.view, to, source.first, source.view, from,
                              options);
    }));
  }
  std::array<std::byte, 8> element;  // Converted once and then written everywhere.
  const bool warns = value_of(convert_elements(
      element.data(), {.itemsize_bytes = target.view.itemsize_bytes}, to, source.first,
      {.itemsize_bytes = source.view.itemsize_bytes}, from, options));
  fill_memory(target.first, target.view, element.data());
  return warns;
}

/// The one place that decides between gridbuf.transfer and NumPy: gridbuf.transfer has the pairs of
/// can_convert, without a mask. If NumPy warns of a number, it converts again, and reports in its
/// own way: a warning, an exception or nothing, as numpy.errstate has it.
void convert(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
             const CopyRule& rule) {
  PyObject* const casting = rule.casting == nullptr ? unsafe_casting() : rule.casting;
  // Objects do not overlap with other elements.
  if (!to || !from) return copy_by_numpy(target, source, casting, rule.mask);
  Job job = make_job(target, to, source, from, rule.mask);
  if (rule.mask == nullptr && can_convert(to->type, from->type)) {
    const py::object kept = apart_from(job.target, source, from);
    if (kept.ptr() != source) job = make_job(target, to, kept.ptr(), from, nullptr);
    if (convert_numbers(job, to->type, from->type)) {
      copy_by_numpy(target, kept.ptr(), casting, nullptr);
    }
    return;
  }
  const py::object kept = apart_from(job.target, source, from);
  if (rule.mask == nullptr && pays_to_reorder(job, source)) {
    return convert_in_blocks(target, kept.ptr(), job, casting);
  }
  py::object mask;
  if (rule.mask != nullptr) {
    mask = apart_from(job.target, rule.mask, record_of(dtype_of_ndarray(rule.mask)));
  }
  copy_by_numpy(target, kept.ptr(), casting, mask.ptr());
}

// ---- Copies. ----

enum class Way : std::uint8_t {
  kBytes,    // the elements of both are the same bytes, in the same places
  kSwapped,  // … in the other order
  kConverted,
};

Way way_between(PyObject* target_dtype, const DTypePtr& target, PyObject* source_dtype,
                const DTypePtr& source) {
  if (!target || !source) return Way::kConverted;
  if (target_dtype == source_dtype) return Way::kBytes;
  const DType& to = target->type;
  const DType& from = source->type;
  if (to.kind() == Kind::kStructured || from.kind() == Kind::kStructured) {
    const int equal = PyObject_RichCompareBool(target_dtype, source_dtype, Py_EQ);
    check(equal);
    return equal != 0 ? Way::kBytes : Way::kConverted;
  }
  if (to == from) return Way::kBytes;
  return to == from.byteswapped() ? Way::kSwapped : Way::kConverted;
}

void copy_bytes(const Job& job, std::int64_t swap_unit_bytes) {
  const auto& [target, source, mask, parts] = job;
  if (!mask && swap_unit_bytes == 1 && repeats_one_element(source.view)) {
    return fill_memory(target.first, target.view, source.first, parts);
  }
  const CopyOptions options{.swap_unit_bytes = swap_unit_bytes, .parts = parts};
  check(moved(target.view, [&] {
    return mask ? copy_elements_where(target.first, target.view, source.first, source.view,
                                      mask->first, mask->view, options)
                : copy_elements(target.first, target.view, source.first, source.view, options);
  }));
}

}  // namespace

bool is_same_type(const DTypePtr& a, const DTypePtr& b) {
  return way_between(a->numpy.ptr(), a, b->numpy.ptr(), b) == Way::kBytes;
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

bool is_long_copy(const StridedView& target) {
  // Below this a copy is shorter than handing the GIL to another thread and back.
  return nbytes(target) >= kLongBytes;
}

void copy_memory(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                 const StridedView& source, const ElementParts* parts) {
  check(moved(target, [&] {
    return copy_elements(target_block, target, source_block, source, {.parts = parts});
  }));
}

void fill_memory(std::byte* target_block, const StridedView& target, const std::byte* element,
                 const ElementParts* parts) {
  const std::span bytes(element, static_cast<std::size_t>(target.itemsize_bytes));
  check(
      moved(target, [&] { return fill_elements(target_block, target, bytes, {.parts = parts}); }));
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
    case Way::kConverted:
      return convert(target, to, source, from, rule);
  }
}

}  // namespace gridbuf::python
