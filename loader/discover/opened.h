// SPDX-License-Identifier: Apache-2.0
// The libraries that one discovery has opened.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "discover/opening.h"

namespace backplane {

// Remembers each library's id and refusal. Until the file changes, does not open it again if it was refused for a
// reason that holds for every manifest, or has another id than the manifest expects: thousands of manifests may name
// the same library, and hashing it takes milliseconds.
class OpenedLibraries {
 public:
  // Like open_library.
  Refusal open(const Opening& opening, const Log& log, Backend& out, FileFacts& out_facts);

 private:
  struct Library {
    FileFacts facts;
    std::string id;   // the id that its plugin reports
    Refusal refusal;  // set if it holds for every manifest that names the library
  };
  std::map<std::pair<std::filesystem::path, std::string>, Library> libraries_;  // by path and isolation
};

}  // namespace backplane
