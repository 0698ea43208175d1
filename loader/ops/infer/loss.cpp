// SPDX-License-Identifier: Apache-2.0
#include "base/counted.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

// Scores [N, C, d...] and targets [N, d...] yield one loss, or one for each target if `reduction` is "none".
Status loss(Context& c) {
  BP_TRY(c.expect_rank(0, 2, BP_MAX_RANK));
  if (c.ranked(0)) BP_TRY(c.expect_rank(1, c.rank(0) - 1, c.rank(0) - 1));
  if (c.text("reduction") != "none") return c.set_shape(0, {});
  c.copy_shape(0, 1);
  return {};
}

Status cross_entropy(Context& c) {
  BP_TRY(loss(c));
  c.copy_shape(1, 0);
  return {};
}

// After the inputs R and T come the trained tensors, then as many gradients, then the optimizer's states.
Status optimizer(Context& c, size_t groups, size_t results) {
  size_t tensors = c.inputs() < 2 ? 0 : (c.inputs() - 2) / groups;
  if (tensors * groups + 2 != c.inputs() || c.outputs() > tensors * results) {
    return c.fail("has " + counted(c.inputs(), "input") + " and " + counted(c.outputs(), "output") +
                  ", which do not fit a whole number of trained tensors");
  }
  for (size_t slot = 0; slot < c.outputs(); ++slot) {
    size_t group =
        slot / tensors;  // group 0 is the trained tensors; later groups are states, whose inputs follow the gradients
    c.copy_type(slot, c.input(2 + slot % tensors + (group ? group + 1 : 0) * tensors));
  }
  return {};
}

Status adagrad(Context& c) {
  return optimizer(c, 3, 2);
}
Status adam(Context& c) {
  return optimizer(c, 4, 3);
}

}  // namespace

std::span<const RuleRow> loss_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "NegativeLogLikelihoodLoss", loss},           {"", "SoftmaxCrossEntropyLoss", cross_entropy},
      {"ai.onnx.preview.training", "Adagrad", adagrad},  {"ai.onnx.preview.training", "Adam", adam},
      {"ai.onnx.preview.training", "Momentum", adagrad},
  };
  return kRows;
}

}  // namespace backplane::ops
