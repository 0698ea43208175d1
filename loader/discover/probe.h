// SPDX-License-Identifier: Apache-2.0
// Tries a plugin in a child process before it is loaded into the framework's process.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "discover/file.h"
#include "discover/refusal.h"
#include "host/log.h"

namespace backplane {

// When plugins are probed; set by option loader.probe.
enum class ProbePolicy {
  kAlways,      // every library, at every start
  kCached,      // once per content and loader build, because the verdict is stored; the default
  kIfPossible,  // as kCached, but a library is loaded without a probe if no child can be started or load it
  kNever,       // every library is loaded without a probe, and a warning is logged
};

struct ProbeSettings {
  ProbePolicy policy = ProbePolicy::kCached;
  std::chrono::milliseconds limit{20'000};  // for the whole probe of one plugin
  std::filesystem::path helper;             // empty: backplane-probe, as found by find_helper
};

// `library` is the open file at `path`, `content` its BLAKE2b hash. BP_REFUSED_CRASHED if the plugin crashed, hung,
// ended the child, disturbed its reports or changed the state of the process in any step (ProbeStep), now or in an
// earlier probe. BP_REFUSED_UNTRIED if no child can be started, or the child fails before it loads the library. If the
// library cannot be loaded in the child, returns the child's refusal (_LINK or _UNTRUSTED) and stores no verdict. With
// kIfPossible, the last two cases are logged as errors and nothing is refused.
Refusal probe_library(const std::filesystem::path& path, const File& library, const std::string& content,
                      const ProbeSettings& settings, const Log& log);

}  // namespace backplane
