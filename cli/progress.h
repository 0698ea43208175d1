// SPDX-License-Identifier: Apache-2.0
// Shows the progress of a long operation on a terminal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace backplane::cli {

// Shows a line such as "runs 120 of 500, 3 s" on standard error, starting after one second, and removes it at the end.
// Without a total: "measuring, 3 s". `done` is called from another thread. Does nothing if standard error is not a
// terminal.
class Progress {
 public:
  explicit Progress(std::string what, uint64_t total = 0, std::function<uint64_t()> done = nullptr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show();

  std::string what_;
  uint64_t total_;
  std::function<uint64_t()> done_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

// The text of the progress line.
std::string progress_text(const std::string& what, uint64_t total, uint64_t done, int64_t seconds);

}  // namespace backplane::cli
