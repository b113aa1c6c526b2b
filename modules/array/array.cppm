// gridbuf.array: memory with the layout of a field.
//
// An `Array` is a descriptor and a `Layout`. Every interface exports the descriptor: block,
// strides, element type, device, owner. The layout has the meaning of the elements: names of
// dimensions, halo, layout map, aligned index. It is a value: its copies and views share the
// memory, and the last of them releases it. `import gridbuf.array` also imports layouts, views,
// DLPack, the buffer protocol and NumPy's interfaces.
//
// Key decision: an Array is stateless and waits only for its copies. Work on a device is enqueued
// on the thread's current stream. A `Storage` (gridbuf.storage) has an Array on the host and an
// Array on the device, and keeps them equal.
//
// The rules of allocation come from sections 3 and 4 of the storage specification
// (docs/storage.md).
module;

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.array;

export import gridbuf.alloc;
export import gridbuf.base;
export import gridbuf.device;
export import gridbuf.interface;
export import gridbuf.interface.buffer;
export import gridbuf.interface.dlpack;
export import gridbuf.interface.numpy;
export import gridbuf.layout;
export import gridbuf.layout.view;

export namespace gridbuf {

/// Kind of memory of a new array, and its initial values.
struct ArrayOptions {
  DeviceType memory = DeviceType::kHost;  // or one of CUDA's types
  bool zeroed = false;                    // elements and padding
  bool zeroed_padding = false;            // only the bytes outside all elements
  bool populate = false;                  // commit the pages now
};

/// Memory for `layout`. In poison mode no thread may touch the padding of its rows. Errors:
/// kMemory; kDeviceUnavailable.
absl::StatusOr<Block> allocate_block(const Layout& layout, const ArrayOptions& options = {});

/// The status with the parameters of the request if it is kMemory. Requires !status.ok().
absl::Status with_request(const absl::Status& status, const Layout& layout,
                          std::string_view dtype_name, DeviceType type);

/// Whether some bytes do not belong to an element.
constexpr bool has_padding(const Layout& layout) noexcept {
  return layout.total_bytes() != layout.nbytes();
}

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

/// kType unless `found` is the type of that name, in native byte order. `what` begins the message.
absl::Status check_element_type(std::string_view what, const DType& found, std::string_view name);

/// The elements, by index. Does not keep the memory alive. Debug builds check each index. For
/// memory of a device, only kernels may use `data` and the strides.
template <class T>
class Elements {
 public:
  explicit Elements(const BufferDescriptor& memory)
      : first_(reinterpret_cast<T*>(memory.first_element())), view_(memory.view) {}

  /// The address of element (0, …, 0).
  T* data() const { return first_; }
  const Extents& shape() const { return view_.shape; }
  const Extents& strides_bytes() const { return view_.strides_bytes; }

  /// The element at an index, one integer per dimension.
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

/// Invariant: memory.view == layout.view().
struct Array {
  BufferDescriptor memory = {};
  Layout layout = {};

  /// New memory with undefined elements, on the thread's current stream. The item size of the
  /// request is that of `dtype`; without names the dimensions get default names. Errors: kValue for
  /// an invalid request; kMemory, naming the request; kDeviceUnavailable.
  static absl::StatusOr<Array> empty(LayoutRequest request, const DType& dtype = {},
                                     const ArrayOptions& options = {});
  /// As `empty`, for a layout that is planned already, with its names.
  static absl::StatusOr<Array> allocate(const Layout& layout, const DType& dtype,
                                        const ArrayOptions& options = {});
  /// As `empty`, with zeros.
  static absl::StatusOr<Array> zeros(const LayoutRequest& request, const DType& dtype = {},
                                     ArrayOptions options = {});
  /// As `empty`, of the type of `value`. Every element is `value`.
  template <class T>
  static absl::StatusOr<Array> full(const LayoutRequest& request, T value,
                                    const ArrayOptions& options = {}) {
    return filled(request, element_name<T>(), std::as_bytes(std::span(&value, 1)), options);
  }
  /// An array over existing memory; keeps its owner. `given` adds names, halo, layout map, aligned
  /// index and the alignment there; its shape and item size are ignored. Empty members get
  /// defaults; the default layout map follows the strides. Errors, all kValue: those of `describe`;
  /// parameters that do not fit the shape; an alignment that the memory does not have.
  static absl::StatusOr<Array> from(BufferDescriptor memory, const LayoutRequest& given = {});

  const Extents& shape() const { return layout.shape(); }

  /// The view that `map`, made for this shape, describes.
  Array view(const IndexMap& map) const;
  /// The view without the halo.
  Array domain_view() const;
  /// The same memory with another halo. The alignment stays. kValue if the halo does not fit.
  absl::StatusOr<Array> with_halo(const Halo& halo) const;

  /// A request for new memory with this layout.
  LayoutRequest request() const;
  /// A copy of layout and elements in new memory of `type`, by default that of this array.
  absl::StatusOr<Array> copy(std::optional<DeviceType> type = std::nullopt) const;
  /// Copies the elements of `source`. The arrays may overlap. Accesses to host memory are complete
  /// at return. Errors: kValue if shapes or item sizes differ, or if this array is read-only; those
  /// of the device.
  absl::Status copy_from(const Array& source) const;

  /// The elements, on the host. Errors: kType unless T is the element type; kValue for read-only
  /// memory, unless T is const; kNoSuchBuffer for memory that the host cannot read.
  template <class T>
  absl::StatusOr<Elements<T>> elements() const {
    absl::Status status = check_access(element_name<std::remove_const_t<T>>(), std::is_const_v<T>);
    if (!status.ok()) return status;
    return Elements<T>(memory);
  }

 private:
  static absl::StatusOr<Array> filled(const LayoutRequest& request, std::string_view dtype,
                                      std::span<const std::byte> element,
                                      const ArrayOptions& options);
  absl::Status check_access(std::string_view dtype, bool reads_only) const;
};

// A Buffer or a Storage holds one; the allocators of Python and the C library keep short blocks.
static_assert(sizeof(Array) <= 1024);

/// With memory_of and apply, the operations of gridbuf.layout.view (`subscript`, `slice`,
/// `transpose`, …) take and return arrays.
inline const StridedView& memory_of(const Array& array) { return array.memory.view; }
/// The view of the array that the map gives.
Array apply(const IndexMap& map, const Array& array);

/// Enqueues a copy on `stream` where at least one side is memory of a device. `from` is broadcast
/// to the shape of `to`; a single element of the host is a fill. Wait for the stream before the
/// host uses its memory. Errors: those of gridbuf.transfer.device.
absl::Status enqueue_copy(DeviceDriver& driver, const BufferDescriptor& to,
                          const BufferDescriptor& from, StreamHandle stream);

}  // namespace gridbuf
