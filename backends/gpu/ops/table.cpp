// SPDX-License-Identifier: Apache-2.0
#include "ops/table.h"

#include <charconv>
#include <climits>
#include <cmath>

#include "ops/cost.h"

namespace backplane::gpu {

const Table& table() {
  // The order in which a reader wants to see them.
  static const Table kTable(
      {elementwise_rows(), movement_rows(), generate_rows(), gather_rows(), reduce_rows(), normalization_rows(),
       gemm_rows(), attention_rows(), rotary_rows(), conv_rows(), conv_transpose_rows(), pool_rows(), pad_rows(),
       resize_rows(), grid_sample_rows(), quantize_rows(), loss_rows()},
      kNewestOpsets);
  return kTable;
}

Verdict Row::judge(const Node& node, const sdk::Asked<Facts>& asked) const {
  constexpr int32_t kMaxRank = 16;  // kernels number a tensor's dimensions in at most this many
  const Facts& facts = asked.facts;
  // Kernels count elements in 32 bits.
  Verdict verdict = expect(node)
                        .dtypes(facts.dtypes())
                        .ranks(kMaxRank)
                        .elements_at_most(INT_MAX)
                        .form(form)
                        .attributes()
                        .input_dtype(0, types)
                        .also(supports);
  if (accepted(verdict)) {
    verdict.seconds = expected_seconds(facts, node);
    verdict.confidence = facts.measured ? 0.5f : 0.3f;
  }
  return verdict;
}

std::string literal(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  // In hexadecimal, so that every bit arrives; printf would write the decimal point of the host's locale.
  char digits[40];
  char* const end = std::to_chars(digits, digits + sizeof digits, std::abs(value), std::chars_format::hex).ptr;
  const std::string number = "0x" + std::string(digits, end) + "f";
  return std::signbit(value) ? "(-" + number + ")" : number;
}

// ---- shared conditions ---------------------------------------------------------------------------------------------

Verdict same_types(const Node& node) {
  return expect(node).same_dtypes();
}

Verdict known_on_host(const Node& node, uint32_t slot) {
  const Value value = node.input(slot);
  if (!value || value.weight() != nullptr) return accept();
  const std::string place = "input " + std::to_string(slot);
  if (value.raw().producer != BP_NONE) return sdk::no(BP_REASON_CONSTANT, place + " is not a constant");
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (node.output(i) && !node.output(i).has_static_shape())
      return sdk::no(BP_REASON_CONSTANT, "the extents of output " + std::to_string(i) + " follow from " + place +
                                             ", which is not a constant");
  }
  return accept();
}

}  // namespace backplane::gpu
