// SPDX-License-Identifier: Apache-2.0
// Results as they come, and what they add up to.
#pragma once

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "runner/result.h"

namespace backplane::conform {

struct Summary {
  std::array<uint32_t, kStateNames.size()> counts = {};  // by State
  uint32_t no_node = 0;                                  // passes of models of which nothing was left to run
  uint32_t statistical = 0;                              // passes of random draws, by their law
  uint32_t executed = 0;                                 // cases in which the device under test ran a node
  uint32_t total = 0;
  double seconds = 0;

  uint32_t operator[](State state) const { return counts[static_cast<size_t>(state)]; }
  bool has_failures() const;
  // One JSON object with the keys of the harness's reports.
  std::string to_json(const std::vector<std::string>& levels = {}) const;
  std::string to_text() const;
};

class Journal {
 public:
  // Appends to `folder`/journal.jsonl, unless `folder` is empty. Throws std::runtime_error if that cannot be written.
  explicit Journal(const std::filesystem::path& folder);
  // [thread-safe]
  void add(Result result);
  // By case. [one at a time], after the last `add`
  const std::vector<Result>& results();
  // A model of which nothing was left to run passes only beside others that did run: a device that runs nothing passes
  // nothing.
  Summary summary() const;

 private:
  std::filesystem::path path_;
  std::ofstream file_;
  std::mutex mutex_;
  std::vector<Result> results_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace backplane::conform
