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
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.base;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.support;
import gridbuf.transfer;

namespace gridbuf::python {

using namespace elements;

namespace {

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
  kNumbers,  // gridbuf.transfer converts them
  kNumPy,    // NumPy does
};

bool are_equal(PyObject* a, PyObject* b) {
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  check(equal);
  return equal != 0;
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
  return is_converted_here(to, from) ? Way::kNumbers : Way::kNumPy;
}

/// Warnings and finalizers are Python code, which may give an array another type.
void check_type(PyObject* array, const DTypePtr& expected, std::string_view name) {
  if (dtype_of_ndarray(array) == expected->numpy.ptr()) return;
  raise(ErrorClass::kValue,
        Problem{std::string(name) + "'s dtype", describe(dtype_of_ndarray(array)),
                expected->name + ", as it was when the copy began",
                "set dtypes before or after the copy"});
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

}  // namespace

namespace elements {

Elements elements_of(const NdarrayFields& fields, std::int64_t itemsize_bytes) {
  return {fields.first_element,
          {.shape = fields.shape,
           .strides_bytes = fields.strides_bytes,
           .itemsize_bytes = itemsize_bytes}};
}

bool is_long(const StridedView& target) {
  // Below this a copy is shorter than handing the GIL to another thread and back.
  constexpr std::int64_t kLongBytes = std::int64_t{1} << 20;
  return target.itemsize_bytes * checked::product(target.shape.span()).value_or(0) >= kLongBytes;
}

Job make_job(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
             PyObject* mask) {
  check_type(target, to, "dst");
  check_type(source, from, "src");
  const NdarrayFields fields = fields_of(target);
  check_writable(fields);
  Job job{.target = elements_of(fields, to->type.itemsize_bytes()),
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

}  // namespace elements

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
      if (rule.mask == nullptr) return copy_numbers(target, to, source, from);
      [[fallthrough]];
    case Way::kNumPy:
      return copy_by_numpy_apart(target, to, source, from, rule);
  }
}

}  // namespace gridbuf::python
