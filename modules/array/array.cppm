// gridbuf.array: memory with the layout of a field.
//
// An `Array` is a descriptor and a `Layout`. Every interface exports the descriptor: block,
// strides, element type, device, owner. The layout has the meaning of the elements: names of
// dimensions, halo, layout map, aligned index. It is a value: its copies and views share the
// memory, and the last of them releases it. `import gridbuf.array` also imports layouts, views,
// DLPack, the buffer protocol and NumPy's interfaces.
//
// Key decision: an Array does not change and waits only for its copies. It keeps the stream on
// which its memory was made, and its copies run there: after the work that the thread's current
// stream has, and before later work of that stream. A `Storage` (gridbuf.storage) has an Array on
// the host and an Array on the device, and keeps them equal.
//
// The rules of allocation are sections 1 and 2 of the specification (docs/spec.md).
module;

#include <algorithm>
#include <array>
#include <cassert>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

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
export import gridbuf.transfer;

export namespace gridbuf {

/// Kind of memory of a new array, and its initial values.
struct ArrayOptions {
  MemoryKind memory = MemoryKind::kHost;
  bool zeroed = false;                 // elements and padding
  bool zeroed_padding = false;         // only the bytes without a value: see has_padding
  bool populate = false;               // commit the pages now
  MemoryResource* resource = nullptr;  // of `memory`; null: the library's
  std::string_view dtype_name = {};    // only for messages; empty: the element type's
};

/// How the memory of an array came about; a view has the info of its source.
struct ArrayInfo {
  BlockInfo block = {};               // its stream orders the work on the memory; 0: none
  std::int64_t allocation_bytes = 0;  // of the block, including placement; 0: not known

  /// Of memory that is not gridbuf's.
  static ArrayInfo adopted(std::string_view resource_name, const Device& device,
                           StreamHandle stream = 0) {
    return {.block = {.resource_name = resource_name, .device = device, .stream = stream}};
  }
};

/// Memory that an array will have. Without the array, as moving one takes as long as a malloc.
struct ArrayMemory {
  std::byte* block = nullptr;
  Owner owner = {};
  ArrayInfo info = {};
};

/// Whether some bytes do not belong to an element.
constexpr bool has_padding(const Layout& layout) noexcept {
  return layout.total_bytes() != layout.nbytes();
}
/// Whether some bytes do not hold a value: padding, or the gaps of elements.
inline bool has_padding(const Layout& layout, const DType& dtype) {
  return has_padding(layout) || dtype.parts() != nullptr;
}

/// The C++ types of elements: numbers, and complex numbers of floats.
template <class T>
concept Element = std::is_arithmetic_v<T> || std::is_same_v<T, _Float16> ||
                  std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// The name of an element type of C++: "float64", "int32", "bool", "complex64", "float16".
template <Element T>
constexpr std::string_view element_name() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, _Float16>) return "float16";
  if constexpr (std::is_same_v<T, std::complex<float>>) return "complex64";
  if constexpr (std::is_same_v<T, std::complex<double>>) return "complex128";
  constexpr std::array<std::string_view, 3> kFloats{"float32", "float64", "longdouble"};
  if constexpr (std::is_floating_point_v<T>) return kFloats[sizeof(T) / 8];
  constexpr std::array<std::array<std::string_view, 4>, 2> kIntegers{
      {{"uint8", "uint16", "uint32", "uint64"}, {"int8", "int16", "int32", "int64"}}};
  constexpr int kLog2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return kIntegers[std::is_signed_v<T> ? 1 : 0][kLog2];
}

/// std::mdspan, or a class with its members, such as those of Kokkos and CUDA, over host memory.
template <class M>
concept Mdspan = Element<std::remove_const_t<typename M::element_type>> && requires(const M& span) {
  typename M::mapping_type;
  { span.data_handle() } -> std::convertible_to<typename M::element_type*>;
  { span.stride(0) } -> std::convertible_to<std::int64_t>;
};

/// The strides of an mdspan in elements. kValue unless it can have the view's extents and strides:
/// the rank, `fixed` extents (-1: any), integers up to `largest`, and positive strides that are
/// multiples of the elements.
absl::StatusOr<Extents> mdspan_strides(StridedView view, std::span<const std::int64_t> fixed,
                                       std::int64_t largest);

/// kType unless `found` is the type of that name, in native byte order. `what` begins the message.
absl::Status check_element_type(std::string_view what, const DType& found, std::string_view name);

