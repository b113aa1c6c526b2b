// gridbuf.hpp: arrays and storages for C++17, on the C interface of gridbuf.h. Header only; link
// libgridbuf.
//
// An `array<T>` and a `storage<T>` own one handle each, and release it. Views and copies are new
// objects that share the memory or copy it. A failed call throws `gridbuf::error`, with the status
// and the text of the C interface.
//
//   gridbuf::options wanted;
//   wanted.shape = {64, 64, 80}, wanted.halo = {{3, 3}, {3, 3}, {0, 0}}, wanted.backend = "gt:gpu";
//   const gridbuf::storage<double> field(wanted);
//   const auto t = field.read_write(gridbuf::side::host);  // t.data(), t.extent(0), t.stride(0)
//   t(3, 3, 0) = 1.5;
//
// `t.as<M>()` is an mdspan with a strided layout. The header does not include one: M is any class
// with its constructors, such as std::mdspan<double, std::dextents<std::size_t, 3>,
// std::layout_stride> or that of Kokkos.
#ifndef GRIDBUF_HPP_
#define GRIDBUF_HPP_

#include <algorithm>
#include <array>
#include <cassert>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gridbuf.h"

namespace gridbuf {

/// A failed call. `what` has the value, its bound and the remedy.
class error : public std::runtime_error {
 public:
  error(gridbuf_status status, const std::string& text)
      : std::runtime_error(text), status_(status) {}
  /// GRIDBUF_VALUE, …
  gridbuf_status status() const noexcept { return status_; }

 private:
  gridbuf_status status_;
};

/// Throws `error` unless the status is GRIDBUF_OK.
inline void check(gridbuf_status status) {
  if (status != GRIDBUF_OK) throw error(status, gridbuf_last_error());
}

/// A side of a storage.
enum class side : std::int32_t { host = GRIDBUF_HOST, device = GRIDBUF_DEVICE };

/// The name of an element type: "float64", "int32", "bool", "complex64".
template <class T>
constexpr const char* dtype_name() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, bool>)
    return "bool";
  else if constexpr (std::is_same_v<U, std::complex<float>>)
    return "complex64";
  else if constexpr (std::is_same_v<U, std::complex<double>>)
    return "complex128";
  else if constexpr (std::is_floating_point_v<U> && (sizeof(U) == 4 || sizeof(U) == 8))
    return sizeof(U) == 4 ? "float32" : "float64";
  else {
    static_assert(std::is_integral_v<U> && sizeof(U) <= 8,
                  "gridbuf has no element type for this C++ type");
    constexpr const char* names[2][4] = {{"uint8", "uint16", "uint32", "uint64"},
                                         {"int8", "int16", "int32", "int64"}};
    return names[std::is_signed_v<U>][sizeof(U) == 1   ? 0
                                      : sizeof(U) == 2 ? 1
                                      : sizeof(U) == 4 ? 2
                                                       : 3];
  }
}

/// The parameters of gridbuf_options; empty and 0 are the defaults. The element type is the
/// template's.
struct options {
  std::vector<std::int64_t> shape;
  std::string backend;
  std::vector<std::string> dims;
  std::vector<std::int32_t> dim_kinds;
  std::vector<std::array<std::int64_t, 2>> halo;  ///< lower and upper of each dimension
  std::vector<std::int32_t> layout;
  std::vector<std::int64_t> aligned_index;
  std::int64_t alignment_bytes = 0;
  std::int32_t memory = 0;
  std::int32_t kind = 0;
  std::uint32_t flags = 0;
  std::vector<std::int32_t> device_layout;
  std::int64_t device_alignment_bytes = 0;
};

