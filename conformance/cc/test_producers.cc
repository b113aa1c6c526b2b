// A right producer and wrong ones, for test_shared_library.py: what the suite sees of a C++
// library.
//
// Python's mutants test the rules. These test the exchange: structs that C++ made, C++ deleters and
// exceptions, arrays that move into their tensor, arrays that are exported several times, crashes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "gridbuf_conformance.h"

namespace {

using gridbuf::conformance::Answer;
using gridbuf::conformance::Declares;
using gridbuf::conformance::Plan;
using gridbuf::conformance::Unsupported;
using gridbuf::conformance::View;

// ---- dlpack.h ----

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

// ---- The right producer. ----

// A tensor with all that it points to.
struct Made {
  DLManagedTensorVersioned managed{};
  DLManagedTensor legacy{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<std::byte[]> block;
};

void delete_made(DLManagedTensorVersioned* self) { delete static_cast<Made*>(self->manager_ctx); }
void delete_legacy(DLManagedTensor* self) { delete static_cast<Made*>(self->manager_ctx); }

// Points the structs at this object, after it was made or copied.
Made* owning(std::unique_ptr<Made> made) {
  DLTensor& tensor = made->managed.dl_tensor;
  tensor.shape = made->shape.data();
  tensor.strides = made->strides.data();
  made->managed.manager_ctx = made.get();
  made->managed.deleter = &delete_made;
  made->legacy = {tensor, made.get(), &delete_legacy};
  return made.release();
}

std::vector<std::byte> packed(const Plan& plan) {
  const int bits = plan.dlpack->bits;
  const std::vector<std::byte>& values = plan.content();
  if (bits >= 8) return values;
  std::vector<std::byte> bytes((values.size() * bits + 7) / 8);
  for (std::size_t bit = 0; bit < values.size() * bits; ++bit) {
    const bool is_set = (std::to_integer<int>(values[bit / bits]) >> (bit % bits) & 1) != 0;
    if (is_set) bytes[bit / 8] |= std::byte{1} << (bit % 8);
  }
  return bytes;
}

std::unique_ptr<Made> make_array(const Plan& plan) {
  if (!plan.dlpack) throw Unsupported{"DLPack has no word for " + plan.dtype};
  if (plan.swapped) throw Unsupported{"DLPack has no word for swapped byte order"};
  const std::vector<std::byte> bytes = packed(plan);
  auto made = std::make_unique<Made>();
  made->block = std::shared_ptr<std::byte[]>(new std::byte[bytes.size()]);
  if (!bytes.empty()) std::memcpy(made->block.get(), bytes.data(), bytes.size());

  std::vector<std::int64_t> steps(plan.shape.size(), 1);  // in C order
  for (std::size_t axis = steps.size(); axis-- > 1;) {
    steps[axis - 1] = steps[axis] * plan.shape[axis];
  }
  const View& view = plan.view;
  std::int64_t first = 0;
  for (std::size_t axis = 0; axis < steps.size(); ++axis) first += view.start[axis] * steps[axis];
  made->shape = view.shape;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    const int base = view.axes[axis];
    made->strides.push_back(base < 0 ? 0 : view.steps[axis] * steps[base]);
  }
  const bool is_empty = std::ranges::count(view.shape, 0) > 0;
  made->managed.version = {1, 3};
  made->managed.flags = plan.readonly ? 1 : 0;
  made->managed.dl_tensor = {
      .data = is_empty ? nullptr : made->block.get() + first * plan.itemsize_bytes,
      .device = {1, 0},
      .ndim = static_cast<std::int32_t>(view.shape.size()),
      .dtype = {plan.dlpack->code, plan.dlpack->bits, 1},
      .shape = nullptr,
      .strides = nullptr,
      .byte_offset = 0};
  return made;
}

constexpr Declares kNarrow = {.dtypes = "float64,int4,float6_e2m3fn,float4_e2m1fn"};

struct Right {
  static constexpr Declares kDeclares = {.views = true};
  static Answer make(const Plan& plan) { return &owning(make_array(plan))->managed; }
};

struct RightNarrow : Right {
  static constexpr Declares kDeclares = kNarrow;
};

struct RightLegacy {
  static Answer make(const Plan& plan) {
    if (plan.readonly) return Unsupported{"a legacy tensor cannot say that it is read-only"};
    return &owning(make_array(plan))->legacy;
  }
};

// An array that stays with the library and is exported several times, in both forms.
struct RightShared {
  static Made make(const Plan& plan) { return *make_array(plan); }
  static Answer to_dlpack(const Made& array, const Plan& plan) {
    if (plan.legacy && plan.readonly) throw Unsupported{"read-only needs the versioned form"};
    Made* made = owning(std::make_unique<Made>(array));
    if (plan.legacy) return &made->legacy;
    return &made->managed;
  }
};

// ---- Wrong producers: the right one, with its tensor changed. ----

template <void (*change)(Made&, const Plan&)>
struct Changed {
  static constexpr Declares kDeclares = kNarrow;
  static Answer make(const Plan& plan) {
    Made* made = owning(make_array(plan));
    change(*made, plan);
    return &made->managed;
  }
};

void second_major(Made& made, const Plan&) { made.managed.version.major = 2; }
void stray_flag(Made& made, const Plan&) { made.managed.flags |= 128; }
void no_shape(Made& made, const Plan&) { made.managed.dl_tensor.shape = nullptr; }
void byte_strides(Made& made, const Plan& plan) {
  for (std::int64_t& stride : made.strides) stride *= plan.itemsize_bytes;
}
void unknown_device(Made& made, const Plan&) { made.managed.dl_tensor.device.device_type = 77; }
void reversed(Made& made, const Plan& plan) {
  if (plan.dtype == "float64") std::reverse(made.block.get(), made.block.get() + plan.nbytes());
}
void high_bits_first(Made& made, const Plan& plan) {
  if (plan.dtype != "int4") return;
  for (std::size_t byte = 0; byte < (plan.content().size() + 1) / 2; ++byte) {
    made.block[byte] = made.block[byte] << 4 | made.block[byte] >> 4;
  }
}
void five_bits_for_six(Made& made, const Plan& plan) {
  if (plan.dtype == "float6_e2m3fn") made.managed.dl_tensor.dtype.bits = 5;
}
void deleter_frees_nothing(Made& made, const Plan&) {
  made.managed.deleter = [](auto*) {};
}
void deleter_is_data(Made& made, const Plan&) {
  static std::int64_t data = 0;
  made.managed.deleter = reinterpret_cast<void (*)(DLManagedTensorVersioned*)>(&data);
}

// Says that each export is a copy, and exports its own memory.
struct CopiedFlag : RightShared {
  static Answer to_dlpack(const Made& array, const Plan&) {
    Made* made = owning(std::make_unique<Made>(array));
    made->managed.flags |= 2;
    return &made->managed;
  }
};

struct Throwing {
  static Answer make(const Plan&) { throw std::runtime_error("not today"); }
};

struct Nothing {
  static Answer make(const Plan&) { return static_cast<DLManagedTensor*>(nullptr); }
};

struct Crashing {
  static Answer make(const Plan& plan) {
    if (plan.shape.size() == 2) std::abort();
    return Right::make(plan);
  }
};

struct Declining {
  static Answer make(const Plan&) { return Unsupported{"not today"}; }
};

struct BrokenPromise {
  static constexpr Declares kDeclares = {.layout = true};
  static Answer make(const Plan& plan) {
    if (!plan.layout.empty()) return Unsupported{"C order only"};
    return Right::make(plan);
  }
};

}  // namespace

