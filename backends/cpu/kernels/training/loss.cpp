// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss, which first applies a log-softmax over the classes.
#include <cmath>
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/index.h"
#include "kernels/common/support.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

enum class Reduction { kNone, kSum, kMean };

struct Loss {
  bool softmax;
  Reduction reduction;
  std::optional<int64_t> ignored;  // the attribute ignore_index
};

// `scores` is [batch, classes, pixels], `labels` is [batch, pixels].
template <class T>
std::optional<std::string> run_loss(const Loss& loss, Tensors in, Tensors out, int64_t batch, int64_t classes,
                                    int64_t pixels) {
  const T *scores = in[0].as<T>(), *weights = at(in, 2).as<T>();
  const Indices labels(in[1]);
  T *result = out[0].as<T>(), *log_probabilities = loss.softmax ? at(out, 1).as<T>() : nullptr;
  double total = 0, total_weight = 0;
  Pace pace;
  for (int64_t i = 0; i < batch * pixels; ++i) {
    pace.spend(loss.softmax ? 8 * classes : 1);
    const int64_t first = i / pixels * classes * pixels + i % pixels;
    const auto score = [&](int64_t c) { return static_cast<double>(scores[first + c * pixels]); };
    double log_sum = 0;
    if (loss.softmax) {
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < classes; ++c) largest = std::max(largest, score(c));
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(score(c) - largest);
      log_sum = largest + std::log(sum);
      for (int64_t c = 0; c < classes && log_probabilities != nullptr; ++c)
        log_probabilities[first + c * pixels] = static_cast<T>(static_cast<compute_t<T>>(score(c) - log_sum));
    }
    const int64_t label = labels.raw(i);
    double weight = 0, value = 0;
    if (label != loss.ignored) {
      if (label < 0 || label >= classes)
        return "label " + std::to_string(label) + " is out of range for " + std::to_string(classes) + " classes";
      weight = weights == nullptr ? 1 : static_cast<double>(weights[label]);
      value = (log_sum - score(label)) * weight;
    }
    total += value;
    total_weight += weight;
    if (loss.reduction == Reduction::kNone && result != nullptr)
      result[i] = static_cast<T>(static_cast<compute_t<T>>(value));
  }
  if (loss.reduction != Reduction::kNone && result != nullptr)
    *result =
        static_cast<T>(static_cast<compute_t<T>>(loss.reduction == Reduction::kMean ? total / total_weight : total));
  return std::nullopt;
}

Verdict supports(const Node& node) {
  if (Verdict verdict = accepts(node, 2, {kFloatTypes, kIndexTypes, kFloatTypes}); !verdict) return verdict;
  if (node.has_input(2))
    if (Verdict verdict = same_type(node, 0, 2); !verdict) return verdict;
  return attribute_in(node, "reduction", "mean", {"none", "sum", "mean"});
}

template <bool kSoftmax>
std::unique_ptr<Kernel> create(const Node& node) {
  const std::string reduction = node.attr("reduction", "mean");
  Loss loss{kSoftmax,
            reduction == "none"  ? Reduction::kNone
            : reduction == "sum" ? Reduction::kSum
                                 : Reduction::kMean,
            std::nullopt};
  if (node.find("ignore_index") != nullptr) loss.ignored = node.attr("ignore_index", int64_t{0});
  return make_kernel([loss](Tensors inputs) -> Plan {
    const Shape &scores = inputs[0].shape, &labels = inputs[1].shape;
    Shape expected;
    for (int d = 0; d < scores.rank(); ++d)
      if (d != 1) expected.push_back(scores[d]);
    if (scores.rank() < 2 || !(labels == expected))
      return fail("labels of shape " + to_string(labels) + " do not fit scores of shape " + to_string(scores));
    if (const Tensor weights = at(inputs, 2); weights.present() && !(weights.shape == Shape{scores[1]}))
      return fail("weights of shape " + to_string(weights.shape) + " do not fit " + std::to_string(scores[1]) +
                  " classes");
    const int64_t batch = scores[0], classes = scores[1], pixels = scores.elements(2, scores.rank());
    return make_plan({loss.reduction == Reduction::kNone ? labels : Shape{}, scores}, [=](Tensors in, Tensors out) {
      return dispatch<Floats>(in[0].dtype, [&](auto tag) {
        return run_loss<typename decltype(tag)::type>(loss, in, out, batch, classes, pixels);
      });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> loss_rows() {
  static constexpr Row kRows[] = {
      {"", "NegativeLogLikelihoodLoss", 12, supports, create<false>},
      {"", "SoftmaxCrossEntropyLoss", 12, supports, create<true>},
  };
  return kRows;
}

}  // namespace backplane::cpu
