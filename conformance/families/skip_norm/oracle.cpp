// SPDX-License-Identifier: Apache-2.0
// Oracles of com.microsoft's layer normalizations: of a sum of two inputs and a bias, and of a single input without
// subtracting the mean.
#include <algorithm>

#include "judge/tracked.h"
#include "judge/used_outputs.h"

namespace backplane::conform {
namespace {

// The results of a normalization, in the order of its outputs.
class Normalized {
  const bp_dtype_t type_;
  const Tracked epsilon_;
  const bool is_centred_;

 public:
  Normalized(bp_dtype_t type, double epsilon, bool is_centred)
      : type_(type), epsilon_(epsilon), is_centred_(is_centred) {
    require(is_float(type), "X is not floating-point");
  }

  std::vector<Tracked> results, means, inverses;

  // Normalizes one row. `beta` may be null.
  void add(std::vector<Tracked> row, const std::vector<double>& gamma, const std::vector<double>* beta) {
    const Tracked count(static_cast<double>(row.size()));
    TrackedSum total(type_), squares(type_);
    for (const Tracked& x : row) total.add(x);
    means.push_back(total.result() / count);
    if (is_centred_) {
      for (Tracked& x : row) x = x - means.back();
    }
    for (const Tracked& x : row) squares.add(x, x);
    inverses.push_back(Tracked(1.0) / sqrt(squares.result() / count + epsilon_));
    for (size_t i = 0; i < row.size(); ++i) {
      const Tracked scaled = row[i] * inverses.back() * Tracked(gamma[i]);
      results.push_back(beta == nullptr ? scaled : scaled + Tracked((*beta)[i]));
    }
  }
  // Means or inverse deviations. They are FLOAT, but a device may compute them from numbers of the type of the inputs,
  // so they have the bounds of that type.
  Reference statistics(const Extents& extents, const std::vector<Tracked>& elements) const {
    Reference result = tracked_reference(type_, extents, elements);
    result.value.dtype = BP_DTYPE_FLOAT;
    return result;
  }
};

// Normalizes the sum of input 0, the skip input 1 and the bias. The skip input may have an extent of 1 instead of the
// batch, or no batch. Outputs: the result, the mean and inverse deviation of each row, which no case judges, and the
// sum.
References of_sums(const Call& call, bool is_centred, size_t beta_slot, size_t bias_slot) {
  const Array &x = call.in(0, 2), &skip = call.in(1, 1);
  const int64_t width = x.extents.back();
  require(width > 0 && skip.dtype == x.dtype, "X has no columns, or the inputs have different types");
  const int64_t missing = x.rank() - skip.rank();
  require(missing == 0 || missing == 1, "the skip input differs from X in rank");
  const int64_t shared = missing == 0 && skip.extents[0] == 1 ? 1 : 0;
  require(std::equal(skip.extents.begin() + shared, skip.extents.end(), x.extents.begin() + missing + shared,
                     x.extents.end()),
          "the skip input does not fit X");
  const std::vector<double>&gamma = call.vector(2, width), *beta = nullptr, *bias = nullptr;
  if (beta_slot != 0 && call.has(beta_slot)) beta = &call.vector(beta_slot, width);
  if (call.has(bias_slot)) bias = &call.vector(bias_slot, width);
  Normalized normalized(x.dtype, call.real("epsilon", 1e-12f), is_centred);
  std::vector<Tracked> row, sums;
  for_each_index(x.extents, [&](const Index& at) {
    const double a = x.at(at), b = skip.broadcast_at(at),
                 c = bias == nullptr ? 0 : (*bias)[static_cast<size_t>(at.back())];
    // In any order, a sum of three terms is rounded twice, and neither partial sum exceeds Σ|term|.
    row.push_back(bias == nullptr ? Tracked(a) + Tracked(b)
                                  : Tracked(a + b + c, 2 * (std::fabs(a) + std::fabs(b) + std::fabs(c))));
    sums.push_back(row.back());
    if (at.back() + 1 < width) return;
    normalized.add(std::move(row), gamma, beta);
    row.clear();
  });
  Extents rows = x.extents;
  rows.back() = 1;
  return used_outputs(
      call, {tracked_reference(x.dtype, x.extents, normalized.results), normalized.statistics(rows, normalized.means),
             normalized.statistics(rows, normalized.inverses), tracked_reference(x.dtype, x.extents, sums)});
}

References skip_layer_normalization(const Call& call) {
  return of_sums(call, true, 3, 4);
}
References skip_simplified_layer_normalization(const Call& call) {
  return of_sums(call, false, 0, 3);
}

// Divides by the root of the mean square over the axes from `axis` on. Outputs: the result, and the inverse roots.
References simplified_layer_normalization(const Call& call) {
  const Array &x = call.in(0, 1), &gamma = call.in(1);
  const int64_t axis = normal_axis(call.integer("axis", -1), x.rank());
  const Extents inner(x.extents.begin() + axis, x.extents.end());
  require(gamma.extents == inner && gamma.count() > 0, "the scale does not have the extents of the normalized axes");
  Normalized normalized(x.dtype, call.real("epsilon", 1e-5f), false);
  for (auto from = x.values.begin(); from != x.values.end(); from += gamma.count())
    normalized.add({from, from + gamma.count()}, gamma.values, nullptr);
  Extents rows(x.extents.begin(), x.extents.begin() + axis);
  rows.resize(x.extents.size(), 1);
  return used_outputs(call, {tracked_reference(x.dtype, x.extents, normalized.results),
                             normalized.statistics(rows, normalized.inverses)});
}

constexpr std::string_view kMicrosoft = "com.microsoft";
const Operator kOperators[] = {
    {"SimplifiedLayerNormalization", {1}, simplified_layer_normalization, kMicrosoft},
    {"SkipLayerNormalization", {1}, skip_layer_normalization, kMicrosoft},
    {"SkipSimplifiedLayerNormalization", {1}, skip_simplified_layer_normalization, kMicrosoft},
};

}  // namespace

std::span<const Operator> skip_norm_operators() {
  return kOperators;
}

}  // namespace backplane::conform
