// SPDX-License-Identifier: Apache-2.0
// Whether a plugin survives being loaded, tried in a child process before the framework's own is put at risk.
#pragma once

#include <filesystem>
#include <string_view>

#include "discover/refusal.h"
#include "host/log.h"

namespace backplane {

// When a child is started: for every library at every start, once for each file (path, size and time; the answer is
// kept in $XDG_CACHE_HOME/backplane/probe), or never. Option loader.probe.
enum class ProbePolicy { kAlways, kCached, kNever };

// BP_REFUSED_CRASHED if the library crashed or hung on load, in bp_plugin_query, in `create` or `count`. Where a child
// cannot be started the answer is no refusal, and a line in the debug log.
Refusal probe_library(const std::filesystem::path& library, ProbePolicy policy, const Log& log);

// The two words of the child.
inline constexpr std::string_view kProbeLoaded = "loaded\n";      // load and query are behind it
inline constexpr std::string_view kProbeSurvived = "survived\n";  // all is

}  // namespace backplane
