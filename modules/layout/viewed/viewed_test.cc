#include <gtest/gtest.h>

import gridbuf.layout.viewed;
