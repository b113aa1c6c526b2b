#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.device;
import gridbuf.alloc.emulated;

TEST(A, B) {}
