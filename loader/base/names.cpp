// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include <algorithm>
#include <cstdint>

namespace backplane {

std::string shortened(std::string_view name) {
  constexpr size_t kLongest = 120;
  std::string text;
  size_t end = std::min(name.size(), kLongest);
  if (end < name.size()) {  // cut before a character of UTF-8, not within it
    for (int i = 0; i < 3 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80; ++i) --end;
  }
  for (const char c : name.substr(0, end)) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (end < name.size()) text += "…";
  return text;
}

std::string in_quotes(std::string_view name) {
  return "'" + shortened(name) + "'";
}

std::string_view domain_name(std::string_view domain) {
  return domain.empty() ? "ai.onnx" : domain;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < static_cast<size_t>(more)) return false;
    uint32_t point = lead & (0x3f >> more);
    for (int k = 0; k < more; ++k) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    const bool overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
    if (overlong || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
  }
  return true;
}

}  // namespace backplane
