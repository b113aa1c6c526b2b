#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;

namespace gridbuf {
namespace {

TEST(MemoryKind, HasANameThatReadsBack) {
  for (const MemoryKind kind :
       {MemoryKind::kHost, MemoryKind::kPinned, MemoryKind::kManaged, MemoryKind::kDevice}) {
    EXPECT_EQ(*memory_kind_named(to_string(kind)), kind);
  }
  const absl::StatusOr<MemoryKind> unknown = memory_kind_named("gpu");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(error_class_of(unknown.status()), ErrorClass::kValue);
  EXPECT_NE(unknown.status().message().find("'gpu'"), std::string::npos);
}

// [example]
// Every array of `solve` is allocated on the solver's stream, and exports name that stream.
StreamHandle solve(StreamHandle solver_stream) {
  const ScopedStream scope(solver_stream);
  return current_stream();
}
// [/example]

TEST(ScopedStream, NestsAndEnds) {
  EXPECT_EQ(current_stream(), kLegacyDefaultStream);
  const ScopedStream outer(77);
  EXPECT_EQ(solve(78), 78U);
  EXPECT_EQ(current_stream(), 77U);
}

TEST(ScopedStream, BelongsToItsThread) {
  const ScopedStream scope(77);
  StreamHandle seen = 0;
  std::thread([&seen] { seen = current_stream(); }).join();
  EXPECT_EQ(seen, kLegacyDefaultStream);
}

TEST(StreamNumber, IsNeverZero) {
  EXPECT_TRUE(check_stream_number(1).ok());
  EXPECT_TRUE(check_stream_number(~StreamHandle{0}).ok());
  const absl::Status status = check_stream_number(0);
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("pass 1"), std::string::npos) << status;
}

TEST(RowCopy, ReachesFromItsFirstRowToItsLast) {
  const RowCopy rows{
      .target_pitch_bytes = 10, .source_pitch_bytes = 7, .row_bytes = 4, .row_count = 3};
  EXPECT_EQ(check(rows)->target_bytes, 24);
  EXPECT_EQ(check(rows)->source_bytes, 18);
  EXPECT_EQ(check(RowCopy{.row_bytes = 4, .row_count = 1})->target_bytes, 4);
  EXPECT_EQ(check(RowCopy{.target_pitch_bytes = 4, .row_bytes = 4})->target_bytes, 0);
}

TEST(RowCopy, RefusesWhatIsNoRows) {
  const std::int64_t far = std::int64_t{1} << 62;
  for (const RowCopy& rows :
       {RowCopy{.row_bytes = -1, .row_count = 1}, RowCopy{.row_bytes = 1, .row_count = -1},
        RowCopy{nullptr, 3, nullptr, 4, 4, 2}, RowCopy{nullptr, 4, nullptr, -4, 4, 2},
        RowCopy{nullptr, far, nullptr, far, 4, 3}}) {
    EXPECT_EQ(error_class_of(check(rows).status()), ErrorClass::kValue);
  }
}

TEST(DriverProcess, EndsAtFork) {
  const DriverProcess process;
  EXPECT_TRUE(process.check("cuda").ok());
  EXPECT_EXIT(
      {
        const absl::Status status = process.check("cuda");
        const bool right = error_class_of(status) == ErrorClass::kDeviceUnavailable &&
                           status.message().find("spawn") != std::string::npos;
        std::_Exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// A global that is older than every driver. Its destructor reports the state of the exiting child
// process below.
struct LastWord {
  bool speaks = false;
  ~LastWord() {
    if (speaks) _exit(process_is_exiting() ? 7 : 8);
  }
} last_word;

TEST(ProcessExit, IsNotedBeforeGlobalsGo) {
  EXPECT_FALSE(process_is_exiting());
  EXPECT_EXIT(
      {
        last_word.speaks = true;
        const DriverProcess process;
        std::exit(0);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace gridbuf
