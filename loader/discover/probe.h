// SPDX-License-Identifier: Apache-2.0
// Tests in a child process whether a plugin survives being loaded and used, before it is loaded into the framework.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "discover/file.h"
#include "discover/refusal.h"
#include "host/log.h"

namespace backplane {

// When a plugin is probed. Option loader.probe.
enum class ProbePolicy {
  kAlways,      // for every library at every start
  kCached,      // once for each content; the verdict is stored; the default
  kIfPossible,  // as kCached, but libraries are loaded without a probe if no child can be started
  kNever,
};

struct ProbeSettings {
  ProbePolicy policy = ProbePolicy::kCached;
  std::chrono::milliseconds limit{20'000};  // for the whole probe
  std::filesystem::path helper;             // empty: backplane-probe as installed with the loader
};

// `library` is the open file at `path`, `content` its BLAKE2b. BP_REFUSED_CRASHED if the plugin crashed, hung or ended
// the child in any step (ProbeStep), now or earlier; _UNTRIED if no child can be started and the policy requires one.
Refusal probe_library(const std::filesystem::path& path, const File& library, const std::string& content,
                      const ProbeSettings& settings, const Log& log);

}  // namespace backplane
