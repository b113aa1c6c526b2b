// The compiled part of a stencil's call. `gridbuf.call` (Python) declares a stencil and runs the
// protocol of its calls: hooks of foreign fields, warnings, copies, the function, the order of what
// follows. Here all fields of a call are read, bound and checked by the rules of gridbuf.call
// (C++), once and together, and the arrays are made that the function gets.
//
// Nothing is kept between calls: `StencilRules` holds the declaration, and no field, shape or
// verdict.

module;

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

using namespace pybind11::literals;

/// "off", "warn", "raise" and "exchange" by number, and of fields that belong to no decomposition.
constexpr int kHaloChecks = 4;
constexpr int kExchange = 3;
std::atomic<int> halo_check = 0;

// ---- What was declared. ----

/// A field's parameter, besides its rule.
struct FieldSpec {
  py::object name;
  DTypePtr dtype;
  bool is_optional = false;  // None: the call has no such field
};

/// `StencilRules`. An entry of `rules` and `fields` for each field.
struct StencilRules {
  std::string name;
  Side side = Side::kHost;
  bool writes_are_declared = false;
  bool allow_alias = false;
  bool knows_reach = false;  // of every field
  std::vector<FieldRule> rules = {};
  std::vector<FieldSpec> fields = {};
  Dims grid = {};  // the dimensions of the domain
};

/// `layout` is a layout map or None.
MemoryRule to_memory_rule(py::handle layout, py::handle alignment, const Dims& dims) {
  MemoryRule rule;
  if (!layout.is_none()) {
    rule.layout = to_layout(layout.ptr(), dims);
    check(validate_layout_map(rule.layout, dims.size()));
  }
  rule.alignment_bytes = to_integer(alignment.ptr(), "Alignment");
  if (rule.alignment_bytes >= 1 && rule.alignment_bytes <= kMaxAlignmentBytes) return rule;
  raise(ErrorClass::kValue,
        Problem{"Alignment", std::to_string(rule.alignment_bytes),
                "from 1 to " + std::to_string(kMaxAlignmentBytes) + " bytes", "count bytes"});
}

void add_field(StencilRules& stencil, const std::string& name, py::handle dims, py::handle dtype,
               py::handle data_shape, py::handle layout, py::handle alignment,
               py::handle preferred_layout, py::handle preferred_alignment, py::handle reach,
               bool is_read, bool is_written, bool is_optional) {
  FieldRule rule{.name = name};
  rule.dims = to_dims(dims.ptr(), static_cast<int>(py::len(dims)));
  check(check_annotation_order(rule.dims));
  FieldSpec field{py::str(name), to_dtype(dtype.ptr()).record, is_optional};
  rule.dtype = field.dtype->type;
  rule.is_read = is_read;
  rule.is_written = is_written;
  rule.data_extents = to_integers(data_shape.ptr(), "data_shape");
  if (rule.data_extents.size() > rule.dims.size()) {
    raise(ErrorClass::kValue, "a field has more data extents than dimensions");
  }
  rule.relied_on = to_memory_rule(layout, alignment, rule.dims);
  rule.preferred = to_memory_rule(preferred_layout, preferred_alignment, rule.dims);
  if (!reach.is_none()) {
    const Extents unbounded(rule.dims.size(), std::numeric_limits<std::int64_t>::max());
    rule.reach = to_halo(reach.ptr(), rule.dims, unbounded);
  } else if (is_read) {
    rule.reach = no_halo(rule.dims.size());
  }
  stencil.rules.push_back(std::move(rule));
  stencil.fields.push_back(std::move(field));
  stencil.grid = domain_dims(stencil.rules);
}

py::object item(py::handle sequence, std::size_t i) {
  return steal(PySequence_GetItem(sequence.ptr(), static_cast<Py_ssize_t>(i)));
}

