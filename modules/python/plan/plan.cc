module;

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

module gridbuf.python.plan;

import gridbuf.base;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.object;

namespace gridbuf::python {
namespace {

struct PlanObject {
  PyObject ob_base;
  Layout plan;
  Dims dims;
};

PyTypeObject* plan_type = nullptr;  // Made once, kept for good.

const PlanObject& object_of(PyObject* self) { return *reinterpret_cast<PlanObject*>(self); }
const Layout& plan_of(PyObject* self) { return object_of(self).plan; }

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "gridbuf.LayoutPlan cannot be called; use gridbuf.plan(shape, dtype, ...)");
  return nullptr;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  std::destroy_at(&reinterpret_cast<PlanObject*>(self)->plan);
  std::destroy_at(&reinterpret_cast<PlanObject*>(self)->dims);
  type->tp_free(self);
  Py_DECREF(type);
}

// ---- Attributes: one getter per kind of value. ----

template <const Extents& (Layout::*read)() const noexcept>
PyObject* get_extents(PyObject* self, void*) {
  return guarded([&] { return from_integers((plan_of(self).*read)().span()); });
}
template <std::int64_t (Layout::*read)() const noexcept>
PyObject* get_number(PyObject* self, void*) {
  return PyLong_FromLongLong((plan_of(self).*read)());
}
PyObject* get_layout(PyObject* self, void*) {
  return guarded([&] { return from_integers(plan_of(self).layout().span()); });
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(plan_of(self).ndim()); }
PyObject* get_dims(PyObject* self, void*) {
  return guarded([&] { return from_dims(object_of(self).dims); });
}

PyGetSetDef getters[] = {
    {"shape", get_extents<&Layout::shape>, nullptr, "Extents, in elements.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"dims", get_dims, nullptr, "Names of the dimensions.", nullptr},
    {"itemsize", get_number<&Layout::itemsize_bytes>, nullptr, "Bytes of one element.",
     nullptr},
    {"layout", get_layout, nullptr, "The layout map: ranks, 0 for the largest stride.", nullptr},
    {"strides", get_extents<&Layout::strides_bytes>, nullptr,
     "Bytes from an element to the next one, per dimension.", nullptr},
    {"padded_shape", get_extents<&Layout::padded_shape>, nullptr,
     "The shape with the contiguous extent rounded up.", nullptr},
    {"alignment_size", get_number<&Layout::alignment_bytes>, nullptr,
     "Bytes; 1 means no constraint.", nullptr},
    {"aligned_index", get_extents<&Layout::aligned_index>, nullptr,
     "The index whose element is aligned.", nullptr},
    {"aligned_offset", get_number<&Layout::aligned_offset_bytes>, nullptr,
     "Bytes from element (0, ..., 0) to the one at aligned_index.", nullptr},
    {"size", get_number<&Layout::element_count>, nullptr,
     "The number of elements, without padding.", nullptr},
    {"nbytes", get_number<&Layout::nbytes>, nullptr, "Bytes of all elements, without padding.",
     nullptr},
    {"total_bytes", get_number<&Layout::total_bytes>, nullptr,
     "Bytes from element (0, ..., 0) to the end, padding included.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- Text, comparison, pickle. ----

std::string text_of(PyObject* self) {
  return "gridbuf.LayoutPlan(" + to_string(plan_of(self)) + ", dims " +
         to_string(object_of(self).dims) + ")";
}

PyObject* repr(PyObject* self) {
  return guarded([&] { return make_text(text_of(self)); });
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if (Py_TYPE(other) != plan_type || (operation != Py_EQ && operation != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  const bool equal =
      plan_of(self) == plan_of(other) && object_of(self).dims == object_of(other).dims;
  return PyBool_FromLong(equal == (operation == Py_EQ) ? 1 : 0);
}

Py_hash_t hash(PyObject* self) {
  return guarded<Py_hash_t>(-1, [&] {
    // The text holds all that a plan is made from. -1 would mean an error.
    const auto value = static_cast<Py_hash_t>(std::hash<std::string>()(text_of(self)));
    return value == -1 ? Py_hash_t{-2} : value;
  });
}

PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Layout& plan = plan_of(self);
    const Ref core = Ref::steal(PyImport_ImportModule("gridbuf._core"));
    const Ref restore = Ref::steal(PyObject_GetAttrString(core.get(), "_restore_plan"));
    const Ref shape = from_integers(plan.shape().span());
    const Ref layout = from_integers(plan.layout().span());
    const Ref aligned_index = from_integers(plan.aligned_index().span());
    const Ref dims = from_dims(object_of(self).dims);
    return Ref::steal(Py_BuildValue("(O(OLOLOO))", restore.get(), shape.get(),
                                    static_cast<long long>(plan.itemsize_bytes()), layout.get(),
                                    static_cast<long long>(plan.alignment_bytes()),
                                    aligned_index.get(), dims.get()));
  });
}

/// _restore_plan(shape, itemsize, layout, alignment_size, aligned_index, dims), all checked.
PyObject* restore(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != 6) {
      raise(ErrorClass::kType, "_restore_plan() takes 6 arguments, but " + std::to_string(count) +
                                   " were given; it is for unpickling alone");
    }
    const Extents shape = to_shape(arguments[0], "a plan");
    const Dims dims = to_dims(arguments[5], shape.size());
    const LayoutRequest request{.shape = shape,
                              .itemsize_bytes = to_integer(arguments[1], "itemsize"),
                              .layout = to_layout(arguments[2], dims),
                              .alignment_bytes = to_integer(arguments[3], "alignment_size"),
                              .aligned_index = to_integers(arguments[4], "aligned_index")};
    return make_plan_object(value_of(make_plan(request)), dims);
  });
}

