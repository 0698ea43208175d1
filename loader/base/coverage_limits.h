// SPDX-License-Identifier: Apache-2.0
// Limits of what a plugin may answer to a coverage query. A query with a larger answer fails.
#pragma once

#include <cstdint>

namespace backplane {

inline constexpr uint64_t kMaxVerdictsPerNode = 100;    // of which the last counts
inline constexpr uint32_t kMaxVerdictRanges = 4096;     // in one verdict
inline constexpr uint32_t kMaxGroupNodes = 10'000'000;  // in one group
inline constexpr uint64_t kMaxAnswerBytes = 64u << 20;  // of all verdicts and groups
inline constexpr uint64_t kMaxAnswerTextBytes = 1000;   // of a detail or a name; the rest is dropped

}  // namespace backplane
