// gridbuf.storage.writes: what was written to a storage since somebody last asked.
//
// Purpose. Who sends parts of a field somewhere else (a halo to a neighbour, a change to a file)
// wants to know which parts have changed since he last did. A `WriteLog` belongs to the base of a
// storage, of whatever kind; a `WriteRecord` is one asker's: it collects the boxes that were
// written, and `take` hands them over and begins anew. Several askers have a record each. This is
// not what gridbuf.storage.sync knows: that is where one side of a storage differs from its other
// side, which somebody may have made equal again.
//
// Key choice: a log is there only when somebody has asked for one, and is on only while a record
// lives. Everybody else pays for a look at one pointer.
//
// What is written through an array that somebody holds is not seen. So what may have been written
// counts as written. An export that is made while the log is on is known: its box counts at each
// `take` while it lives, and once more when it has ended. Of what was handed out before nobody
// knows the box, only whether somebody still holds it: `Holders` counts, and the owner of the
// memory has more shares than the base's own. While that is so, and once more afterwards,
// everything counts. An address of unknown life (a dict, a number) counts for ever, and so does
// memory that was somebody else's from the start. Who knows better, because those who hold the
// memory say what they write, makes a record that trusts them.
//
// The lock is held for some comparisons of boxes and never while anything waits: noting is done
// with and without Python's lock, on whatever thread an array dies.
module;

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.storage.writes;

import gridbuf.alloc;
import gridbuf.layout;
import gridbuf.storage.regions;

export namespace gridbuf {

/// Who holds the memory of a base, which is known whether its writes are recorded or not.
struct Holders {
  std::atomic<std::int64_t> exports = 0;  // writable ones that live and whose end will be told
  std::atomic<bool> unknown = false;      // one of unknown life was made while nobody recorded
  bool foreign = false;                   // somebody else had the memory first
};

/// Whether a record counts what those may have written who hold the memory.
enum class Presume : std::uint8_t {
  kWritten,  // yes: what they may have written was written
  kNothing,  // no: they say what they write (`touch`, `set_host_modified`)
};

class WriteLog {
 public:
  /// Of a base of this shape, whose memory has these owners (null: none; they and the holders
  /// outlive it). Throws std::bad_alloc.
  WriteLog(const Extents& shape, const Holders& holders, std::array<const Owner*, 2> owners);
  WriteLog(const WriteLog&) = delete;
  WriteLog& operator=(const WriteLog&) = delete;

  /// Whether somebody records.
  bool is_on() const noexcept { return is_on_.load(std::memory_order_acquire); }

  // What follows takes boxes within the base, and never waits.

  void note(const Box& box) noexcept;
  /// A writable export begins that will end: its box counts while it lives.
  void begin_export(const Box& box) noexcept;
  void end_export(const Box& box) noexcept;
  /// One that may live for ever.
  void keep_export(const Box& box) noexcept;

 private:
  friend class WriteRecord;
  using Lock = std::lock_guard<std::mutex>;
  struct Entry {
    Entry(int ndim, Presume what) : written(ndim), presume(what) {}
    Regions written;
    Presume presume;
    bool was_held = false;  // by somebody whose box is not known, when last taken
  };

  bool is_held_elsewhere() const noexcept;

  const Extents shape_;
  const Holders& holders_;
  const std::array<const Owner*, 2> owners_;
  std::mutex mutex_;  // of what follows
  HeldBoxes exports_;
  std::int64_t known_exports_ = 0;  // of Holders::exports those in exports_
  std::vector<Entry*> entries_;
  std::atomic<bool> is_on_ = false;
};

/// One asker's record of what a view shows. Not for several threads at once.
class WriteRecord {
 public:
  /// Begins with everything: nobody knows what was written before. kMemory.
  static absl::StatusOr<std::unique_ptr<WriteRecord>> begin(const std::shared_ptr<WriteLog>& log,
                                                            const Window& window, Presume presume);
  WriteRecord(const WriteRecord&) = delete;
  WriteRecord& operator=(const WriteRecord&) = delete;
  ~WriteRecord();

  /// Whether it is the record of this view of this base.
  bool is_of(const WriteLog* log, const Window& window) const noexcept;
  /// Whether the base is gone.
  bool is_expired() const noexcept { return log_.expired(); }

  /// What was or may have been written in each of `parts`, boxes of the view's indices, since it
  /// was last taken: at most Regions::kMostBoxes disjoint boxes for each. Anew from here on.
  /// kMemory, with nothing taken.
  absl::StatusOr<std::vector<std::vector<Box>>> take(std::span<const Box> parts);

  /// Takes back what was noted in a box of the view's indices: who asks wrote it himself.
  void forget(const Box& seen) noexcept;

 private:
  WriteRecord(const std::shared_ptr<WriteLog>& log, const Window& window, int base_ndim,
              Presume presume);

  std::weak_ptr<WriteLog> log_;  // the base does not live for being watched
  Window window_;
  WriteLog::Entry entry_;
  Regions draft_;  // where a taking is prepared
};

}  // namespace gridbuf
