// SPDX-License-Identifier: Apache-2.0
// Environment variables. A process with elevated privileges (set-user-ID, file capabilities) ignores them, so that the
// user who starts it cannot choose the code that it loads.
#pragma once

namespace backplane {

// Whether the kernel reports elevated privileges for this process (AT_SECURE).
bool elevated();

// NULL if the variable is not set, or this process has elevated privileges.
const char* variable(const char* name);

// For tests: makes elevated() return `value`.
void pretend_elevated(bool value);

}  // namespace backplane
