#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.device.registry;
import gridbuf.storage;
import gridbuf.storage.testing;

// Compares a software-managed storage with a model: two plain arrays and the set of dirty points.
// The test makes random accesses, exports, marks and failures; after each, the visible values must
// be the model's. The streams of the emulated device run as late as possible, so a missing wait
// gives old values. A seed makes a run repeatable: GRIDBUF_MODEL_SEED, GRIDBUF_MODEL_STEPS.

namespace gridbuf {
namespace {

using emulated::Operation;
using testing::Values;

constexpr std::size_t kHost = 0;
constexpr std::size_t kDevice = 1;

Side side_of(std::size_t position) { return position == kHost ? Side::kHost : Side::kDevice; }

// The values of each side, and its points that are newer than those of the opposite side.
struct Model {
  explicit Model(std::size_t points)
      : values{Values(points), Values(points)},
        dirty{std::vector<bool>(points), std::vector<bool>(points)},
        marked(dirty) {}

  std::vector<Values> values;
  std::vector<std::vector<bool>> dirty;
  // Points that a storage may have marked. They may be more than the dirty points: it may copy
  // points earlier than the model, and the end of an export marks them again.
  std::vector<std::vector<bool>> marked;

  bool may_be_marked(std::size_t side, const std::vector<std::size_t>& points) const {
    for (const std::size_t point : points) {
      if (marked[side][point]) return true;
    }
    return false;
  }
  void make_dirty(std::size_t side, std::size_t point) {
    dirty[side][point] = marked[side][point] = true;
  }
  void make_clean(std::size_t side, std::size_t point) {
    dirty[side][point] = marked[side][point] = false;
  }
  void make_clean() {
    for (std::vector<std::vector<bool>>* sides : {&dirty, &marked}) {
      for (std::vector<bool>& side : *sides) side.assign(side.size(), false);
    }
  }
};

struct Export {
  std::size_t side;
  Storage view;
  std::vector<std::size_t> points;
  Owner owner;
};

class Run {
 public:
  Run(std::uint64_t seed, const Layout& host, const Layout& device)
      : random_(seed),
        shape_(host.shape()),
        storage_(*Storage::allocate({.layout = host,
                                     .kind = StorageKind::kSoftwareManaged,
                                     .zeroed = true,
                                     .device_layout = device})),
        model_(points_of(storage_).size()) {
    for (int i = 0; i < 3; ++i) {
      streams_.push_back(
          *driver().create_stream(i == 0 ? StreamKind::kBlocking : StreamKind::kNonBlocking));
    }
    streams_.push_back(kLegacyDefaultStream);
  }
  ~Run() {
    exports_.clear();
    driver().faults().clear();
    EXPECT_TRUE(driver().synchronize_device().ok());
    // Device memory is freed in the order of the stream of its allocation, here the legacy stream.
    for (std::size_t i = 0; i + 1 < streams_.size(); ++i) {
      EXPECT_TRUE(driver().destroy_stream(streams_[i]).ok());
    }
  }

  void step();
  std::int64_t failures() const { return failures_; }

 private:
  static EmulatedDriver& driver() { return emulated_driver(); }
  std::uint64_t pick(std::uint64_t bound) { return random_() % bound; }
  bool chance(std::uint64_t of) { return pick(of) == 0; }

  std::vector<std::size_t> points_of(const Storage& view) const;
  std::vector<std::size_t> hull_points(const Storage& view) const;
  Storage random_view();
  Values fresh_values(std::size_t count);
  bool has_exports(std::size_t side) const;
  std::vector<bool> exported_by(std::size_t side) const;
  std::vector<std::size_t> all_points() const;
  double newest(std::size_t point) const;
  void settle(std::size_t target, const std::vector<std::size_t>& points);

  void read();
  void write();
  void take_export();
  void drop_export();
  void write_through_export();
  void mark();
  void transfer();
  void force();
  void set_synchronized();
  void copy();
  void fail();
  void check_state() const;
  void check_side(std::size_t side, const Storage& view);

