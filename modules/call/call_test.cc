#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.base;
import gridbuf.call;
import gridbuf.layout;

namespace gridbuf {
namespace {

const Dims kIJK{kDimI, kDimJ, kDimK};

FieldRule rule_of(std::string name, const Dims& dims = kIJK) {
  FieldRule rule;
  rule.name = std::move(name);
  rule.dims = dims;
  return rule;
}

/// An array in C order, apart from all others, at an address that is a multiple of 64.
FieldArgument argument_of(const Extents& shape, const Dims& dims = {}, const Halo& halo = {}) {
  const Layout layout =
      make_plan({.shape = shape, .itemsize_bytes = 8, .dims = dims, .halo = halo}).value();
  BufferDescriptor memory;
  static std::uintptr_t address = 0;
  memory.block = reinterpret_cast<std::byte*>(address += 0x100'0000);
  memory.view = layout.view();
  return {.memory = memory, .dims = layout.dims(), .halo = layout.halo()};
}

std::string message_of(const std::vector<FieldRule>& rules,
                       const std::vector<FieldArgument>& arguments,
                       const CallRequest& request = {}) {
  const auto call = bind_call(rules, arguments, request);
  return call.ok() ? "" : std::string(call.status().message());
}

/// The bytes of the view's elements, as offsets.
std::set<std::int64_t> bytes_of(const StridedView& view) {
  std::set<std::int64_t> offsets{view.offset_bytes};
  for (int axis = 0; axis < view.ndim(); ++axis) {
    std::set<std::int64_t> along;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < view.shape[axis]; ++i) {
        along.insert(offset + i * view.strides_bytes[axis]);
      }
    }
    offsets = std::move(along);
  }
  std::set<std::int64_t> bytes;
  for (const std::int64_t offset : offsets) {
    for (std::int64_t i = 0; i < view.itemsize_bytes; ++i) bytes.insert(offset + i);
  }
  return bytes;
}

// Views of one block against the sets of their bytes: of any shape and strides, as of one array.
TEST(BindCall, AFieldThatIsWrittenSharesNoByteWithAnother) {
  std::mt19937_64 random(20261128);
  const auto pick = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  int shared = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::int64_t itemsize_bytes = std::int64_t{1} << pick(4);
    const StridedView whole = make_plan({.shape = {1 + pick(5), 1 + pick(5), 1 + pick(5)},
                                         .itemsize_bytes = itemsize_bytes})
                                  ->view();
    std::vector<FieldRule> rules;
    std::vector<FieldArgument> fields;
    for (const std::string name : {"a", "b"}) {
      StridedView view = whole;
      for (int axis = view.ndim() - 1; axis >= 0; --axis) {
        if (random() % 4 == 0) {
          view.offset_bytes += pick(view.shape[axis]) * view.strides_bytes[axis];
          view.shape.erase(axis);
          view.strides_bytes.erase(axis);
          continue;
        }
        const std::int64_t step = 1 + pick(3);
        const std::int64_t first = pick(view.shape[axis]);
        view.offset_bytes += first * view.strides_bytes[axis];
        view.shape[axis] = pick(8) == 0 ? 0 : 1 + pick((view.shape[axis] - first - 1) / step + 1);
        view.strides_bytes[axis] *= step;
        if (view.shape[axis] > 0 && random() % 3 == 0) {
          view.offset_bytes += (view.shape[axis] - 1) * view.strides_bytes[axis];
          view.strides_bytes[axis] *= -1;
        } else if (random() % 6 == 0) {
          view.strides_bytes[axis] = pick(2) * pick(20);  // of no array that was allocated
        }
      }
      FieldArgument field;
      field.memory.block = reinterpret_cast<std::byte*>(0x10000);
      field.memory.view = view;
      field.memory.readonly = random() % 4 == 0;
      fields.push_back(field);
      rules.push_back(rule_of(name, default_dims(view.ndim())));
      rules.back().is_written = random() % 3 > 0;
    }
    std::vector<std::int64_t> common;
    const std::set<std::int64_t> a = bytes_of(fields[0].memory.view);
    const std::set<std::int64_t> b = bytes_of(fields[1].memory.view);
    std::ranges::set_intersection(a, b, std::back_inserter(common));
    const auto is_written = [&](std::size_t f) {
      return rules[f].is_written && !fields[f].memory.readonly;
    };
    const bool is_error = !common.empty() && (is_written(0) || is_written(1));
    const CallRequest call{.domain = Extents(domain_dims(rules).size(), 0)};
    const std::string message = message_of(rules, fields, call);
    ASSERT_EQ(message.empty(), !is_error)
        << message << to_string(fields[0].memory.view) << to_string(fields[1].memory.view);
    if (is_error) {
      const std::string written = is_written(1) ? "b" : "a";
      EXPECT_NE(message.find("field '" + written + "', all dimensions: its memory is also that of"),
                std::string::npos)
          << message;
      EXPECT_EQ(message_of(rules, fields, {.domain = call.domain, .allow_alias = true}), "");
      ++shared;
    }
  }
  EXPECT_GT(shared, 1000);
}