/// One item of a subscript: an index, a slice, a new axis or `ellipsis`.
struct item : gridbuf_item {
  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
  item(Integer index)
      : gridbuf_item{GRIDBUF_INDEX_AT, 0, static_cast<std::int64_t>(index), 0, 0} {}  // NOLINT
  item(const gridbuf_item& made) : gridbuf_item(made) {}                              // NOLINT
};
/// start:stop:step as in Python; without an end, up to the end.
inline item slice(std::optional<std::int64_t> start = {}, std::optional<std::int64_t> stop = {},
                  std::int64_t step = 1) {
  return gridbuf_item{GRIDBUF_SLICE, 0, start.value_or(GRIDBUF_NONE), stop.value_or(GRIDBUF_NONE),
                      step};
}
inline const gridbuf_item new_axis = {GRIDBUF_NEW_AXIS, 0, 0, 0, 0};
inline const gridbuf_item ellipsis = {GRIDBUF_ELLIPSIS, 0, 0, 0, 0};

namespace detail {

/// Throws unless the elements are of type T.
template <class T>
const gridbuf_info& checked_info(const gridbuf_info& info) {
  if (std::strcmp(info.dtype, dtype_name<T>()) == 0) return info;
  throw error(GRIDBUF_TYPE, "the element type is " + std::string(info.dtype) + ", but must be " +
                                dtype_name<T>() + " for this class; use its element type");
}

}  // namespace detail

/// The elements on one side, by index. Does not own the memory. Strides are in elements. With the
/// rank in the type, a view needs no allocation.
template <class T, int static_rank = -1>
class view {
 public:
  view(T* data, const gridbuf_info& info)
      : view(data, detail::checked_info<T>(info).ndim, info.shape, info.strides_bytes) {
    for (std::size_t at = lists_.size() / 2; at < lists_.size(); ++at) {
      if (lists_[at] % static_cast<std::int64_t>(sizeof(T)) != 0) {
        throw error(GRIDBUF_VALUE, "a stride is " + std::to_string(lists_[at]) +
                                       " bytes, but must be whole elements; copy the array");
      }
      lists_[at] /= static_cast<std::int64_t>(sizeof(T));
    }
  }
  /// `rank` extents, and strides in elements.
  view(T* data, int rank, const std::int64_t* shape, const std::int64_t* strides)
      : data_(data), rank_(rank) {
    if (static_rank >= 0 && rank != static_rank) wrong_rank(rank, static_rank);
    if constexpr (static_rank < 0) lists_.resize(2 * static_cast<std::size_t>(rank));
    std::copy_n(shape, rank, lists_.begin());
    std::copy_n(strides, rank, lists_.begin() + rank);
  }

  T* data() const noexcept { return data_; }
  int rank() const noexcept { return rank_; }
  /// Both throw for an axis that the view does not have.
  std::int64_t extent(int axis) const { return lists_[checked(axis)]; }
  std::int64_t stride(int axis) const {
    return lists_[static_cast<std::size_t>(rank_) + checked(axis)];
  }

  /// The element at an index, one integer per dimension; another number of integers throws, or with
  /// the rank in the type does not compile. Debug builds check the integers.
  template <class... Index>
  T& operator()(Index... index) const {
    static_assert(static_rank < 0 || static_rank == static_cast<int>(sizeof...(index)),
                  "an element has one index per dimension");
    if (static_rank < 0 && static_cast<int>(sizeof...(index)) != rank_)
      wrong_rank(rank_, static_cast<int>(sizeof...(index)));
    std::int64_t offset = 0;
    std::size_t axis = 0;
    ((assert(static_cast<std::int64_t>(index) >= 0 &&
             static_cast<std::int64_t>(index) < lists_[axis]),
      offset +=
      static_cast<std::int64_t>(index) * lists_[static_cast<std::size_t>(rank_) + axis++]),
     ...);
    return data_[offset];
  }

