module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer.loops;

import gridbuf.base;

namespace gridbuf::loops {
namespace {

constexpr std::array<std::pair<Simd, std::string_view>, 3> kNames{
    {{Simd::kPortable, "portable"}, {Simd::kAvx2, "avx2"}, {Simd::kAvx512, "avx512"}}};

constexpr int kUndecided = -1;
std::atomic<int> chosen = kUndecided;

bool is_supported(Simd simd) {
#if defined(__x86_64__)
  // __builtin_cpu_supports asks the system too: whether it keeps the registers of a thread.
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("f16c") != 0;
  switch (simd) {
    case Simd::kPortable:
      return true;
    case Simd::kAvx2:
      return avx2;
    case Simd::kAvx512:
      return avx2 && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0;
  }
  return false;
#else
  return simd == Simd::kPortable;
#endif
}

Simd decide() {
  if (const char* const text = std::getenv(kSimdVariable); text != nullptr) {
    const absl::StatusOr<Simd> named = simd_named(text);
    if (named.ok() && is_supported(*named)) return *named;
  }
  return supported_simd().back();
}

std::string names_of(const std::vector<Simd>& all) {
  std::string text;
  for (const Simd simd : all) {
    if (!text.empty()) text += ", ";
    text += to_string(simd);
  }
  return text;
}

}  // namespace

std::string_view to_string(Simd simd) {
  for (const auto& [known, name] : kNames) {
    if (known == simd) return name;
  }
  return "unknown";
}

absl::StatusOr<Simd> simd_named(std::string_view name) {
  for (const auto& [simd, known] : kNames) {
    if (known == name) return simd;
  }
  return make_error(ErrorClass::kValue,
                    {"the instruction set", "'" + std::string(name) + "'",
                     "one of 'portable', 'avx2', 'avx512'", "pass one of these names"});
}

std::vector<Simd> supported_simd() {
  std::vector<Simd> supported;
  for (const auto& [simd, name] : kNames) {
    if (is_supported(simd)) supported.push_back(simd);
  }
  return supported;
}

Simd simd() noexcept {
  const int known = chosen.load(std::memory_order_relaxed);
  if (known != kUndecided) return static_cast<Simd>(known);
  // Threads that decide at the same time decide the same; what was set meanwhile stays.
  int expected = kUndecided;
  const int decided = static_cast<int>(decide());
  return chosen.compare_exchange_strong(expected, decided) ? static_cast<Simd>(decided)
                                                           : static_cast<Simd>(expected);
}

absl::Status set_simd(Simd simd) {
  if (!is_supported(simd)) {
    return make_error(
        ErrorClass::kValue,
        {"the instruction set", "'" + std::string(to_string(simd)) + "'",
         "one that this processor has: " + names_of(supported_simd()), "pass one of these"});
  }
  chosen.store(static_cast<int>(simd), std::memory_order_relaxed);
  return absl::OkStatus();
}

}  // namespace gridbuf::loops
