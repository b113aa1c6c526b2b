#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.layout;

namespace gridbuf {
namespace {

TEST(MakeExtents, CopiesUpToTheBoundAndNamesWhatIsTooLong) {
  const std::vector<std::int64_t> most(64, 2);
  const absl::StatusOr<Extents> made = make_extents(most, "shape");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made, Extents(64, 2));

  const std::vector<std::int64_t> too_many(65, 2);
  const absl::Status refused = make_extents(too_many, "shape").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "the number of entries of shape is 65, but must be at most 64; use fewer dimensions");
}

}  // namespace
}  // namespace gridbuf
