// SPDX-License-Identifier: Apache-2.0
// Loads a plugin's library and negotiates with the plugin.
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

// Everything needed to load a library, during discovery or on first use.
struct Opening {
  std::filesystem::path library;
  std::string manifest;     // path of the manifest, or empty
  std::string expected_id;  // the id that the plugin must report, or empty
  std::string sha256;       // the SHA-256 that the library must have, or empty
  ProbeSettings probe;
  std::shared_ptr<const Isolation> isolation;  // null: the backend runs in this process
};

// Checks, hashes, probes and loads a library. Sets the tables, id and library of `out`, and `out_facts` to the facts of
// the file that was loaded. Isolated backends are not probed, because a crash ends only their own process.
Refusal open_library(const Opening& opening, const Log& log, Backend& out, FileFacts& out_facts);

// Defers loading: the first use of `backend`, whose id, library and host are set, opens the library and creates the
// backend. A refusal makes that use fail with BP_INCOMPATIBLE. `devices` is the number of devices in the stored entry
// for `situation` (known.h). If the backend then has another number of devices, the use fails with BP_STALE and the
// entry is removed.
void load_when_used(Backend& backend, Opening opening, std::shared_ptr<Services> services, size_t devices,
                    std::string situation);

}  // namespace backplane
