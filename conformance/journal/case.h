// SPDX-License-Identifier: Apache-2.0
// Folders of ONNX test data: model.onnx and test_data_set_*/{input,output}_*.pb.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/usage.h"

namespace backplane::conform {

using cli::Usage;

struct Case {
  std::string name;  // the folder's path below the data folder; the data folder's own name for itself
  std::filesystem::path folder;
  std::string profile = {};  // of which it is a part; empty: of every one, or of none
};

// FNV-1a: the same on every machine.
uint64_t hash(std::string_view text);

// All folders with a model.onnx in `data`, itself included, at most three levels down, by name. Links are not followed.
// Throws std::filesystem::filesystem_error if `data` cannot be read.
std::vector<Case> find_cases(const std::filesystem::path& data);
// The name of the case in `folder`.
std::string name_in(const std::filesystem::path& data, const std::filesystem::path& folder);
// Those whose name, or its last part, matches the glob.
std::vector<Case> filter(std::vector<Case> cases, const std::string& glob);

// One part of a run that is spread over several machines; cases are dealt by a hash of their names.
struct Shard {
  uint32_t index = 1;  // from 1
  uint32_t count = 1;
};
// From "i/n". Throws Usage.
Shard parse_shard(const std::string& text);
bool is_in(std::string_view case_name, Shard shard);
std::vector<Case> select(std::vector<Case> cases, Shard shard);

}  // namespace backplane::conform
