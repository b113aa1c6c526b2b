#include "conformance/cc/wrong_producers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cc/catalogue.h"
#include "conformance/cc/reference.h"

namespace gridbuf::conformance {
namespace {

using Make = std::function<Answer(const Plan&)>;

abi::Tensor& tensor_of(ReferenceTensor& made) { return made.managed.dl_tensor; }

// The strict producer with its tensor changed afterwards.
Make changed(std::function<void(ReferenceTensor&, const Plan&)> change) {
  return [change = std::move(change)](const Plan& plan) -> Answer {
    const std::string reason = reason_to_decline(plan);
    if (!reason.empty()) return Unsupported{reason};
    ReferenceTensor* made = make_reference(plan, lay_out(plan));
    change(*made, plan);
    return &made->managed;
  };
}

// The strict producer with its layout changed before the array is made.
Make laid_out(std::function<void(ReferenceLayout&, const Plan&)> change) {
  return [change = std::move(change)](const Plan& plan) -> Answer {
    const std::string reason = reason_to_decline(plan);
    if (!reason.empty()) return Unsupported{reason};
    ReferenceLayout layout = lay_out(plan);
    change(layout, plan);
    return &make_reference(plan, layout)->managed;
  };
}

// The strict producer of another plan.
Make replanned(std::function<void(Plan&, const Plan&)> change) {
  return laid_out([change = std::move(change)](ReferenceLayout& layout, const Plan& plan) {
    Plan other = plan;
    change(other, plan);
    layout = lay_out(other);
  });
}

// ---- Memory that outlives its tensor. ----

void put_into_a_read_only_page(ReferenceTensor& made, const Plan& plan) {
  constexpr std::size_t kPageBytes = 4096;
  static void* page = mmap(nullptr, kPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::vector<std::byte> content = plan.content();
  if (content.empty() || content.size() > kPageBytes) return;
  mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
  std::memcpy(page, content.data(), content.size());
  mprotect(page, kPageBytes, PROT_READ);
  tensor_of(made).data = page;
}

// Its memory belongs to another object, which is never freed here.
Answer constant_without_deleter(const Plan& plan) {
  static ReferenceTensor* constant = nullptr;
  if (plan.name != "shape_2") return Unsupported{"one constant"};
  if (constant == nullptr) {
    constant = make_reference(plan, lay_out(plan));
    constant->managed.deleter = nullptr;
  }
  return &constant->managed;
}

// ---- Legacy tensors. ----

struct Legacy {
  abi::Managed managed;
  ReferenceTensor* inner;
};

void delete_legacy(abi::Managed* self) {
  auto* legacy = reinterpret_cast<Legacy*>(self);
  legacy->inner->managed.deleter(&legacy->inner->managed);
  delete legacy;
}

Answer make_legacy(const Plan& plan) {
  const std::string reason = reason_to_decline(plan);
  if (!reason.empty() || plan.readonly) return Unsupported{"legacy tensors are native, writable"};
  ReferenceTensor* inner = make_reference(plan, lay_out(plan));
  auto* legacy = new Legacy{{inner->managed.dl_tensor, nullptr, &delete_legacy}, inner};
  return &legacy->managed;
}

// ---- The table. ----

constexpr Declares kAll = Reference::kDeclares;
constexpr Declares kNothing = {};

void add_struct(std::vector<WrongProducer>& list) {
  list.push_back({{"VersionIsGarbage", kAll,
                   changed([](auto& made, auto&) { made.managed.version = {0xDEADBEEF, 1}; })},
                  {"DL-01"}});
  list.push_back({{"MajorVersionTwo", kAll,
                   changed([](auto& made, auto&) { made.managed.version.major = 2; })},
                  {"DL-02"}});
  list.push_back(
      {{"StrayFlag", kNothing, changed([](auto& made, auto&) { made.managed.flags |= 128; })},
       {},
       {"DL-03"}});
  list.push_back({{"ReadOnlyMemorySaidToBeWritable", kNothing, changed(put_into_a_read_only_page)},
                  {"DL-04"}});
  list.push_back(
      {{"PaddedFloat", kNothing, changed([](auto& made, auto&) { made.managed.flags |= 4; })},
       {},
       {"DL-06"}});
}

void add_shapes(std::vector<WrongProducer>& list) {
  list.push_back(
      {{"NoShape", kAll, changed([](auto& made, auto&) { tensor_of(made).shape = nullptr; })},
       {"DL-07"}});
  list.push_back({{"NegativeExtent", kAll, changed([](auto& made, auto&) {
                     if (!made.shape.empty()) made.shape[0] = -1;
                   })},
                  {"DL-07"}});
  list.push_back({{"NullStridesFromVersion12", kNothing,
                   changed([](auto& made, auto&) { tensor_of(made).strides = nullptr; })},
                  {"DL-08"}});
  list.push_back({{"NullStridesBeforeVersion12", kNothing, changed([](auto& made, auto&) {
                     tensor_of(made).strides = nullptr;
                     made.managed.version = {1, 1};
                   })},
                  {}});
  list.push_back({{"StridesInBytes", kAll, changed([](auto& made, const Plan& plan) {
                     for (std::int64_t& stride : made.strides) stride *= plan.itemsize_bytes;
                   })},
                  {"DL-09"}});
  list.push_back({{"StrideWithoutItsSign", kAll, changed([](auto& made, auto&) {
                     for (std::int64_t& stride : made.strides) {
                       if (stride < 0) stride = (std::int64_t{1} << 61) + stride;
                     }
                   })},
                  {"DL-14"}});
  list.push_back({{"ShapesInOneStaticPlace", kNothing, changed([](auto& made, auto&) {
                     static std::int64_t shared[64];
                     std::ranges::copy(made.shape, shared);
                     tensor_of(made).shape = shared;
                   })},
                  {"DL-21"}});
}

void add_memory(std::vector<WrongProducer>& list) {
  list.push_back({{"OffsetThatIsInDataAlready", kAll, changed([](auto& made, const Plan& plan) {
                     const auto itemsize = static_cast<std::uint64_t>(plan.itemsize_bytes);
                     tensor_of(made).byte_offset = itemsize;
                   })},
                  {"DL-10"}});
  list.push_back({{"MemoryOfEmptyTensors", kNothing, changed([](auto& made, auto&) {
                     static std::byte somewhere{};
                     auto& data = tensor_of(made).data;
                     if (data == nullptr) data = &somewhere;
                   })},
                  {},
                  {"DL-12"}});
  list.push_back({{"ScalarWithoutMemory", kAll, changed([](auto& made, auto&) {
                     if (tensor_of(made).ndim == 0) tensor_of(made).data = nullptr;
                   })},
                  {"DL-13"}});
  list.push_back({{"WrappedOffset", kAll, changed([](auto& made, auto&) {
                     if (tensor_of(made).data == nullptr) return;
                     tensor_of(made).data = static_cast<std::byte*>(tensor_of(made).data) + 8;
                     tensor_of(made).byte_offset = static_cast<std::uint64_t>(-8);
                   })},
                  {"DL-24"}});
  list.push_back({{"ElementsWithoutMemory", kAll, changed([](auto& made, auto&) {
                     if (tensor_of(made).ndim > 0) tensor_of(made).data = nullptr;
                   })},
                  {"DL-27"}});
}

void add_types_and_devices(std::vector<WrongProducer>& list) {
  list.push_back({{"BoolOfOneBit", kAll, changed([](auto& made, const Plan& plan) {
                     if (plan.dtype == "bool") tensor_of(made).dtype.bits = 1;
                   })},
                  {"DL-15"}});
  list.push_back({{"SwappedBytesAsNative", kAll,
                   [](const Plan& plan) -> Answer {
                     if (!plan.dlpack) return Unsupported{"no word"};
                     return &make_reference(plan, lay_out(plan))->managed;
                   }},
                  {"GT-20"},
                  {"DL-16"}});
  list.push_back({{"UnknownDevice", kAll,
                   changed([](auto& made, auto&) { tensor_of(made).device.device_type = 77; })},
                  {"DL-17"}});
  list.push_back({{"NewestDevice", kAll, changed([](auto& made, auto&) {
                     tensor_of(made).device.device_type = device_types().back();
                   })},
                  {"GT-20"}});
  list.push_back({{"NewestTypeCode", kAll, changed([](auto& made, const Plan& plan) {
                     auto& code = tensor_of(made).dtype.code;
                     if (plan.dtype == "float32") {
                       code = static_cast<std::uint8_t>(type_code_count() - 1);
                     }
                   })},
                  {"GT-20"}});
  list.push_back({{"UnknownTypeCode", kAll, changed([](auto& made, const Plan& plan) {
                     auto& code = tensor_of(made).dtype.code;
                     if (plan.dtype == "float32") code = 200;
                   })},
                  {"DL-15"}});
  list.push_back({{"HostMemoryOfDeviceThree", kNothing,
                   changed([](auto& made, auto&) { tensor_of(made).device.device_id = 3; })},
                  {},
                  {"DL-17"}});
  list.push_back({{"LanesThatDoNotCount", kAll, changed([](auto& made, const Plan& plan) {
                     if (plan.dtype == "float32") tensor_of(made).dtype.lanes = 4;
                   })},
                  {"DL-30"}});
}

void add_life(std::vector<WrongProducer>& list) {
  list.push_back({{"DeleterThatIsNotCode", kAll, changed([](auto& made, auto&) {
                     static std::int64_t data = 0;
                     using Deleter = void (*)(abi::ManagedVersioned*);
                     made.managed.deleter = reinterpret_cast<Deleter>(&data);
                   })},
                  {"DL-19"}});
  list.push_back({{"DeleterThatFreesNothing", kAll,
                   changed([](auto& made, auto&) { made.managed.deleter = [](auto*) {}; })},
                  {"DL-19"}});
  list.push_back({{"ConstantWithoutDeleter", kNothing, constant_without_deleter}, {}});
  list.push_back({{"LegacyTensors", kNothing, make_legacy}, {}});
}

void add_plans(std::vector<WrongProducer>& list) {
  list.push_back({{"FloatsForDoubles", kAll, changed([](auto& made, const Plan& plan) {
                     if (plan.dtype == "float64") tensor_of(made).dtype.bits = 32;
                   })},
                  {"GT-20"}});
  list.push_back(
      {{"Throwing", kAll, [](const Plan&) -> Answer { throw std::runtime_error("not today"); }},
       {"GT-20"}});
  list.push_back(
      {{"ReturningNothing", kAll,
        [](const Plan&) -> Answer { return static_cast<abi::ManagedVersioned*>(nullptr); }},
       {"GT-20"}});
  list.push_back({{"PromiseThatIsNeverKept", kAll,
                   [](const Plan& plan) -> Answer {
                     if (!plan.layout.empty()) return Unsupported{"C order only"};
                     return Reference::make(plan);
                   }},
                  {"GT-20"}});
  list.push_back({{"ContentInAnotherOrder", kNothing, changed([](auto& made, const Plan& plan) {
                     if (plan.nbytes() == 0) return;
                     auto* first = static_cast<std::byte*>(tensor_of(made).data);
                     std::reverse(first, first + plan.nbytes());
                   })},
                  {"XA-08"}});
}

void add_placement(std::vector<WrongProducer>& list) {
  list.push_back({{"MisplacedAlignedElement", kAll, laid_out([](auto& layout, const Plan& plan) {
                     if (plan.alignment_size > 1) layout.misplaced_bytes = 1;
                   })},
                  {"GT-16"}});
  list.push_back({{"InversePermutation", kAll, replanned([](Plan& inverse, const Plan& plan) {
                     for (std::size_t axis = 0; axis < plan.layout.size(); ++axis) {
                       const auto rank = static_cast<std::size_t>(plan.layout[axis]);
                       inverse.layout[rank] = static_cast<int>(axis);
                     }
                   })},
                  {"GT-17"}});
  list.push_back({{"RowsWithoutPadding", kAll,
                   replanned([](Plan& unpadded, const Plan&) { unpadded.alignment_size = 1; })},
                  {"GT-22"}});
  list.push_back({{"PaddingThatVaries", kAll, laid_out([](auto& layout, const Plan& plan) {
                     static int calls = 0;
                     const bool is_odd = ++calls % 2 == 1;
                     const bool is_plain = plan.alignment_size == 1 && plan.layout.empty();
                     if (!is_odd || !is_plain || plan.shape.size() < 2) return;
                     const std::size_t last = plan.shape.size() - 1;
                     for (std::size_t axis = 0; axis < last; ++axis) {
                       layout.strides_bytes[axis] *= 2;
                     }
                   })},
                  {"GT-23"}});
}

}  // namespace

const std::vector<WrongProducer>& wrong_producers() {
  static const std::vector<WrongProducer> made = [] {
    std::vector<WrongProducer> list = {{{"Reference", kAll, &Reference::make}, {}}};
    for (const auto add : {add_struct, add_shapes, add_memory, add_types_and_devices, add_life,
                           add_plans, add_placement}) {
      add(list);
    }
    return list;
  }();
  return made;
}

}  // namespace gridbuf::conformance
