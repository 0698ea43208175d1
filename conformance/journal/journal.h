// SPDX-License-Identifier: Apache-2.0
// The journal: a file to which each result is appended as soon as it is known. README.md describes the format.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "journal/header.h"
#include "journal/result.h"

namespace backplane::conform {

// The content of a journal.
struct Record {
  Header header;
  std::vector<Result> results;  // in the order in which they were added
  uint64_t bytes = 0;           // the size of all complete lines; an interrupted write may follow them
};

// `path` is a journal, or a folder with journal.jsonl: returns the journal.
std::filesystem::path journal_file(const std::filesystem::path& path);
// `path` is as above; `whose` is the name of the file for messages. Both functions throw std::runtime_error, which
// names the file and, for a bad result, the line.
Record read_journal(const std::filesystem::path& path);
Record parse_journal(const std::string& text, const std::string& whose);
// Returns the content of a journal with these results.
std::string text_of(const Record& record);
// Writes a new journal. Creates the folder, or replaces the journal in it. Throws std::runtime_error.
void write_journal(const std::filesystem::path& folder, const Record& record);

// Collects the results of a run and appends each to the file. [one at a time]
class Journal {
 public:
  // Writes to `folder`/journal.jsonl, or to no file if `folder` is empty. Throws std::runtime_error if the journal
  // exists, unless `resume` is set and the journal belongs to the same run; then it is continued and keeps its header.
  Journal(const std::filesystem::path& folder, Header header, bool resume = false);
  void add(Result result);
  const Header& header() const { return record_.header; }
  // All results sorted by case name, including those of a resumed journal.
  const std::vector<Result>& results();

 private:
  void open(const std::filesystem::path& folder, bool resume);

  std::filesystem::path path_;
  std::ofstream file_;
  Record record_;
};

}  // namespace backplane::conform
