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
  for (const Simd path : {Simd::kPortable, Simd::kAvx2, Simd::kAvx512}) {
    EXPECT_EQ(*simd_named(to_string(path)), path);
  }
  const absl::Status wrong = simd_named("sse9").status();
  EXPECT_EQ(error_class_of(wrong), ErrorClass::kValue);
  EXPECT_NE(std::string(wrong.message()).find("'avx2'"), std::string::npos) << wrong;
}

TEST(Simd, RefusesWhatTheProcessorLacks) {
  const std::vector<Simd> here = supported_simd();
  if (std::find(here.begin(), here.end(), Simd::kAvx512) != here.end()) {
    GTEST_SKIP() << "this processor has all of them";
  }
  EXPECT_EQ(error_class_of(set_simd(Simd::kAvx512)), ErrorClass::kValue);
}

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
