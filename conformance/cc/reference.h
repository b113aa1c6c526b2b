// The strict producer that the suite tests itself with: every plan that DLPack has words for, in
// plain C++. The deliberately wrong producers are this one with one thing changed.
#ifndef GRIDBUF_CONFORMANCE_CC_REFERENCE_H_
#define GRIDBUF_CONFORMANCE_CC_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cc/dlpack_abi.h"
#include "conformance/cc/producer.h"

namespace gridbuf::conformance {

/// A tensor of this producer, with all that it owns. `managed` is handed out, and deletes this.
struct ReferenceTensor {
  abi::ManagedVersioned managed{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  std::unique_ptr<std::byte[]> block;
};

/// How the reference lays an array out; what the wrong producers change before it is filled.
struct ReferenceLayout {
  std::vector<std::int64_t> strides_bytes;
  std::uint64_t misplaced_bytes = 0;  // how far the aligned element is from where it should be
};

/// Why DLPack cannot say what the plan asks; empty if it can.
std::string reason_to_decline(const Plan& plan);

/// C order or the plan's layout, the contiguous dimension padded to the alignment.
ReferenceLayout lay_out(const Plan& plan);

/// The array of a plan that need not be declined. The caller may change it, and then hands out
/// &result->managed.
ReferenceTensor* make_reference(const Plan& plan, const ReferenceLayout& layout);

/// The strict producer.
struct Reference {
  static constexpr Declares kDeclares = {.layout = true, .alignment = true, .views = true};
  static Answer make(const Plan& plan);
};

}  // namespace gridbuf::conformance

#endif  // GRIDBUF_CONFORMANCE_CC_REFERENCE_H_
