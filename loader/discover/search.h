// SPDX-License-Identifier: Apache-2.0
// The candidates in their order: see bp_env_desc_t in loader.h.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/loader.h"

namespace backplane {

struct Found {
  std::filesystem::path path;  // absolute; a manifest if it ends in .json, otherwise a library. Need not exist
  std::string found_by;        // "backend_files", "BACKPLANE_BACKEND_FILES", …
  bool named;                  // the user or framework named this file or folder: a warning is logged if it is bad
  bool folder = false;         // a folder named by the framework that cannot be read
  bool listed = false;  // found in a folder: masked by an earlier manifest of its id, or an empty one of its name
};

std::vector<Found> search(const bp_env_desc_t& desc);

// The folder of the library or program that this code is linked into; empty if it is unknown.
std::filesystem::path loader_folder();

}  // namespace backplane
