// SPDX-License-Identifier: Apache-2.0
#include "runner/case.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 3;

void collect(const fs::path& data, const fs::path& folder, int depth, std::vector<Case>& cases) {
  std::error_code ignored;
  if (fs::is_regular_file(folder / "model.onnx", ignored)) {
    const fs::path name =
        depth == 0 ? fs::absolute(folder).lexically_normal().filename() : folder.lexically_relative(data);
    cases.push_back({name.string(), folder});
    return;
  }
  if (depth == kMaxDepth) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) collect(data, entry.path(), depth + 1, cases);
  }
}

// FNV-1a: the same on every machine.
uint64_t hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::vector<Case> find_cases(const fs::path& data) {
  std::vector<Case> cases;
  collect(data, data, 0, cases);
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

std::vector<Case> filter(std::vector<Case> cases, const std::string& glob) {
  std::erase_if(cases, [&](const Case& one) {
    const std::string last = fs::path(one.name).filename().string();
    return fnmatch(glob.c_str(), one.name.c_str(), 0) != 0 && fnmatch(glob.c_str(), last.c_str(), 0) != 0;
  });
  return cases;
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  int used = 0;
  if (sscanf(text.c_str(), "%u/%u%n", &shard.index, &shard.count, &used) != 2 ||
      text.size() != static_cast<size_t>(used) || shard.index < 1 || shard.index > shard.count) {
    throw Usage(fmt::format("--shard is '{}': it must be i/n with i from 1 to n", text));
  }
  return shard;
}

std::vector<Case> select(std::vector<Case> cases, Shard shard) {
  std::erase_if(cases, [&](const Case& one) { return hash(one.name) % shard.count != shard.index - 1; });
  return cases;
}

}  // namespace backplane::conform