/// `origins` is None or has an entry per field, `origin` is for the others; None: not given.
CallRequest to_request(const StencilRules& stencil, py::handle origins, py::handle origin,
                       py::handle domain) {
  CallRequest request{.allow_alias = stencil.allow_alias};
  if (!origins.is_none()) {
    request.origins.resize(stencil.rules.size());
    for (std::size_t i = 0; i < stencil.rules.size(); ++i) {
      const py::object entry = item(origins, i);
      if (!entry.is_none()) request.origins[i] = to_integers(entry.ptr(), "origin");
    }
  }
  if (!origin.is_none()) {
    if (!is_sequence(origin.ptr())) {
      raise(ErrorClass::kType, Problem{"origin", describe(origin.ptr()),
                                       "a dict of tuples by field, or one tuple for all fields",
                                       "count points in the order of the annotation: I, J, K"});
    }
    request.origin = to_integers(origin.ptr(), "origin");
  }
  if (!domain.is_none()) request.domain = to_integers(domain.ptr(), "domain");
  return request;
}

// ---- A field of a call. ----

/// A field that was passed.
struct PassedField {
  py::object object;                 // none: the call has no such field
  Side side = Side::kHost;           // where its memory is used
  const Storage* storage = nullptr;  // if it is one
  bool is_foreign = false;           // of another library, which does not know gridbuf's stream
  bool is_acquired = false;
  bool is_open = false;   // marked as being written
  Halo halo_before;       // of a storage: how deep it was valid before the call
  bool is_noted = false;  // which of its points were written
  bool is_ended = false;  // `end` was called
  py::object memory;      // a Buffer in the object's own order; none: an ndarray, read in place
  py::object touch;       // to be called after the memory was written; mostly none
};

/// Whether it is gridbuf's or NumPy's own array, which has no hooks.
bool is_own(const py::object& object) {
  return is_exact_ndarray(object.ptr()) || is_buffer(object.ptr()) || is_storage(object.ptr());
}

std::string all_of(const FieldRule& rule) { return "field '" + rule.name + "', all dimensions"; }

/// The names in a data interface's entry, else those that the object declares.
std::optional<Dims> foreign_names(const FieldRule& rule, const PassedField& field,
                                  const Meaning& meaning, int ndim) {
  if (meaning.names.empty()) return declared_dims(field.object.ptr(), ndim);
  const absl::StatusOr<Dims> dims = dims_of(meaning, ndim);
  if (dims.ok()) return *dims;
  raise(with_context(dims.status(), all_of(rule) + ": its dims must be " + to_string(rule.dims) +
                                        " in any order; rename them"));
}

/// A Buffer over the memory of the field's side.
py::object buffer_over(const FieldRule& rule, const PassedField& field, Meaning& meaning) {
  PyObject* const object = field.object.ptr();
  if (is_buffer(object)) return share(object);
  const Side side = field.side;
  if (field.storage != nullptr) return side_buffer(object, side, Purpose::kParameters);
  py::object buffer = import_or_none(
      object, nullptr, {.use_names = false, .acquired = field.is_acquired, .side = side}, &meaning);
  if (buffer) return buffer;
  raise(ErrorClass::kType,
        Problem{all_of(rule) + ": the argument", describe(object),
                "an array of " + rule.dtype.name() + " over " + to_string(rule.dims),
                "pass an ndarray, a storage, DLPack, ...; for a DataArray, import gridbuf.xarray"});
}

/// _array_of(buffer): an array that the function computes with. It is an ndarray, or CuPy's on a
/// real device; on the emulated device it is an ndarray that only a kernel can touch.
py::object array_of(const py::object& buffer) {
  if (!is_buffer(buffer.ptr())) raise(ErrorClass::kType, "_array_of() takes a Buffer");
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory();
  if (is_host_readable(memory.device.type)) return ndarray_of(buffer.ptr());
  if (!emulated_device_is_on()) return make_cupy_view(buffer, /*sync=*/true);
  return make_ndarray(*dtype_of(buffer.ptr()), memory.view, memory.first_element(), memory.readonly,
                      buffer.ptr());
}

// ---- The fields of a call. ----

/// Runs `body`. The end of foreign memory may run its library's code, which must find no exception
/// set, so that what it raises is taken over.
template <class Body>
void shielded(const Body& body) {
  try {
    body();
  } catch (const PythonError&) {
    throw py::error_already_set();
  }
}

