// SPDX-License-Identifier: Apache-2.0
#include "base/status_text.h"

#include "base/status.h"

namespace backplane {

std::string status_text(bp_status_t code) {
  const std::string_view name = status_name(code);
  if (name.starts_with("BP_")) return std::string(name);
  return "status code " + std::to_string(code) + ", which is newer than this loader";
}

}  // namespace backplane
