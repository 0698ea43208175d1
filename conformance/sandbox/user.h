// SPDX-License-Identifier: Apache-2.0
// Another user for the plugin's processes, so that the plugin can neither read the keys of the user that judges it nor
// change files of the judgement.
#pragma once

#include <string>

namespace backplane::conform {

// Throws std::runtime_error, which says why, if this process cannot start others as the user `name`.
void check_user(const std::string& name);

// This process, which must run as root and have one thread, becomes the user `name` for good, with that user's groups
// and home, and without the environment variables that name folders of the previous user. Throws std::runtime_error.
void become_user(const std::string& name);

}  // namespace backplane::conform