/// Field, axis, end, needed and valid depth.
using StaleEnd = std::tuple<std::size_t, int, int, std::int64_t, std::int64_t>;

/// `BoundStencil`: a call, whose fields are bound once.
class BoundStencil {
 public:
  BoundStencil(std::shared_ptr<StencilRules> rules, py::handle fields, CallRequest request,
               int halo_check)
      : mode(halo_check),
        rules_(std::move(rules)),
        request_(std::move(request)),
        passed_(rules_->rules.size()) {
    if (py::len(fields) != passed_.size()) {
      raise(ErrorClass::kType, "bind() takes an object for each field");
    }
    for (std::size_t i = 0; i < passed_.size(); ++i) {
      PassedField& field = passed_[i];
      field.object = item(fields, i);
      if (field.object.is_none() && rules_->fields[i].is_optional) field.object = py::object();
      if (!field.object) continue;
      field.side = rules_->side;
      field.is_foreign = !is_own(field.object);
      if (is_storage(field.object.ptr())) field.storage = &storage_of(field.object.ptr());
      if (is_written(i) && (field.storage != nullptr || field.is_foreign)) written.push_back(i);
    }
  }
  BoundStencil(const BoundStencil&) = delete;
  BoundStencil& operator=(const BoundStencil&) = delete;
  ~BoundStencil() {
    for (PassedField& field : passed_) end_write(field);
  }

  void bind() {
    std::vector<FieldArgument> arguments(passed_.size());
    each([&](std::size_t i) { noted(i, "acquire", [&] { acquire(passed_[i]); }); });
    for (std::size_t i = 0; i < passed_.size(); ++i) arguments[i].is_absent = !passed_[i].object;
    each([&](std::size_t i) {
      noted(i, "read", [&] {
        is_exact_ndarray(passed_[i].object.ptr()) ? read_ndarray(i, arguments[i])
                                                  : read_buffer(i, arguments[i]);
      });
    });
    call_ = value_of(bind_call(rules_->rules, arguments, request_));
    each([&](std::size_t i) { check_memory_of(i, arguments[i].memory); });
    if (rules_->knows_reach) check_halos();
    for (std::size_t i = 0; i < passed_.size(); ++i) {
      arrays.append(passed_[i].object ? make_array(i) : py::none());
    }
  }

  /// Binds the call, unless fields of other libraries have to be acquired first. A call that needs
  /// nothing else before the function is plain, and the fields it writes are marked.
  void start() {
    is_foreign = std::ranges::any_of(passed_, &PassedField::is_foreign);
    if (is_foreign) return;
    bind();
    is_plain = slow.empty() && wrong.empty() && stale.empty();
    for (std::size_t i = 0; is_plain && i < written.size(); ++i) begin_write(written[i]);
  }

  /// Binds it. `hooks` has what `_field_hooks` returned for each field, acquired.
  void bind_acquired(py::handle hooks) {
    for (std::size_t i = 0; i < passed_.size(); ++i) {
      const py::object called = item(hooks, i);
      if (called.is_none()) continue;
      passed_[i].side = py::cast<const UseHooks&>(called).side;
      passed_[i].is_acquired = true;
    }
    shielded([this] { bind(); });
  }

  /// Marks the elements of a storage that the stencil writes: they are about to be written. Copying
  /// back writes all of them.
  void begin_write(std::size_t i) {
    PassedField& field = passed_.at(i);
    if (!is_written(i) || field.storage == nullptr || field.storage->readonly()) return;
    const Coverage coverage = is_wrong(field) ? Coverage::kAll : Coverage::kPart;
    check(run_without_gil(
        [&] { return field.storage->begin_write(field.side, coverage, /*is_noted=*/true); }));
    field.is_open = true;
  }

  /// Ends the write of a field, once. If the function has been called, its producer is told.
  void end(std::size_t i, bool was_called) {
    PassedField& field = passed_.at(i);
    const bool is_noted = field.is_open && !has_failed && rules_->knows_reach;
    if (is_noted && field.storage->tracks_halo()) note_written(i);
    end_write(field);
    const bool is_touched = was_called && is_written(i) && !std::exchange(field.is_ended, true);
    if (is_touched) noted(i, "touch", [&] { touch(field); });
  }

