// What a C++ array library tells the suite: how to make a DLPack tensor to order.
//
// The order is a `Plan`, the same that Python producers get
// (conformance/vectors/dlpack_plans.json); the answer is a managed tensor of the library's own
// dlpack.h, versioned or legacy, or the reason why it cannot be made. Nothing may be substituted in
// silence (GT-20).
#ifndef GRIDBUF_CONFORMANCE_CC_PRODUCER_H_
#define GRIDBUF_CONFORMANCE_CC_PRODUCER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cc/dlpack_abi.h"

namespace gridbuf::conformance {

/// Where the elements of a view are in its array: element `index` of the view is
/// element start + Σ index[i] · steps[i] along axes[i]. An axis of -1 is new (its step is 0).
struct View {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> start;
  std::vector<int> axes;
  std::vector<std::int64_t> steps;
};

/// One request for one array. The keys are those of the Python suite's plan; what a plan leaves
/// open (no layout, alignment 1, no view) is the producer's to choose.
struct Plan {
  std::string name;                     // of the vector: what a replay names
  std::vector<std::int64_t> shape;      // extents, each ≥ 0
  std::string dtype;                    // "float64", "bool", "bfloat16", …
  std::int64_t itemsize_bytes = 0;      // of one element
  std::optional<abi::DataType> dlpack;  // DLPack's word for `dtype`; nothing if it has none
  bool swapped = false;                 // byteorder "swapped"
  bool readonly = false;                // writing must be impossible
  std::vector<int> layout;              // rank of each axis, 0 the largest stride; empty: not asked
  std::int64_t alignment_size = 1;      // bytes that divide the aligned element's address
  std::vector<std::int64_t> aligned_index;  // that element
  bool has_views = false;                   // the tensor asked for is `view` of the array
  View view;
  std::uint32_t fill = 0;  // seed of the content
  std::vector<std::pair<int, int>>
      numbers;       // (offset, width) in bytes of the numbers in an element
  std::string json;  // the plan as the vector spells it

  std::int64_t element_count() const;
  std::int64_t nbytes() const { return element_count() * itemsize_bytes; }
  /// The bytes of all elements of the array (not of the view) in row-major order.
  std::vector<std::byte> content() const;
};

/// A plan that cannot be met: the reason, as one short sentence.
struct Unsupported {
  std::string reason;
};

template <class T>
concept VersionedTensor = requires(T tensor) {
  tensor.version.major;
  tensor.flags;
  tensor.dl_tensor.byte_offset;
  tensor.deleter;
};

template <class T>
concept LegacyTensor = !VersionedTensor<T> && requires(T tensor) {
  tensor.dl_tensor.byte_offset;
  tensor.manager_ctx;
  tensor.deleter;
};

/// What a producer answers. A tensor becomes the suite's: it calls the deleter, once, on a thread
/// of this producer alone.
class Answer {
 public:
  Answer(Unsupported unsupported) : reason_(std::move(unsupported.reason)) {}  // NOLINT: implicit

  template <VersionedTensor T>
  Answer(T* tensor)  // NOLINT: implicit
      : is_versioned_(true), tensor_(tensor) {
    require_tensor<decltype(tensor->dl_tensor)>();
    static_assert(sizeof(T) == sizeof(abi::ManagedVersioned), "DL-01: the struct of dlpack.h 1.x");
    static_assert(offsetof(T, version) == 0 && offsetof(T, deleter) == 16 &&
                      offsetof(T, flags) == 24 && offsetof(T, dl_tensor) == 32,
                  "DL-01: version, manager_ctx, deleter, flags, dl_tensor");
  }

  template <LegacyTensor T>
  Answer(T* tensor)  // NOLINT: implicit
      : tensor_(tensor) {
    require_tensor<decltype(tensor->dl_tensor)>();
    static_assert(sizeof(T) == sizeof(abi::Managed) && offsetof(T, deleter) == 56,
                  "DL-01: dl_tensor, manager_ctx, deleter");
  }

  bool is_unsupported() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  bool is_versioned() const { return is_versioned_; }
  void* tensor() const { return tensor_; }

 private:
  template <class T>
  static constexpr void require_tensor() {
    static_assert(sizeof(T) == sizeof(abi::Tensor) && offsetof(T, dtype) == 20 &&
                      offsetof(T, shape) == 24 && offsetof(T, strides) == 32 &&
                      offsetof(T, byte_offset) == 40,
                  "DL-01: the DLTensor of dlpack.h");
  }

  std::string reason_;
  bool is_versioned_ = false;
  void* tensor_ = nullptr;
};

/// What a producer may be asked beyond shape, element type and writability. What is declared is a
/// promise: if every plan that uses it is declined, GT-20 fails.
struct Declares {
  bool layout = false;     // `layout`: rules GT-17
  bool alignment = false;  // `alignment_size`, `aligned_index`: GT-16, GT-22, GT-23
  bool views = false;      // `view`: strides that are negative, zero, or not dense
};

/// A producer with its type erased: what the judge works on.
struct Producer {
  std::string name;
  Declares declares;
  std::function<Answer(const Plan&)> make;
};

/// The plans of the vectors, simplest first.
const std::vector<Plan>& plans();

}  // namespace gridbuf::conformance

#endif  // GRIDBUF_CONFORMANCE_CC_PRODUCER_H_
