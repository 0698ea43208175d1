// SPDX-License-Identifier: Apache-2.0
// Oracle of com.microsoft DynamicQuantizeLSTM with its default activations. ONNX Runtime is the definition: like
// DynamicQuantizeLinear, it quantizes X once, over all time steps up to the end of the longest sequence, and in each
// step the states of all sequences together.
#include <algorithm>

#include "judge/dynamic_quantization.h"

namespace backplane::conform {
namespace {

// The weights of one input, [directions, inputs, 4 · hidden], with their scales and zero points.
struct Weights {
  const Array &values, &scale, &zero;

  Tracked at(int64_t d, int64_t i, int64_t column) const {
    const auto own = [&](const Array& of) { return of.rank() == 1 ? of.at({d}) : of.at({d, column}); };
    return Tracked((values.at({d, i, column}) - own(zero)) * own(scale));
  }
};

struct Layer {
  const Call& call;
  int64_t steps, batch, inputs, hidden;
  Weights w, r;
  double clip;
  bool coupled;

  Tracked bias(int64_t d, int64_t column) const {
    if (!call.has(3)) return 0.0;
    return Tracked(call.in(3).at({d, column})) + Tracked(call.in(3).at({d, 4 * hidden + column}));
  }
  Tracked clipped(const Tracked& x) const { return {std::clamp(x.value, -clip, clip), x.error}; }
  Tracked peephole(int64_t d, int64_t which, int64_t u, const Tracked& c) const {
    return call.has(7) ? Tracked(call.in(7).at({d, which * hidden + u})) * c : Tracked(0.0);
  }
  Tracked first(size_t input, int64_t d, int64_t b, int64_t u) const {
    return call.has(input) ? Tracked(call.in(input).at({d, b, u})) : Tracked(0.0);
  }

  // One step of a sequence, from the quantized input and state. Updates the cell state `c`, and returns the new state.
  std::vector<Tracked> step(int64_t d, const Tracked* x, const Tracked* h, std::vector<Tracked>& c) const {
    std::vector<Tracked> result;
    for (int64_t u = 0; u < hidden; ++u) {
      const auto gate = [&](int64_t number) {
        const int64_t column = number * hidden + u;
        TrackedSum sum(BP_DTYPE_FLOAT);
        for (int64_t i = 0; i < inputs; ++i) sum.add(x[i], w.at(d, i, column));
        for (int64_t i = 0; i < hidden; ++i) sum.add(h[i], r.at(d, i, column));
        return sum.result() + bias(d, column);
      };
      Tracked& cell = c[static_cast<size_t>(u)];
      const Tracked i = sigmoid(clipped(gate(0) + peephole(d, 0, u, cell)));
      const Tracked f = coupled ? Tracked(1.0) - i : sigmoid(clipped(gate(2) + peephole(d, 2, u, cell)));
      cell = f * cell + i * tanh(clipped(gate(3)));
      result.push_back(sigmoid(clipped(gate(1) + peephole(d, 1, u, cell))) * tanh(cell));
    }
    return result;
  }
};

Layer layer_of(const Call& call) {
  const Array &x = call.in(0, 3), &w = call.in(1, 3), &r = call.in(2, 3);
  require(x.rank() == 3 && w.rank() == 3 && r.rank() == 3, "X, W or R is not of rank 3");
  for (const Attribute& one : call.attributes())
    require_known(one.name.find("activation") == std::string::npos, "the oracle supports only the default activations");
  const int64_t hidden = r.extents[1];
  require(call.integer("hidden_size", hidden) == hidden && w.extents[1] == x.extents[2] && w.extents[2] == 4 * hidden &&
              r.extents[2] == 4 * hidden,
          "X, W, R and hidden_size do not fit each other");
  const double clip = call.real("clip", HUGE_VALF);
  return {call,
          x.extents[0],
          x.extents[1],
          x.extents[2],
          hidden,
          {w, call.in(8, 1), call.in(9, 1)},
          {r, call.in(10, 1), call.in(11, 1)},
          clip,
          call.integer("input_forget") != 0};
}

References dynamic_quantize_lstm(const Call& call) {
  const Layer layer = layer_of(call);
  const int64_t steps = layer.steps, batch = layer.batch, hidden = layer.hidden;
  const std::string_view direction = call.text("direction");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  require(call.in(1).extents[0] == directions && call.in(2).extents[0] == directions,
          "W or R has a different number of directions");
  const std::vector<double> lengths =
      call.has(4) ? call.vector(4, batch) : std::vector<double>(static_cast<size_t>(batch), static_cast<double>(steps));
  int64_t longest = 0;
  for (const double length : lengths) {
    require(length >= 0 && length <= static_cast<double>(steps), "a length is outside the sequence");
    longest = std::max(longest, whole(length));
  }
  require_steps(static_cast<double>(steps * batch * directions) * static_cast<double>(4 * hidden) *
                static_cast<double>(layer.inputs + hidden));
  const std::vector<double>& numbers = call.in(0).values;
  const std::vector<Tracked> x =
      dynamically_quantized({numbers.begin(), numbers.begin() + longest * batch * layer.inputs});

  std::vector<Tracked> all(static_cast<size_t>(steps * directions * batch * hidden)),
      last(static_cast<size_t>(directions * batch * hidden)), cells = last;
  for (int64_t d = 0; d < directions; ++d) {
    const bool is_reverse = d == 1 || direction == "reverse";
    std::vector<Tracked> h;
    std::vector<std::vector<Tracked>> c(static_cast<size_t>(batch));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t u = 0; u < hidden; ++u) {
        h.push_back(layer.first(5, d, b, u));
        c[static_cast<size_t>(b)].push_back(layer.first(6, d, b, u));
      }
    }
    for (int64_t s = 0; s < longest; ++s) {
      const std::vector<Tracked> before = dynamically_quantized(h);
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t length = whole(lengths[static_cast<size_t>(b)]), t = is_reverse ? length - 1 - s : s;
        std::vector<Tracked> made(static_cast<size_t>(hidden));  // a sequence that has ended has the state 0
        if (s < length) {
          made = layer.step(d, x.data() + (t * batch + b) * layer.inputs, before.data() + b * hidden,
                            c[static_cast<size_t>(b)]);
          std::copy(made.begin(), made.end(), all.begin() + ((t * directions + d) * batch + b) * hidden);
        }
        std::copy(made.begin(), made.end(), h.begin() + b * hidden);
        if (s + 1 != length) continue;
        std::copy(made.begin(), made.end(), last.begin() + (d * batch + b) * hidden);
        std::copy_n(c[static_cast<size_t>(b)].begin(), hidden, cells.begin() + (d * batch + b) * hidden);
      }
    }
  }
  const Extents states = {directions, batch, hidden};
  return {tracked_reference(BP_DTYPE_FLOAT, {steps, directions, batch, hidden}, all),
          tracked_reference(BP_DTYPE_FLOAT, states, last), tracked_reference(BP_DTYPE_FLOAT, states, cells)};
}

const Operator kOperators[] = {{"DynamicQuantizeLSTM", {1}, dynamic_quantize_lstm, "com.microsoft"}};

}  // namespace

std::span<const Operator> dynamic_lstm_operators() {
  return kOperators;
}

}  // namespace backplane::conform
