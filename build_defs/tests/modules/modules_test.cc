#include <gtest/gtest.h>

import gridbuf.build_test.base;
import gridbuf.build_test.middle;

namespace gridbuf::build_test {
namespace {

TEST(Modules, InterfaceImplementationAndImporterLink) {
  EXPECT_EQ(greet(1).value(), "hello ");
  EXPECT_FALSE(greet(-1).ok());
}

TEST(Modules, TransitiveInterfaceIsFound) { EXPECT_EQ(greeting_length(2), 12u); }

}  // namespace
}  // namespace gridbuf::build_test