GRIDBUF_CONFORMANCE_SUITE(right, Right);
GRIDBUF_CONFORMANCE_SUITE(right_narrow, RightNarrow);
GRIDBUF_CONFORMANCE_SUITE(right_legacy, RightLegacy);
GRIDBUF_CONFORMANCE_SUITE(right_shared, RightShared);
GRIDBUF_CONFORMANCE_SUITE(second_major, Changed<second_major>);
GRIDBUF_CONFORMANCE_SUITE(stray_flag, Changed<stray_flag>);
GRIDBUF_CONFORMANCE_SUITE(no_shape, Changed<no_shape>);
GRIDBUF_CONFORMANCE_SUITE(byte_strides, Changed<byte_strides>);
GRIDBUF_CONFORMANCE_SUITE(unknown_device, Changed<unknown_device>);
GRIDBUF_CONFORMANCE_SUITE(reversed, Changed<reversed>);
GRIDBUF_CONFORMANCE_SUITE(high_bits_first, Changed<high_bits_first>);
GRIDBUF_CONFORMANCE_SUITE(five_bits_for_six, Changed<five_bits_for_six>);
GRIDBUF_CONFORMANCE_SUITE(deleter_frees_nothing, Changed<deleter_frees_nothing>);
GRIDBUF_CONFORMANCE_SUITE(deleter_is_data, Changed<deleter_is_data>);
GRIDBUF_CONFORMANCE_SUITE(copied_flag, CopiedFlag);
GRIDBUF_CONFORMANCE_SUITE(throwing, Throwing);
GRIDBUF_CONFORMANCE_SUITE(nothing, Nothing);
GRIDBUF_CONFORMANCE_SUITE(crashing, Crashing);
GRIDBUF_CONFORMANCE_SUITE(declining, Declining);
GRIDBUF_CONFORMANCE_SUITE(broken_promise, BrokenPromise);
