// SPDX-License-Identifier: Apache-2.0
// Cases, and folders of ONNX test data: model.onnx and test_data_set_*/{input,output}_*.pb.
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

class Bench;         // state shared by the cases of one child process: checks/group.h
class RemoteDevice;  // the device as the parent process sees it: checks/remote.h
struct Result;

// A case of the harness. The parent process lists and selects cases, and passes their names to its children, which load
// the plugin. A case has either `run` or `judge`.
struct Case {
  std::string name;                              // "ops/Add/float/row/0", or a folder's path below the data folder
  std::function<Result(Bench& bench)> run = {};  // in the child; may throw Breach, which fails the case
  // Instead of `run`: in the parent, which reaches the device through requests to the child. [thread-safe]
  std::function<Result(RemoteDevice& device)> judge = {};
  std::string profile = {};   // the profile that it belongs to; empty: it runs with every profile
  std::string argument = {};  // the case's name on the child's command line; empty: `name`
};

// FNV-1a: the same on every machine.
uint64_t hash(std::string_view text);

// Returns a case for each folder with a model.onnx, named by name_in and with the folder as its argument, sorted by
// name. Searches `data` and the folders up to three levels below it, without following links and not below a case's
// folder. Throws std::filesystem::filesystem_error if a folder cannot be read.
std::vector<Case> find_cases(const std::filesystem::path& data);
// The name of the case in `folder`: its path below `data`, or the last part of `data` for `data` itself.
std::string name_in(const std::filesystem::path& data, const std::filesystem::path& folder);
// The cases whose name, or its last part, matches the glob.
std::vector<Case> filter(std::vector<Case> cases, const std::string& glob);

// One part of a run that is spread over several machines; cases are dealt by a hash of their names.
struct Shard {
  uint32_t index = 1;  // from 1
  uint32_t count = 1;
};
// Parses "i/n". Throws Usage.
Shard parse_shard(const std::string& text);
bool is_in(std::string_view case_name, Shard shard);
std::vector<Case> select(std::vector<Case> cases, Shard shard);

}  // namespace backplane::conform
