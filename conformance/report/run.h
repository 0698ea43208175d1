// SPDX-License-Identifier: Apache-2.0
// A run as its journal describes it (journal/README.md). It is the input of every report.
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

  bool is_bad(const Result& result) const;  // false: passed, waived, expected to fail or allowed to be unsupported
  double seconds() const;                   // total time spent in cases
  std::string title() const;                // the id and version of the backend, or the plugin's file
  // The fields of the header that people read, with labels; without those that are empty.
  std::vector<std::pair<std::string, std::string>> properties() const;
};

// `path` is a journal or a folder with journal.jsonl. Throws Usage if it cannot be read.
Run read_run(const std::filesystem::path& path);

}  // namespace backplane::conform
