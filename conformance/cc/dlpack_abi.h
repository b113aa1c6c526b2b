// The structs of dlpack.h as the judge reads them: its own definition, so that it depends neither
// on the header that the judged library was built with, nor on gridbuf's.
//
// Names and order are the standard's (1.x). A producer hands over a struct of *its* dlpack.h; the
// assertions in producer.h compare the two field by field (rule DL-01, at compile time).
#ifndef GRIDBUF_CONFORMANCE_CC_DLPACK_ABI_H_
#define GRIDBUF_CONFORMANCE_CC_DLPACK_ABI_H_

#include <cstddef>
#include <cstdint>

namespace gridbuf::conformance::abi {

struct Device {
  std::int32_t device_type;
  std::int32_t device_id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

struct Managed {
  Tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(Managed* self);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct ManagedVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  Tensor dl_tensor;
};

// The deleter is a function over the struct of the judged library's own dlpack.h: the same bytes,
// but another type to a sanitizer that compares the types of functions.
#if defined(__clang__)
#define GRIDBUF_CONFORMANCE_FOREIGN_CALL __attribute__((no_sanitize("function")))
#else
#define GRIDBUF_CONFORMANCE_FOREIGN_CALL
#endif

// Calls the deleter; it may be null.
template <class ManagedTensor>
GRIDBUF_CONFORMANCE_FOREIGN_CALL void delete_tensor(ManagedTensor* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

static_assert(sizeof(Tensor) == 48 && offsetof(Tensor, shape) == 24);
static_assert(sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80);

inline constexpr std::uint64_t kFlagReadOnly = 1;
inline constexpr std::uint64_t kFlagIsCopied = 2;
inline constexpr std::uint64_t kFlagSubbytePadded = 4;
inline constexpr std::int32_t kHost = 1;

}  // namespace gridbuf::conformance::abi

#endif  // GRIDBUF_CONFORMANCE_CC_DLPACK_ABI_H_
