// The plans, from the JSON that is compiled in; and their content.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cc/catalogue.h"
#include "conformance/cc/producer.h"
#include "nlohmann/json.hpp"

namespace gridbuf::conformance {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order of the file

// dlpack_plans.json, written out by the build as one raw string.
constexpr const char kVectors[] =
#include "conformance/cc/dlpack_plans.inc"
    ;

const Json& vectors() {
  static const Json parsed = Json::parse(kVectors);
  return parsed;
}

template <class T>
std::vector<T> list_of(const Json& json) {
  return json.is_null() ? std::vector<T>() : json.get<std::vector<T>>();
}

View view_of(const Json& json) {
  View view = {.shape = list_of<std::int64_t>(json.at("shape")),
               .start = list_of<std::int64_t>(json.at("start")),
               .axes = {},
               .steps = list_of<std::int64_t>(json.at("steps"))};
  for (const Json& axis : json.at("axes")) {
    view.axes.push_back(axis.is_null() ? -1 : axis.get<int>());
  }
  return view;
}

// The keys that ask for something, as the Python suite's replay commands have them.
std::string brief(const Json& keys) {
  static const Json kDefaults = Json::parse(
      R"({"byteorder": "native", "alignment_size": 1, "readonly": false, "views": []})");
  Json asked;
  for (const auto& [key, value] : keys.items()) {
    if (!value.is_null() && (!kDefaults.contains(key) || kDefaults.at(key) != value)) {
      asked[key] = value;
    }
  }
  return asked.dump();
}

Plan plan_of(const Json& entry) {
  const Json& keys = entry.at("plan");
  Plan plan;
  plan.name = entry.at("name").get<std::string>();
  plan.shape = list_of<std::int64_t>(keys.at("shape"));
  plan.dtype = keys.at("dtype").get<std::string>();
  plan.itemsize_bytes = entry.at("itemsize_bytes").get<std::int64_t>();
  if (const Json& word = entry.at("dlpack"); !word.is_null()) {
    plan.dlpack = abi::DataType{
        .code = word.at(0).get<std::uint8_t>(), .bits = word.at(1).get<std::uint8_t>(), .lanes = 1};
  }
  plan.swapped = keys.at("byteorder").get<std::string>() == "swapped";
  plan.readonly = keys.at("readonly").get<bool>();
  plan.layout = list_of<int>(keys.at("layout"));
  plan.alignment_size = keys.at("alignment_size").get<std::int64_t>();
  plan.aligned_index = list_of<std::int64_t>(keys.at("aligned_index"));
  if (plan.aligned_index.empty()) plan.aligned_index.assign(plan.shape.size(), 0);
  plan.has_views = !keys.at("views").empty();
  plan.view = view_of(entry.at("view"));
  plan.fill = keys.at("fill").get<std::uint32_t>();
  for (const Json& number : entry.at("numbers")) {
    plan.numbers.emplace_back(number.at(0).get<int>(), number.at(1).get<int>());
  }
  plan.json = brief(keys);
  return plan;
}

constexpr std::size_t kPeriod = 4093;
constexpr std::uint64_t kSeedStep = 769;

// The content's table, as gridbuf_conformance/plan/dtypes.py defines it (step 1).
const std::array<std::uint8_t, kPeriod>& table() {
  static const std::array<std::uint8_t, kPeriod> made = [] {
    std::array<std::uint8_t, kPeriod> values{};
    std::uint64_t x = 1;
    for (std::uint8_t& value : values) {
      value = static_cast<std::uint8_t>(1 + x % 123);
      x = x * 16807 % 2147483647;
    }
    return values;
  }();
  return made;
}

}  // namespace

std::int64_t Plan::element_count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<std::byte> Plan::content() const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(nbytes()));
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    std::uint8_t value = table()[(kSeedStep * fill + k) % kPeriod];
    if (dtype == "bool") value &= 1;
    bytes[k] = std::byte{value};
  }
  if (!swapped) return bytes;
  for (std::size_t element = 0; element < bytes.size();
       element += static_cast<std::size_t>(itemsize_bytes)) {
    for (const auto& [offset, width] : numbers) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(element) + offset;
      std::reverse(begin, begin + width);
    }
  }
  return bytes;
}

const std::vector<Plan>& plans() {
  static const std::vector<Plan> made = [] {
    std::vector<Plan> list;
    for (const Json& entry : vectors().at("cases")) list.push_back(plan_of(entry));
    return list;
  }();
  return made;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> made = [] {
    std::vector<Rule> list;
    for (const Json& entry : vectors().at("rules")) {
      list.push_back({.id = entry.at("id").get<std::string>(),
                      .is_must = entry.at("level").get<std::string>() == "MUST",
                      .requirement = entry.at("requirement").get<std::string>(),
                      .fix = entry.at("fix").get<std::string>(),
                      .preconditions = list_of<std::string>(entry.at("preconditions"))});
    }
    return list;
  }();
  return made;
}

const std::vector<std::int32_t>& device_types() {
  static const auto made = vectors().at("device_types").get<std::vector<std::int32_t>>();
  return made;
}

int type_code_count() {
  static const int count = vectors().at("type_code_count");
  return count;
}

std::uint32_t expected_crc32(const Plan& plan) {
  for (const Json& entry : vectors().at("cases")) {
    if (entry.at("name").get<std::string>() == plan.name) return entry.at("content_crc32");
  }
  return 0;
}

}  // namespace gridbuf::conformance
