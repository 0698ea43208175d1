// SPDX-License-Identifier: Apache-2.0
#include "runner/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace backplane::conform {

bool Summary::has_failures() const {
  const Summary& self = *this;
  return self[State::kFail] + self[State::kCrash] + self[State::kTimeout] + self[State::kMistrusted] +
             self[State::kInfraError] >
         0;
}

std::string Summary::to_json(const std::vector<std::string>& levels) const {
  const Summary& self = *this;
  const nlohmann::ordered_json json = {{"passed", self[State::kPass]},
                                       {"failed", self[State::kFail]},
                                       {"crashed", self[State::kCrash]},
                                       {"timeout", self[State::kTimeout]},
                                       {"not_supported", self[State::kNotSupported]},
                                       {"waived", self[State::kWaived]},
                                       {"mistrusted", self[State::kMistrusted]},
                                       {"infra_error", self[State::kInfraError]},
                                       {"no_node", no_node},
                                       {"statistical", statistical},
                                       {"total", total},
                                       {"seconds", seconds},
                                       {"levels", levels}};
  return json.dump();
}

std::string Summary::to_text() const {
  const Summary& self = *this;
  return fmt::format(
      "{} passed ({} of them without a node left to run, {} by statistics), {} failed, {} crashed, {} timeout, {} not "
      "supported, {} "
      "waived, "
      "{} mistrusted, {} infra error, {} in all, {:.1f} s",
      self[State::kPass], no_node, statistical, self[State::kFail], self[State::kCrash], self[State::kTimeout],
      self[State::kNotSupported], self[State::kWaived], self[State::kMistrusted], self[State::kInfraError], total,
      seconds);
}

Journal::Journal(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  path_ = folder / "journal.jsonl";
  file_.open(path_, std::ios::app);
  if (!file_) throw std::runtime_error(fmt::format("'{}' cannot be written", path_.string()));
}

void Journal::add(Result result) {
  const std::lock_guard lock(mutex_);
  if (file_.is_open() && !(file_ << to_json_line(result) << '\n' << std::flush)) {
    throw std::runtime_error(fmt::format("'{}' cannot be written", path_.string()));
  }
  results_.push_back(std::move(result));
}

const std::vector<Result>& Journal::results() {
  std::sort(results_.begin(), results_.end(), [](const Result& a, const Result& b) { return a.name < b.name; });
  return results_;
}

Summary Journal::summary() const {
  Summary summary;
  for (const Result& result : results_) {
    ++summary.counts[static_cast<size_t>(result.state)];
    summary.executed += result.nodes > 0;
    summary.statistical += result.state == State::kPass && result.is_statistical;
    summary.no_node += result.state == State::kPass && result.nodes == 0;
  }
  if (summary.executed == 0) {
    summary.counts[static_cast<size_t>(State::kMistrusted)] += summary.no_node;
    summary.counts[static_cast<size_t>(State::kPass)] -= summary.no_node;
    summary.no_node = 0;
  }
  summary.total = static_cast<uint32_t>(results_.size());
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return summary;
}

}  // namespace backplane::conform
