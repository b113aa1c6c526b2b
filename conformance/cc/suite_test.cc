// The suite is tested as the Python one is: producers that are wrong in one thing each, and the
// exact set of rules that each breaks. The strict producer breaks none.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cc/catalogue.h"
#include "conformance/cc/checks.h"
#include "conformance/cc/judge.h"
#include "conformance/cc/producer.h"
#include "conformance/cc/reference.h"
#include "conformance/cc/suite.h"

GRIDBUF_CONFORMANCE_SUITE(reference, Reference);

namespace gridbuf::conformance {
namespace {

using Ids = std::vector<std::string>;
using Make = std::function<Answer(const Plan&)>;
using Change = std::function<void(ReferenceTensor&, const Plan&)>;

Ids broken_by(Make make, const Declares& declares = Reference::kDeclares) {
  return judge({.name = "wrong", .declares = declares, .make = std::move(make)}).failed();
}

// The strict producer with its tensor changed afterwards.
Make changed(Change change) {
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

abi::Tensor& tensor_of(ReferenceTensor& made) { return made.managed.dl_tensor; }

constexpr Declares kNothing = {};

// ---- The suite's own parts. ----

std::uint32_t crc32_of(const std::vector<std::byte>& bytes) {
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

TEST(Plans, ContentIsWhatThePythonSuiteSays) {
  int compared = 0;
  for (const Plan& plan : plans()) {
    if (!plan.dlpack) continue;
    EXPECT_EQ(crc32_of(plan.content()), expected_crc32(plan)) << plan.name;
    ++compared;
  }
  EXPECT_GT(compared, 150);
}

TEST(Catalogue, EveryRuleHasACheckAndATest) {
  std::set<std::string> tests;
  const auto& unit = *::testing::UnitTest::GetInstance();
  for (int suite = 0; suite < unit.total_test_suite_count(); ++suite) {
    const auto& one = *unit.GetTestSuite(suite);
    if (!std::string(one.name()).starts_with("reference/")) continue;
    for (int test = 0; test < one.total_test_count(); ++test) {
      tests.insert(one.GetTestInfo(test)->name());
    }
  }
  EXPECT_EQ(tests.erase("SomethingIsMade"), 1U);
  for (const Rule& rule : rules()) {
    EXPECT_NE(check_of(rule.id), nullptr) << rule.id;
    std::string name = rule.id;
    std::ranges::replace(name, '-', '_');
    EXPECT_EQ(tests.erase(name), 1U) << rule.id;
  }
  EXPECT_TRUE(tests.empty()) << *tests.begin();
}

TEST(Reference, EveryRuleIsJudgedAndHolds) {
  const Report report =
      judge({.name = "reference", .declares = Reference::kDeclares, .make = &Reference::make});
  EXPECT_EQ(report.failed(), Ids{});
  for (const RuleReport& rule : report.rules) {
    // No strict producer has an element of several lanes, or answers a plan of swapped byte order.
    const bool never = rule.rule->id == "DL-30" || rule.rule->id == "DL-16";
    EXPECT_EQ(rule.outcome, never ? Outcome::kUnsupported : Outcome::kPass) << rule.rule->id;
  }
  EXPECT_GT(report.plans_asked, 180);
}

TEST(Reference, LegacyTensorsAreJudgedAsFarAsTheyCanSay) {
  struct Legacy {
    abi::Managed managed;
    ReferenceTensor* inner;
  };
  const Make make = [](const Plan& plan) -> Answer {
    const std::string reason = reason_to_decline(plan);
    if (!reason.empty() || plan.readonly) return Unsupported{"legacy tensors are native, writable"};
    ReferenceTensor* inner = make_reference(plan, lay_out(plan));
    auto* legacy = new Legacy{{inner->managed.dl_tensor, nullptr, nullptr}, inner};
    legacy->managed.deleter = [](abi::Managed* self) {
      auto* mine = reinterpret_cast<Legacy*>(self);
      mine->inner->managed.deleter(&mine->inner->managed);
      delete mine;
    };
    return &legacy->managed;
  };
  const Report report = judge({.name = "legacy", .declares = {}, .make = make});
  EXPECT_EQ(report.failed(), Ids{});
  EXPECT_EQ(report.of("DL-02").outcome, Outcome::kUnsupported);
  EXPECT_EQ(report.of("XA-08").outcome, Outcome::kPass);
}

// ---- Wrong producers: the struct. ----

TEST(Wrong, GarbageInPlaceOfAVersionIsDL01) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) { made.managed.version = {0xDEADBEEF, 1}; })),
            Ids{"DL-01"});
}

