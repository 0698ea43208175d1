// SPDX-License-Identifier: Apache-2.0
// Cases of the harness. A case may be a folder of ONNX test data: model.onnx and test_data_set_*/{input,output}_*.pb.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "journal/case_name.h"
#include "journal/result.h"

namespace backplane::conform {

class Bench;         // state shared by the cases of one child process; see group.h
class RemoteDevice;  // the device as the parent process sees it; see remote.h

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

// Returns a case for each folder with a model.onnx, sorted by name. Names are those of name_in(), and the folder is the
// case's argument. Searches `data` and up to three levels below it, does not follow links, and does not search below
// the folder of a case. Throws std::filesystem::filesystem_error if a folder cannot be read.
std::vector<Case> find_cases(const std::filesystem::path& data);
// The name of the case in `folder`: the folder's path below `data`, or the last part of the path if the folder is
// `data` itself.
std::string name_in(const std::filesystem::path& data, const std::filesystem::path& folder);
// Keeps the cases whose whole name, or the part after its last '/', matches the glob. Throws Usage if the glob has more
// than kMaxGlob bytes.
std::vector<Case> filter(std::vector<Case> cases, const std::string& glob);
// Keeps the cases of the shard.
std::vector<Case> select(std::vector<Case> cases, Shard shard);

}  // namespace backplane::conform
