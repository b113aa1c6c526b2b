#include "conformance/cc/checks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/cc/catalogue.h"

namespace gridbuf::conformance {

Verdict pass() { return {}; }
Verdict fail(std::string expected, std::string actual) {
  return {Outcome::kFail, std::move(expected), std::move(actual), ""};
}
Verdict unsupported(std::string note) { return {Outcome::kUnsupported, "", "", std::move(note)}; }
Verdict untested(std::string note) { return {Outcome::kUntested, "", "", std::move(note)}; }

namespace {

Verdict advise(std::string expected, std::string actual) {
  return {Outcome::kAdvisory, std::move(expected), std::move(actual), ""};
}

std::string joined(const std::vector<std::int64_t>& numbers) {
  std::string text = "(";
  for (const std::int64_t number : numbers) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  }
  return text + ")";
}

std::string name_of(const abi::DataType& type) {
  return "type (code " + std::to_string(type.code) + ", bits " + std::to_string(type.bits) +
         ", lanes " + std::to_string(type.lanes) + ")";
}

constexpr char kLegacy[] = "a legacy tensor has no version and no flags";

// ---- The struct. ----

Verdict struct_has_the_layout(const Subject& s) {
  if (!s.info.struct_mapped) return fail("a struct at the pointer", "unmapped memory");
  if (s.info.is_plausible()) return pass();
  return fail("version, manager_ctx, deleter, flags, dl_tensor at their offsets",
              "version " + std::to_string(s.info.version.major) + "." +
                  std::to_string(s.info.version.minor) + ", flags " + std::to_string(s.info.flags) +
                  ", ndim " + std::to_string(s.info.tensor.ndim));
}

Verdict major_version_is_one(const Subject& s) {
  if (!s.info.versioned) return unsupported(kLegacy);
  if (s.info.version.major == 1) return pass();
  return fail("major version 1", std::to_string(s.info.version.major));
}

Verdict only_known_flags(const Subject& s) {
  if (!s.info.versioned) return unsupported(kLegacy);
  if ((s.info.flags & ~std::uint64_t{7}) == 0) return pass();
  return advise("no flag bits but 0, 1 and 2", "flags " + std::to_string(s.info.flags));
}

Verdict read_only_bit_is_true(const Subject& s) {
  if (!s.info.versioned) return unsupported(kLegacy);
  if (!s.info.hull_mapped) return unsupported("no elements in memory that the host can see");
  const bool says_writable = (s.info.flags & abi::kFlagReadOnly) == 0;
  if (!says_writable || s.info.hull_writable) return pass();
  return fail("the read-only bit set, as the memory is mapped", "clear");
}

Verdict padded_bit_only_below_a_byte(const Subject& s) {
  if (!s.info.versioned) return unsupported(kLegacy);
  const bool padded = (s.info.flags & abi::kFlagSubbytePadded) != 0;
  if (!padded || s.info.tensor.dtype.bits < 8) return pass();
  return advise("the padded bit only for types under 8 bits", name_of(s.info.tensor.dtype));
}

// ---- Shape, strides, element type. ----

Verdict shape_is_there(const Subject& s) {
  const std::string ndim = std::to_string(s.info.tensor.ndim);
  if (!s.info.shape_mapped) return fail("shape with " + ndim + " entries", "no such memory");
  if (!s.info.strides_mapped) return fail("strides with " + ndim + " entries", "no such memory");
  const bool sound = std::ranges::all_of(s.info.shape, [](auto extent) { return extent >= 0; });
  return sound ? pass() : fail("extents >= 0", joined(s.info.shape));
}

Verdict strides_are_there_from_1_2(const Subject& s) {
  if (!s.info.versioned || s.info.version.minor < 2) return unsupported("before version 1.2");
  if (s.info.tensor.ndim == 0 || s.info.strides_elements) return pass();
  return fail("strides not NULL from version 1.2 on",
              "NULL under version 1." + std::to_string(s.info.version.minor));
}

Verdict strides_count_elements(const Subject& s) {
  const bool in_bytes = s.info.walk_in_bytes && *s.info.walk_in_bytes == s.wanted;
  if (!in_bytes || s.walks_as_wanted() || s.info.itemsize_bytes == 1) return pass();
  return fail("strides in elements",
              joined(*s.info.strides_elements) + " reach the elements only when taken as bytes");
}

Verdict byte_offset_is_added(const Subject& s) {
  const bool at_data = s.info.walk_at_data && *s.info.walk_at_data == s.wanted;
  if (s.info.tensor.byte_offset == 0 || !at_data || s.walks_as_wanted()) return pass();
  return fail("the first element at data + byte_offset",
              "it is at data, and byte_offset is " + std::to_string(s.info.tensor.byte_offset));
}

Verdict data_is_aligned(const Subject&) {
  return {
      Outcome::kPass, "", "",
      "the header asks for 256 bytes and tells consumers to accept less, so this fails no library"};
}

Verdict empty_tensors_have_null_data(const Subject& s) {
  if (s.info.has_elements) return unsupported("the tensor has elements");
  return s.info.tensor.data == nullptr ? pass()
                                       : advise("data NULL for a tensor of size zero", "a pointer");
}

Verdict zero_dimensions_have_memory(const Subject& s) {
  if (s.info.tensor.ndim != 0) return unsupported("the tensor has dimensions");
  return s.info.tensor.data != nullptr ? pass()
                                       : fail("data not NULL: ndim 0 is one element", "NULL");
}

Verdict strides_stay_in_the_allocation(const Subject& s) {
  if (!s.info.has_elements) return unsupported("no byte is touched");
  if (s.info.tensor.data == nullptr) return unsupported("data is NULL (DL-13, DL-27)");
  if (s.info.tensor.device.device_type != abi::kHost) return untested("not host memory");
  if (!s.info.map_known) return untested("this system does not report the mapped pages");
  if (!s.info.hull) return fail("elements inside the address space", "strides leave 64 bits");
  if (s.info.hull_mapped) return pass();
  return fail("mapped memory under every element", "bytes " + std::to_string(s.info.hull->lowest) +
                                                       " to " +
                                                       std::to_string(s.info.hull->highest) +
                                                       " of the first element are not all mapped");
}

// Bits that the header fixes, by type code from bool (6) on; 0: none.
constexpr std::array<int, 18> kFixedBits = {0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 6, 6, 4};

Verdict type_is_legal(const Subject& s) {
  const abi::DataType& type = s.info.tensor.dtype;
  if (type.code >= type_code_count()) return fail("a known type code", name_of(type));
  if (type.bits == 0 || type.lanes == 0) return fail("bits and lanes >= 1", name_of(type));
  const int fixed = type.code < kFixedBits.size() ? kFixedBits.at(type.code) : 0;
  if (fixed == 0 || fixed == type.bits) return pass();
  return fail(std::to_string(fixed) + " bits for type code " + std::to_string(type.code),
              name_of(type));
}

Verdict swapped_order_is_refused(const Subject& s) {
  if (!s.plan->swapped) return unsupported("the plan's byte order is native");
  if (!s.walks_as_wanted()) return pass();  // not the requested layout: GT-20
  return advise("swapped byte order declined", "the swapped bytes exported as native");
}

bool is_known_device(const abi::Device& device) {
  return std::ranges::find(device_types(), device.device_type) != device_types().end();
}

constexpr std::array<std::int32_t, 4> kHostLike = {1, 3, 11, 13};

Verdict device_is_known(const Subject& s) {
  const abi::Device& device = s.info.tensor.device;
  if (!is_known_device(device)) {
    return fail("a known device type", std::to_string(device.device_type));
  }
  const bool is_host_like = std::ranges::find(kHostLike, device.device_type) != kHostLike.end();
  if (!is_host_like || device.device_id == 0) return pass();
  return advise("device id 0 for host memory", std::to_string(device.device_id));
}

Verdict byte_offset_is_unsigned(const Subject& s) {
  const std::uint64_t offset = s.info.tensor.byte_offset;
  if (offset < std::uint64_t{1} << 63) return pass();
  return fail("an offset >= 0", "2^64 - " + std::to_string(-offset) + ": a negative one wrapped");
}

Verdict elements_have_memory(const Subject& s) {
  if (s.info.tensor.ndim == 0 || !s.info.has_elements) return unsupported("no dimensions or none");
  if (s.info.tensor.data != nullptr) return pass();
  return fail("data not NULL for a tensor with elements", "NULL for shape " + joined(s.info.shape));
}

Verdict lanes_count_in_the_element(const Subject& s) {
  const abi::DataType& type = s.info.tensor.dtype;
  if (type.lanes == 1) return unsupported("one lane");
  if (s.info.itemsize_bytes == s.plan->itemsize_bytes) return pass();
  return fail("elements of " + std::to_string(s.plan->itemsize_bytes) + " bytes, lanes included",
              name_of(type));
}

// ---- Life. ----

Verdict deleter_is_code(const Subject& s) {
  if (s.info.deleter == 0 || s.info.deleter_is_code) return pass();
  return fail("deleter NULL or a function", "an address that holds no code");
}

Verdict deleter_runs_on_any_thread(const Subject& s) {
  if (s.info.deleter == 0) return unsupported("no deleter to call");
  return pass();  // it was called on a separate thread; a wrong deleter ends the process
}

Verdict metadata_lives_until_the_deleter(const Subject& s) {
  if (s.changed.empty()) return pass();
  return fail("shape, strides and memory as exported, until the deleter runs", s.changed);
}

// ---- The plan. ----

Verdict the_plan_is_met(const Subject& s) {
  const Plan& plan = *s.plan;
  if (!plan.dlpack) return fail(plan.dtype + " declined: DLPack has no word for it", "a tensor");
  if (plan.swapped) return fail("swapped byte order declined", "elements of native order");
  if (!s.info.is_described()) return unsupported("the tensor describes no array (DL-07)");
  if (!is_known_device(s.info.tensor.device)) return unsupported("the device is unknown (DL-17)");
  if (s.info.shape != plan.view.shape) {
    return fail("shape " + joined(plan.view.shape), "shape " + joined(s.info.shape));
  }
  const abi::DataType& type = s.info.tensor.dtype;
  // Lanes that make another size are DL-30's question.
  const bool is_lanes = type.lanes != 1 && s.info.itemsize_bytes != plan.itemsize_bytes;
  const bool is_word = type.code == plan.dlpack->code && type.bits == plan.dlpack->bits &&
                       type.lanes == plan.dlpack->lanes;
  if (!is_word && !is_lanes) {
    return fail(plan.dtype + ": " + name_of(*plan.dlpack), name_of(type));
  }
  if (s.info.tensor.device.device_type != abi::kHost) {
    return fail("host memory", "device type " + std::to_string(s.info.tensor.device.device_type));
  }
  const bool says_readonly = (s.info.flags & abi::kFlagReadOnly) != 0;
  if (!s.info.versioned || says_readonly == plan.readonly) return pass();
  return plan.readonly ? fail("read-only", "writable") : fail("writable", "read-only");
}

std::string hex_of(const Bytes& bytes, std::size_t begin, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t k = begin; k < std::min(begin + count, bytes.size()); ++k) {
    const auto value = std::to_integer<unsigned>(bytes[k]);
    text += {kDigits[value >> 4], kDigits[value & 15]};
  }
  return text;
}

