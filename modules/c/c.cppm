// gridbuf.c: the inside of the C interface. `gridbuf.h` is its manual.
//
// A handle is a heap object with a magic number and a C++ value. `value_of` checks the number, so a
// released handle, or a handle of the other kind, is an error while its memory is not reused. Every
// function of the interface is one call of `guarded`, which turns a status or an exception into
// the C status and keeps the text for the thread.
module;

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/process_wide.h"
#include "modules/base/status_macros.h"
#include "modules/c/gridbuf.h"

export module gridbuf.c;

export import gridbuf.alloc.host;
export import gridbuf.array;
export import gridbuf.storage;

export namespace gridbuf::c {

/// A C++ value behind an opaque pointer.
template <class T>
struct Handle {
  std::uint64_t magic;
  T value;
};
/// A storage, or a delayed one, which the first call that uses the handle allocates.
template <>
struct Handle<Storage> {
  /// With the addresses of its first element by side, so that an access of a current side takes 5
  /// ns instead of 30.
  struct Made {
    explicit Made(Storage storage) : value(std::move(storage)) {
      for (const Side side : {Side::kHost, Side::kDevice}) {
        const auto place = static_cast<std::size_t>(side);
        has[place] = value.has(side);
        if (has[place]) first[place] = value.memory(side).first_element();
      }
    }
    Storage value;
    std::array<bool, 2> has = {};
    std::array<void*, 2> first = {};
  };

