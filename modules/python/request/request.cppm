// gridbuf.python.request: from the keywords of an allocation to a layout plan.
//
// Purpose. Every function that allocates takes the same parameters, and each of them is looked up
// in the same order: what the caller passed, else what the preset gives, else what the array to be
// imitated has, else the fallback. This module is that order, written once.
//
// Key choice. "Not given" is a null pointer and nothing else. So `device=None`, which means the
// host, overrides the "gpu" of a preset, while for the other parameters None means that nothing was
// passed (storage spec 3.2). What an imitated array has is found out before, as a `Source`: a
// Buffer (or a plain array over one) gives all of its parameters, an array that is not ours gives
// the order of its strides and the names that it declares.
//
// Where the memory lies is one answer out of two keywords: `memory` names a kind, `device` says
// host or GPU, and a preset knows a device as well. Two that contradict each other are a
// ValueError; what has not been said by either is not guessed from the machine.

module;

#include <Python.h>

#include <cstdint>
#include <optional>
#include <span>

export module gridbuf.python.request;

import gridbuf.device;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.numpy;
import gridbuf.python.object;

export namespace gridbuf::python {

inline constexpr const char* kBackendName = "backend";

/// The keyword-only parameters as passed: borrowed, null if not given.
struct Keywords {
  PyObject* backend = nullptr;  // Storages call it defaults.
  PyObject* device = nullptr;
  PyObject* layout = nullptr;
  PyObject* alignment_size = nullptr;
  PyObject* aligned_index = nullptr;
  PyObject* dims = nullptr;
  PyObject* populate = nullptr;
  PyObject* memory = nullptr;
  PyObject* halo = nullptr;                // Of storages alone.
  const char* preset_name = kBackendName;  // What messages call `backend`.
};

/// The names of those that plain arrays and buffers have, in the order of `Keywords`.
inline constexpr const char* kKeywordNames[] = {
    "backend", "device", "layout", "alignment_size", "aligned_index", "dims", "populate", "memory"};
inline constexpr int kKeywordCount = 8;

/// The keywords from their values in the order of kKeywordNames. Requires kKeywordCount of them.
Keywords to_keywords(std::span<PyObject* const> values);

/// What to say of a keyword that no allocation function has: names today's spelling of an old one,
/// and the door that takes it. Sets a TypeError and throws.
void unknown_keyword(const Signature& signature, PyObject* keyword);
/// The same for the functions of storages.
void unknown_storage_keyword(const Signature& signature, PyObject* keyword);

/// What an imitated array has.
struct Source {
  DTypePtr dtype;
  Extents shape;
  Dims dims;
  LayoutMap layout;
  std::int64_t alignment_bytes = 1;
  Extents aligned_index;  // Empty: not known.
  MemoryKind memory = MemoryKind::kHost;
  Halo halo = {};  // Empty: not known.
};

/// What `data` has: a Buffer, an ndarray, or whatever numpy.asarray takes. `array`, if not null,
/// receives the ndarray through which its elements can be read; none for a Buffer that the host
/// cannot read.
Source source_of(PyObject* data, py::object* array = nullptr);

/// The names that `object` declares: `__gt_dims__` (an attribute, or a method as it was once
/// proposed), else a `dims` attribute whose names are all valid. Nothing if it declares none.
/// ValueError for a `__gt_dims__` that is wrong.
std::optional<Dims> declared_dims(PyObject* object, int ndim);

/// The names of a plain array's buffer; nothing unless it shows one whole Buffer. Requires an
/// ndarray.
std::optional<Dims> dims_behind(PyObject* ndarray);

/// A request for memory, resolved.
struct Request {
  Layout plan;
  Dims dims;
  DTypePtr dtype;
  bool populate = false;
  MemoryKind memory = MemoryKind::kHost;
  Halo halo = {};  // Empty: none.
};

/// A halo: an entry per dimension, each an integer (both ends) or a pair (lower, upper). TypeError
/// for other kinds, and for the three entries that every halo once had; ValueError for what does
/// not fit the shape.
Halo to_halo(PyObject* object, const Extents& shape);

/// Whether `device` asks for the GPU; nothing if it was not given. None asks for the host.
std::optional<bool> wants_gpu(PyObject* device);

/// The preset that the keyword names; nothing if it was not given.
std::optional<Preset> preset_of(const Keywords& keywords);

/// The request of a function that takes a shape. `dtype` may be null.
Request resolve(PyObject* shape, PyObject* dtype, const Keywords& keywords);

/// The request of a function that imitates `source`. `dtype` may be null.
Request resolve_like(const Source& source, PyObject* dtype, const Keywords& keywords);

}  // namespace gridbuf::python