  /// Compares what the stencil reads of halos with what is valid, and keeps the depths. Where ranks
  /// exchange what is missing, all of them do at every such call: they do not miss the same points.
  void check_halos() {
    stale.clear();
    if (call_.fields.empty()) return;  // not bound yet
    each([&](std::size_t i) {
      PassedField& field = passed_[i];
      field.halo_before = {};
      if (!rule(i).is_read || field.storage == nullptr || !field.storage->tracks_halo()) return;
      const int chosen = mode_of(*field.storage);
      const bool joins = chosen == kExchange && (reads_around(i) || chooses_points());
      for (int j = 0; j < rule(i).dims.size(); ++j) {
        if (!rule(i).dims[j].is_grid()) continue;
        for (const int end : {0, 1}) {
          const std::int64_t needed = computed_outside(i, j, end) + rule(i).reach[j].at(end);
          if (needed <= 0 && !joins) continue;
          if (field.halo_before.empty()) field.halo_before = field.storage->valid_halo();
          const int axis = call_.fields[i].axes[j];
          const std::int64_t valid = field.halo_before[axis].at(end);
          const bool is_stale = chosen > 0 && needed > valid;
          if (joins || is_stale) stale.emplace_back(i, axis, end, needed, valid);
        }
      }
    });
  }

  /// By the names of the fields that were passed.
  py::dict origins() const {
    py::dict origins;
    each([&](std::size_t i) {
      origins[rules_->fields[i].name] = from_integers(call_.fields[i].origin.span());
    });
    return origins;
  }
  py::object domain() const { return from_integers(call_.domain.span()); }

  py::list arrays;                   // what the function gets; a Buffer for those in `wrong`
  std::vector<std::size_t> wrong;    // fields whose memory only the other side has
  std::vector<std::string> slow;     // a text for each field that is slow
  std::vector<StaleEnd> stale;       // ends of halos that are read too deep, or to be exchanged
  std::vector<std::size_t> written;  // fields for which `end` may have something to do
  bool is_foreign = false;           // fields of other libraries take part
  bool is_plain = false;
  int mode;                 // what invalid points of halos mean; -1: the field's own
  bool has_failed = false;  // the function, so that anything may have been written

 private:
  template <class Step>
  void each(const Step& step) const {
    for (std::size_t i = 0; i < passed_.size(); ++i) {
      if (passed_[i].object) step(i);
    }
  }

  /// Runs a step of one field. A note on what it raises names both.
  template <class Step>
  void noted(std::size_t i, const char* name, const Step& step) const {
    try {
      return step();
    } catch (const PythonError&) {
    } catch (py::error_already_set& error) {
      error.restore();
    }
    py::error_already_set error;
    const std::string note = "raised by field '" + rule(i).name + "' of a stencil, step: " + name;
    if (!steal_or_none(PyObject_CallMethod(error.value().ptr(), "add_note", "s", note.c_str()))) {
      PyErr_Clear();
    }
    error.restore();
    throw PythonError();
  }

  const FieldRule& rule(std::size_t i) const { return rules_->rules[i]; }
  bool is_wrong(const PassedField& field) const { return field.side != rules_->side; }
  bool is_written(std::size_t i) const { return passed_[i].object && rule(i).is_written; }

  void acquire(PassedField& field) const {
    if (field.storage == nullptr) return;
    if (!field.storage->has(rules_->side)) field.side = other(rules_->side);
    if (field.storage->is_ready(field.side)) return;
    check(run_without_gil([&] { return field.storage->read(field.side); }));
  }

