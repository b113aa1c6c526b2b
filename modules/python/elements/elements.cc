module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
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

namespace gridbuf::python {
namespace {

/// Below this a copy is shorter than handing the GIL to another thread and back.
constexpr std::int64_t kLongCopyBytes = std::int64_t{1} << 20;

std::int64_t nbytes_of(const StridedView& view) {
  return view.itemsize_bytes * checked::product(view.shape.span()).value_or(0);
}

/// Runs `work`, which touches no Python object; without the GIL if it moves many bytes.
template <class Work>
void move(const StridedView& target, Work&& work) {
  check(nbytes_of(target) < kLongCopyBytes ? work() : run_without_gil(work));
}

// ---- What stands in the way. ----

void check_writable(const NdarrayFields& target) {
  if (!target.readonly) return;
  raise(ErrorClass::kValue, Problem{"dst", "read-only", "memory that may be written",
                                    "pass a writable array, or copy into a new one"});
}

/// The source as its elements are seen at the target's indices. As in NumPy, leading extents of 1
/// that are too many are dropped.
StridedView broadcast(StridedView source, const Extents& shape) {
  if (source.shape == shape) return source;
  const Extents given = source.shape;
  while (source.ndim() > shape.size() && source.shape[0] == 1) {
    source.shape.erase(0);
    source.strides_bytes.erase(0);
  }
  absl::StatusOr<StridedView> seen = broadcast_to(source, shape);
  if (seen.ok()) return *std::move(seen);
  raise(ErrorClass::kValue,
        Problem{"src's shape", to_string(given), "one that NumPy broadcasts to " + to_string(shape),
                "copy into a part of that shape, or add dimensions with src[:, None]"});
}

void check_cast(PyObject* from, PyObject* to, PyObject* casting) {
  if (from == to || casting == nullptr || casting == unsafe_casting()) return;
  if (can_cast(from, to, casting)) return;
  const std::string rule = describe(casting);
  raise(ErrorClass::kType,
        Problem{"src's dtype", describe(from),
                "one that casting=" + rule + " turns into " + describe(to),
                "pass casting=\"unsafe\" for values that may change, or src.astype(...)"});
}

// ---- Who moves them. ----

enum class Way : std::uint8_t {
  kBytes,    // the elements of both are the same bytes
  kSwapped,  // … in the other order
  kNumPy,    // what the engine has no word for
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
  if (target->type.kind() == Kind::kStructured || source->type.kind() == Kind::kStructured) {
    return are_equal(target_dtype, source_dtype) ? Way::kBytes : Way::kNumPy;
  }
  if (target->type == source->type) return Way::kBytes;
  if (target->type == source->type.byteswapped()) return Way::kSwapped;
  return Way::kNumPy;
}

void let_numpy(PyObject* target, PyObject* source, const CopyRule& rule) {
  PyObject* const casting = rule.casting == nullptr ? unsafe_casting() : rule.casting;
  copy_by_numpy(target, source, casting, rule.mask);
}

StridedView view_of(NdarrayFields&& fields, const DTypeRecord& dtype) {
  return {.shape = fields.shape,
          .strides_bytes = fields.strides_bytes,
          .itemsize_bytes = dtype.type.itemsize_bytes()};
}

bool is_one_element(const StridedView& view) {
  for (const std::int64_t extent : view.shape) {
    if (extent != 1) return false;
  }
  return true;
}

}  // namespace

bool is_same_type(const DTypePtr& a, const DTypePtr& b) {
  return way_between(a->numpy.get(), a, b->numpy.get(), b) == Way::kBytes;
}

void copy_memory(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                 const StridedView& source) {
  move(target, [&] { return copy_elements(target_block, target, source_block, source); });
}

void fill_memory(std::byte* target_block, const StridedView& target, const std::byte* element) {
  const std::span bytes(element, static_cast<std::size_t>(target.itemsize_bytes));
  move(target, [&] { return fill_elements(target_block, target, bytes); });
}

void copy_arrays(PyObject* target, PyObject* source, const CopyRule& rule) {
  PyObject* const target_dtype = dtype_of_ndarray(target);
  PyObject* const source_dtype = dtype_of_ndarray(source);
  // Records are kept by a bounded cache; these shares outlive whatever runs below.
  const DTypePtr to = record_or_none(target_dtype);
  const DTypePtr from = target_dtype == source_dtype ? to : record_or_none(source_dtype);
  const Way way = way_between(target_dtype, to, source_dtype, from);
  if (way == Way::kNumPy || rule.mask != nullptr) return let_numpy(target, source, rule);
  check_cast(source_dtype, target_dtype, rule.casting);

  NdarrayFields target_fields = fields_of(target);
  check_writable(target_fields);
  NdarrayFields source_fields = fields_of(source);
  std::byte* const target_block = target_fields.first_element;
  const std::byte* const source_block = source_fields.first_element;
  const StridedView target_view = view_of(std::move(target_fields), *to);
  const StridedView given = view_of(std::move(source_fields), *from);
  if (way == Way::kBytes && is_one_element(given)) {
    return fill_memory(target_block, target_view, source_block);
  }
  const StridedView source_view = broadcast(given, target_view.shape);
  const CopyOptions options{.swap_unit_bytes =
                                way == Way::kSwapped ? from->type.swap_unit_bytes() : 1};
  move(target_view, [&] {
    return copy_elements(target_block, target_view, source_block, source_view, options);
  });
}

void fill_array(PyObject* target, PyObject* value, const CopyRule& rule) {
  const Ref element = make_element(dtype_of_ndarray(target), value, rule.casting);
  copy_arrays(target, element.get(), rule);
}

}  // namespace gridbuf::python
