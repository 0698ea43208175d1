// SPDX-License-Identifier: Apache-2.0
// Oracles of classification losses: [batch, classes, …] compared with target classes [batch, …].
#include <algorithm>

#include "judge/tracked.h"

namespace backplane::conform {
namespace {

// Computes -weight[class]·log-probability at each position, then reduces the losses.
Reference reduced(const Call& call, const Array& x, const std::vector<Tracked>& log_probabilities) {
  const Array& target = call.in(1);
  Extents expected = x.extents;
  expected.erase(expected.begin() + 1);
  require(target.extents == expected && !is_float(target.dtype),
          "the target is not of integers, or its shape does not fit that of the input");
  const int64_t classes = x.extents[1];
  const std::vector<double> weights =
      call.has(2) ? call.vector(2, classes) : std::vector<double>(static_cast<size_t>(classes), 1);
  const bool has_ignored = std::any_of(call.attributes().begin(), call.attributes().end(),
                                       [](const Attribute& one) { return one.name == "ignore_index"; });
  const int64_t ignored = call.integer("ignore_index");
  const int64_t plane = x.rank() == 2 ? 1 : count_of({x.extents.begin() + 2, x.extents.end()});
  std::vector<Tracked> losses;
  TrackedSum sum(x.dtype), total(x.dtype);
  for (size_t i = 0; i < target.values.size(); ++i) {
    const int64_t chosen = whole(target.values[i]);
    if (has_ignored && chosen == ignored) {
      losses.emplace_back(0.0);
      continue;
    }
    require(chosen >= 0 && chosen < classes, "a class is out of range");
    const auto batch = static_cast<int64_t>(i) / plane, rest = static_cast<int64_t>(i) % plane;
    const Tracked weight(weights[static_cast<size_t>(chosen)]);
    const Tracked value = log_probabilities[static_cast<size_t>((batch * classes + chosen) * plane + rest)];
    losses.push_back(Tracked(-weight.value) * value);
    sum.add(losses.back());
    total.add(weight);
  }
  const std::string_view reduction = call.text("reduction");
  if (reduction == "none") return tracked_reference(x.dtype, target.extents, losses);
  require(reduction == "sum" || reduction == "mean" || reduction.empty(), "the reduction is not known");
  require(reduction == "sum" || total.result().value != 0,
          "the weights of the positions that are not ignored add up to 0");
  return tracked_reference(x.dtype, {}, {reduction == "sum" ? sum.result() : sum.result() / total.result()});
}

References negative_log_likelihood(const Call& call) {
  const Array& x = call.in(0, 2);
  require(is_float(x.dtype), "the input is not floating-point");
  return {reduced(call, x, {x.values.begin(), x.values.end()})};
}

References softmax_cross_entropy(const Call& call) {
  const Array& x = call.in(0, 2);
  require(is_float(x.dtype), "the scores are not floating-point");
  const auto classes = static_cast<size_t>(x.extents[1]);
  const auto plane = static_cast<size_t>(x.rank() == 2 ? 1 : count_of({x.extents.begin() + 2, x.extents.end()}));
  std::vector<Tracked> logarithms(x.values.size());
  for (size_t first = 0; first < logarithms.size(); ++first) {
    if (first / plane % classes != 0) continue;
    double top = -HUGE_VAL;
    TrackedSum sum(x.dtype);
    for (size_t c = 0; c < classes; ++c) top = std::max(top, x.values[first + c * plane]);
    for (size_t c = 0; c < classes; ++c) sum.add(exp(Tracked(x.values[first + c * plane]) - Tracked(top)));
    const Tracked logarithm = log(sum.result());
    for (size_t c = 0; c < classes; ++c)
      logarithms[first + c * plane] = Tracked(x.values[first + c * plane]) - Tracked(top) - logarithm;
  }
  References results = {reduced(call, x, logarithms)};
  require(call.output_count() <= 2, "there are more than two outputs");
  if (call.output_count() == 2) results.push_back(tracked_reference(x.dtype, x.extents, logarithms));
  return results;
}

const Operator kOperators[] = {
    {"NegativeLogLikelihoodLoss", {13, 22}, negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", {13}, softmax_cross_entropy},
};

}  // namespace

std::span<const Operator> loss_operators() {
  return kOperators;
}

}  // namespace backplane::conform