  /// The elements as an mdspan with a strided layout. Throws if the type has another rank, other
  /// fixed extents, or integers that are too short.
  template <class Mdspan>
  Mdspan as() const {
    using extents = typename Mdspan::extents_type;
    constexpr std::size_t rank = extents::rank();
    if (rank != static_cast<std::size_t>(rank_)) wrong_rank(rank_, static_cast<int>(rank));
    std::array<typename Mdspan::index_type, rank> shape{}, strides{};
    for (std::size_t axis = 0; axis < rank; ++axis) {
      shape[axis] = static_cast<typename Mdspan::index_type>(lists_[axis]);
      strides[axis] = static_cast<typename Mdspan::index_type>(lists_[rank + axis]);
      const std::size_t fixed = extents::static_extent(axis);
      if (static_cast<std::int64_t>(shape[axis]) != lists_[axis] ||
          static_cast<std::int64_t>(strides[axis]) != lists_[rank + axis] ||
          (fixed != static_cast<std::size_t>(-1) && fixed != static_cast<std::size_t>(shape[axis])))
        throw error(GRIDBUF_VALUE,
                    "axis " + std::to_string(axis) + " has the extent " +
                        std::to_string(lists_[axis]) + " and the stride " +
                        std::to_string(lists_[rank + axis]) +
                        ", but must have those that this mdspan can have; use another mdspan");
    }
    return Mdspan(data_, typename Mdspan::mapping_type(extents(shape), strides));
  }

 private:
  [[noreturn]] static void wrong_rank(int found, int wanted) {
    throw error(GRIDBUF_VALUE, "the rank is " + std::to_string(found) + ", but must be " +
                                   std::to_string(wanted) + " here; use a view of that rank");
  }
  std::size_t checked(int axis) const {
    if (axis >= 0 && axis < rank_) return static_cast<std::size_t>(axis);
    throw error(GRIDBUF_INDEX, "axis is " + std::to_string(axis) + ", but must be 0 to " +
                                   std::to_string(rank_ - 1) + "; pass a dimension of the view");
  }

  T* data_;
  int rank_;
  std::conditional_t < static_rank < 0, std::vector<std::int64_t>,
      std::array<std::int64_t, static_rank<0 ? 1 : 2 * static_rank>>
          lists_;  // the shape, then the strides
};

namespace detail {

/// gridbuf_options of `options`, whose lists it refers to.
class c_options {
 public:
  c_options(const options& given, const char* dtype) {
    const std::size_t ndim = given.shape.size();
    made_.ndim = static_cast<std::int32_t>(ndim);
    made_.dtype = dtype;
    made_.shape = given.shape.data();
    made_.memory = given.memory, made_.kind = given.kind, made_.flags = given.flags;
    made_.alignment_bytes = given.alignment_bytes;
    made_.device_alignment_bytes = given.device_alignment_bytes;
    if (!given.backend.empty()) made_.backend = given.backend.c_str();
    for (const std::string& name : given.dims) names_.push_back(name.c_str());
    made_.dims = list("dims", names_, ndim);
    made_.dim_kinds = list("dim_kinds", given.dim_kinds, ndim);
    for (const auto& widths : given.halo) halo_.insert(halo_.end(), widths.begin(), widths.end());
    made_.halo = list("halo", halo_, 2 * ndim);
    made_.layout = list("layout", given.layout, ndim);
    made_.aligned_index = list("aligned_index", given.aligned_index, ndim);
    made_.device_layout = list("device_layout", given.device_layout, ndim);
  }
  c_options(const c_options&) = delete;
  c_options& operator=(const c_options&) = delete;
  const gridbuf_options* get() const noexcept { return &made_; }

 private:
  template <class Value>
  static const Value* list(const char* name, const std::vector<Value>& values, std::size_t length) {
    if (values.empty()) return nullptr;
    if (values.size() == length) return values.data();
    throw error(GRIDBUF_VALUE, std::string(name) + " has " + std::to_string(values.size()) +
                                   " numbers or names, but must have " + std::to_string(length) +
                                   " for this shape; leave it empty for the default");
  }
  gridbuf_options made_ = GRIDBUF_OPTIONS_INIT;
  std::vector<const char*> names_;
  std::vector<std::int64_t> halo_;
};

struct array_deleter {
  void operator()(gridbuf_array* array) const noexcept { gridbuf_array_release(array); }
};
struct storage_deleter {
  void operator()(gridbuf_storage* storage) const noexcept { gridbuf_storage_release(storage); }
};
struct workspace_deleter {
  void operator()(gridbuf_workspace* space) const noexcept { gridbuf_workspace_release(space); }
};

}  // namespace detail

