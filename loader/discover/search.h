// SPDX-License-Identifier: Apache-2.0
// Finds the candidates and their order, as documented at bp_env_desc_t in loader.h.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/loader.h"

namespace backplane {

struct Found {
  std::filesystem::path path;  // absolute, and may not exist; a manifest if it ends in .json, otherwise a library
  std::string found_by;        // "backend_files", "BACKPLANE_BACKEND_FILES", …
  bool named;           // the user or framework named this file or its folder, so a refusal is logged as a warning
  bool folder = false;  // a folder that the framework named and that cannot be read
  // Found in a folder. Such a manifest is masked by an earlier one with the same id, and disabled by an earlier empty
  // one with the same file name.
  bool listed = false;
};

std::vector<Found> search(const bp_env_desc_t& desc);

// The folder of the library or program that contains this code; empty if unknown.
std::filesystem::path loader_folder();

}  // namespace backplane
