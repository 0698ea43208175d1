// SPDX-License-Identifier: Apache-2.0
// Whether a plugin survives being loaded and used, tried in a child process before the framework's own is put at risk.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "discover/file.h"
#include "discover/refusal.h"
#include "host/log.h"

namespace backplane {

// When a child is started. Option loader.probe.
enum class ProbePolicy {
  kAlways,      // for every library at every start
  kCached,      // once for each content, whose verdict is kept; the default
  kIfPossible,  // as kCached, but a library is loaded untried where no child can be started
  kNever,
};

struct ProbeSettings {
  ProbePolicy policy = ProbePolicy::kCached;
  std::chrono::milliseconds limit{20'000};  // for the whole trial
  std::filesystem::path helper;             // empty: backplane-probe next to the loader
};

// `library` is the open file at `path`, `content` its BLAKE2b. BP_REFUSED_CRASHED if it crashed, hung or ended the
// child when it was loaded, asked, created, listed, opened, asked about an operator, closed or destroyed, now or
// earlier. BP_REFUSED_UNTRIED where no child can be started.
Refusal probe_library(const std::filesystem::path& path, const File& library, const std::string& content,
                      const ProbeSettings& settings, const Log& log);

}  // namespace backplane
