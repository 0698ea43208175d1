// SPDX-License-Identifier: Apache-2.0
// Shows the progress of a run on a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

namespace backplane::conform {

// Formats a line such as "[######............] 1234/4000 31% 2 bad 1:05 left".
std::string progress_line(size_t done, size_t total, size_t bad, double seconds);

// Draws the progress line on standard error at most ten times a second, or never if standard error is not a terminal.
// The destructor erases the line. [thread-safe]
class Progress {
 public:
  explicit Progress(size_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void step(bool is_bad);

 private:
  using Clock = std::chrono::steady_clock;
  const size_t total_;
  const bool is_terminal_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  size_t done_ = 0, bad_ = 0;
  Clock::time_point drawn_ = {};
};

}  // namespace backplane::conform
