// SPDX-License-Identifier: Apache-2.0
// The log of the loader and its backends.
#pragma once

#include <cstdint>
#include <string_view>

#include "backplane/loader.h"

namespace backplane {

// All members are thread-safe.
class Log {
 public:
  using Sink = void(BP_CALL*)(void* self, uint32_t level, bp_text_t text);

  // `level` 0: what BACKPLANE_LOG says (error, warning, info, debug), otherwise warnings. `sink` NULL: standard error.
  Log(uint32_t level, Sink sink, void* self);

  bool enabled(uint32_t level) const { return level != 0 && level <= level_; }
  // One line "cpu: text"; `who` may be empty. Control characters become spaces: a backend cannot forge lines or
  // colours.
  void write(uint32_t level, std::string_view who, std::string_view text) const;

  void error(std::string_view text) const { write(BP_LOG_ERROR, {}, text); }
  void warning(std::string_view text) const { write(BP_LOG_WARNING, {}, text); }
  void info(std::string_view text) const { write(BP_LOG_INFO, {}, text); }
  void debug(std::string_view text) const { write(BP_LOG_DEBUG, {}, text); }

 private:
  uint32_t level_;
  Sink sink_;
  void* self_;
};

}  // namespace backplane
