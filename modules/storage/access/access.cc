module;

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.storage.access;

import gridbuf.base;

namespace gridbuf {

absl::Status check_element_type(const Storage& storage, std::string_view name) {
  const absl::StatusOr<DType> wanted = DType::from_name(name);
  if (wanted.ok() && *wanted == storage.dtype()) return absl::OkStatus();
  return make_error(ErrorClass::kType,
                    {"the storage's dtype", storage.dtype().name(),
                     std::string(name) + " for this access", "begin it with the storage's type"});
}

absl::StatusOr<OpenWrite> OpenWrite::begin(const Storage& storage, Side side, Coverage coverage) {
  const std::shared_ptr<SyncState>& state = storage.sync_state();
  if (state != nullptr) {
    if (absl::Status status = state->open_write(side, storage.hull()); !status.ok()) return status;
  }
  if (absl::Status status = storage.begin_write(side, coverage); !status.ok()) {
    if (state != nullptr) state->close_write(side, storage.hull());
    return status;
  }
  return OpenWrite(storage, side);
}

OpenWrite::~OpenWrite() {
  if (!open_) return;
  storage_.end_write(side_);
  const std::shared_ptr<SyncState>& state = storage_.sync_state();
  if (state != nullptr) state->close_write(side_, storage_.hull());
}

}  // namespace gridbuf
