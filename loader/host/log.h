// SPDX-License-Identifier: Apache-2.0
// The log of the loader and its backends: to the framework's callback, a file or standard error.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backplane/loader.h"

namespace backplane {

// Categories of log lines; `kBackend` is for those that backends write.
enum class LogCategory : uint8_t { kLoader, kDiscover, kBackend };
inline constexpr size_t kLogCategories = 3;

// A level for each category, from text such as "warning" or "error,discover=debug": words are levels (none, error,
// warning, info, debug) of all categories or of one, and later ones win. Unknown words are ignored.
using LogLevels = std::array<uint32_t, kLogCategories>;
LogLevels parse_log_levels(std::string_view text);

// All members are thread-safe. Copies write to the same destination.
class Log {
 public:
  using Sink = void(BP_CALL*)(void* self, uint32_t level, bp_text_t text);

  // `level` 0: the level in BACKPLANE_LOG, otherwise errors. `sink` NULL: the file that BACKPLANE_LOG_FILE names,
  // otherwise standard error; BACKPLANE_LOG_FORMAT=json writes one JSON object per line there.
  Log(uint32_t level, Sink sink, void* self);

  // Returns the same log for another category.
  Log about(LogCategory category) const;

  bool enabled(uint32_t level) const { return level != 0 && level <= levels_[static_cast<size_t>(category_)]; }
  // Writes one line "cpu: text"; `who` is the backend that logs, or empty. The text is made printable: a backend cannot
  // forge lines or colours.
  void write(uint32_t level, std::string_view who, std::string_view text) const;

  void error(std::string_view text) const { write(BP_LOG_ERROR, {}, text); }
  void warning(std::string_view text) const { write(BP_LOG_WARNING, {}, text); }
  void info(std::string_view text) const { write(BP_LOG_INFO, {}, text); }
  void debug(std::string_view text) const { write(BP_LOG_DEBUG, {}, text); }

 private:
  LogLevels levels_;
  LogCategory category_ = LogCategory::kLoader;
  bool json_ = false;
  Sink sink_;
  void* self_;
  std::shared_ptr<const int> file_;  // a descriptor; null: standard error
};

}  // namespace backplane
