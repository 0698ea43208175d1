// SPDX-License-Identifier: Apache-2.0
// From a library's path to a plugin that was negotiated with.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "discover/environment.h"
#include "discover/file.h"
#include "discover/isolation.h"
#include "discover/probe.h"
#include "discover/refusal.h"

namespace backplane {

// All that is needed to load a library, now or when it is used.
struct Opening {
  std::filesystem::path library;
  std::string manifest;     // path, or empty
  std::string expected_id;  // that the plugin must have, or empty
  std::string sha256;       // that the library must have, or empty
  ProbeSettings probe;
  std::shared_ptr<const Isolation> isolation;  // the backend has a process of its own; null: it has not
};

// Checks the file, hashes it, tries it in a child, loads it and fills tables, id and library of `out`. `out_facts` are
// of the file that was loaded. An isolated backend is not tried: its own process shows whether it survives.
Refusal open_library(const Opening& opening, const Log& log, Backend& out, FileFacts& out_facts);

// Arranges that all of this happens when `backend`, whose id, library and host are set, is used. It must then have as
// many devices as its entry said, which was found by `situation`.
void load_when_used(Backend& backend, Opening opening, std::shared_ptr<Services> services, size_t devices,
                    std::string situation);

}  // namespace backplane