TEST(Wrong, AnotherMajorVersionIsDL02) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) { made.managed.version.major = 2; })),
            Ids{"DL-02"});
}

TEST(Wrong, AStrayFlagIsAnAdvisoryOfDL03) {
  const Report report =
      judge({.name = "wrong", .declares = {}, .make = changed([](auto& made, auto&) {
                                                made.managed.flags |= 128;
                                              })});
  EXPECT_EQ(report.failed(), Ids{});
  EXPECT_EQ(report.of("DL-03").outcome, Outcome::kAdvisory);
}

TEST(Wrong, ReadOnlyMemoryThatIsSaidToBeWritableIsDL04) {
  constexpr std::size_t kPageBytes = 4096;
  static void* page = mmap(nullptr, kPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Make make = changed([](ReferenceTensor& made, const Plan& plan) {
    const std::vector<std::byte> content = plan.content();
    if (content.empty() || content.size() > kPageBytes) return;
    mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
    std::memcpy(page, content.data(), content.size());
    mprotect(page, kPageBytes, PROT_READ);
    tensor_of(made).data = page;
  });
  EXPECT_EQ(broken_by(make, kNothing), Ids{"DL-04"});
}

TEST(Wrong, APaddedFloatIsAnAdvisoryOfDL06) {
  const Report report =
      judge({.name = "wrong", .declares = {}, .make = changed([](auto& made, auto&) {
                                                made.managed.flags |= 4;
                                              })});
  EXPECT_EQ(report.failed(), Ids{});
  EXPECT_EQ(report.of("DL-06").outcome, Outcome::kAdvisory);
}

TEST(Wrong, NoShapeIsDL07) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) { tensor_of(made).shape = nullptr; })),
            Ids{"DL-07"});
}

TEST(Wrong, ANegativeExtentIsDL07) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) {
              if (!made.shape.empty()) made.shape[0] = -1;
            })),
            Ids{"DL-07"});
}

TEST(Wrong, NullStridesUnderVersion12AreDL08) {
  EXPECT_EQ(
      broken_by(changed([](auto& made, auto&) { tensor_of(made).strides = nullptr; }), kNothing),
      Ids{"DL-08"});
}

TEST(Right, NullStridesAreFineBeforeVersion12) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) {
                        tensor_of(made).strides = nullptr;
                        made.managed.version = {1, 1};
                      }),
                      kNothing),
            Ids{});
}

TEST(Wrong, StridesInBytesAreDL09) {
  EXPECT_EQ(broken_by(changed([](auto& made, const Plan& plan) {
              for (std::int64_t& stride : made.strides) stride *= plan.itemsize_bytes;
            })),
            Ids{"DL-09"});
}

TEST(Wrong, AnOffsetThatIsInDataAlreadyIsDL10) {
  EXPECT_EQ(broken_by(changed([](auto& made, const Plan& plan) {
              tensor_of(made).byte_offset = static_cast<std::uint64_t>(plan.itemsize_bytes);
            })),
            Ids{"DL-10"});
}

TEST(Wrong, MemoryOfEmptyTensorsIsAnAdvisoryOfDL12) {
  static std::byte somewhere{};
  const Report report =
      judge({.name = "wrong", .declares = {}, .make = changed([](auto& made, auto&) {
                                                if (tensor_of(made).data == nullptr)
                                                  tensor_of(made).data = &somewhere;
                                              })});
  EXPECT_EQ(report.failed(), Ids{});
  EXPECT_EQ(report.of("DL-12").outcome, Outcome::kAdvisory);
}

TEST(Wrong, AScalarWithoutMemoryIsDL13) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) {
              if (tensor_of(made).ndim == 0) tensor_of(made).data = nullptr;
            })),
            (Ids{"DL-13", "DL-14"}));
}

TEST(Wrong, AStrideThatLostItsSignIsDL14) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) {
              for (std::int64_t& stride : made.strides) {
                if (stride < 0) stride = (std::int64_t{1} << 61) + stride;
              }
            })),
            Ids{"DL-14"});
}

