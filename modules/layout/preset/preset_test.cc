#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.layout;
import gridbuf.layout.preset;

namespace gridbuf {
namespace {

constexpr Dims kIJK{kDimI, kDimJ, kDimK};
constexpr Dims kJKI{kDimJ, kDimK, kDimI};  // A 3-cycle.
constexpr Dim kData0 = Dim::data(0);
constexpr Dim kData1 = Dim::data(1);

void expect_value_error(const absl::Status& status, std::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(text), std::string_view::npos) << status.message();
}

TEST(Preset, BaseRanksOrderTheAxesThatArePresent) {
  EXPECT_EQ(layout_by_name({1, 2, 0}, kIJK), (LayoutMap{1, 2, 0}));
  EXPECT_EQ(layout_by_name({1, 2, 0}, kJKI), (LayoutMap{2, 0, 1}));
  EXPECT_EQ(layout_by_name({2, 0, 1}, {kDimI, kData0, kDimJ, kData1}), (LayoutMap{3, 0, 2, 1}));
  EXPECT_EQ(preset_layout({.order = PresetOrder::column_major()}, kJKI), (LayoutMap{2, 1, 0}));
}

TEST(Preset, LayoutFollowsNamesAndNotPositions) {
  const Preset preset = *find_preset("gt:gpu");
  EXPECT_EQ(preset_layout(preset, kIJK), (LayoutMap{2, 1, 0}));
  EXPECT_EQ(preset_layout(preset, kJKI), (LayoutMap{1, 0, 2}));
}

TEST(Preset, CAndFGoByPosition) {
  for (const Dims& dims : {kIJK, kJKI}) {
    EXPECT_EQ(preset_layout(*find_preset("C"), dims), (LayoutMap{0, 1, 2}));
    EXPECT_EQ(preset_layout(*find_preset("F"), dims), (LayoutMap{2, 1, 0}));
  }
}

TEST(Preset, DataDimensionsAreOutermostInNumericOrder) {
  const Dims dims{Dim::data(10), kDimI, Dim::data(2)};
  EXPECT_EQ(preset_layout(*find_preset("numpy"), dims), (LayoutMap{1, 2, 0}));
}

TEST(Preset, OlderNamesAreTheSamePresets) {
  EXPECT_EQ(*find_preset("gtx86"), *find_preset("gt:cpu_kfirst"));
  EXPECT_EQ(*find_preset("gtcuda"), *find_preset("gt:gpu"));
  EXPECT_EQ(*find_preset("debug"), *find_preset("numpy"));
}

TEST(Preset, UnknownNamesListCloseMatches) {
  expect_value_error(find_preset("gt:cpu_ifrst").status(), "did you mean \"gt:cpu_ifirst\"");
  expect_value_error(find_preset("NUMPY").status(), "did you mean \"numpy\"");
  expect_value_error(find_preset("").status(), "unknown preset \"\"");
  expect_value_error(find_preset("qqqqqqqq").status(), "there are debug, numpy, ");
  EXPECT_EQ(find_preset("qqqqqqqq").status().message().find("did you mean"),
            std::string_view::npos);
  expect_value_error(find_preset(std::string(1 << 20, 'x')).status(), "xxx...\"");
}

TEST(Preset, CloseMatchesAreFewAndOrdered) {
  for (const char* name :
       {"match:abcd", "match:abce", "match:bcd", "match:abc", "match:abcdzzzz"}) {
    ASSERT_TRUE(register_preset(name, {}).ok());
  }
  expect_value_error(find_preset("match:abcf").status(),
                     "did you mean \"match:abc\" or \"match:abcd\" or \"match:abce\"?");
  expect_value_error(find_preset("kfirst").status(),
                     "did you mean \"gt:cpu_kfirst\" or \"dace:cpu_kfirst\"?");
}

TEST(RegisterPreset, MakesANameKnown) {
  const Preset mine{false, 24, PresetOrder::by_name(1, 0, 2)};
  ASSERT_TRUE(register_preset("test:mine", mine).ok());
  EXPECT_EQ(*find_preset("test:mine"), mine);
  EXPECT_EQ(preset_names().back(), "test:mine");
  expect_value_error(find_preset("test:mime").status(), "\"test:mine\"");
}

TEST(RegisterPreset, ANameKeepsItsPreset) {
  const Preset mine{true, 32, {}};
  ASSERT_TRUE(register_preset("test:kept", mine).ok());
  EXPECT_TRUE(register_preset("test:kept", mine).ok());
  expect_value_error(register_preset("test:kept", {}), "the name of a preset is \"test:kept\"");
  EXPECT_EQ(*find_preset("test:kept"), mine);
  expect_value_error(register_preset("numpy", mine), "\"numpy\"");
  EXPECT_TRUE(register_preset("numpy", *find_preset("numpy")).ok());
}

TEST(RegisterPreset, RefusesBadValues) {
  expect_value_error(register_preset("", {}), "at least one character");
  expect_value_error(register_preset("test:bad", {.alignment_bytes = 0}), "alignment_bytes is 0");
  expect_value_error(register_preset("test:bad", {.alignment_bytes = (1 << 20) + 1}), "1048577");
  expect_value_error(register_preset("test:bad", {.order = PresetOrder::by_name(0, 0, 1)}),
                     "(0, 0, 1), but must be a permutation of (0, 1, 2)");
  EXPECT_FALSE(find_preset("test:bad").ok());
}

TEST(RegisterPreset, MayBeCalledFromManyThreads) {
  std::vector<std::thread> threads;
  std::array<int, 8> won{};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t, &won] {
      for (int i = 0; i < 200; ++i) {
        const std::string name = "test:thread_" + std::to_string(i);
        won[static_cast<std::size_t>(t)] += register_preset(name, {.alignment_bytes = t + 1}).ok();
        if (!find_preset(name).ok()) won[static_cast<std::size_t>(t)] -= 1'000'000;
        if (i % 50 == 0 && preset_names().size() < 15)
          won[static_cast<std::size_t>(t)] -= 1'000'000;
      }
    });
  }
  int total = 0;
  for (std::thread& thread : threads) thread.join();
  for (const int count : won) total += count;
  EXPECT_EQ(total, 200);  // Each name went to exactly one thread, and was found by all.
}

}  // namespace
}  // namespace gridbuf
