// SPDX-License-Identifier: Apache-2.0
// Loads a library and negotiates with its plugin.
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

// Everything that is needed to load a library, now or on first use.
struct Opening {
  std::filesystem::path library;
  std::string manifest;     // path, or empty
  std::string expected_id;  // the id that the plugin must have, or empty
  std::string sha256;       // the digest that the library must have, or empty
  ProbeSettings probe;
  std::shared_ptr<const Isolation> isolation;  // the backend runs in its own process; null: it does not
};

// Checks the file, hashes it, probes it, loads it and fills in tables, id and library of `out`. `out_facts` are those
// of the file that was loaded. Isolated backends are not probed: if one crashes, only its own process ends.
Refusal open_library(const Opening& opening, const Log& log, Backend& out, FileFacts& out_facts);

// Makes the first use of `backend`, whose id, library and host are set, open the library and create the backend. It
// must then have as many devices as its stored entry, which was found by `situation`.
void load_when_used(Backend& backend, Opening opening, std::shared_ptr<Services> services, size_t devices,
                    std::string situation);

}  // namespace backplane
