module;

#include <cstddef>
#include <cstdint>
#include <cstring>

module gridbuf.transfer.convert.steps;

import gridbuf.transfer.simd;

namespace gridbuf::steps {
namespace {

#if defined(__x86_64__)
#define GRIDBUF_AVX2 __attribute__((target("avx2,f16c,fma,bmi2")))
#define GRIDBUF_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c,fma,bmi2")))
#else
#define GRIDBUF_AVX2
#define GRIDBUF_AVX512
#endif
#define GRIDBUF_INLINE __attribute__((always_inline)) inline

// A loop is a class with an inline `run`, which is compiled anew for each instruction set.
template <class Loop, class... Arguments>
GRIDBUF_AVX2 void run_avx2(Arguments... arguments) {
  Loop::run(arguments...);
}
template <class Loop, class... Arguments>
GRIDBUF_AVX512 void run_avx512(Arguments... arguments) {
  Loop::run(arguments...);
}
template <class Loop, class... Arguments>
void run(Simd simd, Arguments... arguments) {
  switch (simd) {
    case Simd::kPortable:
      return Loop::run(arguments...);
    case Simd::kAvx2:
      return run_avx2<Loop>(arguments...);
    case Simd::kAvx512:
      return run_avx512<Loop>(arguments...);
  }
}

struct Word16 {
  std::uint64_t halves[2];
};

template <class Word>
GRIDBUF_INLINE Word load(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof(Word));
  return word;
}
template <class Word>
GRIDBUF_INLINE void store(std::byte* at, Word word) {
  std::memcpy(at, &word, sizeof(Word));
}
template <class Word>
inline constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Word));

// Calls `function.template operator()<Word>()` for the unsigned integer of that length.
template <class Function>
GRIDBUF_INLINE void with_word(std::int64_t itemsize_bytes, const Function& function) {
  switch (itemsize_bytes) {
    case 1:
      return function.template operator()<std::uint8_t>();
    case 2:
      return function.template operator()<std::uint16_t>();
    case 4:
      return function.template operator()<std::uint32_t>();
    case 8:
      return function.template operator()<std::uint64_t>();
    default:
      return function.template operator()<Word16>();
  }
}

// --- Masks ---------------------------------------------------------------------------------------

template <class Word>
struct DenseWhere {
  GRIDBUF_INLINE static void run(std::byte* __restrict target, const std::byte* __restrict dense,
                                 const std::byte* __restrict mask, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (mask[i] != std::byte{0}) {
        store(target + i * kBytes<Word>, load<Word>(dense + i * kBytes<Word>));
      }
    }
  }
};

template <class Word>
void strided_where(std::byte* target, std::int64_t stride_bytes, const std::byte* dense,
                   const std::byte* mask, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (mask[i] != std::byte{0}) {
      store(target + i * stride_bytes, load<Word>(dense + i * kBytes<Word>));
    }
  }
}

template <class Word>
std::int64_t compress_words(std::byte* dense, const std::byte* source, const std::byte* mask,
                            std::int64_t count) {
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (mask[i] == std::byte{0}) continue;
    store(dense + kept * kBytes<Word>, load<Word>(source + i * kBytes<Word>));
    ++kept;
  }
  return kept;
}

// --- Byte order ----------------------------------------------------------------------------------

GRIDBUF_INLINE std::uint16_t reversed(std::uint16_t word) { return __builtin_bswap16(word); }
GRIDBUF_INLINE std::uint32_t reversed(std::uint32_t word) { return __builtin_bswap32(word); }
GRIDBUF_INLINE std::uint64_t reversed(std::uint64_t word) { return __builtin_bswap64(word); }

template <class Word>
struct SwapInPlace {
  GRIDBUF_INLINE static void run(std::byte* row, std::int64_t units) {
    for (std::int64_t i = 0; i < units; ++i) {
      store(row + i * kBytes<Word>, reversed(load<Word>(row + i * kBytes<Word>)));
    }
  }
};

template <class Word>
struct SwapApart {
  GRIDBUF_INLINE static void run(std::byte* __restrict target, const std::byte* __restrict source,
                                 std::int64_t units) {
    for (std::int64_t i = 0; i < units; ++i) {
      store(target + i * kBytes<Word>, reversed(load<Word>(source + i * kBytes<Word>)));
    }
  }
};

template <class Word>
void swap_words(std::byte* target, const std::byte* source, std::int64_t units, Simd simd) {
  if (target == source) return run<SwapInPlace<Word>>(simd, target, units);
  run<SwapApart<Word>>(simd, target, source, units);
}

}  // namespace

void scatter_where(std::byte* target, std::int64_t stride_bytes, const std::byte* dense,
                   const std::byte* mask, std::int64_t count, std::int64_t itemsize_bytes,
                   Simd simd) {
  with_word(itemsize_bytes, [&]<class Word>() {
    if (stride_bytes == kBytes<Word>) {
      run<DenseWhere<Word>>(simd, target, dense, mask, count);
    } else {
      strided_where<Word>(target, stride_bytes, dense, mask, count);
    }
  });
}

std::int64_t compress(std::byte* dense, const std::byte* source, const std::byte* mask,
                      std::int64_t count, std::int64_t itemsize_bytes) {
  std::int64_t kept = 0;
  with_word(itemsize_bytes,
            [&]<class Word>() { kept = compress_words<Word>(dense, source, mask, count); });
  return kept;
}

void swap_bytes(std::byte* target, const std::byte* source, std::int64_t units,
                std::int64_t unit_bytes, Simd simd) {
  switch (unit_bytes) {
    case 2:
      return swap_words<std::uint16_t>(target, source, units, simd);
    case 4:
      return swap_words<std::uint32_t>(target, source, units, simd);
    default:
      return swap_words<std::uint64_t>(target, source, units, simd);
  }
}

Selected selected(const std::byte* mask, std::int64_t count) {
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < count; ++i) zeros += mask[i] == std::byte{0} ? 1 : 0;
  if (zeros == 0) return Selected::kAll;
  return zeros == count ? Selected::kNone : Selected::kSome;
}

}  // namespace gridbuf::steps
