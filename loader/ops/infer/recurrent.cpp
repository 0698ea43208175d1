// SPDX-License-Identifier: Apache-2.0
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

// Inputs: X [sequence, batch, input] and W [directions, gates * hidden, input]; with layout 1, batch comes first.
// Outputs: Y, Y_h and, for LSTM, Y_c.
template <int64_t kGates>
Status recurrent(Context& c) {
  for (size_t slot = 0; slot < 3; ++slot) BP_TRY(c.expect_rank(slot, 3, 3));
  std::string_view direction = c.text("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return c.fail("direction is '" + std::string(direction) + "', but it must be forward, reverse or bidirectional");
  }
  Scalar directions = direction == "bidirectional" ? 2 : 1;
  BP_TRY(c.merge(directions, c.dim(1, 0), directions, "directions and the first extent of W"));
  Scalar hidden = c.dim(2, 2);
  if (c.has_attribute("hidden_size")) {
    BP_TRY(c.merge(c.integer("hidden_size"), hidden, hidden, "hidden_size and the last extent of R"));
  }
  Scalar rows = c.dim(1, 1);
  if (rows.is_number() && hidden.is_number() && rows.value != c.math().multiply(hidden, kGates).value) {
    return c.fail("W has " + std::to_string(rows.value) + " rows, but it must have " + std::to_string(kGates) +
                  " times " + std::to_string(hidden.value) + " (the hidden size)");
  }
  Scalar width;
  BP_TRY(c.merge(c.dim(0, 2), c.dim(1, 2), width, "the input sizes of X and W"));
  bool batch_first = c.integer("layout") != 0;
  Scalar length = c.dim(0, batch_first), batch = c.dim(0, !batch_first);
  Shape all = batch_first ? Shape{batch, length, directions, hidden} : Shape{length, directions, batch, hidden};
  Shape last = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  BP_TRY(c.set_shape(0, all));
  BP_TRY(c.set_shape(1, last));
  return c.set_shape(2, last);
}

}  // namespace

std::span<const RuleRow> recurrent_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "GRU", recurrent<3>},
      {"", "LSTM", recurrent<4>},
      {"", "RNN", recurrent<1>},
  };
  return kRows;
}

}  // namespace backplane::ops
