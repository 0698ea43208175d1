// SPDX-License-Identifier: Apache-2.0
// Distinguishes valid reduced graphs from invalid ones, which prove nothing about a plugin.
#pragma once

#include "minimize/candidate.h"

namespace backplane::conform {

// True if the loader accepts the graph and infers the same types and shapes of its outputs as the oracle. Runs in a
// child process, because an invalid graph may crash either. False if that takes more than ten seconds.
bool is_sound(const Network& network);

}  // namespace backplane::conform
