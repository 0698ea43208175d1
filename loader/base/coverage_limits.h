// SPDX-License-Identifier: Apache-2.0
// Limits on the results that a plugin reports to coverage queries and reviews. A call that exceeds one fails, except
// that texts are cut.
#pragma once

#include <cstdint>

namespace backplane {

inline constexpr uint64_t kMaxVerdictsPerNode = 100;    // on average; the last verdict on a node counts
inline constexpr uint32_t kMaxVerdictRanges = 4096;     // in one verdict
inline constexpr uint32_t kMaxGroupNodes = 10'000'000;  // in one group
// Each of: the groups of a query; its details and groups after calls are expanded to their nodes; the parts of a
// review; for an isolated backend, the verdicts and groups of a query.
inline constexpr uint64_t kMaxAnswerBytes = 64u << 20;
inline constexpr uint64_t kMaxAnswerTextBytes = 1000;  // of a detail or a name

}  // namespace backplane
