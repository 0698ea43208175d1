// SPDX-License-Identifier: Apache-2.0
// Fuzzes printable: its result has no control characters, and printable does not change it again.
#include <cstdlib>

#include "cli/printable.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using backplane::cli::printable;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string shown = printable(text, size);
  for (size_t i = 0; i < shown.size(); ++i) {
    const auto byte = static_cast<unsigned char>(shown[i]);
    if (byte < 0x20 || byte == 0x7F) std::abort();
    const bool is_c1 = byte == 0xC2 && i + 1 < shown.size() && static_cast<unsigned char>(shown[i + 1]) < 0xA0;
    if (is_c1) std::abort();
  }
  if (printable(shown, shown.size()) != shown) std::abort();
  if (printable(text, 10).size() > 10 * 3 + 40) std::abort();
  return 0;
}
