// SPDX-License-Identifier: Apache-2.0
// com.microsoft FusedConv: Conv of X, W and bias; an optional Z is added to its result before the activation.
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/common/window.h"
#include "kernels/conv/conv.h"
#include "kernels/post_op/node_activation.h"

namespace backplane::cpu {

namespace {

constexpr bp_dtype_set_t kFloat = just(BP_DTYPE_FLOAT);

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloat, kFloat, kFloat, kFloat}); !v) return v;
  if (Verdict v = supports_activation(node); !v) return v;
  return check_window(node);
}

std::unique_ptr<Kernel> create(const Node& node) {
  std::shared_ptr<Kernel> conv = create_conv(node);
  const bool sums = node.has_input(3);
  if (sums) conv->append(PostOp{PostOp::kAdd, {}, {}, {}});
  if (const auto activation = activation_of(node)) conv->append(PostOp{PostOp::kActivation, {}, {}, *activation});
  return make_kernel([conv, sums](const PlanContext& context, Tensors in) {
    Plan plan = conv->plan(context, in);
    if (plan.step && sums && !(in[3].shape == plan.shapes[0]))
      return fail("Z " + to_string(in[3].shape) + " does not have the result's extents " + to_string(plan.shapes[0]));
    return plan;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> fused_conv_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "FusedConv", 1, supports, create}.in_fp32(0b010),
  };
  return kRows;
}

}  // namespace backplane::cpu
