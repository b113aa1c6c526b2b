// Fills beside memset by the same number of threads, in turns, on the same memory: rates differ too
// much from minute to minute to be compared otherwise. Each line is a case: its median rate, and
// what it is of memset's.
//
//   fill_benchmark [mebibytes of the large cases]

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

import gridbuf.base;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.transfer.fill;

namespace gridbuf::fill {
namespace {

constexpr std::int64_t kHugePageBytes = std::int64_t{1} << 21;
constexpr std::int64_t kRounds = 9;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Memory on huge pages where the system has them; fresh until it is touched.
class Pages {
 public:
  explicit Pages(std::int64_t length_bytes) : length_bytes_(length_bytes + 2 * kHugePageBytes) {
    mapping_ = mmap(nullptr, static_cast<std::size_t>(length_bytes_), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) std::abort();
    madvise(mapping_, static_cast<std::size_t>(length_bytes_), MADV_HUGEPAGE);
  }
  ~Pages() { munmap(mapping_, static_cast<std::size_t>(length_bytes_)); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const {
    const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
    return static_cast<std::byte*>(mapping_) +
           (kHugePageBytes - 1 - (address - 1) % kHugePageBytes);
  }

 private:
  std::int64_t length_bytes_;
  void* mapping_;
};

struct Case {
  std::string name;
  StridedView view;
  std::vector<std::byte> element;
  int memset_byte;
};

std::int64_t bytes_of(const StridedView& view) {
  std::int64_t bytes = view.itemsize_bytes;
  for (const std::int64_t extent : view.shape) bytes *= extent;
  return bytes;
}

std::vector<std::byte> element_of(std::int64_t itemsize, bool zero) {
  std::vector<std::byte> element(static_cast<std::size_t>(itemsize));
  for (std::size_t i = 0; i < element.size() && !zero; ++i) element[i] = std::byte(i * 37 + 1);
  return element;
}

// Rows of 512 elements with or without 8 more behind them.
Case rows_case(std::int64_t total_bytes, std::int64_t itemsize, std::int64_t padding, bool zero) {
  const std::int64_t row_bytes = (512 + padding) * itemsize;
  const std::int64_t rows = std::max<std::int64_t>(1, total_bytes / row_bytes);
  return {.name = std::to_string(itemsize) + "-byte " + (zero ? "zeros" : "elements") +
                  (padding > 0 ? ", padded rows" : ""),
          .view = {.shape = {rows, 512},
                   .strides_bytes = {row_bytes, itemsize},
                   .itemsize_bytes = itemsize},
          .element = element_of(itemsize, zero),
          .memset_byte = zero ? 0 : 0x3f};
}

// Every other element of a dense row, beside a memset of as many bytes as are written.
Case strided_case(std::int64_t total_bytes, std::int64_t itemsize) {
  return {.name = std::to_string(itemsize) + "-byte elements, every other",
          .view = {.shape = {total_bytes / (2 * itemsize)},
                   .strides_bytes = {2 * itemsize},
                   .itemsize_bytes = itemsize},
          .element = element_of(itemsize, false),
          .memset_byte = 0x3f};
}

void memset_by_all_threads(std::byte* data, std::int64_t length_bytes, int value) {
  if (length_bytes < kHugePageBytes) {
    std::memset(data, value, static_cast<std::size_t>(length_bytes));
    return;
  }
  // Halves, as a program would do it: no other cut is faster.
  const std::int64_t share = (length_bytes - 1) / thread_count() + 1;
  parallel_for(length_bytes, share, [&](std::int64_t begin, std::int64_t end) {
    std::memset(data + begin, value, static_cast<std::size_t>(end - begin));
  });
}

double time_of(std::int64_t repeats, const std::function<void()>& work) {
  const double begin = seconds();
  for (std::int64_t i = 0; i < repeats; ++i) work();
  return (seconds() - begin) / static_cast<double>(repeats);
}

void report(const char* state, std::int64_t bytes, const Case& c, const std::vector<double>& fills,
            const std::vector<double>& memsets) {
  const double rate = static_cast<double>(bytes) / median(fills) / 1e9;
  std::printf("%-5s %10.1f KiB  %-28s %7.2f GB/s  %.2f of memset\n", state,
              static_cast<double>(bytes) / 1024, c.name.c_str(), rate,
              median(memsets) / median(fills));
}

void measure_warm(const Case& c, std::byte* data) {
  const std::int64_t bytes = bytes_of(c.view);
  const std::int64_t repeats = std::max<std::int64_t>(1, (std::int64_t{1} << 23) / bytes);
  std::vector<double> fills, memsets;
  for (std::int64_t round = 0; round < kRounds; ++round) {
    memsets.push_back(time_of(repeats, [&] { memset_by_all_threads(data, bytes, c.memset_byte); }));
    fills.push_back(time_of(repeats, [&] { fill_view(data, c.view, c.element); }));
  }
  report("warm", bytes, c, fills, memsets);
}

void measure_fresh(const Case& c) {
  const std::int64_t bytes = bytes_of(c.view);
  std::vector<double> fills, memsets;
  for (std::int64_t round = 0; round < kRounds / 2; ++round) {
    {
      const Pages pages(byte_hull(c.view)->highest_bytes);
      memsets.push_back(
          time_of(1, [&] { memset_by_all_threads(pages.data(), bytes, c.memset_byte); }));
    }
    const Pages pages(byte_hull(c.view)->highest_bytes);
    fills.push_back(time_of(1, [&] { fill_view(pages.data(), c.view, c.element); }));
  }
  report("fresh", bytes, c, fills, memsets);
}

int run(std::int64_t large_bytes) {
  const Pages pages(large_bytes + large_bytes / 8);
  std::memset(pages.data(), 1, static_cast<std::size_t>(large_bytes + large_bytes / 8));
  for (const std::int64_t total :
       {std::int64_t{1} << 12, std::int64_t{1} << 15, std::int64_t{1} << 18, std::int64_t{1} << 22,
        std::int64_t{1} << 25, large_bytes}) {
    for (const std::int64_t itemsize : {1, 8, 12, 16}) {
      for (const std::int64_t padding : {0, 8}) {
        measure_warm(rows_case(total, itemsize, padding, false), pages.data());
      }
    }
    for (const std::int64_t padding : {0, 8}) {
      measure_warm(rows_case(total, 8, padding, true), pages.data());
    }
    measure_warm(strided_case(total, 8), pages.data());
  }
  for (const std::int64_t padding : {0, 8}) {
    measure_fresh(rows_case(large_bytes, 8, padding, false));
    measure_fresh(rows_case(large_bytes, 12, padding, false));
  }
  return 0;
}

}  // namespace
}  // namespace gridbuf::fill

int main(int argc, char** argv) {
  const std::int64_t mebibytes = argc > 1 ? std::atoll(argv[1]) : 256;
  if (mebibytes < 1 || mebibytes > 16'384) {
    std::fprintf(stderr, "usage: %s [mebibytes of the large cases, 1 to 16384]\n", argv[0]);
    return 2;
  }
  return gridbuf::fill::run(mebibytes << 20);
}
