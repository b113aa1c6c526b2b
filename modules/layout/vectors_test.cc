// Runs every layout vector (conformance/vectors) through the C++ modules.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

import gridbuf.layout;
import gridbuf.layout.preset;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

using Json = nlohmann::json;

// The cases of conformance/vectors/layout_KIND.json, from the runfiles.
std::vector<Json> cases_of(const std::string& kind) {
  std::ifstream file("conformance/vectors/layout_" + kind + ".json");
  const Json document = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || document.at("kind").get<std::string>() != kind) {
    ADD_FAILURE() << "layout_" << kind << ".json is missing or no JSON of that kind";
    return {};
  }
  return document.at("cases").get<std::vector<Json>>();
}

Extents extents_of(const Json& json) {
  return Extents(std::span<const std::int64_t>(json.get<std::vector<std::int64_t>>()));
}

LayoutMap ints_of(const Json& json) {
  return LayoutMap(std::span<const int>(json.get<std::vector<int>>()));
}

LayoutRequest request_of(const Json& json) {
  const auto given = [&json](const char* key) { return !json.at(key).is_null(); };
  return {
      .shape = extents_of(json.at("shape")),
      .itemsize_bytes = json.at("itemsize_bytes"),
      .layout = given("layout") ? ints_of(json.at("layout")) : LayoutMap(),
      .alignment_bytes = json.at("alignment_bytes"),
      .aligned_index = given("aligned_index") ? extents_of(json.at("aligned_index")) : Extents()};
}

absl::StatusOr<Dims> dims_of(const Json& given, int ndim) {
  if (given.is_null()) return default_dims(ndim);
  if (given.is_string()) return parse_dims(given.get<std::string>(), ndim);
  const auto names = given.get<std::vector<std::string>>();
  return parse_dims(std::vector<std::string_view>(names.begin(), names.end()), ndim);
}

Halo halo_of(const Json& json) {
  Halo halo;
  for (const Json& pair : json) halo.push_back({pair.at(0), pair.at(1)});
  return halo;
}

Slice slice_of(const Json& json, std::size_t first) {
  Slice slice;
  if (!json.at(first).is_null()) slice.start = json.at(first).get<std::int64_t>();
  if (!json.at(first + 1).is_null()) slice.stop = json.at(first + 1).get<std::int64_t>();
  slice.step = json.at(first + 2);
  return slice;
}

SubscriptItem item_of(const Json& json) {
  if (json.is_null()) return NewAxis{};
  if (json.is_string()) return Ellipsis{};
  if (json.is_object()) return slice_of(json.at("slice"), 0);
  return json.get<std::int64_t>();
}

absl::StatusOr<Layout> operate(const Layout& plan, const Json& operation) {
  const std::string name = operation.at(0);
  const Json& argument = operation.at(1);
  if (name == "index") return index(plan, argument, operation.at(2).get<std::int64_t>());
  if (name == "slice") return slice(plan, argument, slice_of(operation, 2));
  if (name == "reverse") return reverse(plan, argument);
  if (name == "transpose") return transpose(plan, ints_of(argument));
  if (name == "newaxis") return new_axis(plan, argument);
  if (name == "broadcast_to") return broadcast_to(plan, extents_of(argument));
  if (name == "subscript") {
    std::vector<SubscriptItem> items;
    for (const Json& item : argument) items.push_back(item_of(item));
    return subscript(plan, items);
  }
  return absl::UnimplementedError("the test does not know the operation " + name);
}

TEST(LayoutVectors, Plans) {
  const std::vector<Json> cases = cases_of("plans");
  EXPECT_GT(cases.size(), 300u);
  for (const Json& entry : cases) {
    SCOPED_TRACE(entry.dump());
    const absl::StatusOr<Layout> plan = make_plan(request_of(entry.at("request")));
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Json& expected = entry.at("expected");
    EXPECT_EQ(plan->strides_bytes(), extents_of(expected.at("strides_bytes")));
    EXPECT_EQ(plan->padded_shape(), extents_of(expected.at("padded_shape")));
    EXPECT_EQ(plan->element_count(), expected.at("element_count").get<std::int64_t>());
    EXPECT_EQ(plan->nbytes(), expected.at("nbytes").get<std::int64_t>());
    EXPECT_EQ(plan->total_bytes(), expected.at("total_bytes").get<std::int64_t>());
    EXPECT_EQ(plan->aligned_offset_bytes(),
              expected.at("aligned_offset_bytes").get<std::int64_t>());
  }
}

