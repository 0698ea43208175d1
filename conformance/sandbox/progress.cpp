// SPDX-License-Identifier: Apache-2.0
#include "sandbox/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace backplane::conform {

std::string progress_line(size_t done, size_t total, size_t bad, double seconds) {
  constexpr size_t kWidth = 30;
  const size_t filled = total == 0 ? kWidth : done * kWidth / total;
  std::string line = fmt::format("[{}{}] {}/{} {:3}%", std::string(filled, '#'), std::string(kWidth - filled, '.'),
                                 done, total, total == 0 ? 100 : done * 100 / total);
  if (bad != 0) line += fmt::format("  {} bad", bad);
  if (done != 0 && done < total) {
    const auto left = static_cast<uint64_t>(seconds / static_cast<double>(done) * static_cast<double>(total - done));
    line += fmt::format("  {}:{:02} left", left / 60, left % 60);
  }
  return line;
}

Progress::Progress(size_t total) : total_(total), is_terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (is_terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::step(bool is_bad) {
  const std::lock_guard lock(mutex_);
  ++done_;
  bad_ += is_bad;
  const auto now = Clock::now();
  if (!is_terminal_ || now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  fmt::print(stderr, "\r{}\033[K",
             progress_line(done_, total_, bad_, std::chrono::duration<double>(now - start_).count()));
}

}  // namespace backplane::conform
