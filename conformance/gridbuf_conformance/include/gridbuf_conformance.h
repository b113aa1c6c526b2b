// The conformance suite for C++ array libraries with a DLPack export: a class makes the array of
// each plan, one line makes the shared library that the suite loads.
//
//     struct MyArrays {
//       static gridbuf::conformance::Answer make(const gridbuf::conformance::Plan& plan);
//     };
//     GRIDBUF_CONFORMANCE_SUITE(mylib, MyArrays);
//
//     $ gridbuf-conformance check libmylib_conformance.so
//
// C++17, without Python and without a dlpack.h: yours is compared with the standard at compile
// time. The plan crosses the border as a C struct and not as JSON, so that no parser is needed.
#ifndef GRIDBUF_CONFORMANCE_H_
#define GRIDBUF_CONFORMANCE_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gridbuf::conformance {

/// DLPack's word for an element type.
struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

/// Where the elements of a view are in its array: element `index` of the view is
/// element start + Σ index[i] · steps[i] along axes[i]. An axis of -1 is new (its step is 0).
struct View {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> start;
  std::vector<int> axes;
  std::vector<std::int64_t> steps;
};

/// One request for one array. What a plan leaves open (no layout, alignment 1) is yours to choose.
struct Plan {
  std::vector<std::int64_t> shape;  // extents, each ≥ 0
  std::string dtype;                // "float64", "bool", "bfloat16", …
  std::int64_t itemsize_bytes = 0;  // of one element; 1 for elements of less than a byte
  std::optional<DataType> dlpack;   // DLPack's word for `dtype`; nothing if it has none
  bool swapped = false;             // the numbers are in the other byte order
  bool readonly = false;            // writing must be impossible
  bool legacy = false;              // a DLManagedTensor is preferred
  std::vector<int> layout;          // rank of each axis, 0 the largest stride; empty: not asked
  std::int64_t alignment_size = 1;  // bytes that divide the address of the aligned element
  std::vector<std::int64_t> aligned_index;  // that element
  bool has_views = false;                   // the requested tensor is `view` of the array
  View view;
  std::string json;  // the plan as the suite prints it
  std::vector<std::byte> bytes;

  std::int64_t element_count() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }
  std::int64_t nbytes() const { return element_count() * itemsize_bytes; }
  /// The bytes of all elements of the array (not of the view) in row-major order. Each element of
  /// less than a byte has a byte here, and its lowest bits count.
  const std::vector<std::byte>& content() const { return bytes; }
};

/// The answer to a plan that cannot be met: the reason, as one short sentence. It can also be
/// thrown.
struct Unsupported {
  std::string reason;
};

namespace internal {

template <class T, class = void>
struct IsVersioned : std::false_type {};
template <class T>
struct IsVersioned<T, std::void_t<decltype(std::declval<T&>().version.major)>> : std::true_type {};

}  // namespace internal

/// What a library answers: a DLManagedTensorVersioned* or a DLManagedTensor* of its dlpack.h, which
/// becomes the suite's, or the reason why it makes none.
class Answer {
 public:
  Answer(Unsupported unsupported)  // NOLINT: implicit
      : is_unsupported_(true), reason_(std::move(unsupported.reason)) {}

  template <class T>
  Answer(T* tensor)  // NOLINT: implicit
      : is_versioned_(internal::IsVersioned<T>::value), tensor_(tensor) {
    using Tensor = decltype(tensor->dl_tensor);
    static_assert(sizeof(Tensor) == 48 && offsetof(Tensor, device) == 8 &&
                      offsetof(Tensor, ndim) == 16 && offsetof(Tensor, dtype) == 20 &&
                      offsetof(Tensor, shape) == 24 && offsetof(Tensor, strides) == 32 &&
                      offsetof(Tensor, byte_offset) == 40,
                  "DL-01: the DLTensor of dlpack.h");
    if constexpr (internal::IsVersioned<T>::value) {
      static_assert(sizeof(T) == 80 && offsetof(T, version) == 0 && offsetof(T, deleter) == 16 &&
                        offsetof(T, flags) == 24 && offsetof(T, dl_tensor) == 32,
                    "DL-01: version, manager_ctx, deleter, flags, dl_tensor");
    } else {
      static_assert(sizeof(T) == 64 && offsetof(T, dl_tensor) == 0 && offsetof(T, deleter) == 56,
                    "DL-01: dl_tensor, manager_ctx, deleter");
    }
  }

  bool is_unsupported() const { return is_unsupported_; }
  const std::string& reason() const { return reason_; }
  bool is_versioned() const { return is_versioned_; }
  void* tensor() const { return tensor_; }

 private:
  bool is_unsupported_ = false;
  std::string reason_;
  bool is_versioned_ = false;
  void* tensor_ = nullptr;
};

/// What plans may ask: `static constexpr Declares kDeclares = {…};` in the class. Element types
/// that are named, layouts, alignment and views are promises: if every plan with one is declined,
/// GT-20 fails.
struct Declares {
  bool layout = false;           // `layout`: rule GT-17
  bool alignment = false;        // `alignment_size`, `aligned_index`: GT-16, GT-22, GT-23
  bool views = false;            // `view`: strides that are negative, zero, or not dense
  const char* dtypes = nullptr;  // "float64,int4": the element types; null: all of whole bytes
  int min_ndim = 0;
  int max_ndim = 64;
};

// ---- The border to the suite: gridbuf_conformance/producers/shared_library.py has the same
// structs. ----

