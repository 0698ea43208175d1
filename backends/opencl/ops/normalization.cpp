// SPDX-License-Identifier: Apache-2.0
// BatchNormalization: a factor and a term for each channel.
#include "ops/table.h"

namespace backplane::opencl {
namespace {

void emit_batch_normalization(Emit& e, std::string_view) {
  const Shape shape = e.shape(0);
  const bp_dtype_t dtype = e.node.input(0).dtype();
  const Tensor scale = e.input(1), shift = e.input(2), mean = e.input(3), variance = e.input(4);
  const auto whole = [](const Tensor& x) { return View{x, {1}, 0}; };
  // With constant statistics these two are computed once, when the program is made.
  const std::string epsilon = literal(e.node.float_attribute("epsilon", 1e-5f));
  const Tensor factor =
      e.computed("$0 / sqrt($1 + ($T)" + epsilon + ")", BP_DTYPE_FLOAT, scale.shape, {whole(scale), whole(variance)});
  const Tensor term =
      e.computed("$0 - $1 * $2", BP_DTYPE_FLOAT, scale.shape, {whole(shift), whole(mean), whole(factor)});
  const auto channel = [&](const Tensor& x) {
    View view{x, std::vector<int64_t>(shape.size()), 0};
    view.strides[1] = 1;
    return view;
  };
  e.formula("$0 * $1 + $2", dtype, shape, {Operand(0), channel(factor), channel(term)});
}

Verdict supports_batch_normalization(const Node& node) {
  if (node.int_attribute("training_mode", 0) != 0) return sdk::no(BP_REASON_ATTRIBUTE, "training_mode is 1");
  if (node.input(0).rank() < 2)
    return sdk::no(BP_REASON_SHAPE, "input 0 has rank " + std::to_string(node.input(0).rank()));
  for (uint32_t i = 1; i < 5; ++i) {
    const Value each = node.input(i);
    const int64_t channels = node.input(0).extent(1);
    if (each.rank() != 1 || (each.extent(0) >= 0 && channels >= 0 && each.extent(0) != channels))
      return sdk::no(BP_REASON_SHAPE,
                     "input " + std::to_string(i) + " is " + to_string(each.extents()) + ", not one number a channel");
  }
  return accept();
}

constexpr Row rows[] = {
    {"",
     "BatchNormalization",
     9,
     floats & ~one(BP_DTYPE_DOUBLE),
     {5, 5},
     supports_batch_normalization,
     emit_batch_normalization},
};

}  // namespace

std::span<const Row> normalization_rows() {
  return rows;
}

}  // namespace backplane::opencl