/// The number type that gridbuf.transfer converts, of either byte order; none for other elements.
std::optional<Number> number_of(const DType& type);
bool can_convert(const DType& to, const DType& from);
/// kType unless copies write elements of type `from` to elements of type `to`: equal types, those
/// of the opposite byte order, and the pairs of can_convert.
absl::Status check_copied_type(const DType& to, const DType& from);

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

  /// An mdspan of T with layout_stride. It does not keep the memory alive. Errors: mdspan_strides.
  template <Mdspan M>
    requires std::same_as<typename M::element_type, T>
  absl::StatusOr<M> as() const {
    return as_mdspan<M>(std::make_index_sequence<M::rank()>());
  }

 private:
  template <class M, std::size_t... axis>
  absl::StatusOr<M> as_mdspan(std::index_sequence<axis...>) const {
    using Map = typename M::mapping_type;
    using Index = typename M::index_type;
    // Of one entry more, as an array of none is not possible; an extent that is not fixed is -1.
    const std::int64_t fixed[] = {static_cast<std::int64_t>(M::static_extent(axis))..., 0};
    const absl::StatusOr<Extents> found = mdspan_strides(
        view_, std::span(fixed, sizeof...(axis)),
        static_cast<std::int64_t>(std::min<std::uint64_t>(
            std::numeric_limits<Index>::max(), std::numeric_limits<std::int64_t>::max())));
    if (!found.ok()) return found.status();
    decltype(std::declval<const Map&>().strides()) strides{};  // the array class of the library
    ((strides[axis] = static_cast<Index>((*found)[axis])), ...);
    const typename M::extents_type extents(static_cast<Index>(view_.shape[axis])...);
    return M(first_, Map(extents, strides));
  }

  T* first_;
  StridedView view_;
};

/// Memory with the meaning of its elements. Invariant: memory().view == layout().view(). The
/// default has one element of one byte and does not have memory.
class Array {
 public:
  Array() {}  // not defaulted, as that of Layout
  /// Memory whose view is that of the layout, unchecked. `from` checks.
  template <class LayoutOrParts>
  Array(BufferDescriptor memory, const LayoutOrParts& layout, const ArrayInfo& info = {})
      : memory_(std::move(memory)), layout_(layout), info_(info) {
    assert(memory_.view == layout_.view());
  }
  /// New memory of `allocate_memory`, for the same layout and element type.
  Array(ArrayMemory&& memory, const Layout& layout, const DType& dtype)
      : memory_{.block = memory.block,
                .view = layout.view(),
                .dtype = dtype,
                .device = memory.info.block.device,
                .owner = std::move(memory.owner)},
        layout_(layout),
        info_(memory.info) {}