/// Memory on the host or on a device.
template <class T>
class array {
 public:
  /// New memory with undefined elements, unless flags has GRIDBUF_ZEROED.
  explicit array(const options& wanted) {
    gridbuf_array* made = nullptr;
    check(gridbuf_array_create(detail::c_options(wanted, dtype_name<T>()).get(), &made));
    handle_.reset(made);
  }
  /// Takes over a handle. Throws for another element type; the handle is then released.
  explicit array(gridbuf_array* handle) : handle_(handle) { info(); }

  /// Existing memory, which must outlive the array and all that is made of it. Strides are in
  /// elements; empty: dense, in the order of wanted.layout.
  static array wrap(T* data, options wanted, std::vector<std::int64_t> strides = {}) {
    if constexpr (std::is_const_v<T>) wanted.flags |= GRIDBUF_READONLY;
    for (std::int64_t& stride : strides) stride *= static_cast<std::int64_t>(sizeof(T));
    if (!strides.empty() && strides.size() != wanted.shape.size()) {
      throw error(GRIDBUF_VALUE, "strides has " + std::to_string(strides.size()) +
                                     " numbers, but must have " +
                                     std::to_string(wanted.shape.size()) +
                                     " for this shape; leave it empty for dense memory");
    }
    gridbuf_array* made = nullptr;
    check(gridbuf_array_wrap(
        const_cast<std::remove_const_t<T>*>(data), strides.empty() ? nullptr : strides.data(),
        detail::c_options(wanted, dtype_name<T>()).get(), nullptr, nullptr, &made));
    return array(made);
  }
  /// The memory of a tensor of DLPack 1. Takes over the tensor in every case.
  static array from_dlpack(DLManagedTensorVersioned* tensor) {
    gridbuf_array* made = nullptr;
    check(gridbuf_array_from_dlpack(tensor, nullptr, &made));
    return array(made);
  }
  /// A tensor that keeps the memory; call its deleter once.
  DLManagedTensorVersioned* to_dlpack() const {
    DLManagedTensorVersioned* made = nullptr;
    check(gridbuf_array_to_dlpack(get(), &made));
    return made;
  }

  gridbuf_array* get() const noexcept { return handle_.get(); }
  gridbuf_info info() const {
    gridbuf_info found;
    found.struct_bytes = sizeof found;
    check(gridbuf_array_info(get(), &found));
    return detail::checked_info<T>(found);
  }
  /// The elements of host memory. Throws for memory that the host cannot read, and for read-only
  /// memory unless T is const.
  template <int rank = -1>
  gridbuf::view<T, rank> elements() const {
    const gridbuf_info found = info();
    if (found.memory == GRIDBUF_MEMORY_CUDA) {
      throw error(
          GRIDBUF_NO_SUCH_BUFFER,
          "the memory is a device's, but must be readable by the host; copy(GRIDBUF_MEMORY_HOST)");
    }
    if (found.readonly != 0 && !std::is_const_v<T>) {
      throw error(GRIDBUF_VALUE,
                  "the array is read-only, but must be writable; use an array of const elements, "
                  "or copy it");
    }
    const auto address = reinterpret_cast<std::uintptr_t>(found.data);
    if (found.nbytes > 0 && address % alignof(T) != 0) {
      throw error(GRIDBUF_VALUE, "the address is " + std::to_string(address) +
                                     ", but must be a multiple of " + std::to_string(alignof(T)) +
                                     "; copy the array");
    }
    return {static_cast<T*>(found.data), found};
  }

