// SPDX-License-Identifier: Apache-2.0
// Status and error text of a call to the plugin.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "host/status.h"

namespace backplane::conform {

// Writes `value` to a plugin's struct, but no more bytes than the struct's `size`, which stays unchanged.
template <class T>
void write_back(const T& value, T* out) {
  const uint32_t size = out->size;
  std::memcpy(static_cast<void*>(out), &value, std::min<size_t>(size, sizeof value));
  out->size = size;
}

// An error buffer. It holds the error of one call at a time.
class Detail {
 public:
  Detail() { reset(); }
  bp_error_t* error() {
    reset();
    return &error_;
  }
  uint64_t run() const { return error_.run; }  // id of the run that failed; 0 if the plugin names none
  std::string text() const { return {text_, std::min<uint64_t>(error_.text_size, sizeof text_)}; }

 private:
  void reset() { error_ = {.size = sizeof error_, .node = BP_NO_NODE, .text = text_, .text_capacity = sizeof text_}; }

  bp_error_t error_;
  char text_[400];
};

// The function, or the group of functions, that returned a status.
enum class Stage {
  kCoverage,
  kReview,
  kCompile,
  kInstance,
  kExtents,
  kBind,
  kRun,
  kStream,
  kSemaphore,
  kMemory,
  kCache,
  kRefit
};
inline const char* name_of(Stage stage) {
  constexpr const char* kNames[] = {"coverage",         "review", "compile",   "instance_create",
                                    "output_extents",   "bind",   "run",       "a stream",
                                    "a semaphore slot", "memory", "the cache", "refit"};
  return kNames[static_cast<int>(stage)];
}

struct Answer {
  bp_status_t status = BP_OK;
  Stage stage = Stage::kRun;
  std::string text;
  uint64_t run = 0;  // id of the run that failed, from bp_error_t

  bool ok() const { return status == BP_OK; }
  // Formats the answer as "compile returns BP_UNSUPPORTED: …".
  std::string describe() const { return fmt::format("{} returns {}: {}", name_of(stage), status_name(status), text); }
};

}  // namespace backplane::conform