Verdict contents_are_the_plans(const Subject& s) {
  if (s.wanted.empty()) return unsupported("no elements");
  if (!s.info.walk) return untested("the elements are not in memory that the host can read");
  if (*s.info.walk == s.wanted) return pass();
  const auto [found, wanted] = std::ranges::mismatch(*s.info.walk, s.wanted);
  const auto itemsize = static_cast<std::size_t>(s.plan->itemsize_bytes);
  const auto element = static_cast<std::size_t>(wanted - s.wanted.begin()) / itemsize;
  return fail("bytes " + hex_of(s.wanted, element * itemsize, itemsize) + " at element " +
                  std::to_string(element) + " in row-major order",
              hex_of(*s.info.walk, element * itemsize, itemsize));
}

// ---- Placement. Strides of axes without a second element carry no meaning. ----

std::vector<std::size_t> meaningful_axes(const Info& info) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < info.shape.size(); ++axis) {
    if (info.shape[axis] > 1) axes.push_back(axis);
  }
  return axes;
}

std::uint64_t past_alignment(const Subject& s, const Info& info) {
  std::uintptr_t address = info.first_element;
  for (std::size_t axis = 0; axis < info.strides_bytes.size(); ++axis) {
    address += static_cast<std::uintptr_t>(s.plan->aligned_index[axis] * info.strides_bytes[axis]);
  }
  return address % static_cast<std::uint64_t>(s.plan->alignment_size);
}

