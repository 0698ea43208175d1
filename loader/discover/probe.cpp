// SPDX-License-Identifier: Apache-2.0
#include "discover/probe.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/release.h"
#include "discover/child.h"
#include "discover/file.h"
#include "discover/search.h"
#include "host/cache.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Loading and asking are fast by contract; creating may start a driver.
constexpr ChildLimits kLimits{milliseconds(2000), kProbeLoaded, milliseconds(10'000)};
constexpr std::string_view kCrashed = "crashed: ";

// The helper beside the loader: in the build tree and in an installation, with and without lib/<machine>.
fs::path find_helper() {
  const fs::path own = loader_folder();
  if (own.empty()) return {};
  for (const char* place : {"../bin", "../libexec/backplane", "../../libexec/backplane"}) {
    std::error_code error;
    fs::path helper = fs::canonical(own / place / "backplane-probe", error);
    if (!error) return helper;
  }
  return {};
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// An answer for one state of one file: two lines, the state and the answer. Anything else is as good as no entry.
class CacheEntry {
 public:
  explicit CacheEntry(const fs::path& library) {
    const fs::path folder = cache_folder();
    File file;
    if (folder.empty() || library.native().find('\n') != std::string::npos || file.open(library)) return;
    state_ = fmt::format("{} {} {} {}", library.string(), file.size(), file.modified_ns(), kBuildId);
    path_ = folder / "probe" / fmt::format("{:016x}", fnv1a(state_));
  }

  const fs::path& path() const { return path_; }

  std::optional<std::string> read() const {
    std::string state, answer;
    std::ifstream file(path_);
    if (path_.empty() || !std::getline(file, state) || !std::getline(file, answer) || state != state_)
      return std::nullopt;
    if (answer != "survived" && !answer.starts_with(kCrashed)) return std::nullopt;
    return answer;
  }

  // A cache that cannot be written costs time at the next start and nothing else.
  void write(std::string_view answer) const {
    if (!path_.empty()) write_whole(path_, fmt::format("{}\n{}\n", state_, answer));
  }

 private:
  std::string state_;
  fs::path path_;
};

Refusal crashed(const fs::path& library, std::string_view how, std::string_view way_out) {
  return {BP_REFUSED_CRASHED,
          fmt::format("{} {} when it was tried in a process of its own: {}", library.string(), how, way_out)};
}

std::string how_it_ended(const ChildResult& child) {
  const char* where = child.said.find(kProbeLoaded) == std::string::npos ? "was loaded and asked" : "was created";
  if (child.timed_out) return fmt::format("did not return in time while it {}", where);
  if (child.signal) {
    const char* name = sigabbrev_np(child.signal);
    return fmt::format("crashed (SIG{}) while it {}", name ? name : "?", where);
  }
  return fmt::format("ended the process (exit code {}) while it {}", child.exit_code, where);
}

}  // namespace

Refusal probe_library(const fs::path& library, ProbePolicy policy, const Log& log) {
  if (policy == ProbePolicy::kNever) return {};
  const CacheEntry entry(library);
  if (policy == ProbePolicy::kCached) {
    if (const auto answer = entry.read()) {
      if (!answer->starts_with(kCrashed)) return {};
      return crashed(library, std::string_view(*answer).substr(kCrashed.size()),
                     fmt::format("remove {} or set loader.probe=always to try again", entry.path().string()));
    }
  }
  const fs::path helper = find_helper();
  if (helper.empty()) {
    log.debug(fmt::format("{} is loaded without a trial: no backplane-probe beside {}", library.string(),
                          loader_folder().string()));
    return {};
  }
  auto child = run_child(helper, library.string(), kLimits);
  if (!child.ok()) {
    log.debug(fmt::format("{} is loaded without a trial: {}", library.string(), child.status().text()));
    return {};
  }
  // The child's word counts, not its exit code: a plugin may call exit(0), and a framework may reap our child.
  if (!child->timed_out && child->said.ends_with(kProbeSurvived)) {
    entry.write("survived");
    return {};
  }
  const std::string how = how_it_ended(*child);
  // A slow machine or a full one is no property of the file.
  if (!child->timed_out && child->signal != SIGKILL) entry.write(std::string(kCrashed) + how);
  return crashed(library, how, "ask its vendor, or set loader.probe=never to load it all the same");
}

}  // namespace backplane