TEST(LayoutVectors, Dims) {
  const std::vector<Json> cases = cases_of("dims");
  EXPECT_GT(cases.size(), 15u);
  for (const Json& entry : cases) {
    SCOPED_TRACE(entry.dump());
    const int ndim = entry.at("ndim");
    const absl::StatusOr<Dims> dims = dims_of(entry.at("given"), ndim);
    ASSERT_TRUE(dims.ok()) << dims.status();
    EXPECT_EQ(*dims, *dims_of(entry.at("expected"), ndim));
    for (int axis = 0; axis < ndim; ++axis) {
      EXPECT_EQ(to_string((*dims)[axis]),
                entry.at("expected").at(static_cast<std::size_t>(axis)).get<std::string>());
    }
  }
}

void expect_order(const Preset& preset, const Json& entry) {
  if (entry.at("base_ranks").is_null()) {
    EXPECT_NE(preset.order.kind, PresetOrder::Kind::kByName);
    return;
  }
  EXPECT_EQ(preset.order.kind, PresetOrder::Kind::kByName);
  EXPECT_EQ(preset.order.base_ranks, (entry.at("base_ranks").get<std::array<int, 3>>()));
}

TEST(LayoutVectors, Presets) {
  const std::vector<Json> cases = cases_of("presets");
  std::vector<std::string> names;
  for (const Json& entry : cases) {
    names.push_back(entry.at("name"));
    SCOPED_TRACE(names.back());
    const absl::StatusOr<Preset> preset = find_preset(names.back());
    ASSERT_TRUE(preset.ok()) << preset.status();
    EXPECT_EQ(preset->on_device, entry.at("device") == "gpu");
    EXPECT_EQ(preset->alignment_bytes, entry.at("alignment_bytes").get<std::int64_t>());
    expect_order(*preset, entry);
    EXPECT_GE(entry.at("layouts").size(), 8u);
    for (const Json& row : entry.at("layouts")) {
      const absl::StatusOr<Dims> dims =
          dims_of(row.at("dims"), static_cast<int>(row.at("dims").size()));
      ASSERT_TRUE(dims.ok()) << row << dims.status();
      EXPECT_EQ(preset_layout(*preset, *dims), ints_of(row.at("layout"))) << row;
    }
    EXPECT_GE(entry.at("kinds").size(), 30u);
    for (const Json& row : entry.at("kinds")) {
      Dims dims;
      for (const Json& dim : row.at("dims")) {
        dims.push_back(
            *make_dim(dim.at(0).get<std::string>(), *parse_dim_kind(dim.at(1).get<std::string>())));
      }
      EXPECT_EQ(preset_layout(*preset, dims), ints_of(row.at("layout"))) << row;
    }
  }
  EXPECT_EQ(preset_names(), names);  // All built-in presets, and in this order.
}

void expect_view(const Layout& view, const Json& expected) {
  const StridedView memory = view.view();
  ASSERT_EQ(memory.shape, extents_of(expected.at("shape")));
  for (int axis = 0; axis < view.ndim(); ++axis) {
    const Json& stride = expected.at("strides_bytes").at(static_cast<std::size_t>(axis));
    if (!stride.is_null()) {
      EXPECT_EQ(memory.strides_bytes[axis], stride) << axis;
    }
  }
  ASSERT_TRUE(byte_hull(memory).has_value());
  if (expected.at("offset_bytes").is_null()) {
    EXPECT_EQ(byte_hull(memory)->length_bytes(), 0);
  } else {
    EXPECT_EQ(memory.offset_bytes, expected.at("offset_bytes"));
    EXPECT_EQ(byte_hull(memory)->lowest_bytes, expected.at("hull_bytes").at(0));
    EXPECT_EQ(byte_hull(memory)->highest_bytes, expected.at("hull_bytes").at(1));
  }
  EXPECT_EQ(is_c_contiguous(memory), expected.at("c_contiguous"));
  EXPECT_EQ(is_f_contiguous(memory), expected.at("f_contiguous"));
  EXPECT_EQ(view.dims(), *dims_of(expected.at("dims"), view.ndim()));
  EXPECT_EQ(view.halo(), halo_of(expected.at("halo")));
  EXPECT_EQ(view.aligned_index(), extents_of(expected.at("aligned_index")));
  EXPECT_EQ(view.alignment_bytes(), expected.at("alignment_bytes"));
}

