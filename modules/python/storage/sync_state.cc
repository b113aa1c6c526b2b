// `SyncState`: which side is current, as users see it.

module;

#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.base;
import gridbuf.python.arguments;
import gridbuf.python.object;
import gridbuf.storage.sync;

namespace gridbuf::python::storages {
namespace {

struct SyncStateObject {
  PyObject ob_base;
  PyObject* weak_references;
  std::shared_ptr<SyncState> state;
};

PyTypeObject* sync_state_type = nullptr;  // made once, kept for good
PyObject* flag_class = nullptr;           // an enum.IntFlag

SyncStateObject* state_object_of(PyObject* self) {
  return reinterpret_cast<SyncStateObject*>(self);
}

/// The one object of a state while it lives, so that `is` answers. Borrowed; the object takes
/// itself out when it goes. Never destroyed: objects may go after static objects do.
std::unordered_map<const SyncState*, PyObject*>& known_objects() {
  static auto& known = *new std::unordered_map<const SyncState*, PyObject*>();
  return known;
}

Ref make_object(std::shared_ptr<SyncState> state) {
  auto [place, is_new] = known_objects().try_emplace(state.get(), nullptr);
  if (!is_new) return Ref::share(place->second);
  auto* const memory = static_cast<PyObject*>(PyObject_Malloc(sizeof(SyncStateObject)));
  if (memory == nullptr) {
    known_objects().erase(place);
    throw std::bad_alloc();
  }
  Ref made = Ref::steal(PyObject_Init(memory, sync_state_type));
  state_object_of(made.get())->weak_references = nullptr;
  std::construct_at(&state_object_of(made.get())->state, std::move(state));
  place->second = made.get();
  return made;
}

void deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  SyncStateObject* const object = state_object_of(self);
  if (object->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  known_objects().erase(object->state.get());
  std::destroy_at(&object->state);
  PyObject_Free(self);
  Py_DECREF(type);
}

/// SyncState(state=SYNC_CLEAN)
PyObject* make_new(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  return guarded([&] {
    static const char* names[] = {"state", nullptr};
    PyObject* given = nullptr;
    check(PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:SyncState",
                                      const_cast<char**>(names), &given) != 0
              ? 0
              : -1);
    const std::int64_t state = given == nullptr ? kSyncClean : to_integer(given, "state");
    if (state != kSyncClean && state != kSyncHostDirty && state != kSyncDeviceDirty) {
      raise(ErrorClass::kValue,
            Problem{"state", std::to_string(state),
                    "SYNC_CLEAN (0), SYNC_HOST_DIRTY (1) or SYNC_DEVICE_DIRTY (2)",
                    "say which of two whole buffers is current; both at once has no meaning"});
    }
    return make_object(value_of(SyncState::make(static_cast<int>(state))));
  });
}

Ref flag_of(int state) { return Ref::steal(PyObject_CallFunction(flag_class, "i", state)); }

PyObject* get_state(PyObject* self, void*) {
  return guarded([&] { return flag_of(state_object_of(self)->state->state()); });
}

PyObject* repr(PyObject* self) {
  return guarded([&] {
    const int state = state_object_of(self)->state->state();
    std::string text;
    if ((state & kSyncHostDirty) != 0) text = "SYNC_HOST_DIRTY";
    if ((state & kSyncDeviceDirty) != 0)
      text += text.empty() ? "SYNC_DEVICE_DIRTY" : " | SYNC_DEVICE_DIRTY";
    return make_text("SyncState(" + (text.empty() ? std::string("SYNC_CLEAN") : text) + ")");
  });
}

PyGetSetDef getters[] = {
    {"state", get_state, nullptr,
     "SYNC_CLEAN: both buffers are equal. SYNC_HOST_DIRTY: the host's is newer somewhere.\n"
     "SYNC_DEVICE_DIRTY: the device's is. Both flags, where regions of both kinds exist.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(SyncStateObject, weak_references), READONLY,
     nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

constexpr char kDocumentation[] =
    "SyncState(state=SyncState.SYNC_CLEAN)\n--\n\n"
    "Which of a storage's two buffers is current; all views of a storage share one.\n\n"
    "Made by users only to say it of two buffers that as_storage or storage shall take. It "
    "belongs\n"
    "to the storage that it was passed to, for good.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(kDocumentation)},
    {Py_tp_new, reinterpret_cast<void*>(make_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getters},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec = {
    .name = "gridbuf.storage.SyncState",
    .basicsize = sizeof(SyncStateObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

/// The flags, as attributes of the class: SyncState.SYNC_CLEAN and so on.
void add_flags(PyObject* type) {
  const Ref module = Ref::steal(PyImport_ImportModule("enum"));
  const Ref base = Ref::steal(PyObject_GetAttrString(module.get(), "IntFlag"));
  const Ref names =
      Ref::steal(Py_BuildValue("{sisisi}", "SYNC_CLEAN", kSyncClean, "SYNC_HOST_DIRTY",
                               kSyncHostDirty, "SYNC_DEVICE_DIRTY", kSyncDeviceDirty));
  const Ref arguments = Ref::steal(Py_BuildValue("(sO)", "SyncFlag", names.get()));
  const Ref keywords = Ref::steal(Py_BuildValue("{ss}", "module", "gridbuf.storage"));
  flag_class = Ref::steal(PyObject_Call(base.get(), arguments.get(), keywords.get())).release();
  for (const char* name : {"SYNC_CLEAN", "SYNC_HOST_DIRTY", "SYNC_DEVICE_DIRTY"}) {
    const Ref flag = Ref::steal(PyObject_GetAttrString(flag_class, name));
    check(PyObject_SetAttrString(type, name, flag.get()));
  }
}

}  // namespace

void add_sync_state_type(PyObject* module) {
  const Ref type = Ref::steal(PyType_FromSpec(&spec));
  add_flags(type.get());
  sync_state_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.get()));
  sync_state_type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  check(PyModule_AddObjectRef(module, "SyncState", type.get()));
  check(PyModule_AddObjectRef(module, "SyncFlag", flag_class));
}

Ref make_sync_state(const std::shared_ptr<SyncState>& state) {
  return state == nullptr ? Ref::share(Py_None) : make_object(state);
}

const std::shared_ptr<SyncState>& to_sync_state(PyObject* object) {
  if (Py_TYPE(object) != sync_state_type) {
    raise(ErrorClass::kType,
          Problem{"sync_state", describe(object), "a gridbuf.storage.SyncState",
                  "pass SyncState(SyncState.SYNC_HOST_DIRTY) if data is current, or the sync_state "
                  "of the storage that the buffers are from"});
  }
  return state_object_of(object)->state;
}

}  // namespace gridbuf::python::storages
