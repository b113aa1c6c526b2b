#include <gtest/gtest.h>

import gridbuf.layout.index_map;