TEST(LayoutVectors, Views) {
  const std::vector<Json> cases = cases_of("views");
  EXPECT_GT(cases.size(), 300u);
  for (const Json& entry : cases) {
    SCOPED_TRACE(entry.dump());
    const Layout plan = *make_plan(request_of(entry.at("request")));
    absl::StatusOr<Layout> view =
        with_meaning(plan, *dims_of(entry.at("dims"), plan.ndim()), halo_of(entry.at("halo")));
    for (const Json& operation : entry.at("operations")) {
      ASSERT_TRUE(view.ok()) << view.status();
      view = operate(*view, operation);
    }
    ASSERT_TRUE(view.ok()) << view.status();
    expect_view(*view, entry.at("expected"));
  }
}

// The same chain as one index map must show the same elements as the views made step by step.
TEST(LayoutVectors, ViewsComposeToOneMap) {
  int composed = 0;
  for (const Json& entry : cases_of("views")) {
    SCOPED_TRACE(entry.dump());
    const Layout plan = *make_plan(request_of(entry.at("request")));
    IndexMap map(plan.shape());
    Layout view = *with_meaning(plan);
    bool supported = true;
    for (const Json& operation : entry.at("operations")) {
      const Extents shape = map.shape();
      const std::string name = operation.at(0);
      const bool axis_counts_up = operation.at(1).is_number() && operation.at(1) >= 0;
      if (name == "slice" && axis_counts_up) {
        const int axis = operation.at(1);
        map.keep(axis, slice_points(slice_of(operation, 2), shape[axis]));
      } else if (name == "index" && axis_counts_up && operation.at(2) >= 0) {
        map.fix(operation.at(1), operation.at(2));
      } else if (name == "newaxis" && axis_counts_up) {
        map.insert(operation.at(1));
      } else {
        supported = false;
        break;
      }
      view = *operate(view, operation);
    }
    if (!supported || is_empty(map.shape())) continue;
    ++composed;
    const StridedView at_once = apply(map, plan.view());
    EXPECT_EQ(at_once.shape, view.shape());
    EXPECT_EQ(at_once.offset_bytes, view.view().offset_bytes);
    EXPECT_EQ(byte_hull(at_once), byte_hull(view.view()));
  }
  EXPECT_GT(composed, 40);
}

// The error of a case of this kind; OK if it wrongly succeeds.
absl::Status outcome_of(const Json& entry) {
  const std::string kind = entry.at("kind");
  if (kind == "plan") return make_plan(request_of(entry.at("request"))).status();
  if (kind == "dims") return dims_of(entry.at("given"), entry.at("ndim")).status();
  if (kind == "halo")
    return validate_halo(halo_of(entry.at("given")), extents_of(entry.at("shape")));
  if (kind == "preset") return find_preset(entry.at("given").get<std::string>()).status();
  const Layout plan = *make_plan(request_of(entry.at("request")));
  return operate(*with_meaning(plan), entry.at("operation")).status();
}

TEST(LayoutVectors, Errors) {
  const std::vector<Json> cases = cases_of("errors");
  EXPECT_GT(cases.size(), 60u);
  for (const Json& entry : cases) {
    SCOPED_TRACE(entry.dump());
    const absl::Status status = outcome_of(entry);
    EXPECT_EQ(status.code(), entry.at("error") == "IndexError"
                                 ? absl::StatusCode::kOutOfRange
                                 : absl::StatusCode::kInvalidArgument);
    for (const std::string text : entry.at("mentions")) {
      EXPECT_NE(status.message().find(text), std::string_view::npos)
          << text << " in: " << status.message();
    }
  }
}

}  // namespace
}  // namespace gridbuf