// [example]
TEST(BindCall, PutsDimensionsInOrderAndFindsOriginAndDomain) {
  const FieldRule u = rule_of("u");
  const FieldRule depth = rule_of("depth", {kDimK});
  // (K, I, J) in memory, with a halo of one point at both ends of I, and two at the end of J.
  const FieldArgument array =
      argument_of({10, 12, 14}, Dims{kDimK, kDimI, kDimJ}, {{0, 0}, {1, 1}, {0, 2}});
  const FieldArgument profile = argument_of({9});
  const auto call = bind_call(std::vector{u, depth}, std::vector{array, profile});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->fields[0].axes, (Axes{1, 2, 0}));
  EXPECT_EQ(call->fields[0].memory.shape, (Extents{12, 14, 10}));
  EXPECT_EQ(call->fields[0].origin, (Extents{1, 0, 0}));
  EXPECT_EQ(call->domain, (Extents{10, 12, 9}));
}
// [/example]

TEST(BindCall, StridesFollowTheDimensions) {
  const auto call = bind_call(std::vector{rule_of("u")},
                              std::vector{argument_of({5, 3, 4}, Dims{kDimK, kDimI, kDimJ})});
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call->fields[0].memory.strides_bytes, (Extents{32, 8, 96}));
  EXPECT_FALSE(call->fields[0].is_in_order);
}

TEST(BindCall, OriginOfTheCallThenOfTheObjectThenTheLowerHaloThenZero) {
  const std::vector<FieldRule> rules{rule_of("u")};
  FieldArgument array = argument_of({9, 9, 9}, {}, {{1, 0}, {2, 0}, {3, 0}});
  const auto origin = [&](const CallRequest& request) {
    return bind_call(rules, {&array, 1}, request)->fields[0].origin;
  };
  EXPECT_EQ(origin({}), (Extents{1, 2, 3}));
  array.origin = Extents{4, 4, 4};
  EXPECT_EQ(origin({}), (Extents{4, 4, 4}));
  EXPECT_EQ(origin({.origin = Extents{5, 5, 5}}), (Extents{5, 5, 5}));
  EXPECT_EQ(origin({.origins = {Extents{6, 6, 6}}, .origin = Extents{5, 5, 5}}),
            (Extents{6, 6, 6}));
  array.origin = std::nullopt;
  array = argument_of({9, 9, 9});
  EXPECT_EQ(origin({}), (Extents{0, 0, 0}));
}

