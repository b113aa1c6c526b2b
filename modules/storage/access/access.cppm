// gridbuf.storage.access: the elements of a storage, for C++.
//
// Purpose. Two guards over Storage's accesses. A `ReadAccess` brings the elements up to date on one
// side and reads them; it marks nothing. A `WriteAccess` marks them on one side while it lives. So
// what a program may do with an element follows from the guard that it holds, and forgetting to
// mark a change does not compile.
//
// Key choice: on the device the guards give the address and strides, for a kernel; on the host also
// the elements, by index. The element type is checked when the access begins, once. Indices are
// checked in debug builds alone, as those of a std::span.
//
// Write accesses that are open on both sides at once must not overlap (kSyncConflict): either
// would undo the other. One after the other they may, whatever they cover.
module;

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.storage.access;

import gridbuf.alloc;
export import gridbuf.storage;

export namespace gridbuf {

/// The name of an element type of C++: "float64", "int32", "bool".
template <class T>
  requires std::is_arithmetic_v<T>
constexpr std::string_view element_name() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  constexpr std::array<std::string_view, 3> kFloats{"float32", "float64", "longdouble"};
  if constexpr (std::is_floating_point_v<T>) return kFloats[sizeof(T) / 8];
  constexpr std::array<std::array<std::string_view, 4>, 2> kIntegers{
      {{"uint8", "uint16", "uint32", "uint64"}, {"int8", "int16", "int32", "int64"}}};
  constexpr int kLog2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return kIntegers[std::is_signed_v<T> ? 1 : 0][kLog2];
}

/// kType unless the elements are of that type, in native byte order.
absl::Status check_element_type(const Storage& storage, std::string_view name);

/// Where the elements are while an access is open.
template <class T>
class Elements {
 public:
  explicit Elements(const BufferDescriptor& memory)
      : first_(reinterpret_cast<T*>(memory.first_element())), view_(memory.view) {}

  /// Of element (0, …, 0). A device's is for its kernels alone.
  T* data() const { return first_; }
  const Extents& shape() const { return view_.shape; }
  const Extents& strides_bytes() const { return view_.strides_bytes; }

  /// The element at an index, one integer per dimension. On the host.
  template <class... Index>
  T& operator()(Index... index) const {
    assert(static_cast<int>(sizeof...(index)) == view_.ndim());
    std::int64_t offset_bytes = 0;
    int axis = 0;
    ((assert(index >= 0 && index < view_.shape[axis]),
      offset_bytes += static_cast<std::int64_t>(index) * view_.strides_bytes[axis++]),
     ...);
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(first_) + offset_bytes);
  }

 private:
  T* first_;
  StridedView view_;
};

/// The elements to be read on one side. Holds the memory.
template <class T>
class ReadAccess : public Elements<const T> {
 public:
  /// Errors: kType for another element type; those of Storage::read.
  static absl::StatusOr<ReadAccess> begin(const Storage& storage, Side side = Side::kHost) {
    if (absl::Status status = check_element_type(storage, element_name<T>()); !status.ok()) {
      return status;
    }
    if (absl::Status status = storage.read(side); !status.ok()) return status;
    return ReadAccess(storage, side);
  }

 private:
  ReadAccess(const Storage& storage, Side side)
      : Elements<const T>(storage.memory(side)), owner_(storage.memory(side).owner) {}
  Owner owner_;
};

/// A write that is open; ends when it goes.
class OpenWrite {
 public:
  /// Errors: those of Storage::begin_write, and kSyncConflict.
  static absl::StatusOr<OpenWrite> begin(const Storage& storage, Side side, Coverage coverage);
  OpenWrite(OpenWrite&& other) noexcept
      : storage_(other.storage_), side_(other.side_), open_(std::exchange(other.open_, false)) {}
  OpenWrite& operator=(OpenWrite&&) = delete;
  ~OpenWrite();

 private:
  OpenWrite(const Storage& storage, Side side) : storage_(storage), side_(side) {}
  Storage storage_;
  Side side_;
  bool open_ = true;
};

/// The elements to be written on one side, and read with kPart.
template <class T>
class WriteAccess : public Elements<T> {
 public:
  /// With kAll every element will be written and none read before: nothing is copied. Errors: kType
  /// for another element type; those of OpenWrite::begin.
  static absl::StatusOr<WriteAccess> begin(const Storage& storage, Side side = Side::kHost,
                                           Coverage coverage = Coverage::kPart) {
    if (absl::Status status = check_element_type(storage, element_name<T>()); !status.ok()) {
      return status;
    }
    absl::StatusOr<OpenWrite> open = OpenWrite::begin(storage, side, coverage);
    if (!open.ok()) return open.status();
    return WriteAccess(storage, side, *std::move(open));
  }

 private:
  WriteAccess(const Storage& storage, Side side, OpenWrite open)
      : Elements<T>(storage.memory(side)), open_(std::move(open)) {}
  OpenWrite open_;
};

}  // namespace gridbuf
