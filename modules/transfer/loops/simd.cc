module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

module gridbuf.transfer.loops;

import gridbuf.base;

namespace gridbuf::loops {
namespace {

constexpr std::array<std::string_view, 4> kNames{"portable", "avx2", "avx512", "neon"};

constexpr int kUndecided = -1;
std::atomic<int> chosen = kUndecided;

bool is_supported(Simd simd) {
#if defined(__x86_64__)
  // __builtin_cpu_supports also checks that the system saves the registers of threads.
  if (simd == Simd::kPortable) return true;
  if (simd == Simd::kNeon) return false;
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("f16c") != 0;
  if (simd == Simd::kAvx2 || !avx2) return avx2;
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#elif defined(__aarch64__)
  return simd == Simd::kPortable || simd == Simd::kNeon;  // part of the architecture
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

}  // namespace

std::string_view to_string(Simd simd) { return kNames[static_cast<std::size_t>(simd)]; }

absl::StatusOr<Simd> simd_named(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<Simd>(found - kNames.begin());
  return make_error(ErrorClass::kValue,
                    {"the instruction set", absl::StrCat("'", name, "'"),
                     "one of 'portable', 'avx2', 'avx512', 'neon'", "pass one of these names"});
}

std::vector<Simd> supported_simd() {
  std::vector<Simd> supported;
  for (const Simd simd : {Simd::kPortable, Simd::kAvx2, Simd::kAvx512, Simd::kNeon}) {
    if (is_supported(simd)) supported.push_back(simd);
  }
  return supported;
}

Simd simd() noexcept {
  // Relaxed: the number is all that is published.
  const int known = chosen.load(std::memory_order_relaxed);
  if (known != kUndecided) return static_cast<Simd>(known);
  // Threads that decide at once get equal results. A setting made meanwhile stays.
  int expected = kUndecided;
  const int decided = static_cast<int>(decide());
  return chosen.compare_exchange_strong(expected, decided) ? static_cast<Simd>(decided)
                                                           : static_cast<Simd>(expected);
}

absl::Status set_simd(Simd simd) {
  if (!is_supported(simd)) {
    const std::string names = absl::StrJoin(
        supported_simd(), ", ", [](std::string* out, Simd one) { out->append(to_string(one)); });
    return make_error(ErrorClass::kValue,
                      {"the instruction set", absl::StrCat("'", to_string(simd), "'"),
                       "one that this processor has: " + names, "pass one of these"});
  }
  chosen.store(static_cast<int>(simd), std::memory_order_relaxed);
  return absl::OkStatus();
}

}  // namespace gridbuf::loops