  void read_ndarray(std::size_t i, FieldArgument& argument) {
    PassedField& field = passed_[i];
    PyObject* const object = field.object.ptr();
    const NdarrayFields fields = fields_of(object);
    const DTypePtr dtype = record_of(fields.dtype);
    // Only an array that shows a whole Buffer has names and an origin. Default names do not count.
    if (fields.base != nullptr) {
      argument.dims = dims_behind(object).value_or(Dims());
      if (argument.dims == default_dims(fields.shape.size())) argument.dims = {};
      argument.origin = declared_origin(object);
    }
    BufferDescriptor& memory = argument.memory;
    memory.block = fields.first_element;
    memory.view = {fields.shape, fields.strides_bytes, 0, dtype->type.itemsize_bytes()};
    memory.dtype = dtype->type;
    memory.readonly = fields.readonly;
    check_declared(i, fields.readonly, dtype);
    if (rules_->side == Side::kDevice) {
      field.side = Side::kHost;
      field.memory = import_buffer(object, nullptr, {.use_names = false});
    }
  }

  void read_buffer(std::size_t i, FieldArgument& argument) {
    PassedField& field = passed_[i];
    Meaning meaning;
    field.memory = buffer_over(rule(i), field, meaning);
    const Array& array = array_in(field.memory.ptr());
    argument.memory = array.memory();
    argument.dims = array.layout().dims();
    if (field.is_foreign) {
      const int ndim = array.layout().ndim();
      argument.dims = foreign_names(rule(i), field, meaning, ndim).value_or(Dims());
      argument.halo = meaning.halo;
      argument.origin = declared_origin(field.object.ptr());
      field.touch = std::move(meaning.touch);
    } else if (field.storage != nullptr) {
      argument.halo = array.layout().halo();
    } else {
      // Of a storage the origin is the lower halo, wherever it is aligned: a halo that is set later
      // does not align it again.
      argument.origin = origin_of(array);
    }
    const bool is_here = is_on(rules_->side, memory_kind(array.memory().device.type));
    field.side = is_here ? rules_->side : other(rules_->side);
    check_declared(i, array.memory().readonly, dtype_of(field.memory.ptr()));
  }

  /// What the rules on descriptors cannot see: the fields of structured types, and whether memory
  /// that the stencil is declared to write can be written.
  void check_declared(std::size_t i, bool readonly, const DTypePtr& dtype) const {
    if (dtype->type.kind() == Kind::kStructured && !is_same_type(dtype, rules_->fields[i].dtype)) {
      check(wrong_dtype(rule(i), dtype->name));
    }
    if (readonly && rules_->writes_are_declared && is_written(i)) {
      raise(ErrorClass::kValue,
            Problem{all_of(rule(i)) + ": its memory", "read-only",
                    "writable, as stencil '" + rules_->name + "' is declared to write it",
                    "pass a writable array, or take it out of writes="});
    }
  }

