// Early returns for functions that return absl::Status or absl::StatusOr.
#ifndef GRIDBUF_BASE_STATUS_MACROS_H_
#define GRIDBUF_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define GRIDBUF_RETURN_IF_ERROR(expression) \
  if (absl::Status status_of_it = (expression); !status_of_it.ok()) return status_of_it

// Binds `declaration` to the value without a copy: `const auto& name`, or `auto& name` for a value
// that is moved later.
#define GRIDBUF_ASSIGN_OR_RETURN(declaration, expression) \
  GRIDBUF_ASSIGN_OR_RETURN_AT(GRIDBUF_NAME_OF_LINE(__LINE__), declaration, expression)

#define GRIDBUF_ASSIGN_OR_RETURN_AT(result, declaration, expression) \
  auto result = (expression);                                        \
  if (!result.ok()) return std::move(result).status();               \
  declaration = *result
#define GRIDBUF_NAME_OF_LINE(line) GRIDBUF_NAME_OF_LINE_AGAIN(line)
#define GRIDBUF_NAME_OF_LINE_AGAIN(line) result_of_line_##line

#endif  // GRIDBUF_BASE_STATUS_MACROS_H_
