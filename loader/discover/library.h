// SPDX-License-Identifier: Apache-2.0
// Checks a plugin's shared library before the system's loader opens it, and loads it permanently.
#pragma once

#include <filesystem>
#include <string>

#include "backplane/plugin.h"
#include "discover/file.h"
#include "discover/refusal.h"

namespace backplane {

// Refuses a file that is not a complete shared library for this machine, or needs a sanitizer that this process was not
// built with: the system's loader would crash on a truncated one, and a sanitizer's runtime would end the process.
// BP_REFUSED_NOT_A_LIBRARY, _ARCHITECTURE, _SANITIZER.
Refusal check_library(const std::filesystem::path& path, const File& file);

// Loads the library (all symbols resolved now, none exported to others) and finds bp_plugin_query. `path` must name the
// open `file`, whose content is `content`, before and after loading. Loading is by path, so that $ORIGIN, debuggers and
// the plugin itself find files in the same folder; check_writers() ensures that others cannot replace it meanwhile. No
// library is ever unloaded: drivers leave threads and handlers. BP_REFUSED_LINK, _SYMBOL, _UNTRUSTED.
Refusal load_library(const std::filesystem::path& path, const File& file, const std::string& content,
                     bp_plugin_query_t& out_query);

// BP_SANITIZER_* of this build.
uint32_t own_sanitizer();

}  // namespace backplane