  /// Memory on the other side is not checked: its copy is made as the rule wants it.
  void check_memory_of(std::size_t i, const BufferDescriptor& memory) {
    if (is_wrong(passed_[i])) return wrong.push_back(i);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.first_element());
    check(check_memory(rule(i), call_.fields[i], address));
    if (rule(i).preferred == MemoryRule()) return;
    std::string text = slow_memory(rule(i), call_.fields[i], address);
    if (!text.empty()) slow.push_back(std::move(text));
  }

  // --- The depth of halos (docs/spec.md 9.81) ---

  /// The points that are computed outside of the domain of field `i`, at an end of dimension `j`;
  /// negative if the stencil leaves out points of the domain.
  std::int64_t computed_outside(std::size_t i, int j, int end) const {
    const BoundField& field = call_.fields[i];
    const Storage& storage = *passed_[i].storage;
    const int axis = field.axes[j];
    const HaloWidth& halo = storage.halo()[axis];
    if (end == 0) return halo.lower - field.origin[j];
    const std::int64_t points = storage.shape()[axis] - halo.upper;
    return field.origin[j] + call_.domain[grid_position(rule(i).dims[j])] - points;
  }
  int grid_position(Dim dim) const {
    return static_cast<int>(std::ranges::find(rules_->grid, dim) - rules_->grid.begin());
  }

  /// The points outside of the domain are what the neighbours compute as far as the inputs are.
  void note_written(std::size_t i) {
    const Storage& storage = *passed_[i].storage;
    passed_[i].is_noted = true;
    Halo depth = no_halo(storage.ndim());
    Box box = whole_box(storage.shape());
    for (int j = 0; j < rule(i).dims.size(); ++j) {
      const Dim dim = rule(i).dims[j];
      if (!dim.is_grid()) continue;
      const int axis = call_.fields[i].axes[j];
      box.lower[axis] = call_.fields[i].origin[j];
      box.upper[axis] = box.lower[axis] + call_.domain[grid_position(dim)];
      for (const int end : {0, 1}) {
        std::int64_t points = computed_outside(i, j, end);
        if (points <= 0) continue;
        each([&](std::size_t input) {
          const Dims& dims = rule(input).dims;
          const auto at = static_cast<int>(std::ranges::find(dims, dim) - dims.begin());
          if (!rule(input).is_read || at == dims.size()) return;
          const Halo& valid = passed_[input].halo_before;
          const std::int64_t known =
              valid.empty() ? 0 : valid[call_.fields[input].axes[at]].at(end);
          points = std::min(points, known - rule(input).reach[at].at(end));
        });
        depth[axis].at(end) = std::max<std::int64_t>(points, 0);
      }
    }
    storage.note_written(box, depth);
  }

  int mode_of(const Storage& storage) const {
    if (mode >= 0) return mode;
    const int own = storage.halo_check();
    return own < 0 ? halo_check.load() : own % kHaloChecks;
  }
  bool reads_around(std::size_t i) const {
    return std::ranges::any_of(rule(i).reach.span(),
                               [](const HaloWidth& width) { return width != HaloWidth{}; });
  }
  bool chooses_points() const {
    return !request_.origins.empty() || request_.origin || request_.domain;
  }

  /// With its dimensions in the annotation's order.
  py::object make_array(std::size_t i) const {
    const PassedField& field = passed_[i];
    const BoundField& bound = call_.fields[i];
    py::object whole = field.memory ? field.memory : field.object;
    if (!bound.is_in_order) whole = whole.attr("transpose")(from_integers(bound.axes.span()));
    return is_wrong(field) || !field.memory ? whole : array_of(whole);
  }

  static void touch(const PassedField& field) {
    if (field.storage != nullptr) {
      return touch_storage(field.object.ptr(), field.storage->shape(), field.side);
    }
    if (!field.memory || array_in(field.memory.ptr()).memory().readonly) return;
    if (field.is_foreign && field.side == Side::kDevice) field.memory.attr("synchronize")();
    if (field.touch) field.touch();
  }

  static void end_write(PassedField& field) {
    if (!std::exchange(field.is_open, false)) return;
    if (!std::exchange(field.is_noted, false)) field.storage->note_written();
    field.storage->end_write(field.side);
  }

  std::shared_ptr<StencilRules> rules_;
  CallRequest request_;
  std::vector<PassedField> passed_;
  BoundCall call_;
};

/// The call, bound unless its fields have to be acquired first.
std::unique_ptr<BoundStencil> started(const std::shared_ptr<StencilRules>& rules, py::handle fields,
                                      CallRequest request, int mode = -1) {
  if (rules->side == Side::kDevice) value_of(device_driver());
  auto call = std::make_unique<BoundStencil>(rules, fields, std::move(request), mode);
  shielded([&] { call->start(); });
  return call;
}

std::unique_ptr<BoundStencil> bind(const std::shared_ptr<StencilRules>& rules, py::handle fields,
                                   py::handle origins, py::handle origin, py::handle domain,
                                   int mode) {
  return started(rules, fields, to_request(*rules, origins, origin, domain), mode);
}

/// bind_plain(fields): the arrays if the call needs nothing else, also not after it; else the call.
py::object bind_plain(const std::shared_ptr<StencilRules>& rules, py::handle fields) {
  std::unique_ptr<BoundStencil> call = started(rules, fields, {.allow_alias = rules->allow_alias});
  if (call->is_plain && call->written.empty()) return std::move(call->arrays);
  return py::cast(std::move(call));
}

/// _field_hooks(field, on_device): what an object of another library wants to be called; None for
/// all others.
std::optional<UseHooks> hooks_of(const py::object& field, bool on_device) {
  if (is_own(field)) return std::nullopt;
  auto hooks = use_hooks(field.ptr(), on_device ? Side::kDevice : Side::kHost);
  if (hooks && !hooks->acquire) hooks->acquire = py::none();
  if (hooks && !hooks->release) hooks->release = py::none();
  return hooks;
}

