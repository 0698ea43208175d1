// SPDX-License-Identifier: Apache-2.0
// Cases of the harness. A case may be a folder of ONNX test data: model.onnx and test_data_set_*/{input,output}_*.pb.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/usage.h"

namespace backplane::conform {

using cli::Usage;

class Bench;         // state shared by the cases of one child process, see checks/group.h
class RemoteDevice;  // the device as the parent process sees it, see checks/remote.h
struct Result;

// A case of the harness. The parent process lists and selects cases. It passes their names to its children, which load
// the plugin. A case sets either `run` or `judge`, except that a folder of test data sets neither.
struct Case {
  std::string name;                              // "ops/Add/float/row/0", or the path of a folder below the data folder
  std::function<Result(Bench& bench)> run = {};  // called in the child; may throw Breach, which fails the case
  // Called in the parent, which reaches the device through requests to the child. [thread-safe]
  std::function<Result(RemoteDevice& device)> judge = {};
  std::string profile = {};   // the profile of the case; if empty, the case runs with every profile
  std::string argument = {};  // the name of the case on the child's command line; empty if it is `name`
};

// FNV-1a. The result is the same on every machine.
uint64_t hash(std::string_view text);

// Returns a case for each folder with a model.onnx, sorted by name. Names are those of name_in(), and the folder is the
// case's argument. Searches `data` and up to three levels below it, does not follow links, and does not search below
// the folder of a case. Throws std::filesystem::filesystem_error if a folder cannot be read.
std::vector<Case> find_cases(const std::filesystem::path& data);
// The name of the case in `folder`: the folder's path below `data`, or the last part of the path if the folder is
// `data` itself.
std::string name_in(const std::filesystem::path& data, const std::filesystem::path& folder);
inline constexpr size_t kMaxGlob = 1000;  // bytes
// Keeps the cases whose whole name, or the part after its last '/', matches the glob. Throws Usage if the glob has more
// than kMaxGlob bytes: a bundle's glob is untrusted, and each byte costs time for each case.
std::vector<Case> filter(std::vector<Case> cases, const std::string& glob);

// One part of a run that is spread over several machines. The hash of a case's name decides which shard has the case.
struct Shard {
  uint32_t index = 1;  // from 1
  uint32_t count = 1;
};
// Parses "i/n". Throws Usage if the text is invalid.
Shard parse_shard(const std::string& text);
bool is_in(std::string_view case_name, Shard shard);
std::vector<Case> select(std::vector<Case> cases, Shard shard);

}  // namespace backplane::conform
