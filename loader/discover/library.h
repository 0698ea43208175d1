// SPDX-License-Identifier: Apache-2.0
// Checks a plugin's shared library before the system's loader opens it, and loads it for the life of the process.
#pragma once

#include <filesystem>
#include <string>

#include "backplane/plugin.h"
#include "discover/file.h"
#include "discover/refusal.h"

namespace backplane {

// Refuses files that the system's loader could not handle safely: a truncated library would crash it, and the runtime
// of a sanitizer that this process was not built with would end the process. BP_REFUSED_NOT_A_LIBRARY, _ARCHITECTURE,
// _UNTRUSTED (see read_elf), _SANITIZER.
Refusal check_library(const std::filesystem::path& path, const File& file);

// Loads the library, with all symbols resolved and none visible to other libraries, and finds bp_plugin_query. `path`
// must name the open `file`, whose bytes have the hash `content`, before and after loading. Loads by path, so that
// $ORIGIN, debuggers and the plugin find files in the same folder; check_writers() ensures that other users cannot
// replace it. Never unloads, because drivers leave threads and handlers behind. If this process has loaded
// `path` before, returns that library's function, or BP_REFUSED_UNTRUSTED if its content was another. BP_REFUSED_LINK,
// _SYMBOL, _UNTRUSTED.
Refusal load_library(const std::filesystem::path& path, const File& file, const std::string& content,
                     bp_plugin_query_t& out_query);

// The sanitizer of this build, BP_SANITIZER_*.
uint32_t own_sanitizer();

}  // namespace backplane
