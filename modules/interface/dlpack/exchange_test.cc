#include <cstdint>

#include "gtest/gtest.h"

import gridbuf.interface.dlpack;

namespace gridbuf::dlpack {
namespace {

int allocate(DLTensor*, DLManagedTensorVersioned**, void*,
             void (*)(void*, const char*, const char*)) {
  return -1;
}
int from_object(void*, DLManagedTensorVersioned**) { return -1; }
int to_object(DLManagedTensorVersioned*, void**) { return -1; }
int current_stream(std::int32_t, std::int32_t, void** stream) {
  *stream = nullptr;
  return 0;
}

ExchangeApi complete_table(std::uint32_t major) {
  return {.header = {.version = {major, 3}, .prev_api = nullptr},
          .managed_tensor_allocator = allocate,
          .managed_tensor_from_py_object_no_sync = from_object,
          .managed_tensor_to_py_object_no_sync = to_object,
          .dltensor_from_py_object_no_sync = nullptr,
          .current_work_stream = current_stream};
}

// [example]
// Whether a consumer can take arrays of a type through its table.
bool is_usable(const ExchangeApiHeader* header) { return find_exchange_api(header) != nullptr; }
// [/example]

TEST(Exchange, ExampleOfTheReadme) {
  const ExchangeApi table = complete_table(1);
  EXPECT_TRUE(is_usable(&table.header));
  EXPECT_FALSE(is_usable(nullptr));
}

TEST(Exchange, Dx03FindsAnOlderTableInTheChain) {
  ExchangeApi older = complete_table(1);
  ExchangeApi newer = complete_table(2);
  EXPECT_EQ(find_exchange_api(&newer.header), nullptr);
  newer.header.prev_api = &older.header;
  EXPECT_EQ(find_exchange_api(&newer.header), &older);
}

TEST(Exchange, Dx03EndsInALoop) {
  ExchangeApi newer = complete_table(2);
  newer.header.prev_api = &newer.header;
  EXPECT_EQ(find_exchange_api(&newer.header), nullptr);
}

TEST(Exchange, Dx04RefusesATableWithHoles) {
  ExchangeApi table = complete_table(1);
  table.current_work_stream = nullptr;
  EXPECT_EQ(find_exchange_api(&table.header), nullptr);
  table = complete_table(1);
  table.managed_tensor_to_py_object_no_sync = nullptr;
  EXPECT_EQ(find_exchange_api(&table.header), nullptr);
}

}  // namespace
}  // namespace gridbuf::dlpack
