// The functions of workspaces.
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"
#include "modules/c/gridbuf.h"

import gridbuf.c;

using namespace gridbuf::c;
using gridbuf::Workspace;

extern "C" {

gridbuf_status gridbuf_workspace_create(int64_t limit_bytes, gridbuf_workspace** out) {
  return made(out, [&] { return give(Workspace::reserve(limit_bytes), out); });
}

gridbuf_status gridbuf_workspace_release(gridbuf_workspace* workspace) {
  return guarded([&] { return release(inside(workspace)); });
}

gridbuf_status gridbuf_workspace_push(const gridbuf_workspace* workspace, int64_t total_bytes,
                                      int64_t alignment_bytes, void** block) {
  return with(workspace, [&](Workspace& used) -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(require(block, "block"));
    const std::int64_t alignment =
        alignment_bytes == 0 ? gridbuf::kUnconstrainedAlignmentBytes : alignment_bytes;
    GRIDBUF_ASSIGN_OR_RETURN(*block, used.push(total_bytes, alignment));
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_workspace_pop(const gridbuf_workspace* workspace, void* block) {
  return with(workspace, [&](Workspace& used) { return used.pop(block); });
}

gridbuf_status gridbuf_workspace_peak(const gridbuf_workspace* workspace, int64_t* peak_bytes) {
  return with(workspace, [&](const Workspace& used) -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(require(peak_bytes, "peak_bytes"));
    *peak_bytes = used.peak_bytes();
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_workspace_trim(const gridbuf_workspace* workspace, int64_t* freed_bytes) {
  return with(workspace, [&](Workspace& used) {
    const std::int64_t freed = used.trim();
    if (freed_bytes != nullptr) *freed_bytes = freed;
    return absl::OkStatus();
  });
}

}  // extern "C"