namespace internal {

struct Order {
  const char* dtype;
  const char* json;
  std::int64_t ndim;
  const std::int64_t* shape;
  const std::int64_t* layout;  // null: not asked
  std::int64_t alignment_size;
  const std::int64_t* aligned_index;
  std::int64_t has_views;
  std::int64_t view_ndim;
  const std::int64_t* view_shape;
  const std::int64_t* view_start;
  const std::int64_t* view_axes;
  const std::int64_t* view_steps;
  const std::byte* content;
  std::int64_t nbytes;
  std::int64_t itemsize_bytes;
  std::int64_t type_code;  // -1: DLPack has no word
  std::int64_t type_bits;
  std::int64_t swapped;
  std::int64_t readonly;
  std::int64_t legacy;
};

enum Result : std::int64_t { kLegacy = 0, kVersioned = 1, kDeclined = -1, kRaised = -2 };

struct Suite {
  std::int64_t order_bytes;  // the suite refuses a library that was built with another header
  const char* name;
  const char* dtypes;
  std::int64_t layout, alignment, views, min_ndim, max_ndim;
  std::int64_t exports_again;  // whether `array` is kept between calls
  // `array` is null at the first call for an array. The text is valid until the thread's next call.
  std::int64_t (*make)(const Order* order, void** array, void** tensor, const char** text);
  void (*drop)(void* array);
  const Suite* next;
};

inline Plan plan_of(const Order& order) {
  const auto list = [](const std::int64_t* first, std::int64_t count) {
    return std::vector<std::int64_t>(first, first + count);
  };
  const auto ints = [](const std::int64_t* first, std::int64_t count) {
    return std::vector<int>(first, first + (first == nullptr ? 0 : count));
  };
  Plan plan;
  plan.shape = list(order.shape, order.ndim);
  plan.dtype = order.dtype;
  plan.itemsize_bytes = order.itemsize_bytes;
  if (order.type_code >= 0) {
    plan.dlpack = DataType{static_cast<std::uint8_t>(order.type_code),
                           static_cast<std::uint8_t>(order.type_bits), 1};
  }
  plan.swapped = order.swapped != 0;
  plan.readonly = order.readonly != 0;
  plan.legacy = order.legacy != 0;
  plan.layout = ints(order.layout, order.ndim);
  plan.alignment_size = order.alignment_size;
  plan.aligned_index = list(order.aligned_index, order.ndim);
  plan.has_views = order.has_views != 0;
  plan.view = {list(order.view_shape, order.view_ndim), list(order.view_start, order.ndim),
               ints(order.view_axes, order.view_ndim), list(order.view_steps, order.view_ndim)};
  plan.json = order.json;
  plan.bytes.assign(order.content, order.content + order.nbytes);
  return plan;
}

template <class Traits, class = void>
struct DeclaresOf {
  static constexpr Declares kValue = {};
};
template <class Traits>
struct DeclaresOf<Traits, std::void_t<decltype(Traits::kDeclares)>> {
  static constexpr Declares kValue = Traits::kDeclares;
};

template <class Traits>
using Made = decltype(Traits::make(std::declval<const Plan&>()));
template <class Traits>
constexpr bool kExportsAgain = !std::is_convertible_v<Made<Traits>, Answer>;

template <class Traits>
Answer answer_of(const Plan& plan, void** array) {
  if constexpr (kExportsAgain<Traits>) {
    if (*array == nullptr) *array = new Made<Traits>(Traits::make(plan));
    return Traits::to_dlpack(*static_cast<Made<Traits>*>(*array), plan);
  } else {
    return Traits::make(plan);
  }
}

template <class Traits>
std::int64_t make(const Order* order, void** array, void** tensor, const char** text) {
  static thread_local std::string reason;
  std::int64_t result = kRaised;
  try {
    const Answer answer = answer_of<Traits>(plan_of(*order), array);
    reason = answer.reason();
    *tensor = answer.tensor();
    result = answer.is_versioned() ? kVersioned : kLegacy;
    if (answer.is_unsupported()) result = kDeclined;
  } catch (const Unsupported& unsupported) {
    reason = unsupported.reason;
    result = kDeclined;
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "an exception that is not a std::exception";
  }
  *text = reason.c_str();
  return result;
}

template <class Traits>
void drop(void* array) {
  if constexpr (kExportsAgain<Traits>) delete static_cast<Made<Traits>*>(array);
}

inline const Suite*& suites() {
  static const Suite* first = nullptr;
  return first;
}

template <class Traits>
bool add(const char* name) {
  constexpr Declares can = DeclaresOf<Traits>::kValue;
  suites() = new Suite{sizeof(Order),         name,          can.dtypes,    can.layout,
                       can.alignment,         can.views,     can.min_ndim,  can.max_ndim,
                       kExportsAgain<Traits>, &make<Traits>, &drop<Traits>, suites()};
  return true;
}

}  // namespace internal
}  // namespace gridbuf::conformance

/// The one function that the suite calls: all suites of this library, the last one first.
extern "C" __attribute__((used, visibility("default"))) inline const void*
gridbuf_conformance_suites() {
  return ::gridbuf::conformance::internal::suites();
}

/// Adds a library's arrays, made by `Traits::make`, under a name.
#define GRIDBUF_CONFORMANCE_SUITE(name, Traits)             \
  [[maybe_unused]] static const bool gridbuf_suite_##name = \
      ::gridbuf::conformance::internal::add<Traits>(#name)

#endif  // GRIDBUF_CONFORMANCE_H_
