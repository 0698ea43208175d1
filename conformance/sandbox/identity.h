// SPDX-License-Identifier: Apache-2.0
// The identity of a plugin, queried in a child process.
#pragma once

#include <stdexcept>

#include "checks/group.h"
#include "journal/header.h"
#include "sandbox/child.h"

namespace backplane::conform {

// Thrown if the plugin cannot be used, with the reason in one line.
struct Unusable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Queries the identity in a child that `settings` describe. Throws Unusable.
Identity identify(const ChildSettings& settings);

// The case that queries the identity. The child knows it by its name; the parent judges it.
inline constexpr const char* kIdentityCase = "(identity)";

}  // namespace backplane::conform
