// SPDX-License-Identifier: Apache-2.0
// A run as its journal (journal/README.md) describes it: the input of every report.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "journal/header.h"
#include "journal/result.h"

namespace backplane::conform {

struct Run {
  Header header;
  std::vector<Result> results;  // sorted by name

  bool is_bad(const Result& result) const;  // false if passed, waived, expected to fail, or permissibly unsupported
  double seconds() const;                   // the time spent in cases
  std::string title() const;                // the backend's id and version, or the plugin's file
  // The header's fields, labelled for people, without empty ones.
  std::vector<std::pair<std::string, std::string>> properties() const;
};

// `path` is a journal or the folder that contains journal.jsonl. Throws Usage if it cannot be read.
Run read_run(const std::filesystem::path& path);

}  // namespace backplane::conform