  /// a[items…], by the rules of NumPy.
  array operator[](const std::vector<item>& items) const {
    const std::vector<gridbuf_item> plain(items.begin(), items.end());
    return of(gridbuf_array_view, plain.data(), static_cast<std::int32_t>(plain.size()));
  }
  array operator[](const item& one) const { return (*this)[std::vector<item>{one}]; }
  /// Dimension i is dimension axes[i]; empty reverses them.
  array transpose(const std::vector<std::int32_t>& axes = {}) const {
    if (!axes.empty() && static_cast<std::int32_t>(axes.size()) != info().ndim)
      throw error(GRIDBUF_VALUE, "axes must name each dimension once");
    return of(gridbuf_array_transpose, axes.empty() ? nullptr : axes.data());
  }
  array domain() const { return of(gridbuf_array_domain); }
  array copy(std::int32_t memory = 0) const { return of(gridbuf_array_copy, memory); }
  void copy_from(const array& source) const { check(gridbuf_array_copy_from(get(), source.get())); }
  void fill(const T& value) const { check(gridbuf_array_fill(get(), &value)); }
  void wait() const { check(gridbuf_array_wait(get())); }

 private:
  template <class Function, class... Arguments>
  array of(Function function, Arguments... arguments) const {
    gridbuf_array* made = nullptr;
    check(function(get(), arguments..., &made));
    return array(made);
  }
  std::unique_ptr<gridbuf_array, detail::array_deleter> handle_;
};

/// A buffer on the host, on a device, or on both, which gridbuf keeps equal.
template <class T>
class storage {
 public:
  explicit storage(const options& wanted) {
    gridbuf_storage* made = nullptr;
    check(gridbuf_storage_create(detail::c_options(wanted, dtype_name<T>()).get(), &made));
    handle_.reset(made);
  }
  /// Takes over a handle. Throws for another element type; the handle is then released.
  explicit storage(gridbuf_storage* handle) : handle_(handle) { info(); }
  /// The memory of a host's array, with a buffer on the device if the kind is GRIDBUF_STORAGE_BOTH.
  static storage wrap(const array<T>& host, std::int32_t kind = 0) {
    gridbuf_storage* made = nullptr;
    check(gridbuf_storage_wrap(host.get(), nullptr, kind, nullptr, &made));
    return storage(made);
  }

  gridbuf_storage* get() const noexcept { return handle_.get(); }
  /// Of one side; by default of the host, or of the device if there is only that.
  gridbuf_info info(std::optional<side> of_side = {}) const {
    gridbuf_info found;
    found.struct_bytes = sizeof found;
    gridbuf_status status = gridbuf_storage_info(
        get(), static_cast<std::int32_t>(of_side.value_or(side::host)), &found);
    if (status == GRIDBUF_NO_SUCH_BUFFER && !of_side)
      status = gridbuf_storage_info(get(), GRIDBUF_DEVICE, &found);
    check(status);
    return detail::checked_info<T>(found);
  }

  /// The elements, current on the side. For work on a device use its address and strides only.
  gridbuf::view<const T> read(side where) const { return access<const T>(where, GRIDBUF_READ); }
  /// For writing every element before any is read. After work on a device, call end_write.
  gridbuf::view<T> write(side where) const { return access<T>(where, GRIDBUF_WRITE); }
  /// For reading and writing. After work on a device, call end_write.
  gridbuf::view<T> read_write(side where) const { return access<T>(where, GRIDBUF_READ_WRITE); }
  void end_write(side where) const {
    check(gridbuf_storage_end_write(get(), static_cast<std::int32_t>(where)));
  }
  /// The elements of a side as an array, while which lives they count as modified if `writable`.
  array<T> exported(side where, bool writable) const {
    gridbuf_array* made = nullptr;
    check(gridbuf_storage_array(get(), static_cast<std::int32_t>(where), writable ? 1 : 0, &made));
    return array<T>(made);
  }
  bool is_current(side where) const {
    std::int32_t found = 0;
    check(gridbuf_storage_is_current(get(), static_cast<std::int32_t>(where), &found));
    return found != 0;
  }
  void set_modified(side where) const {
    check(gridbuf_storage_set_modified(get(), static_cast<std::int32_t>(where)));
  }
  void update(side where) const {
    check(gridbuf_storage_update(get(), static_cast<std::int32_t>(where), 0));
  }
  void synchronize() const { check(gridbuf_storage_synchronize(get())); }

