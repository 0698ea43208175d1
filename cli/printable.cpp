// SPDX-License-Identifier: Apache-2.0
#include "cli/printable.h"

#include <algorithm>
#include <cstdint>

namespace backplane::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The character at the beginning of a text, and its size in bytes. The size is 0 if the text does not start with valid
// UTF-8.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;
};

Character first_of(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 && lead <= 0xF4  ? 4
                       : lead >= 0xE0 && lead < 0xF0 ? 3
                       : lead >= 0xC2 && lead < 0xE0 ? 2
                                                     : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  uint32_t code = lead & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool is_overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (is_overlong || is_surrogate || code > 0x10FFFF) return {};
  return {code, bytes};
}

bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029;
}

// Whether a character can hide or reorder text, such as direction marks, embeddings, overrides, isolates, zero-width
// characters and tags.
bool is_deceptive(uint32_t code) {
  return code == 0xAD || code == 0x61C || (code >= 0x200B && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFB) ||
         (code >= 0xE0000 && code <= 0xE007F);
}

std::string clean(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    const size_t bytes = std::max<size_t>(character.bytes, 1);
    if (character.bytes == 0 || is_deceptive(character.code))
      out += kReplacement;
    else if (keep_lines && (character.code == '\n' || character.code == '\t'))
      out += text[0];
    else if (is_control(character.code))
      out += ' ';
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  if (text.size() <= most) return clean(text, false);
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80 && most - end < 4)
    --end;  // do not cut within a character
  return clean(text.substr(0, end), false) + "\u2026 (" + std::to_string(text.size()) + " bytes)";
}

std::string printable_lines(std::string_view text) {
  return clean(text, true);
}

}  // namespace backplane::cli
