// SPDX-License-Identifier: Apache-2.0
#include "ops/row.h"

#include <charconv>
#include <cmath>

#include "ops/table.h"

namespace backplane::gpu {

std::string literal(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  // Hexadecimal digits are exact. printf is not used because it writes the decimal point of the host's locale.
  char digits[40];
  char* const end = std::to_chars(digits, digits + sizeof digits, std::abs(value), std::chars_format::hex).ptr;
  const std::string number = "0x" + std::string(digits, end) + "f";
  return std::signbit(value) ? "(-" + number + ")" : number;
}

Verdict same_types(const Node& node) {
  return expect(node).same_dtypes();
}

Verdict known_on_host(const Node& node, uint32_t slot) {
  const Value value = node.input(slot);
  if (!value || value.weight() != nullptr) return accept();
  const std::string input = "input " + std::to_string(slot);
  if (is_computed_on_host(table(), value)) return accept();
  if (value.raw().producer != BP_NONE)
    return sdk::no(BP_REASON_CONSTANT, input + " is not a constant, and does not follow from extents through at most " +
                                           std::to_string(kMostFollowed) + " nodes whose integers the host computes");
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (node.output(i) && !node.output(i).has_static_shape())
      return sdk::no(BP_REASON_CONSTANT, "the extents of output " + std::to_string(i) + " depend on " + input +
                                             ", which is not a constant");
  }
  return accept();
}

}  // namespace backplane::gpu
