// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>

#include "cli/guarded.h"
#include "cli/style.h"

namespace backplane::cli {

std::string progress_text(const std::string& what, uint64_t total, uint64_t done, int64_t seconds) {
  return total == 0 ? fmt::format("{}, {} s", what, seconds)
                    : fmt::format("{} {} of {}, {} s", what, done, total, seconds);
}

Progress::Progress(std::string what, uint64_t total, std::function<uint64_t()> done)
    : what_(std::move(what)), total_(total), done_(std::move(done)) {
  if (is_terminal(stderr)) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Progress::show() {
  bool is_shown = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return is_over_; })) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_);
    print_err("\r\033[K" + progress_text(what_, total_, done_ ? done_() : 0, seconds.count()));
    std::fflush(stderr);
    is_shown = true;
  }
  if (is_shown) print_err("\r\033[K");
}

}  // namespace backplane::cli
