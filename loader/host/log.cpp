// SPDX-License-Identifier: Apache-2.0
#include "host/log.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>

#include "base/abi.h"
#include "host/variable.h"

namespace backplane {
namespace {

constexpr std::string_view kLevels[] = {"error", "warning", "info", "debug"};  // from BP_LOG_ERROR

uint32_t level_from_environment() {
  const char* value = variable("BACKPLANE_LOG");
  const auto found = std::find(std::begin(kLevels), std::end(kLevels), std::string_view(value ? value : ""));
  return found == std::end(kLevels) ? BP_LOG_WARNING : BP_LOG_ERROR + static_cast<uint32_t>(found - kLevels);
}

}  // namespace

Log::Log(uint32_t level, Sink sink, void* self)
    : level_(level ? std::min(level, BP_LOG_DEBUG) : level_from_environment()), sink_(sink), self_(self) {}

void Log::write(uint32_t level, std::string_view who, std::string_view text) const {
  if (!enabled(level)) return;
  std::string line;
  if (!sink_) {
    line += "backplane: ";
    line += kLevels[level - BP_LOG_ERROR];
    line += ": ";
  }
  if (!who.empty()) line.append(who).append(": ");
  line += text;
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  if (sink_) return sink_(self_, level, abi::text(line));
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);  // one call: lines of different threads do not mix
}

}  // namespace backplane