TEST(Wrong, ABoolOfOneBitIsDL15) {
  EXPECT_EQ(broken_by(changed([](auto& made, const Plan& plan) {
              if (plan.dtype == "bool") tensor_of(made).dtype.bits = 1;
            })),
            Ids{"DL-15"});
}

TEST(Wrong, SwappedBytesAsNativeOnesAreGT20) {
  const Make make = [](const Plan& plan) -> Answer {
    if (!plan.dlpack) return Unsupported{"no word"};
    return &make_reference(plan, lay_out(plan))->managed;
  };
  EXPECT_EQ(broken_by(make), Ids{"GT-20"});  // and an advisory of DL-16
}

TEST(Wrong, AnUnknownDeviceIsDL17) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) { tensor_of(made).device.device_type = 77; })),
            (Ids{"DL-17", "GT-20"}));
}

TEST(Wrong, HostMemoryOfDeviceThreeIsAnAdvisoryOfDL17) {
  const Report report =
      judge({.name = "wrong", .declares = {}, .make = changed([](auto& made, auto&) {
                                                tensor_of(made).device.device_id = 3;
                                              })});
  EXPECT_EQ(report.failed(), Ids{});
  EXPECT_EQ(report.of("DL-17").outcome, Outcome::kAdvisory);
}

TEST(Wrong, AWrappedOffsetIsDL24) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) {
              if (tensor_of(made).data == nullptr) return;
              tensor_of(made).data = static_cast<std::byte*>(tensor_of(made).data) + 8;
              tensor_of(made).byte_offset = static_cast<std::uint64_t>(-8);
            })),
            Ids{"DL-24"});
}

TEST(Wrong, ElementsWithoutMemoryAreDL27) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) {
              if (tensor_of(made).ndim > 0) tensor_of(made).data = nullptr;
            })),
            Ids{"DL-27"});
}

TEST(Wrong, LanesThatDoNotCountAreDL30) {
  EXPECT_EQ(broken_by(changed([](auto& made, const Plan& plan) {
              if (plan.dtype == "float32") tensor_of(made).dtype.lanes = 4;
            })),
            Ids{"DL-30"});
}

// ---- Wrong producers: life. ----

TEST(Wrong, ADeleterThatIsNoCodeIsDL19) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) {
              static std::int64_t data = 0;
              made.managed.deleter = reinterpret_cast<void (*)(abi::ManagedVersioned*)>(&data);
            })),
            Ids{"DL-19"});
}

TEST(Wrong, ADeleterThatFreesNothingIsDL19) {
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  GTEST_SKIP() << "NOT tested with a sanitizer: its allocator cannot be counted";
#endif
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) { made.managed.deleter = [](auto*) {}; })),
            Ids{"DL-19"});
}

TEST(Right, ATensorWithoutADeleterIsFine) {
  // Its memory belongs to another object, which is never freed here.
  static std::vector<std::unique_ptr<ReferenceTensor>> kept;
  const Make make = [](const Plan& plan) -> Answer {
    if (plan.name != "shape_2") return Unsupported{"one constant"};
    static ReferenceTensor* constant = nullptr;
    if (constant == nullptr) {
      kept.emplace_back(constant = make_reference(plan, lay_out(plan)));
      constant->managed.deleter = nullptr;
    }
    return &constant->managed;
  };
  EXPECT_EQ(broken_by(make, kNothing), Ids{});
}

TEST(Wrong, ShapesInOneStaticPlaceAreDL21) {
  EXPECT_EQ(broken_by(changed([](auto& made, auto&) {
                        static std::int64_t shared[64];
                        std::ranges::copy(made.shape, shared);
                        tensor_of(made).shape = shared;
                      }),
                      kNothing),
            Ids{"DL-21"});
}

// ---- Wrong producers: the plan. ----

TEST(Wrong, FloatsForDoublesAreGT20) {
  EXPECT_EQ(broken_by(changed([](auto& made, const Plan& plan) {
              if (plan.dtype == "float64") tensor_of(made).dtype.bits = 32;
            })),
            Ids{"GT-20"});
}

TEST(Wrong, ThrowingOrReturningNothingIsGT20) {
  EXPECT_EQ(broken_by([](const Plan&) -> Answer { throw std::runtime_error("not today"); }),
            Ids{"GT-20"});
  EXPECT_EQ(
      broken_by([](const Plan&) -> Answer { return static_cast<abi::ManagedVersioned*>(nullptr); }),
      Ids{"GT-20"});
}

