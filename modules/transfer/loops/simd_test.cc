#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.transfer.loops;

namespace gridbuf::loops {
namespace {

// Runs `work` on every path that this machine supports, and restores the setting.
template <class Work>
void on_every_path(const Work& work) {
  const Simd before = simd();
  for (const Simd path : supported_simd()) {
    ASSERT_TRUE(set_simd(path).ok());
    work(path);
  }
  ASSERT_TRUE(set_simd(before).ok());
}

TEST(Simd, IsWhatWasSet) {
  on_every_path([](Simd path) { EXPECT_EQ(simd(), path); });
}

TEST(Simd, PortableIsThereAlways) {
  const std::vector<Simd> here = supported_simd();
  ASSERT_FALSE(here.empty());
  EXPECT_EQ(here.front(), Simd::kPortable);
  EXPECT_TRUE(std::is_sorted(here.begin(), here.end()));
}

TEST(Simd, HasNames) {
  for (const Simd path : {Simd::kPortable, Simd::kAvx2, Simd::kAvx512, Simd::kNeon}) {
    EXPECT_EQ(*simd_named(to_string(path)), path);
  }
  const absl::Status wrong = simd_named("sse9").status();
  EXPECT_EQ(error_class_of(wrong), ErrorClass::kValue);
  EXPECT_NE(std::string(wrong.message()).find("'avx2'"), std::string::npos) << wrong;
}

TEST(Simd, RefusesWhatTheProcessorLacks) {
  const std::vector<Simd> here = supported_simd();
  int refused = 0;
  for (const Simd path : {Simd::kAvx2, Simd::kAvx512, Simd::kNeon}) {
    if (std::find(here.begin(), here.end(), path) != here.end()) continue;
    EXPECT_EQ(error_class_of(set_simd(path)), ErrorClass::kValue);
    ++refused;
  }
  EXPECT_GT(refused, 0);  // no processor has all of them
}

#if defined(__aarch64__)
TEST(Simd, IsNeonOnAarch64) {
  EXPECT_EQ(supported_simd(), (std::vector{Simd::kPortable, Simd::kNeon}));
}
#endif

using SimdDeathTest = testing::Test;

// Separate processes, because the variable is read once.
TEST(SimdDeathTest, TakesTheVariableThatNamesWhatThereIs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv(kSimdVariable, "portable", 1);
        std::exit(simd() == Simd::kPortable ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv(kSimdVariable, "abacus", 1);
        std::exit(simd() == supported_simd().back() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gridbuf::loops
