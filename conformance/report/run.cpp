// SPDX-License-Identifier: Apache-2.0
#include "report/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "journal/journal.h"
#include "journal/level.h"

namespace backplane::conform {

bool Run::is_bad(const Result& result) const {
  switch (result.state) {
    case State::kPass:
    case State::kWaived:
    case State::kExpectedFail:
      return false;
    case State::kNotSupported:
      return is_missing(result, header.claims_profile());
    default:
      return true;
  }
}

double Run::seconds() const {
  double sum = 0;
  for (const Result& result : results) sum += result.seconds;
  return sum;
}

std::string Run::title() const {
  const Identity& who = header.identity;
  if (who.backend.empty()) return std::filesystem::path(header.plugin).filename().string();
  return who.version.empty() ? who.backend : who.backend + " " + who.version;
}

std::vector<std::pair<std::string, std::string>> Run::properties() const {
  const Identity& who = header.identity;
  const Shard shard = header.shard;
  std::vector<std::pair<std::string, std::string>> properties = {
      {"device", who.device},
      {"profiles", fmt::format("{}", fmt::join(header.profiles, ", "))},
      {"selection", header.selection},
      {"started", header.started},
      {"plugin", header.plugin},
      {"its SHA-256", header.plugin_sha256},
      {"vendor", who.vendor},
      {"driver", who.driver},
      {"architecture", who.arch},
      {"filter", header.filter},
      {"shard", shard.count == 1 ? "" : fmt::format("{} of {}", shard.index, shard.count)},
      {"cases", fmt::format("{} of {}", results.size(), header.cases)},
      {"case list", header.list},
      {"seed", std::to_string(header.seeds.seed)},
      {"nonce's seed", header.seeds.nonce ? std::to_string(*header.seeds.nonce) : ""},
      {"waivers", header.waivers},
      {"harness SHA-256", header.harness},
  };
  std::erase_if(properties, [](const auto& property) { return property.second.empty(); });
  return properties;
}

Run read_run(const std::filesystem::path& path) {
  if (std::error_code error; !std::filesystem::exists(path, error))
    throw Usage(fmt::format("'{}' does not exist: name a journal, or the folder that --out wrote", path.string()));
  try {
    Record record = read_journal(path);
    std::stable_sort(record.results.begin(), record.results.end(),
                     [](const Result& a, const Result& b) { return a.name < b.name; });
    return {std::move(record.header), std::move(record.results)};
  } catch (const std::exception& error) {
    throw Usage(error.what());
  }
}

}  // namespace backplane::conform
