// SPDX-License-Identifier: Apache-2.0
// Which backends run in separate processes, and what these processes may do. Manifests, the environment variables
// BACKPLANE_ISOLATE* and the options loader.isolate* decide.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "discover/environment.h"
#include "discover/file.h"
#include "discover/refusal.h"
#include "discover/selection.h"

namespace backplane {

struct Opening;

class Isolation {
 public:
  // Applies loader.isolate, loader.isolate_sandbox or loader.isolate_paths; `option` is the name without "loader.".
  // Patterns and paths are added to earlier ones. BP_INVALID_ARGUMENT if the value is invalid.
  Status set(std::string_view option, std::string_view value);
  // Whether a backend runs in a separate process. The last matching pattern decides; without a match, `by_manifest`
  // does.
  bool wanted(std::string_view id, std::string_view full_id, bool by_manifest) const;
  // Whether a pattern selects backends, so that an id must be known before it is decided where a library is loaded.
  bool selects() const;
  // The patterns that match none of the backends, as a list; empty: none.
  std::string unmatched(const SeenNames& names) const;

  // Allows the process to read the folders in which the backend looks for other vendors' libraries. These are the
  // absolute paths, separated by ':', in its option `path` and in the environment variable BACKPLANE_<ID>_PATH.
  void allow_paths_of(std::string_view id, std::string_view path);

  const std::string& sandbox() const { return sandbox_; }
  const std::vector<std::string>& paths() const { return paths_; }
  // The sandbox and the paths as text, for the situation of a backend (known.h).
  std::string text() const;

 private:
  std::vector<std::string> patterns_;  // a leading '!' excludes backends
  std::string sandbox_ = "strict";
  std::vector<std::string> paths_;  // the process may read these
};

// For a library without a manifest, the name that patterns match in addition to the id that the plugin reports: "cpu"
// for libbackplane_cpu.so and libbackplane_cpu.so.1.
std::string id_of_file(const std::filesystem::path& library);

// Starts a process that loads `file`. Fills the tables of `out` with functions that call into that process.
Refusal open_isolated(const Opening& opening, const File& file, Backend& out);

}  // namespace backplane
