// SPDX-License-Identifier: Apache-2.0
// Softmax-weighted means of rows of values, which operators for attention share.
#pragma once

#include <algorithm>
#include <optional>

#include "judge/tracked.h"

namespace backplane::conform {

// Attention of one query of one head, in fp32. `key(j)` and `value(j)` return row j of the keys and of the values, and
// `score(j, product)` the score of key j from its product with the query, or -HUGE_VAL if the key is masked. A sink is
// a score without a key and a value. Without a sink, at least one key must not be masked.
template <class Key, class Value, class Score>
std::vector<Tracked> attend(const std::vector<Tracked>& query, const Key& key, const Value& value, int64_t keys,
                            const Score& score, const std::optional<Tracked>& sink = std::nullopt) {
  std::vector<Tracked> weights;
  double top = sink ? sink->value : -HUGE_VAL;
  for (int64_t j = 0; j < keys; ++j) {
    TrackedSum sum(BP_DTYPE_FLOAT);
    const std::vector<Tracked> k = key(j);
    for (size_t e = 0; e < query.size(); ++e) sum.add(query[e], k[e]);
    weights.push_back(score(j, sum.result()));
    top = std::max(top, weights.back().value);
  }
  TrackedSum total(BP_DTYPE_FLOAT);
  if (sink) total.add(exp(*sink - Tracked(top)));
  for (Tracked& weight : weights) {
    weight = weight.value == -HUGE_VAL ? Tracked(0.0) : exp(weight - Tracked(top));
    total.add(weight);
  }
  std::vector<TrackedSum> mixed;
  for (int64_t j = 0; j < keys; ++j) {
    const std::vector<Tracked> v = value(j);
    mixed.resize(v.size(), TrackedSum(BP_DTYPE_FLOAT));
    for (size_t e = 0; e < v.size(); ++e) mixed[e].add(weights[static_cast<size_t>(j)] / total.result(), v[e]);
  }
  std::vector<Tracked> result;
  for (const TrackedSum& sum : mixed) result.push_back(sum.result());
  return result;
}

}  // namespace backplane::conform