std::shared_ptr<StencilRules> make_rules(std::string name, bool on_device, bool writes_are_declared,
                                         bool allow_alias, bool knows_reach) {
  const Side side = on_device ? Side::kDevice : Side::kHost;
  return std::make_shared<StencilRules>(std::move(name), side, writes_are_declared, allow_alias,
                                        knows_reach);
}

py::object refuse_call(PyObject*, PyObject*) {
  raise(ErrorClass::kType, "gridbuf.stencil makes these objects; they cannot be called");
}

}  // namespace

void add_call_functions(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  py::class_<StencilRules, std::shared_ptr<StencilRules>> rules(
      core, "StencilRules", py::module_local(), py::is_final(), doc("StencilRules"));
  rules
      .def("add_field", add_field, py::kw_only(), "name"_a, "dims"_a, "dtype"_a, "data_shape"_a,
           "layout"_a, "alignment_size"_a, "preferred_layout"_a, "preferred_alignment_size"_a,
           "reach"_a, "is_read"_a = false, "is_written"_a, "is_optional"_a,
           doc("StencilRules.add_field"))
      .def("bind_plain", bind_plain, doc("StencilRules.bind_plain"))
      .def("bind", bind, "fields"_a, "origins"_a, "origin"_a, "domain"_a, py::kw_only(),
           "mode"_a = -1, doc("StencilRules.bind"));
  close_class<refuse_call>(rules, "gridbuf._core");
  py::class_<BoundStencil> bound(core, "BoundStencil", py::module_local(), py::is_final(),
                                 doc("BoundStencil"));
  bound.def_readonly("arrays", &BoundStencil::arrays, doc("BoundStencil.arrays"))
      .def_readonly("wrong", &BoundStencil::wrong, doc("BoundStencil.wrong"))
      .def_readonly("slow", &BoundStencil::slow, doc("BoundStencil.slow"))
      .def_readonly("stale", &BoundStencil::stale, doc("BoundStencil.stale"))
      .def_readwrite("has_failed", &BoundStencil::has_failed)
      .def_readonly("written", &BoundStencil::written, doc("BoundStencil.written"))
      .def_property_readonly("origins", &BoundStencil::origins, doc("BoundStencil.origins"))
      .def_property_readonly("domain", &BoundStencil::domain, doc("BoundStencil.domain"))
      .def_readonly("is_foreign", &BoundStencil::is_foreign, doc("BoundStencil.is_foreign"))
      .def_readonly("is_plain", &BoundStencil::is_plain, doc("BoundStencil.is_plain"))
      .def_readonly("mode", &BoundStencil::mode, doc("BoundStencil.mode"))
      .def("check_halos", &BoundStencil::check_halos, doc("BoundStencil.check_halos"))
      .def("bind_acquired", &BoundStencil::bind_acquired, doc("BoundStencil.bind_acquired"))
      .def("begin_write", &BoundStencil::begin_write, doc("BoundStencil.begin_write"))
      .def("end", &BoundStencil::end, doc("BoundStencil.end"));
  close_class<refuse_call>(bound, "gridbuf._core");
  py::class_<UseHooks> hooks(core, "FieldHooks", py::module_local(), py::is_final(),
                             doc("FieldHooks"));
  hooks.def_readonly("acquire", &UseHooks::acquire, doc("FieldHooks.acquire"))
      .def_readonly("release", &UseHooks::release, doc("FieldHooks.release"));
  close_class<refuse_call>(hooks, "gridbuf._core");
  core.def("_make_rules", make_rules, py::kw_only(), "name"_a, "on_device"_a,
           "writes_are_declared"_a, "allow_alias"_a, "knows_reach"_a = false)
      .def("_set_halo_check",
           [](int mode) { return mode < 0 ? halo_check.load() : halo_check.exchange(mode); })
      .def("_field_hooks", hooks_of)
      .def("_array_of", array_of);
}

}  // namespace gridbuf::python