TEST(BindCall, ReachIsLeftOutOfTheDomainAndMustLieInside) {
  FieldRule rule = rule_of("u");
  rule.reach = {{1, 2}, {0, 0}, {0, 0}};
  const std::vector<FieldArgument> arrays{argument_of({9, 9, 9})};
  EXPECT_EQ(bind_call({&rule, 1}, arrays, {.origin = Extents{1, 0, 0}})->domain,
            (Extents{6, 9, 9}));
  EXPECT_NE(message_of({rule}, arrays).find("dimension I: the origin is 0, but must be at least 1"),
            std::string::npos);
  EXPECT_NE(message_of({rule}, arrays, {.origin = Extents{1, 0, 0}, .domain = Extents{7, 1, 1}})
                .find("dimension I: the number of points from its origin, 1, without the 2 read "
                      "beyond the domain is 6, but must be at least the domain's, 7"),
            std::string::npos);
}

TEST(BindCall, AbsentFieldsHaveNoSay) {
  FieldArgument absent;
  absent.is_absent = true;
  const std::vector<FieldRule> rules{rule_of("u", {kDimI}), rule_of("v")};
  const auto call = bind_call(rules, std::vector{argument_of({4}), absent});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->domain, (Extents{4, 1, 1}));
}

TEST(BindCall, EveryErrorNamesFieldDimensionWantedAndFound) {
  const std::vector<FieldRule> one{rule_of("u")};
  const std::vector<FieldArgument> cube{argument_of({3, 4, 5})};
  const auto expect = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect(message_of(one, {argument_of({3, 4})}),
         "field 'u': the number of dimensions is 2, but must be 3");
  expect(message_of(one, {argument_of({3, 4, 5}, Dims{kDimI, kDimJ, Dim::data(0)})}),
         "field 'u', dimension K: its dims is ('I', 'J', '0'), but must be ('I', 'J', 'K')");
  expect(message_of(one, cube, {.origin = Extents{0, 5, 0}}),
         "field 'u', dimension J: the origin is 5, but must be from 0 to its extent, 4");
  expect(message_of(one, cube, {.domain = Extents{3, 4, 6}}), "field 'u', dimension K: ");
  FieldRule vector = rule_of("w", {kDimI, Dim::data(0)});
  vector.data_extents = {3};
  expect(message_of({vector}, {argument_of({8, 2})}),
         "field 'w', dimension 0: its extent is 2, but must be 3");
  FieldArgument other = cube[0];
  other.memory.dtype = DType::from_name("int64").value();
  const auto typed = bind_call(one, {&other, 1});
  ASSERT_FALSE(typed.ok());
  EXPECT_EQ(error_class_of(typed.status()), ErrorClass::kType);
  expect(std::string(typed.status().message()), "is int64, but must be float64");
}

TEST(BindCall, SumsOfWhatACallerSaidDoNotOverflow) {
  constexpr std::int64_t kMost = INT64_MAX;
  const std::vector<FieldRule> rules{rule_of("u")};
  const std::vector<FieldArgument> cube{argument_of({3, 4, 5})};
  EXPECT_NE(message_of(rules, cube, {.origin = Extents{kMost, 0, 0}}), "");
  EXPECT_NE(message_of(rules, cube, {.domain = Extents{kMost, 1, 1}}), "");
  EXPECT_NE(
      message_of(rules, cube, {.origin = Extents{2, 0, 0}, .domain = Extents{kMost, kMost, kMost}}),
      "");
}

TEST(AnnotationOrder, IsIJKThenNumbersEachOnce) {
  EXPECT_TRUE(check_annotation_order({}).ok());
  EXPECT_TRUE(check_annotation_order({kDimI, kDimK, Dim::data(2), Dim::data(10)}).ok());
  EXPECT_FALSE(check_annotation_order({kDimJ, kDimI}).ok());
  EXPECT_FALSE(check_annotation_order({kDimI, kDimI}).ok());
  EXPECT_FALSE(check_annotation_order({Dim::data(0), kDimI}).ok());
}

TEST(AnnotationOrder, IsByKindThenByName) {
  const Dim cell = *parse_dim("Cell"), edge = *parse_dim("Edge");
  const Dim local = *make_dim("E2C", DimKind::kLocal);
  EXPECT_TRUE(check_annotation_order({cell, edge, local, kDimK, Dim::data(0)}).ok());
  EXPECT_FALSE(check_annotation_order({edge, cell}).ok());
  EXPECT_FALSE(check_annotation_order({cell, kDimK, local}).ok());
}

