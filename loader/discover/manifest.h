// SPDX-License-Identifier: Apache-2.0
// A backend's manifest: a small JSON file that says which library to load.
//
//   {"manifest": 1, "id": "cpu", "name": "for people", "library": "../../../lib/backplane/libbackplane_cpu.so",
//    "abi": {"min": "1.0", "max": "1.0"}, "isolation": "none"}
//
// `library` is relative to the manifest's folder, or absolute. `name` and `isolation` may be left out; unknown keys are
// ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "discover/refusal.h"
#include "host/log.h"

namespace backplane {

struct Manifest {
  std::string id;
  std::string name;
  std::filesystem::path library;  // absolute if the manifest's own path is
  uint32_t version_min = 0;       // BP_MAKE_VERSION
  uint32_t version_max = 0;
  bool isolated = false;  // the backend asks for a process of its own
};

// [a-z0-9_]{1,32}
bool legal_backend_id(std::string_view id);

// BP_REFUSED_MISSING if it cannot be read, BP_REFUSED_MANIFEST if it breaks the format. `file` is named in texts and is
// what `library` is relative to.
Refusal parse_manifest(std::string_view json, const std::filesystem::path& file, const Log& log, Manifest& out);
Refusal read_manifest(const std::filesystem::path& file, const Log& log, Manifest& out);

}  // namespace backplane
