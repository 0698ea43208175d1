// SPDX-License-Identifier: Apache-2.0
// The identity of a plugin, queried in a child process.
#pragma once

#include <stdexcept>

#include "checks/group.h"
#include "journal/header.h"
#include "sandbox/child.h"

namespace backplane::conform {

// Thrown with a one-line reason if the plugin cannot be used.
struct Unusable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Queries the identity in a child process with `settings`. Throws Unusable.
Identity identify(const ChildSettings& settings);

// The case that queries the identity. It is in no list: the child recognizes its name, and the parent judges it.
inline constexpr const char* kIdentityCase = "(identity)";

}  // namespace backplane::conform
