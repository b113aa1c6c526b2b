#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.alloc.host;

namespace gridbuf {
namespace {

// Whether reading the byte ends the process with the sanitizer's report.
void expect_poisoned(const std::byte* byte) {
  EXPECT_DEATH(std::printf("%d", static_cast<int>(*byte)), "use-after-poison");
}

class PoisonBytesDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!poison_is_fatal()) GTEST_SKIP() << "needs AddressSanitizer: run with --config=asan";
  }
  std::vector<std::byte> bytes_ = std::vector<std::byte>(96);
};

TEST_F(PoisonBytesDeathTest, IsFatalUntilItIsTakenOff) {
  poison_bytes(bytes_.data() + 16, 32);
  expect_poisoned(bytes_.data() + 16);
  expect_poisoned(bytes_.data() + 47);
  EXPECT_EQ(bytes_[15], std::byte{0});
  EXPECT_EQ(bytes_[48], std::byte{0});
  unpoison_bytes(bytes_.data(), 96);
  EXPECT_EQ(bytes_[16], std::byte{0});
}

TEST_F(PoisonBytesDeathTest, CoversThePaddingOfEachRowAndNoElement) {
  poison_row_padding(bytes_.data(), 96, 32, 24);
  for (const int padding : {24, 31, 56, 63, 88, 95}) expect_poisoned(bytes_.data() + padding);
  for (const int used : {0, 23, 32, 55, 64, 87}) {
    EXPECT_EQ(bytes_[static_cast<std::size_t>(used)], std::byte{0});
  }
  unpoison_bytes(bytes_.data(), 96);
}

TEST(Poison, ChangesNoByteAndNeedsNoSanitizer) {
  std::vector<std::byte> bytes(64, std::byte{7});
  poison_row_padding(bytes.data(), 64, 16, 16);  // without padding: does not poison
  poison_row_padding(bytes.data(), 0, 16, 8);    // no rows
  EXPECT_EQ(bytes[15], std::byte{7});
  poison_bytes(bytes.data(), 64);
  unpoison_bytes(bytes.data(), 64);
  for (const std::byte byte : bytes) EXPECT_EQ(byte, std::byte{7});
}

}  // namespace
}  // namespace gridbuf
