module;

#include <cstddef>

module gridbuf.interface.dlpack;

namespace gridbuf::dlpack {
namespace {

/// The most tables that a chain may have before it counts as a loop (DX-03).
constexpr int kMaxExchangeVersions = 64;

bool is_complete(const ExchangeApi& api) {
  return api.managed_tensor_allocator != nullptr &&
         api.managed_tensor_from_py_object_no_sync != nullptr &&
         api.managed_tensor_to_py_object_no_sync != nullptr && api.current_work_stream != nullptr;
}

}  // namespace

const ExchangeApi* find_exchange_api(const ExchangeApiHeader* header) {
  for (int tables = 0; header != nullptr && tables < kMaxExchangeVersions; ++tables) {
    if (header->version.major == kMajorVersion) {
      const auto* api = reinterpret_cast<const ExchangeApi*>(header);
      return is_complete(*api) ? api : nullptr;
    }
    header = header->prev_api;
  }
  return nullptr;
}

}  // namespace gridbuf::dlpack
