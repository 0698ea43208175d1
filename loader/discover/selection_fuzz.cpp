// SPDX-License-Identifier: Apache-2.0
// libFuzzer: patterns from environment variables. The input is a list of patterns, a zero byte and an id. The text
// of the patterns is also parsed as BACKPLANE_LOG is, as a list of log levels.
#include <cstdlib>
#include <string_view>

#include "discover/selection.h"
#include "host/log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view patterns = all.substr(0, all.find('\0'));
  const std::string_view id = patterns.size() < all.size() ? all.substr(patterns.size() + 1) : std::string_view();
  backplane::Selection everything, both;
  everything.select("*");
  if (!everything.unwanted(id, {}).empty()) std::abort();
  both.select(patterns);
  both.disable(patterns);
  backplane::Selection disabled;
  disabled.disable(patterns);
  // Disabling takes precedence.
  if (!disabled.unwanted(id, id).empty() && both.unwanted(id, id).empty()) std::abort();
  if (id.find_first_of("*?,") == id.npos && !id.empty() && !backplane::matches(id, id)) std::abort();
  for (const uint32_t level : backplane::parse_log_levels(patterns))
    if (level > BP_LOG_DEBUG) std::abort();
  return 0;
}
