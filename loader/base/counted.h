// SPDX-License-Identifier: Apache-2.0
// Formats counts for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace backplane {

// "1 input", "2 inputs". `many` is the plural of `one` where an s does not form it: "1 axis", "2 axes".
inline std::string counted(uint64_t count, std::string_view one, std::string_view many = {}) {
  std::string text = std::to_string(count) + " ";
  if (count == 1) return text.append(one);
  return many.empty() ? text.append(one) + "s" : text.append(many);
}

}  // namespace backplane
