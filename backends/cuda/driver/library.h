// SPDX-License-Identifier: Apache-2.0
// Loading of NVIDIA's libraries, each when it is first needed.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

#include "backplane/sdk/fence.hpp"

namespace backplane::cuda {

// Opens the first of these files that can be opened, for the life of the process. Throws BP_UNSUPPORTED with `missing`,
// the system's reason for each file, and `remedy`.
inline void* open_first(std::initializer_list<const char*> names, const std::string& missing,
                        const std::string& remedy = "") {
  std::string reasons;
  for (const char* name : names) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    reasons += std::string(reasons.empty() ? "" : "; ") + dlerror();
  }
  throw sdk::Error(BP_UNSUPPORTED, missing + ": " + reasons + remedy);
}

}  // namespace backplane::cuda