  /// New memory with undefined elements, on the thread's current stream. The item size of the
  /// request is that of `dtype`; without names the dimensions get default names. Errors: kValue for
  /// an invalid request; kMemory, naming the request; kDeviceUnavailable.
  static absl::StatusOr<Array> empty(LayoutRequest request, const DType& dtype = {},
                                     const ArrayOptions& options = {});
  /// As `empty`, for a layout that is planned already, with its names.
  static absl::StatusOr<Array> allocate(const Layout& layout, const DType& dtype,
                                        const ArrayOptions& options = {});
  /// The memory alone; `Array(memory, layout, dtype)` is the array.
  static absl::StatusOr<ArrayMemory> allocate_memory(const Layout& layout, const DType& dtype,
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
  /// An array over `elements`, in C order or, with `given.layout`, in another order without
  /// padding. Read-only if T is const. `given` must have the shape. The caller keeps the elements
  /// alive, or `owner` does. kValue if the span has another number of elements than the shape.
  template <class T>
    requires Element<std::remove_const_t<T>>
  static absl::StatusOr<Array> from(std::span<T> elements, const LayoutRequest& given,
                                    Owner owner = {}) {
    return from_elements(std::as_bytes(elements), element_name<std::remove_const_t<T>>(),
                         std::is_const_v<T>, given, std::move(owner));
  }

  /// An array over the elements of an mdspan, on the host: any strides, read-only if they are
  /// const. `given` adds what an mdspan does not have. The caller keeps the elements alive, or
  /// `owner` does. Errors: those of `describe` and of `from` for memory.
  template <Mdspan M>
  static absl::StatusOr<Array> from(const M& span, const LayoutRequest& given = {},
                                    Owner owner = {}) {
    using T = typename M::element_type;
    StridedView view{.shape = Extents(M::rank(), 0),
                     .strides_bytes = Extents(M::rank(), 0),
                     .itemsize_bytes = sizeof(T)};
    for (std::size_t axis = 0; axis < M::rank(); ++axis) {
      const int at = static_cast<int>(axis);
      view.shape[at] = static_cast<std::int64_t>(span.extent(axis));
      view.strides_bytes[at] = static_cast<std::int64_t>(span.stride(axis)) * view.itemsize_bytes;
    }
    return from_strided(span.data_handle(), std::is_const_v<T>, view,
                        element_name<std::remove_const_t<T>>(), given, std::move(owner));
  }

  inline const BufferDescriptor& memory() const { return memory_; }
  inline const Layout& layout() const { return layout_; }
  inline const ArrayInfo& info() const { return info_; }
  inline const Extents& shape() const { return layout_.shape(); }
  /// The stream that orders the work on the memory.
  StreamHandle stream() const;

  /// Becomes an array in new memory, as by the constructor. For libraries.
  void reset(ArrayMemory&& memory, const Layout& layout, const DType& dtype) {
    memory_.block = memory.block;
    memory_.view = layout.view();
    memory_.dtype = dtype;
    memory_.readonly = false;
    memory_.device = memory.info.block.device;
    memory_.owner = std::move(memory.owner);
    layout_ = layout;
    info_ = memory.info;
  }

  /// For the code that makes the array: it keeps `owner` alive, and not what it kept; or it has
  /// another info.
  void set_owner(Owner owner) { memory_.owner = std::move(owner); }
  void set_info(const ArrayInfo& info) { info_ = info; }
  /// The same elements, read-only.
  Array as_readonly() const;

  /// The view that `map`, made for this shape, describes.
  Array view(const IndexMap& map) const;
  /// The view without the halo.
  Array domain_view() const;
  /// The same memory with another halo. The alignment stays. kValue if the halo does not fit.
  absl::StatusOr<Array> with_halo(const Halo& halo) const;

  /// A request for new memory with this layout.
  LayoutRequest request() const;
  /// A copy of layout and elements in new memory of `kind`, by default that of this array.
  absl::StatusOr<Array> copy(std::optional<MemoryKind> kind = std::nullopt) const;
  /// Copies the elements of `source`, broadcast to this shape and converted to this type. The
  /// arrays may overlap. Accesses to host memory are complete at return. Between arrays of a device
  /// the copy is enqueued on this array's stream; a conversion goes through the host, and is
  /// complete. Errors: kType as check_copied_type; kValue if shapes do not fit, or if this array is
  /// read-only; kDeviceUnavailable for memory that no device knows; those of the device.
  absl::Status copy_from(const Array& source) const;
  /// Writes `element`, of the item size, to every element. On a device it is enqueued on the
  /// array's stream. Errors: kValue if this array is read-only; those of the device.
  absl::Status fill(std::span<const std::byte> element) const;
  /// Waits until the work on the memory that the array's stream has is done. Nothing for host
  /// memory and for memory that no device knows.
  absl::Status wait() const;

  /// The digest of the domain (gridbuf.transfer), which layout, padding, halo and memory do not
  /// change. Indices count from the start of a dimension, or else from the first point of the
  /// domain. Elements of a device, and of the opposite byte order, are copied first. Errors: those
  /// of that copy.
  absl::StatusOr<Digest> digest() const;

  /// The elements, on the host. Errors: kType unless T is the element type; kValue for read-only
  /// memory, unless T is const; kNoSuchBuffer for memory that the host cannot read.
  template <class T>
  absl::StatusOr<Elements<T>> elements() const {
    absl::Status status = check_access(element_name<std::remove_const_t<T>>(), std::is_const_v<T>);
    if (!status.ok()) return status;
    return Elements<T>(memory_);
  }

 private:
  static absl::StatusOr<Array> filled(const LayoutRequest& request, std::string_view dtype,
                                      std::span<const std::byte> element,
                                      const ArrayOptions& options);
  static absl::StatusOr<Array> from_elements(std::span<const std::byte> elements,
                                             std::string_view dtype, bool readonly,
                                             LayoutRequest given, Owner owner);
  static absl::StatusOr<Array> from_strided(const void* first, bool readonly,
                                            const StridedView& view, std::string_view dtype,
                                            const LayoutRequest& given, Owner owner);
  absl::Status check_writable() const;
  absl::Status check_access(std::string_view dtype, bool reads_only) const;
  absl::Status copy_by_device(const Array& source) const;
  absl::Status convert_by_host(const Array& source) const;
  DeviceDriver* driver() const;

  BufferDescriptor memory_;
  Layout layout_;
  ArrayInfo info_;
};

// A Buffer or a Storage holds one; the allocators of Python and the C library keep short blocks.
static_assert(sizeof(Array) <= 1024);

/// With memory_of and apply, the operations of gridbuf.layout.view (`subscript`, `slice`,
/// `transpose`, …) take and return arrays.
inline const StridedView& memory_of(const Array& array) { return array.memory().view; }
/// The view of the array that the map gives.
Array apply(const IndexMap& map, const Array& array);

}  // namespace gridbuf
