// The fields of a tensor, and the memory that they describe, read only after a check of the memory
// map.
//
// Measuring is one step and judging another: no check follows an address, and an address is
// followed here only where the system says that it is mapped.
#ifndef GRIDBUF_CONFORMANCE_CC_MEASURE_H_
#define GRIDBUF_CONFORMANCE_CC_MEASURE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cc/dlpack_abi.h"
#include "conformance/cc/memory.h"
#include "conformance/cc/producer.h"

namespace gridbuf::conformance {

using Bytes = std::vector<std::byte>;

/// The bytes, relative to the first element, that any index reaches: [lowest, highest).
struct Hull {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
};

struct Info {
  bool map_known = false;
  bool struct_mapped = false;
  bool versioned = false;
  abi::Version version{};
  std::uint64_t flags = 0;
  abi::Tensor tensor{};
  std::uintptr_t deleter = 0;
  bool deleter_is_code = false;
  bool shape_mapped = false;    // or there are no dimensions
  bool strides_mapped = false;  // or strides are NULL, or there are no dimensions
  std::vector<std::int64_t> shape;
  std::optional<std::vector<std::int64_t>> strides_elements;  // nothing: NULL

  bool has_elements = false;
  std::int64_t itemsize_bytes = 0;
  std::vector<std::int64_t> strides_bytes;  // NULL strides filled in; empty if they overflow
  std::optional<Hull> hull;                 // nothing if it leaves 64 bits, or without elements
  std::uintptr_t first_element = 0;
  bool hull_mapped = false;
  bool hull_writable = false;

  std::optional<Bytes> walk;           // all elements in row-major order, read as the tensor says
  std::optional<Bytes> walk_in_bytes;  // the same with strides taken for bytes
  std::optional<Bytes> walk_at_data;   // the same without byte_offset

  /// Whether the rest of the struct may be believed enough to be followed (DL-01, DL-02, DL-07).
  bool is_plausible() const;
  /// Whether the major version is one whose fields after the deleter are known (DL-02).
  bool is_readable() const { return !versioned || version.major == 1; }
  /// Whether shape and strides are there, so that an array is described at all (DL-07).
  bool is_described() const;
};

/// Reads a tensor that a producer has handed out. Follows nothing that is not mapped.
Info measure(const Answer& answer);

/// Why what a tensor points to is not what it was when it was measured; empty if it is.
std::string changed_since(const Info& before, const Answer& answer);

/// Calls the deleter on a separate thread, if it is not NULL and points to code.
void dispose(const Answer& answer, const Info& info);

}  // namespace gridbuf::conformance

#endif  // GRIDBUF_CONFORMANCE_CC_MEASURE_H_