TEST(DomainDims, AreThoseOfTheGridOfAnyField) {
  const Dim cell = *parse_dim("Cell"), edge = *parse_dim("Edge");
  const Dim local = *make_dim("E2C", DimKind::kLocal);
  const std::vector<FieldRule> fields{rule_of("u", {edge, local, kDimK}), rule_of("v", {cell})};
  EXPECT_EQ(domain_dims(fields), (Dims{cell, edge, kDimK}));

  const std::vector<FieldRule> rules{rule_of("u", {kDimK, Dim::data(0)}), rule_of("v", {kDimI})};
  EXPECT_EQ(domain_dims(rules), (Dims{kDimI, kDimK}));
}

std::uintptr_t address_of(const FieldArgument& argument) {
  return reinterpret_cast<std::uintptr_t>(argument.memory.first_element());
}

/// The field of a call with one array.
BoundField bound(const FieldRule& rule, const FieldArgument& array, const Extents& origin) {
  return bind_call({&rule, 1}, {&array, 1}, {.origin = origin})->fields[0];
}

TEST(CheckMemory, LooksAtLayoutStrideOfTheContiguousDimensionAndAlignment) {
  FieldRule rule = rule_of("u");
  const FieldArgument array = argument_of({4, 8, 8});
  rule.relied_on.layout = {0, 1, 2};
  EXPECT_TRUE(check_memory(rule, bound(rule, array, {0, 0, 0}), address_of(array)).ok());
  rule.relied_on.layout = {2, 0, 1};
  EXPECT_FALSE(check_memory(rule, bound(rule, array, {0, 0, 0}), address_of(array)).ok());
  rule.relied_on = {.alignment_bytes = 64};
  EXPECT_TRUE(check_memory(rule, bound(rule, array, {1, 1, 0}), address_of(array)).ok());
  EXPECT_FALSE(check_memory(rule, bound(rule, array, {1, 1, 1}), address_of(array)).ok());
  EXPECT_FALSE(check_memory(rule, bound(rule, array, {0, 0, 0}), address_of(array) + 8).ok());
  FieldArgument uneven = argument_of({4, 8, 7});
  EXPECT_FALSE(check_memory(rule, bound(rule, uneven, {0, 0, 0}), address_of(uneven)).ok());
  FieldArgument stepped = array;
  stepped.memory.view = *slice(array.memory.view, 2, {.step = 2});
  rule.relied_on = {.layout = {0, 1, 2}};
  EXPECT_FALSE(check_memory(rule, bound(rule, stepped, {0, 0, 0}), address_of(stepped)).ok());
}

TEST(CheckMemory, ExtentsOfOneAndEmptyFieldsAreAsAnybodyWants) {
  FieldRule rule = rule_of("u");
  rule.relied_on = {.layout = {2, 1, 0}, .alignment_bytes = 64};
  for (const Extents& shape : {Extents{1, 1, 1}, Extents{1, 1, 3}, Extents{0, 3, 3}}) {
    const FieldArgument array = argument_of(shape);
    const absl::Status status =
        check_memory(rule, bound(rule, array, {0, 0, 0}), address_of(array));
    // The rows are along K, which is not contiguous in the rule: each point is a row.
    EXPECT_EQ(status.ok(), shape[2] != 3 || shape[0] == 0) << to_string(shape) << status;
  }
}

TEST(SlowMemory, IsAText) {
  FieldRule rule = rule_of("u");
  const FieldArgument array = argument_of({4, 8, 8});
  const BoundField field = bound(rule, array, {0, 0, 0});
  EXPECT_EQ(slow_memory(rule, field, address_of(array)), "");
  rule.preferred.layout = {2, 1, 0};
  EXPECT_NE(slow_memory(rule, field, address_of(array)).find("field 'u', dimension"),
            std::string::npos);
}

}  // namespace
}  // namespace gridbuf
