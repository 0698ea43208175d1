// SPDX-License-Identifier: Apache-2.0
#include "journal/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "journal/digest.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

fs::path file_in(const fs::path& folder) {
  return folder / "journal.jsonl";
}

void sort_by_name(std::vector<Result>& results) {
  std::stable_sort(results.begin(), results.end(), [](const Result& a, const Result& b) { return a.name < b.name; });
}

}  // namespace

fs::path journal_file(const fs::path& path) {
  return fs::is_directory(path) ? file_in(path) : path;
}

Record read_journal(const fs::path& path) {
  const fs::path file = journal_file(path);
  return parse_journal(read_file(file), file.string());
}

Record parse_journal(const std::string& text, const std::string& whose) {
  Record record;
  for (size_t line = 1;; ++line) {
    const size_t end = text.find('\n', record.bytes);
    if (end == std::string::npos) break;
    const std::string_view one = std::string_view(text).substr(record.bytes, end - record.bytes);
    record.bytes = end + 1;
    if (line == 1) {
      if (!from_json_line(one, record.header))
        throw std::runtime_error(fmt::format("'{}' is not a journal: its first line does not describe a run", whose));
    } else if (!from_json_line(one, record.results.emplace_back())) {
      throw std::runtime_error(fmt::format("'{}' line {} is not a result", whose, line));
    }
  }
  if (record.bytes == 0) throw std::runtime_error(fmt::format("'{}' is not a journal: it is empty", whose));
  return record;
}

std::string text_of(const Record& record) {
  std::string text = to_json_line(record.header) + '\n';
  for (const Result& result : record.results) text += to_json_line(result) + '\n';
  return text;
}

void write_journal(const fs::path& folder, const Record& record) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  write_file(file_in(folder), text_of(record));
}

Journal::Journal(const fs::path& folder, Header header, bool resume) {
  record_.header = std::move(header);
  if (!folder.empty()) open(folder, resume);
}

void Journal::open(const fs::path& folder, bool resume) {
  std::error_code error;
  fs::create_directories(folder, error);
  path_ = file_in(folder);
  const bool exists = fs::exists(path_, error) && fs::file_size(path_, error) != 0;
  if (exists && !resume) {
    throw std::runtime_error(
        fmt::format("'{}' exists: use --resume to continue it, or choose another folder for --out", path_.string()));
  }
  const bool has_line = exists && read_file(path_).find('\n') != std::string::npos;
  if (has_line) {
    Record before = read_journal(path_);
    if (const std::string other = difference(record_.header, before.header, false); !other.empty())
      throw std::runtime_error(
          fmt::format("'{}' belongs to another run: {}; choose another folder for --out", path_.string(), other));
    fs::resize_file(path_, before.bytes);  // drops a line whose write was interrupted
    record_ = std::move(before);
  }
  file_.open(path_, has_line ? std::ios::app : std::ios::trunc);
  if (!has_line) file_ << to_json_line(record_.header) << '\n' << std::flush;
  if (!file_) throw std::runtime_error(fmt::format("'{}' cannot be written: {}", path_.string(), std::strerror(errno)));
}

void Journal::add(Result result) {
  if (file_.is_open() && !(file_ << to_json_line(result) << '\n' << std::flush)) {
    throw std::runtime_error(fmt::format("'{}' cannot be written: {}", path_.string(), std::strerror(errno)));
  }
  record_.results.push_back(std::move(result));
}

const std::vector<Result>& Journal::results() {
  sort_by_name(record_.results);
  return record_.results;
}

}  // namespace backplane::conform
