// SPDX-License-Identifier: Apache-2.0
// Which backends run in processes of their own, and with which limits: by manifests, BACKPLANE_ISOLATE and options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "discover/environment.h"
#include "discover/file.h"
#include "discover/refusal.h"

namespace backplane {

struct Opening;

class Isolation {
 public:
  // Sets one of the options loader.isolate, loader.isolate_sandbox and loader.isolate_paths; `option` has no "loader.".
  Status set(std::string_view option, std::string_view value);
  // Whether a backend has a process of its own. Patterns take precedence over its manifest, later ones over earlier
  // ones.
  bool wanted(std::string_view id, std::string_view full_id, bool by_manifest) const;

  // Lets the process read where the backend looks for other vendors' libraries: the absolute paths in its option `path`
  // and in the environment's BACKPLANE_<ID>_PATH, both separated by ':'.
  void allow_paths_of(std::string_view id, std::string_view path);

  const std::string& sandbox() const { return sandbox_; }
  const std::vector<std::string>& paths() const { return paths_; }
  // These settings as a part of the situation (known.h).
  std::string text() const;

 private:
  std::vector<std::string> patterns_;  // those that begin with '!' exclude
  std::string sandbox_ = "strict";
  std::vector<std::string> paths_;  // paths that the process may read
};

// The id of a library without a manifest, for patterns; derived from the file's name.
std::string id_of_file(const std::filesystem::path& library);

// Starts a process that loads `file`, and fills the tables of `out` with functions that call it.
Refusal open_isolated(const Opening& opening, const File& file, Backend& out);

}  // namespace backplane
