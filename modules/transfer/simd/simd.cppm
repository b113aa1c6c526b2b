// gridbuf.transfer.simd: which vector instructions copies, fills and conversions use.
//
// Inner loops exist up to three times: for any processor, for AVX2 and for AVX-512. Which of them
// runs is decided once, when the process first asks: the best that the processor and the system
// offer. It is one setting for all of gridbuf, and it can be set, so that every path is tested on
// any machine that has it, and a suspicion of one can be checked by anybody in a minute
// (GRIDBUF_SIMD=portable).
//
// The key choice: paths differ in speed and in nothing else. All of them write the same bytes; no
// result, error or size may depend on the setting. Functions are compiled for an instruction set
// each by their `target` attribute, not files by their flags: a file that is compiled for AVX-512
// may leave AVX-512 copies of the standard library's inline functions behind, for everybody.
module;

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.transfer.simd;

export namespace gridbuf {

enum class Simd : std::uint8_t {
  kPortable,  // what every processor of the architecture has (x86-64: SSE2)
  kAvx2,      // 32-byte vectors: AVX2, F16C, FMA, BMI2 (x86-64-v3)
  kAvx512,    // 64-byte vectors: AVX-512 F, BW, DQ, VL (x86-64-v4)
};

/// "portable", "avx2", "avx512".
std::string_view to_string(Simd simd);

/// The setting of that name. Error: kValue, listing the names.
absl::StatusOr<Simd> simd_named(std::string_view name);

/// What this processor has, from portable upwards; never empty.
std::vector<Simd> supported_simd();

/// The variable that chooses at the start of the process. What it names that does not exist here is
/// ignored.
inline constexpr const char* kSimdVariable = "GRIDBUF_SIMD";

/// What is in use: what was set last, else what the variable names, else the best there is.
Simd simd() noexcept;

/// Sets it for the whole process, from the next job on. Error: kValue if this processor lacks it.
absl::Status set_simd(Simd simd);

}  // namespace gridbuf
