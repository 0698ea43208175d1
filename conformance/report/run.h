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
  std::vector<Result> results;  // by name

  bool is_bad(const Result& result) const;  // neither passed nor declared beforehand
  double seconds() const;                   // in cases
  std::string title() const;                // the backend's id and version, or the plugin's file
  // The fields of the header, labelled for people. What is empty is left out.
  std::vector<std::pair<std::string, std::string>> properties() const;
};

// `path` is a journal or the folder of journal.jsonl. Throws Usage.
Run read_run(const std::filesystem::path& path);

}  // namespace backplane::conform