bool asks_alignment(const Subject& s) {
  return s.plan->alignment_size > 1 && s.info.has_elements && !s.plan->has_views;
}

constexpr char kNoAlignment[] = "the plan asks for no alignment, or has no elements";

Verdict aligned_element_is_aligned(const Subject& s) {
  if (!asks_alignment(s)) return unsupported(kNoAlignment);
  const std::uint64_t past = past_alignment(s, s.info);
  if (past == 0) return pass();
  return fail("element " + joined(s.plan->aligned_index) + " on a multiple of " +
                  std::to_string(s.plan->alignment_size) + " bytes",
              std::to_string(past) + " bytes past one");
}

Verdict strides_follow_the_layout(const Subject& s) {
  if (s.plan->layout.empty() || s.plan->has_views) return unsupported("no layout is asked");
  if (!s.info.has_elements) return unsupported("no elements");
  std::vector<std::size_t> axes = meaningful_axes(s.info);
  std::ranges::sort(axes, {}, [&s](std::size_t axis) { return s.plan->layout[axis]; });
  const auto stride = [&s](std::size_t axis) { return -std::abs(s.info.strides_bytes[axis]); };
  if (std::ranges::is_sorted(axes, {}, stride)) return pass();
  const std::vector<std::int64_t> layout(s.plan->layout.begin(), s.plan->layout.end());
  return fail("strides that fall in the order of layout " + joined(layout),
              "strides " + joined(s.info.strides_bytes) + " bytes");
}

