// SPDX-License-Identifier: Apache-2.0
// Why a file is not used as a backend.
#pragma once

#include <cstdint>
#include <string>

#include "backplane/loader.h"

namespace backplane {

// BP_REFUSED_NONE; or another code, with a line of text that names the file, the value seen and the remedy.
struct [[nodiscard]] Refusal {
  uint32_t code = BP_REFUSED_NONE;
  std::string text;

  explicit operator bool() const { return code != BP_REFUSED_NONE; }
};

}  // namespace backplane
