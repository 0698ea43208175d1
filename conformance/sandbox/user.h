// SPDX-License-Identifier: Apache-2.0
// Another user for the plugin's processes, so that the plugin can neither read the keys of the user that judges it nor
// change files of the judgement.
#pragma once

#include <string>

namespace backplane::conform {

// Whether this process can start others as the user `name`. Throws std::runtime_error, which says why not.
void check_user(const std::string& name);

// This process, which must have one thread, becomes the user `name` for good, with the user's groups and home, and
// without the environment variables that name folders of the user before. Throws std::runtime_error.
void become_user(const std::string& name);

}  // namespace backplane::conform
