// What a user sees whose library is wrong: strides in bytes, and a flag that means nothing.
#include <cstdint>

#include "conformance/cc/producer.h"
#include "conformance/cc/reference.h"
#include "conformance/cc/suite.h"

namespace {

namespace gc = gridbuf::conformance;

struct ByteStrides {
  static gc::Answer make(const gc::Plan& plan) {
    if (!gc::reason_to_decline(plan).empty()) return gc::Unsupported{gc::reason_to_decline(plan)};
    gc::ReferenceTensor* made = gc::make_reference(plan, gc::lay_out(plan));
    for (std::int64_t& stride : made->strides) stride *= plan.itemsize_bytes;
    made->managed.flags |= 64;
    return &made->managed;
  }
};

struct Declining {
  static gc::Answer make(const gc::Plan&) { return gc::Unsupported{"not today"}; }
};

}  // namespace

GRIDBUF_CONFORMANCE_SUITE(byte_strides, ByteStrides);
GRIDBUF_CONFORMANCE_SUITE(declining, Declining);