// ---- Methods. ----

PyObject* offset_rule_method(PyObject* self, PyObject*) {
  return guarded([&] { return make_text(offset_rule(plan_of(self))); });
}

/// A number of rows or columns; what is beyond int is more than any drawing has.
int to_count(PyObject* object, const char* name, int fallback) {
  if (object == nullptr) return fallback;
  const std::int64_t count = to_integer(object, name);
  if (count < 1) {
    raise(ErrorClass::kValue, Problem{name, std::to_string(count), "1 or more", "leave it out"});
  }
  return static_cast<int>(std::min<std::int64_t>(count, std::numeric_limits<int>::max()));
}

PyObject* draw_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                      PyObject* keywords) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"max_columns", "max_rows"};
    static constexpr Signature kSignature{"draw", kNames, 0};
    PyObject* values[2] = {};
    sort_arguments(kSignature, arguments, count, keywords, values, unexpected_keyword);
    const DrawOptions fallback;
    const DrawOptions options{.dims = object_of(self).dims,
                              .max_columns = to_count(values[0], kNames[0], fallback.max_columns),
                              .max_rows = to_count(values[1], kNames[1], fallback.max_rows)};
    return make_text(draw(plan_of(self), options));
  });
}

PyObject* difference_method(PyObject* self, PyObject* other) {
  return guarded([&] {
    if (Py_TYPE(other) != plan_type) {
      raise(ErrorClass::kType, Problem{"found", describe(other), "a gridbuf.LayoutPlan",
                                       "pass Buffer.plan or the result of gridbuf.plan"});
    }
    return make_text(difference(plan_of(self), plan_of(other)));
  });
}

template <class Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"offset_rule", offset_rule_method, METH_NOARGS,
     "offset_rule($self, /)\n--\n\nThe offset of an element as a formula of its index, in bytes."},
    {"draw", method(draw_method), METH_FASTCALL | METH_KEYWORDS,
     "draw($self, /, *, max_columns=24, max_rows=32)\n--\n\n"
     "Memory as text: a line per row, a mark per element (o element, A aligned, . padding)."},
    {"difference", difference_method, METH_O,
     "difference($self, found, /)\n--\n\n"
     "What differs from another plan, a line per property; '' if nothing does."},
    {"__reduce__", reduce, METH_NOARGS,
     "__reduce__($self, /)\n--\n\nThe request that makes this plan, for pickle."},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef functions[] = {
    {"_restore_plan", method(restore), METH_FASTCALL, "For unpickling."},
    {nullptr, nullptr, 0, nullptr},
};

constexpr char kDocumentation[] =
    "Where the elements of an array lie, without any memory: a value to print, compare and "
    "draw.\n\n"
    "Made by gridbuf.plan(...) and Buffer.plan.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(kDocumentation)},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec spec = {
    .name = "gridbuf.LayoutPlan",
    .basicsize = sizeof(PlanObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

}  // namespace

void add_plan_type(PyObject* module) {
  plan_type = reinterpret_cast<PyTypeObject*>(Ref::steal(PyType_FromSpec(&spec)).release());
  check(PyModule_AddObjectRef(module, "LayoutPlan", reinterpret_cast<PyObject*>(plan_type)));
  check(PyModule_AddFunctions(module, functions));
}

Ref make_plan_object(const Layout& plan, const Dims& dims) {
  Ref object = Ref::steal(reinterpret_cast<PyObject*>(PyObject_New(PlanObject, plan_type)));
  auto* named = reinterpret_cast<PlanObject*>(object.get());  // Nothing below can fail.
  std::construct_at(&named->plan, plan);
  std::construct_at(&named->dims, dims);
  return object;
}

}  // namespace gridbuf::python
