// SPDX-License-Identifier: Apache-2.0
// The log of the loader and its backends. Lines go to the framework's callback, to a file or to standard error.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backplane/loader.h"

namespace backplane {

// Categories of log lines. Lines that a backend writes have category `kBackend`.
enum class LogCategory : uint8_t { kLoader, kDiscover, kBackend };
inline constexpr size_t kLogCategories = 3;

// Reads a level for each category from text such as "warning" or "error,discover=debug". A level (none, error, warning,
// info, debug) applies to all categories, or to the one named before it. Later words take precedence, and unknown words
// are ignored.
using LogLevels = std::array<uint32_t, kLogCategories>;
LogLevels parse_log_levels(std::string_view text);

// All members are thread-safe. Copies write to the same destination.
class Log {
 public:
  using Sink = void(BP_CALL*)(void* self, uint32_t level, bp_text_t text);

  // `level` 0: BACKPLANE_LOG determines the levels, by default warnings and errors. `sink` NULL: lines go to the file
  // that BACKPLANE_LOG_FILE names, or else to standard error, and are JSON objects if BACKPLANE_LOG_FORMAT=json. A file
  // that cannot be opened, or is neither a regular file nor a character device, is ignored, with one warning per
  // process.
  Log(uint32_t level, Sink sink, void* self);

  // Returns a log with another category and the same destination.
  Log about(LogCategory category) const;

  bool enabled(uint32_t level) const { return level != 0 && level <= levels_[static_cast<size_t>(category_)]; }
  // Writes one line, such as "cpu: text". `who` is the backend that logs, or empty. Unprintable characters are
  // replaced, so that a backend cannot forge lines or colors.
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
  std::shared_ptr<const int> file_;  // owns a descriptor; null: standard error
};

}  // namespace backplane