  std::mt19937_64 random_;
  Extents shape_;
  Storage storage_;
  Model model_;
  std::vector<StreamHandle> streams_;
  std::vector<Export> exports_;
  std::vector<StreamHandle> holders_;  // on which a holder of an export has work pending
  double next_value_ = 1;
  std::int64_t failures_ = 0;
  std::int64_t refused_marks_ = 0;
};

// Ordinals of the base's points that the view shows, row-major.
std::vector<std::size_t> Run::points_of(const Storage& view) const {
  std::vector<std::size_t> points;
  const BufferDescriptor whole = storage_.memory(Side::kHost);
  const BufferDescriptor seen = view.memory(Side::kHost);
  const auto ordinal_of = [&](std::int64_t offset) {
    // By the strides of the base, largest first.
    std::size_t ordinal = 0;
    Extents index(shape_.size(), 0);
    for (const int axis : axes_by_rank(storage_.layout_map())) {
      index[axis] = offset / whole.view.strides_bytes[axis];
      offset %= whole.view.strides_bytes[axis];
    }
    for (int axis = 0; axis < shape_.size(); ++axis) {
      ordinal =
          ordinal * static_cast<std::size_t>(shape_[axis]) + static_cast<std::size_t>(index[axis]);
    }
    return ordinal;
  };
  if (is_empty(seen.view.shape)) return points;
  Extents index(seen.view.ndim(), 0);
  while (true) {
    points.push_back(ordinal_of(byte_offset(seen.view, index)));
    int axis = seen.view.ndim() - 1;
    for (; axis >= 0; --axis) {
      if (++index[axis] < seen.view.shape[axis]) break;
      index[axis] = 0;
    }
    if (axis < 0) return points;
  }
}

std::vector<std::size_t> Run::hull_points(const Storage& view) const {
  const Box box = view.hull();
  if (is_empty(box)) return {};
  IndexMap map(shape_);
  for (int axis = 0; axis < shape_.size(); ++axis) {
    map.keep(axis, slice_points({box.lower[axis], box.upper[axis]}, shape_[axis]));
  }
  return points_of(storage_.view(map));
}

Storage Run::random_view() {
  if (chance(6)) return storage_;
  IndexMap map(shape_);
  for (int axis = shape_.size() - 1; axis >= 0; --axis) {
    const auto extent = static_cast<std::uint64_t>(shape_[axis]);
    if (chance(4)) {
      map.fix(axis, static_cast<std::int64_t>(pick(extent)));
      continue;
    }
    if (chance(3)) continue;
    std::int64_t step = chance(4) ? static_cast<std::int64_t>(pick(5)) - 2 : 1;
    if (step == 0) step = -1;
    map.keep(axis, slice_points({static_cast<std::int64_t>(pick(extent)),
                                 static_cast<std::int64_t>(pick(extent + 1)), step},
                                shape_[axis]));
  }
  if (chance(4)) {
    const int added = static_cast<int>(pick(static_cast<std::uint64_t>(map.ndim() + 1)));
    map.insert(added);
    if (chance(2)) map.keep(added, slice_points({0, 0}, 1));
  }
  Storage view = storage_.view(map);
  if (chance(3)) {
    IndexMap turned(view.shape());
    Axes axes;
    for (int axis = view.ndim() - 1; axis >= 0; --axis) axes.push_back(axis);
    turned.permute(axes);
    view = view.view(turned);
  }
  return view;
}

Values Run::fresh_values(std::size_t count) {
  Values values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(next_value_++);
  return values;
}

std::vector<bool> Run::exported_by(std::size_t side) const {
  std::vector<bool> exported(model_.values[0].size());
  for (const Export& held : exports_) {
    if (held.side != side) continue;
    for (const std::size_t point : hull_points(held.view)) exported[point] = true;
  }
  return exported;
}

bool Run::has_exports(std::size_t side) const {
  for (const Export& held : exports_) {
    if (held.side == side && !is_empty(held.view.hull())) return true;
  }
  return false;
}

// The effect of a tracked access to `target` on the model: it sees the newest values in its hull.
void Run::settle(std::size_t target, const std::vector<std::size_t>& points) {
  const std::size_t source = 1 - target;
  const std::vector<bool> exported =
      has_exports(target) ? std::vector<bool>(model_.values[0].size()) : exported_by(source);
  for (const std::size_t point : points) {
    const bool newer =
        model_.dirty[source][point] || (exported[point] && !model_.dirty[target][point]);
    if (newer) model_.values[target][point] = model_.values[source][point];
    model_.make_clean(source, point);
  }
}

void Run::check_side(std::size_t side, const Storage& view) {
  const absl::StatusOr<Values> seen = testing::read_values(view, side_of(side));
  ASSERT_TRUE(seen.ok()) << seen.status();
  settle(side, hull_points(view));
  const std::vector<std::size_t> points = points_of(view);
  ASSERT_EQ(seen->size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    ASSERT_EQ((*seen)[i], model_.values[side][points[i]])
        << "stale on the " << to_string(side_of(side)) << " at point " << points[i];
  }
}

void Run::read() { check_side(pick(2), random_view()); }

void Run::write() {
  const std::size_t side = pick(2);
  const Storage view = random_view();
  const std::vector<std::size_t> points = points_of(view);
  const std::vector<std::size_t> hull = hull_points(view);
  const Values values = fresh_values(points.size());
  const Coverage coverage = chance(3) ? Coverage::kPart : Coverage::kAll;
  const absl::Status status = testing::write_values(view, side_of(side), coverage, values);
  ASSERT_TRUE(status.ok()) << status;
  if (coverage == Coverage::kPart || points.size() != hull.size()) settle(side, hull);
  for (const std::size_t point : hull) {
    model_.make_dirty(side, point);
    model_.make_clean(1 - side, point);
  }
  for (std::size_t i = 0; i < points.size(); ++i) model_.values[side][points[i]] = values[i];
}

void Run::take_export() {
  if (exports_.size() >= 12) return;
  const std::size_t side = pick(2);
  const Storage view = random_view();
  absl::StatusOr<Owner> owner = view.export_side(side_of(side), true);
  ASSERT_TRUE(owner.ok()) << owner.status();
  const std::vector<std::size_t> hull = hull_points(view);
  settle(side, hull);
  // From now on the possible writes of the opposite side's holders are marked, not presumed.
  if (!has_exports(side)) {
    const std::vector<bool> written = exported_by(1 - side);
    for (const std::size_t point : all_points()) {
      const bool elsewhere = std::find(hull.begin(), hull.end(), point) == hull.end();
      if (!written[point] || !elsewhere) continue;
      model_.marked[1 - side][point] = true;
      if (!model_.dirty[side][point]) model_.make_dirty(1 - side, point);
    }
  }
  exports_.push_back({side, view, points_of(view), *std::move(owner)});
}

void Run::drop_export() {
  if (exports_.empty()) return;
  const std::size_t position = pick(exports_.size());
  const std::size_t side = exports_[position].side;
  for (const std::size_t point : hull_points(exports_[position].view)) {
    if (has_exports(1 - side)) break;  // their holders' writes would be hidden by it
    model_.marked[side][point] = true;
    if (!model_.dirty[1 - side][point]) model_.make_dirty(side, point);
  }
  exports_.erase(exports_.begin() + static_cast<std::ptrdiff_t>(position));
}

// The holder of an export writes to points that are not newer on the opposite side. If both sides
// have exports, it marks the write.
void Run::write_through_export() {
  if (exports_.empty()) return;
  const Export& held = exports_[pick(exports_.size())];
  const std::size_t side = held.side;
  const bool silent = !has_exports(1 - side);
  const std::vector<std::size_t> hull = hull_points(held.view);
  if (model_.may_be_marked(1 - side, hull)) return;
  const Values values = fresh_values(held.points.size());
  if (side == kDevice) {  // the holder orders its streams, and those of other holders
    for (const StreamHandle stream : streams_) {
      ASSERT_TRUE(driver().order_after(stream, current_stream()).ok());
    }
  }
  ASSERT_TRUE(testing::poke_values(held.view, side_of(side), values).ok());
  if (side == kDevice) holders_.assign(1, current_stream());
  for (std::size_t i = 0; i < held.points.size(); ++i) {
    model_.values[side][held.points[i]] = values[i];
  }
  if (silent) return;
  const absl::Status status =
      side == kHost ? held.view.set_host_modified() : held.view.set_device_modified();
  ASSERT_TRUE(status.ok()) << status;
  for (const std::size_t point : hull) model_.make_dirty(side, point);
}

// A mark makes a side newer. It is allowed only where the opposite side is not newer.
void Run::mark() {
  const std::size_t side = pick(2);
  const Storage view = random_view();
  const std::vector<std::size_t> hull = hull_points(view);
  if (has_exports(1 - side)) return;  // what they wrote would be given up
  const int state = storage_.sync_state()->state();
  const absl::Status status = side == kHost ? view.set_host_modified() : view.set_device_modified();
  if (!status.ok()) {
    // Merged boxes may contain points that are clean in the model: then the mark is refused, and
    // data is not lost.
    ASSERT_EQ(error_class_of(status), ErrorClass::kSyncConflict) << status;
    ASSERT_EQ(storage_.sync_state()->state(), state);
    ++refused_marks_;
    return;
  }
  // The dirty points of the opposite side were copied then, because its boxes were full.
  settle(side, hull);
  for (const std::size_t point : hull) model_.make_dirty(side, point);
}

std::vector<std::size_t> Run::all_points() const {
  std::vector<std::size_t> all(model_.values[0].size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

void Run::transfer() {
  if (chance(3)) {
    ASSERT_TRUE(storage_.synchronize().ok());
    settle(kHost, all_points());
    settle(kDevice, all_points());
    return;
  }
  const std::size_t target = pick(2);
  const absl::Status status =
      target == kHost ? storage_.device_to_host() : storage_.host_to_device();
  ASSERT_TRUE(status.ok()) << status;
  settle(target, all_points());
}

// Everything is copied; newer values on the target are lost.
void Run::force() {
  const std::size_t target = pick(2);
  if (has_exports(target)) return;
  const absl::Status status =
      target == kHost ? storage_.device_to_host(true) : storage_.host_to_device(true);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(storage_.sync_state()->state(), kSyncClean);
  const Values host = *testing::peek_values(storage_, Side::kHost);
  const Values device = *testing::peek_values(storage_, Side::kDevice);
  ASSERT_EQ(host, device);
  for (const std::size_t point : all_points()) {
    // If a point was newer on the target, the source may have the old value, or the new value if it
    // was copied in between.
    if (model_.dirty[target][point]) {
      model_.values[1 - target][point] = host[point];
    }
    ASSERT_EQ(host[point], model_.values[1 - target][point]);
    model_.values[target][point] = host[point];
  }
  model_.make_clean();
}

// Only if both sides are equal: the model does not have values for a wrong claim.
void Run::set_synchronized() {
  if (model_.values[kHost] != model_.values[kDevice]) return;
  storage_.set_synchronized();
  ASSERT_EQ(storage_.sync_state()->state(), kSyncClean);
  model_.make_clean();
}

// The value that a reader of the point must see on either side.
double Run::newest(std::size_t point) const {
  if (model_.dirty[kHost][point]) return model_.values[kHost][point];
  if (model_.dirty[kDevice][point]) return model_.values[kDevice][point];
  return model_.values[has_exports(kDevice) ? kDevice : kHost][point];
}

// A copy has the values that a reader of the view sees, and a separate state.
void Run::copy() {
  const Storage view = random_view();
  const absl::StatusOr<Storage> copied = view.copy();
  ASSERT_TRUE(copied.ok()) << copied.status();
  const absl::StatusOr<Values> seen = testing::read_values(*copied, side_of(pick(2)));
  ASSERT_TRUE(seen.ok()) << seen.status();
  const std::vector<std::size_t> points = points_of(view);
  for (std::size_t i = 0; i < points.size(); ++i) ASSERT_EQ((*seen)[i], newest(points[i]));
  ASSERT_NE(copied->sync_state(), view.sync_state());
}

// One operation of the driver fails in the middle of an access. State and values are as before,
// and the next access succeeds.
void Run::fail() {
  const std::size_t side = pick(2);
  const Storage view = random_view();
  const int state = storage_.sync_state()->state();
  const bool when_run = chance(3);
  emulated::Fault fault{.first_call = 1 + static_cast<std::int64_t>(pick(4)),
                        .error = make_error(ErrorClass::kInternal, "injected"),
                        .when_run = when_run};
  if (when_run) fault.operation = Operation::kCopy;
  const std::int64_t number = driver().faults().inject(fault);
  const absl::Status status = chance(2)       ? view.read(side_of(side))
                              : side == kHost ? storage_.device_to_host()
                                              : storage_.host_to_device();
  driver().faults().remove(number);
  if (status.ok()) {
    check_side(side, view);
    return;
  }
  ++failures_;
  ASSERT_NE(status.message().find("injected"), std::string::npos) << status;
  ASSERT_EQ(storage_.sync_state()->state(), state);
  check_side(pick(2), random_view());
}

void Run::check_state() const {
  const int state = storage_.sync_state()->state();
  const auto any = [](const std::vector<bool>& dirty) {
    for (const bool point : dirty) {
      if (point) return true;
    }
    return false;
  };
  // Without presumptions and merges both sides are equal. A wrong mark on a clean point costs a
  // copy; points without a mark must be equal.
  if (state != kSyncClean || !exports_.empty()) return;
  if (any(model_.dirty[kHost]) || any(model_.dirty[kDevice])) {
    ASSERT_EQ(*testing::peek_values(storage_, Side::kHost),
              *testing::peek_values(storage_, Side::kDevice));
  }
}

void Run::step() {
  const StreamHandle stream = streams_[pick(streams_.size())];
  const ScopedStream scope(stream);
  // The holder of an export orders its work before that of other users, as with any streams.
  for (StreamHandle& holder : holders_) {
    ASSERT_TRUE(driver().order_after(holder, stream).ok());
    holder = stream;
  }
  switch (pick(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return read();
    case 4:
    case 5:
    case 6:
    case 7:
      return write();
    case 8:
      return take_export();
    case 9:
      return drop_export();
    case 10:
    case 11:
      return write_through_export();
    case 12:
      return mark();
    case 13:
      return chance(2) ? transfer() : chance(3) ? force() : set_synchronized();
    case 14:
      return chance(2) ? copy() : check_state();
    default:
      return fail();
  }
}

std::int64_t number_from(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

Layout random_layout(std::mt19937_64& random, const Extents& shape) {
  LayoutMap order = c_order(shape.size());
  for (int i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[static_cast<int>(random() % static_cast<std::uint64_t>(i + 1))]);
  }
  constexpr std::array<std::int64_t, 4> kAlignments{1, 24, 64, 128};
  return *make_plan({.shape = shape,
                     .itemsize_bytes = 8,
                     .layout = order,
                     .alignment_bytes = kAlignments[random() % kAlignments.size()]});
}

// Runs `steps` steps, a new storage every 500: half of them with one layout for both sides.
void run_model(std::uint64_t seed, std::int64_t steps) {
  const bool before = switch_emulated_device(true);
  std::int64_t failures = 0;
  for (std::int64_t done = 0; done < steps; done += 500, ++seed) {
    SCOPED_TRACE("GRIDBUF_MODEL_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::vector<Extents> shapes{{}, {7}, {6, 5}, {4, 5, 6}, {40}, {3, 4, 3, 2}};
    const Extents& shape = shapes[random() % shapes.size()];
    const Layout host = random_layout(random, shape);
    Run run(random(), host, random() % 2 == 0 ? host : random_layout(random, shape));
    for (int step = 0; step < 500; ++step) {
      run.step();
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << "GRIDBUF_MODEL_SEED=" << seed << ", step " << step;
        switch_emulated_device(before);
        return;
      }
    }
    failures += run.failures();
  }
  EXPECT_GT(failures, steps / 1000) << "hardly any access failed";
  switch_emulated_device(before);
}

// At least 10^5 steps, in five shards of the test.
constexpr std::int64_t kSteps = 20'000;

class StorageModel : public ::testing::TestWithParam<int> {};

TEST_P(StorageModel, AgreesAtEveryStep) {
  const std::int64_t first = number_from("GRIDBUF_MODEL_SEED", 20261121 + 100'000 * GetParam());
  run_model(static_cast<std::uint64_t>(first), number_from("GRIDBUF_MODEL_STEPS", kSteps));
}

INSTANTIATE_TEST_SUITE_P(Seeds, StorageModel, ::testing::Range(0, 5));

}  // namespace
}  // namespace gridbuf