  /// How many points of the halo, next to the domain, are valid: lower and upper of each dimension.
  std::vector<std::int64_t> valid_halo() const {
    std::vector<std::int64_t> depths(2 * static_cast<std::size_t>(info().ndim));
    check(gridbuf_storage_valid_halo(get(), depths.data()));
    return depths;
  }
  /// Says that the program has filled the halo, so deep or all of it.
  void mark_halo(const std::vector<std::int64_t>& depths) const {
    if (depths.size() != 2 * static_cast<std::size_t>(info().ndim))
      throw error(GRIDBUF_VALUE, "mark_halo() takes two depths for each dimension");
    check(gridbuf_storage_mark_halo(get(), depths.data()));
  }
  void mark_halo() const { check(gridbuf_storage_mark_halo(get(), nullptr)); }

  storage operator[](const std::vector<item>& items) const {
    const std::vector<gridbuf_item> plain(items.begin(), items.end());
    return of(gridbuf_storage_view, plain.data(), static_cast<std::int32_t>(plain.size()));
  }
  storage operator[](const item& one) const { return (*this)[std::vector<item>{one}]; }
  storage domain() const { return of(gridbuf_storage_domain); }
  storage copy() const { return of(gridbuf_storage_copy); }
  std::array<std::uint64_t, 2> digest() const {
    std::array<std::uint64_t, 2> found{};
    check(gridbuf_storage_digest(get(), found.data()));
    return found;
  }
  void copy_from(const storage& source) const {
    check(gridbuf_storage_copy_from(get(), source.get()));
  }

 private:
  template <class Element>
  gridbuf::view<Element> access(side where, std::int32_t mode) const {
    void* data = nullptr;
    check(gridbuf_storage_access(get(), static_cast<std::int32_t>(where), mode, &data));
    return {static_cast<Element*>(data), info(where)};
  }
  template <class Function, class... Arguments>
  storage of(Function function, Arguments... arguments) const {
    gridbuf_storage* made = nullptr;
    check(function(get(), arguments..., &made));
    return storage(made);
  }
  std::unique_ptr<gridbuf_storage, detail::storage_deleter> handle_;
};

/// Memory for temporaries: a stack of blocks, whose pages are used when they are touched.
class workspace {
 public:
  explicit workspace(std::int64_t limit_bytes) {
    gridbuf_workspace* made = nullptr;
    check(gridbuf_workspace_create(limit_bytes, &made));
    handle_.reset(made);
  }
  gridbuf_workspace* get() const noexcept { return handle_.get(); }

  /// `count` elements that end with the object. The one that was made last ends first.
  template <class T>
  class block {
    static_assert(std::is_trivially_copyable_v<T>, "nothing is constructed or destroyed");

   public:
    block(const workspace& space, std::int64_t count, std::int64_t alignment_bytes = 0)
        : space_(space.get()), count_(count) {
      const bool fits = count >= 0 && count <= INT64_MAX / std::int64_t{sizeof(T)};
      const std::int64_t bytes = fits ? count * std::int64_t{sizeof(T)} : -1;
      check(gridbuf_workspace_push(space_, bytes, alignment_bytes, &data_));
    }
    ~block() { gridbuf_workspace_pop(space_, data_); }
    block(const block&) = delete;
    block& operator=(const block&) = delete;
    T* data() const noexcept { return static_cast<T*>(data_); }
    T* begin() const noexcept { return data(); }
    T* end() const noexcept { return data() + count_; }
    std::int64_t size() const noexcept { return count_; }
    T& operator[](std::int64_t index) const { return data()[index]; }

   private:
    gridbuf_workspace* space_;
    std::int64_t count_;
    void* data_ = nullptr;
  };

  std::int64_t peak_bytes() const {
    std::int64_t peak = 0;
    check(gridbuf_workspace_peak(get(), &peak));
    return peak;
  }
  std::int64_t trim() const {
    std::int64_t freed = 0;
    check(gridbuf_workspace_trim(get(), &freed));
    return freed;
  }

 private:
  std::unique_ptr<gridbuf_workspace, detail::workspace_deleter> handle_;
};

}  // namespace gridbuf

#endif  // GRIDBUF_HPP_