TEST(Wrong, APromiseThatIsNeverKeptIsGT20) {
  EXPECT_EQ(broken_by([](const Plan& plan) -> Answer {
              if (!plan.layout.empty()) return Unsupported{"C order only"};
              return Reference::make(plan);
            }),
            Ids{"GT-20"});
}

TEST(Wrong, AnAlignedBlockInPlaceOfAnAlignedElementIsGT16) {
  EXPECT_EQ(broken_by(laid_out([](ReferenceLayout& layout, const Plan& plan) {
              if (plan.alignment_size > 1) layout.misplaced_bytes = 1;
            })),
            Ids{"GT-16"});
}

TEST(Wrong, TheInversePermutationIsGT17) {
  const Make make = [](const Plan& plan) -> Answer {
    if (!reason_to_decline(plan).empty()) return Unsupported{"no word"};
    Plan inverse = plan;
    for (std::size_t axis = 0; axis < plan.layout.size(); ++axis) {
      inverse.layout[static_cast<std::size_t>(plan.layout[axis])] = static_cast<int>(axis);
    }
    return &make_reference(plan, lay_out(inverse))->managed;
  };
  EXPECT_EQ(broken_by(make), Ids{"GT-17"});
}

TEST(Wrong, RowsWithoutPaddingAreGT22) {
  const Make make = [](const Plan& plan) -> Answer {
    if (!reason_to_decline(plan).empty()) return Unsupported{"no word"};
    Plan unpadded = plan;
    unpadded.alignment_size = 1;
    return &make_reference(plan, lay_out(unpadded))->managed;
  };
  EXPECT_EQ(broken_by(make), Ids{"GT-22"});
}

TEST(Wrong, PaddingThatVariesIsGT23) {
  EXPECT_EQ(broken_by(laid_out([](ReferenceLayout& layout, const Plan& plan) {
              static int calls = 0;
              const bool is_odd = ++calls % 2 == 1;
              const bool is_plain = plan.alignment_size == 1 && plan.layout.empty();
              if (!is_odd || !is_plain || plan.shape.size() < 2) return;
              const std::size_t last = plan.shape.size() - 1;
              for (std::size_t axis = 0; axis < last; ++axis) layout.strides_bytes[axis] *= 2;
            })),
            Ids{"GT-23"});
}

TEST(Wrong, ContentInAnotherOrderIsXA08) {
  EXPECT_EQ(broken_by(changed([](auto& made, const Plan& plan) {
                        if (plan.nbytes() > 0) {
                          auto* first = static_cast<std::byte*>(tensor_of(made).data);
                          std::reverse(first, first + plan.nbytes());
                        }
                      }),
                      kNothing),
            Ids{"XA-08"});
}

// ---- What people see. ----

TEST(Text, AFailureSaysRuleExpectedActualPlanAndReplay) {
  const Report report =
      judge({.name = "wrong", .declares = {}, .make = changed([](auto& made, const Plan& plan) {
                                                for (std::int64_t& stride : made.strides)
                                                  stride *= plan.itemsize_bytes;
                                              })});
  EXPECT_EQ(report.of("DL-09").text(),
            "DL-09  MUST  FAIL  on " + std::to_string(report.of("DL-09").plans_failed) + " of " +
                std::to_string(report.of("DL-09").plans_judged) +
                " plans\n"
                "  requirement  strides count elements, not bytes.\n"
                "  expected     strides in elements\n"
                "  actual       (8) reach the elements only when taken as bytes\n"
                "  plan         shape_2  {\"shape\":[2],\"dtype\":\"float64\",\"fill\":1}\n"
                "  replay       GRIDBUF_CONFORMANCE_PLAN='shape_2' in the environment\n"
                "  to fix it    Divide byte strides by itemsize.");
}

TEST(Text, OnePlanCanBeRunAlone) {
  setenv("GRIDBUF_CONFORMANCE_PLAN", "shape_2x3", 1);
  const Report report =
      judge({.name = "reference", .declares = Reference::kDeclares, .make = &Reference::make});
  unsetenv("GRIDBUF_CONFORMANCE_PLAN");
  EXPECT_EQ(report.plans_asked, 1);
  EXPECT_EQ(report.failed(), Ids{});
}

}  // namespace
}  // namespace gridbuf::conformance
