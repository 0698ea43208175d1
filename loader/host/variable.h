// SPDX-License-Identifier: Apache-2.0
// Environment variables. A process with elevated privileges (set-user-ID, file capabilities) reads none: the user who
// starts it must not choose what it loads.
#pragma once

namespace backplane {

// Whether this process has elevated privileges, according to the kernel (AT_SECURE).
bool elevated();

// NULL if the variable is not set, or this process has elevated privileges.
const char* variable(const char* name);

// For tests: from now on elevated() returns `value`.
void pretend_elevated(bool value);

}  // namespace backplane