  Handle(std::uint64_t number, Storage storage)
      : magic(number), made(new Made(std::move(storage))) {}
  Handle(std::uint64_t number, StorageRequest request)
      : magic(number), made(nullptr), delayed(std::move(request)) {}
  ~Handle() { delete made.load(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// Both require that `check` was OK.
  Made& sides() const { return *made.load(std::memory_order_acquire); }
  Storage& value() const { return sides().value; }
  /// Without a lock, because a child of fork could not unlock it: of two threads that allocate at
  /// once, the second frees its memory.
  absl::Status allocate() const;

  std::uint64_t magic;
  mutable std::atomic<Made*> made;
  std::optional<StorageRequest> delayed;
};
using WorkspacePtr = std::unique_ptr<Workspace>;

template <class T>
inline constexpr std::uint64_t kMagic = 0;
template <>
inline constexpr std::uint64_t kMagic<WorkspacePtr> = 0x6762'7566'576f'7231;
template <>
inline constexpr std::uint64_t kMagic<Array> = 0x6762'7566'4172'7231;
template <>
inline constexpr std::uint64_t kMagic<Storage> = 0x6762'7566'5374'6f31;

/// The first word of a handle. Other builds have other numbers, because their values have other
/// layouts.
inline const std::uint64_t this_build = build_number();
template <class T>
std::uint64_t magic() {
  return kMagic<T> ^ this_build;
}

template <class T>
inline constexpr std::string_view kHandleName = "array";
template <>
inline constexpr std::string_view kHandleName<Storage> = "storage";
template <>
inline constexpr std::string_view kHandleName<WorkspacePtr> = "workspace";

inline Handle<Array>* inside(const gridbuf_array* array) {
  return reinterpret_cast<Handle<Array>*>(const_cast<gridbuf_array*>(array));
}
inline Handle<Storage>* inside(const gridbuf_storage* storage) {
  return reinterpret_cast<Handle<Storage>*>(const_cast<gridbuf_storage*>(storage));
}
inline Handle<WorkspacePtr>* inside(const gridbuf_workspace* workspace) {
  return reinterpret_cast<Handle<WorkspacePtr>*>(const_cast<gridbuf_workspace*>(workspace));
}
inline gridbuf_workspace* outside(Handle<WorkspacePtr>* handle) {
  return reinterpret_cast<gridbuf_workspace*>(handle);
}
inline gridbuf_array* outside(Handle<Array>* handle) {
  return reinterpret_cast<gridbuf_array*>(handle);
}
inline gridbuf_storage* outside(Handle<Storage>* handle) {
  return reinterpret_cast<gridbuf_storage*>(handle);
}

/// kValue with the parts of a message.
absl::Status bad(const Problem& problem);
/// kValue if the pointer is null.
absl::Status require(const void* pointer, std::string_view name);
absl::Status bad_handle(const void* handle, std::string_view kind);

template <class T>
absl::Status check_live(const Handle<T>* handle) {
  if (handle != nullptr && handle->magic == magic<T>()) [[likely]] {
    return absl::OkStatus();
  }
  return bad_handle(handle, kHandleName<T>);
}
/// That the handle is live, and its memory allocated.
template <class T>
absl::Status check(const Handle<T>* handle) {
  return check_live(handle);
}
inline absl::Status check(const Handle<Storage>* handle) {
  GRIDBUF_RETURN_IF_ERROR(check_live(handle));
  if (handle->made.load(std::memory_order_acquire) != nullptr) [[likely]] {
    return absl::OkStatus();
  }
  return handle->allocate();
}

/// Gives the value to the caller, in a new handle.
template <class T, class Outside>
absl::Status give(absl::StatusOr<T> made, Outside** out) {
  if (!made.ok()) return made.status();
  *out = outside(new Handle<T>{magic<T>(), *std::move(made)});
  return absl::OkStatus();
}

template <class T>
absl::Status release(Handle<T>* handle) {
  if (handle == nullptr) return absl::OkStatus();
  GRIDBUF_RETURN_IF_ERROR(check_live(handle));
  handle->magic = 0;
  delete handle;
  return absl::OkStatus();
}

/// The text of gridbuf_last_error.
const char* last_error() noexcept;
/// Keeps the text for gridbuf_last_error and returns the status's number.
gridbuf_status fail(const absl::Status& status) noexcept;
gridbuf_status fail(ErrorClass error_class, const char* text) noexcept;

/// Runs one function of the interface.
template <class Work>
gridbuf_status guarded(const Work& work) noexcept {
  try {
    const absl::Status status = work();
    return status.ok() ? GRIDBUF_OK : fail(status);
  } catch (const std::bad_alloc&) {
    return fail(ErrorClass::kMemory, "no memory for the objects of gridbuf; free some");
  } catch (const std::exception& error) {
    return fail(ErrorClass::kInternal, error.what());
  } catch (...) {
    return fail(ErrorClass::kInternal, "an exception; please report it");
  }
}

/// As guarded, for a function with an output, which is NULL after an error.
template <class Outside, class Work>
gridbuf_status made(Outside** out, const Work& work) noexcept {
  if (out == nullptr) return guarded([] { return require(nullptr, "out"); });
  *out = nullptr;
  return guarded(work);
}

inline Array& value_of(const gridbuf_array* array) { return inside(array)->value; }
inline Workspace& value_of(const gridbuf_workspace* workspace) { return *inside(workspace)->value; }
inline Storage& value_of(const gridbuf_storage* storage) { return inside(storage)->value(); }

/// Runs one function of the interface with the value of a handle, which it checks.
template <class Outside, class Work>
gridbuf_status with(const Outside* handle, const Work& work) noexcept {
  return guarded([&]() -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(check(inside(handle)));
    return work(value_of(handle));
  });
}

/// As with, for a function that gives a new handle of what `work` returns.
template <class Outside, class Made, class Work>
gridbuf_status made_with(const Outside* handle, Made** out, const Work& work) noexcept {
  return made(out, [&]() -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(check(inside(handle)));
    return give(work(value_of(handle)), out);
  });
}

// ---- Structs that grow: the caller's may be shorter or longer than that of this version. ----

/// kValue unless a struct of `given` bytes can be read as one of `known`, of which `first` were
/// there in the first version.
absl::Status check_struct(std::string_view name, std::size_t given, std::size_t first);
absl::Status check_unknown(std::string_view name, const void* given, std::size_t given_bytes,
                           std::size_t known_bytes);

/// The caller's struct; fields that it does not have are 0. kValue for fields that are set and that
/// this version does not know.
template <class T>
absl::StatusOr<T> read_struct(std::string_view name, const T* given, std::size_t first_bytes) {
  GRIDBUF_RETURN_IF_ERROR(require(given, name));
  GRIDBUF_RETURN_IF_ERROR(check_struct(name, given->struct_bytes, first_bytes));
  GRIDBUF_RETURN_IF_ERROR(check_unknown(name, given, given->struct_bytes, sizeof(T)));
  T known = {};
  std::memcpy(&known, given, given->struct_bytes < sizeof(T) ? given->struct_bytes : sizeof(T));
  return known;
}

/// Writes the fields that the caller's struct has.
template <class T>
void write_struct(const T& made, T* out) {
  const std::size_t bytes = out->struct_bytes;
  std::memcpy(out, &made, bytes < sizeof(T) ? bytes : sizeof(T));
  out->struct_bytes = bytes;
}

// ---- Options. ----

/// The options, in the types of the library. Views refer to the caller's memory.
struct Options {
  LayoutRequest request;
  DType dtype;
  std::optional<DeviceType> memory;
  std::optional<StorageKind> kind;
  bool wants_device = false;  // the backend is a GPU's
  std::uint32_t flags = 0;
  std::int32_t device_id = 0;
  LayoutMap device_layout;
  std::int64_t device_alignment_bytes = 0;
};

absl::StatusOr<Options> read_options(const gridbuf_options* options);
/// Only dims, halo and aligned index, for an array of `ndim` dimensions. NULL is nothing.
absl::StatusOr<LayoutRequest> read_meaning(const gridbuf_options* options, int ndim);
/// The layout of the device's buffer, if the options give one.
absl::StatusOr<std::optional<Layout>> device_layout_of(const Options& field,
                                                       const LayoutRequest& host);

absl::StatusOr<DeviceType> read_memory(std::int32_t memory);
absl::StatusOr<StorageKind> read_kind(std::int32_t kind);
std::int32_t number_of(StorageKind kind);
absl::StatusOr<Side> read_side(std::int32_t side);
absl::StatusOr<IndexMap> read_items(const Extents& shape, const gridbuf_item* items, int count);
absl::StatusOr<IndexMap> read_axes(const Extents& shape, const std::int32_t* axes);
absl::StatusOr<Halo> read_halo(const std::int64_t* halo, int ndim);

/// Fills `out` with the properties of an array.
absl::Status write_info(const Array& array, std::int32_t kind, void* data, gridbuf_info* out);
absl::Status write_dim(const Dims& dims, int axis, char* name, std::int32_t* kind);

}  // namespace gridbuf::c