Verdict the_whole_slab_is_aligned(const Subject& s) {
  if (!asks_alignment(s)) return unsupported(kNoAlignment);
  const std::vector<std::size_t> axes = meaningful_axes(s.info);
  if (s.info.shape.size() < 2 || axes.empty()) return unsupported("fewer than two dimensions");
  const auto stride = [&s](std::size_t axis) { return std::abs(s.info.strides_bytes[axis]); };
  const auto last = static_cast<int>(s.info.shape.size()) - 1;
  const auto& layout = s.plan->layout;
  const std::size_t contiguous =
      layout.empty() ? *std::ranges::min_element(axes, {}, stride)
                     : static_cast<std::size_t>(std::ranges::find(layout, last) - layout.begin());
  for (const std::size_t axis : axes) {
    if (axis == contiguous || stride(axis) % s.plan->alignment_size == 0) continue;
    return fail("strides but that of dimension " + std::to_string(contiguous) +
                    " on multiples of " + std::to_string(s.plan->alignment_size) + " bytes",
                "strides " + joined(s.info.strides_bytes) + " bytes");
  }
  return pass();
}

Verdict same_request_same_plan(const Subject& s) {
  if (!s.second) return unsupported("the second tensor was declined or could not be read");
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> again;
  for (const std::size_t axis : meaningful_axes(s.info)) {
    if (axis >= s.second->strides_bytes.size()) return fail("the same shape again", "another one");
    first.push_back(s.info.strides_bytes[axis]);
    again.push_back(s.second->strides_bytes[axis]);
  }
  if (s.info.has_elements && first != again) {
    return fail("strides " + joined(first) + " bytes again", joined(again));
  }
  if (!asks_alignment(s)) return pass();
  const std::uint64_t places[] = {past_alignment(s, s.info), past_alignment(s, *s.second)};
  if (places[0] == places[1]) return pass();
  return fail(std::to_string(places[0]) + " bytes past a multiple of the alignment again",
              std::to_string(places[1]));
}

struct Entry {
  std::string_view rule;
  Check check;
};

constexpr Entry kChecks[] = {
    {"DL-01", struct_has_the_layout},
    {"DL-02", major_version_is_one},
    {"DL-03", only_known_flags},
    {"DL-04", read_only_bit_is_true},
    {"DL-06", padded_bit_only_below_a_byte},
    {"DL-07", shape_is_there},
    {"DL-08", strides_are_there_from_1_2},
    {"DL-09", strides_count_elements},
    {"DL-10", byte_offset_is_added},
    {"DL-11", data_is_aligned},
    {"DL-12", empty_tensors_have_null_data},
    {"DL-13", zero_dimensions_have_memory},
    {"DL-14", strides_stay_in_the_allocation},
    {"DL-15", type_is_legal},
    {"DL-16", swapped_order_is_refused},
    {"DL-17", device_is_known},
    {"DL-19", deleter_is_code},
    {"DL-20", deleter_runs_on_any_thread},
    {"DL-21", metadata_lives_until_the_deleter},
    {"DL-24", byte_offset_is_unsigned},
    {"DL-27", elements_have_memory},
    {"DL-30", lanes_count_in_the_element},
    {"GT-16", aligned_element_is_aligned},
    {"GT-17", strides_follow_the_layout},
    {"GT-20", the_plan_is_met},
    {"GT-22", the_whole_slab_is_aligned},
    {"GT-23", same_request_same_plan},
    {"XA-08", contents_are_the_plans},
};

}  // namespace

Check check_of(std::string_view rule) {
  const auto* entry = std::ranges::find(kChecks, rule, &Entry::rule);
  return entry == std::end(kChecks) ? nullptr : entry->check;
}

Bytes wanted_elements(const Plan& plan) {
  const Bytes content = plan.content();
  std::vector<std::int64_t> base_step(plan.shape.size());
  std::int64_t step = plan.itemsize_bytes;
  for (std::size_t axis = plan.shape.size(); axis-- > 0;) {
    base_step[axis] = step;
    step *= plan.shape[axis];
  }
  const View& view = plan.view;
  std::int64_t count = 1;
  for (const std::int64_t extent : view.shape) count *= extent;
  Bytes wanted;
  std::vector<std::int64_t> index(view.shape.size(), 0);
  for (std::int64_t element = 0; element < count; ++element) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < base_step.size(); ++axis) {
      place += view.start[axis] * base_step[axis];
    }
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      if (view.axes[axis] < 0) continue;
      place +=
          index[axis] * view.steps[axis] * base_step[static_cast<std::size_t>(view.axes[axis])];
    }
    const auto begin = content.begin() + place;
    wanted.insert(wanted.end(), begin, begin + plan.itemsize_bytes);
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == view.shape[axis];) {
      index[axis] = 0;
    }
  }
  return wanted;
}

}  // namespace gridbuf::conformance
