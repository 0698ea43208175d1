// SPDX-License-Identifier: Apache-2.0
// The libraries that one discovery has opened.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "discover/opening.h"

namespace backplane {

// Opens each library at most once if it is refused, or does not have the expected id: thousands of manifests may name
// the same one, and hashing it takes milliseconds.
class OpenedLibraries {
 public:
  // As open_library.
  Refusal open(const Opening& opening, const Log& log, Backend& out, FileFacts& out_facts);

 private:
  struct Library {
    FileFacts facts;
    std::string id;   // that it reports
    Refusal refusal;  // if it is refused whatever its manifest says
  };
  std::map<std::pair<std::filesystem::path, std::string>, Library> libraries_;  // by path and isolation
};

}  // namespace backplane
