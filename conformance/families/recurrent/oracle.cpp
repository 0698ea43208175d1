// SPDX-License-Identifier: Apache-2.0
// Oracles of LSTM, GRU and RNN with their default activations, computed step by step.
#include "judge/tracked.h"

namespace backplane::conform {
namespace {

using Row = std::vector<Tracked>;  // one number for each hidden unit

struct Weights {
  const Array &w, &r;
  const Array* bias;
  int64_t hidden, inputs;
  bp_dtype_t dtype;
};

// from_input is W·x + Wb and from_state is R·h + Rb, for one row (gate·hidden + unit) of direction d.
Tracked from_input(const Weights& weights, int64_t d, int64_t row, const Row& x) {
  TrackedSum sum(weights.dtype);
  for (int64_t i = 0; i < weights.inputs; ++i) sum.add(x[static_cast<size_t>(i)], weights.w.at({d, row, i}));
  if (weights.bias != nullptr) sum.add(weights.bias->at({d, row}));
  return sum.result();
}
Tracked from_state(const Weights& weights, int64_t d, int64_t row, const Row& h) {
  TrackedSum sum(weights.dtype);
  for (int64_t i = 0; i < weights.hidden; ++i) sum.add(h[static_cast<size_t>(i)], weights.r.at({d, row, i}));
  if (weights.bias != nullptr) sum.add(weights.bias->at({d, weights.w.extents[1] + row}));
  return sum.result();
}

// One time step. Returns the new hidden state from the input `x` and the state `h`; an LSTM also updates its cell state
// `c`.
using Step = Row (*)(const Call& call, const Weights& weights, int64_t d, const Row& x, const Row& h, Row& c);

// Gates are in the order i, o, f, c, and peepholes in the order i, o, f.
Row lstm_step(const Call& call, const Weights& weights, int64_t d, const Row& x, const Row& h, Row& c) {
  const int64_t n = weights.hidden;
  Row result(h.size()), cells(h.size());
  for (int64_t u = 0; u < n; ++u) {
    const auto unit = static_cast<size_t>(u);
    const auto gate = [&](int64_t number) {
      return from_input(weights, d, number * n + u, x) + from_state(weights, d, number * n + u, h);
    };
    const auto peephole = [&](int64_t number) {
      return call.has(7) ? Tracked(call.in(7).at({d, number * n + u})) : Tracked(0.0);
    };
    const Tracked i = sigmoid(gate(0) + peephole(0) * c[unit]), f = sigmoid(gate(2) + peephole(2) * c[unit]);
    cells[unit] = f * c[unit] + i * tanh(gate(3));
    result[unit] = sigmoid(gate(1) + peephole(1) * cells[unit]) * tanh(cells[unit]);
  }
  c = cells;
  return result;
}

// Gates are in the order z, r, h.
Row gru_step(const Call& call, const Weights& weights, int64_t d, const Row& x, const Row& h, Row&) {
  const int64_t n = weights.hidden;
  const bool before_reset = call.integer("linear_before_reset") != 0;
  Row z(h.size()), r(h.size()), reset(h.size()), result(h.size());
  for (int64_t u = 0; u < n; ++u) {
    const auto unit = static_cast<size_t>(u);
    z[unit] = sigmoid(from_input(weights, d, u, x) + from_state(weights, d, u, h));
    r[unit] = sigmoid(from_input(weights, d, n + u, x) + from_state(weights, d, n + u, h));
    reset[unit] = r[unit] * h[unit];
  }
  for (int64_t u = 0; u < n; ++u) {
    const auto unit = static_cast<size_t>(u);
    const int64_t row = 2 * n + u;
    const Tracked state = before_reset ? r[unit] * from_state(weights, d, row, h) : from_state(weights, d, row, reset);
    const Tracked fresh = tanh(from_input(weights, d, row, x) + state);
    result[unit] = (Tracked(1.0) - z[unit]) * fresh + z[unit] * h[unit];
  }
  return result;
}

Row rnn_step(const Call&, const Weights& weights, int64_t d, const Row& x, const Row& h, Row&) {
  Row result(h.size());
  for (int64_t u = 0; u < weights.hidden; ++u)
    result[static_cast<size_t>(u)] = tanh(from_input(weights, d, u, x) + from_state(weights, d, u, h));
  return result;
}

// Returns one row of input 5 or 6, the initial states. They have the shape [directions, batch, hidden], or [batch,
// directions, hidden] with layout 1.
Row first_state(const Call& call, size_t input, int64_t d, int64_t b, int64_t hidden, bool batch_first) {
  Row row(static_cast<size_t>(hidden));
  for (int64_t u = 0; u < hidden && call.has(input); ++u)
    row[static_cast<size_t>(u)] = call.in(input).at(batch_first ? Index{b, d, u} : Index{d, b, u});
  return row;
}

template <Step kStep, int64_t kGates, size_t kOutputs>
References recurrent(const Call& call) {
  const Array &x = call.in(0, 3), &w = call.in(1, 3), &r = call.in(2, 3);
  require(is_float(x.dtype) && w.dtype == x.dtype && r.dtype == x.dtype,
          "X is not floating-point, or W or R has another type");
  require(x.rank() == 3 && w.rank() == 3 && r.rank() == 3, "X, W or R is not of rank 3");
  for (const char* name : {"activations", "activation_alpha", "activation_beta", "clip"}) {
    for (const Attribute& one : call.attributes())
      require_known(one.name != name, "the oracle supports only the default activations, without clip");
  }
  require_known(call.integer("input_forget") == 0, "the oracle does not couple the gates");
  const std::string_view direction = call.text("direction");
  require(direction.empty() || direction == "forward" || direction == "reverse" || direction == "bidirectional",
          "the direction is not known");
  const bool batch_first = call.integer("layout") != 0;
  const int64_t steps = x.extents[batch_first ? 1 : 0], batch = x.extents[batch_first ? 0 : 1], hidden = r.extents[2],
                directions = direction == "bidirectional" ? 2 : 1;
  require(call.integer("hidden_size", hidden) == hidden, "hidden_size differs from that of R");
  require(w.extents == Extents{directions, kGates * hidden, x.extents[2]} &&
              r.extents == Extents{directions, kGates * hidden, hidden},
          "X, W, R and the direction do not fit each other");
  if (call.has(3)) require(call.in(3).extents == Extents{directions, 2 * kGates * hidden}, "B does not fit W and R");
  const std::vector<double> lengths =
      call.has(4) ? call.vector(4, batch) : std::vector<double>(static_cast<size_t>(batch), static_cast<double>(steps));
  for (const double length : lengths)
    require(length >= 0 && length <= static_cast<double>(steps), "a length is outside the sequence");
  require_steps(static_cast<double>(steps) * static_cast<double>(batch * directions) *
                static_cast<double>(kGates * hidden) * static_cast<double>(x.extents[2] + hidden));
  const Weights weights{w, r, call.has(3) ? &call.in(3) : nullptr, hidden, x.extents[2], x.dtype};

  const Extents whole_extents =
      batch_first ? Extents{batch, steps, directions, hidden} : Extents{steps, directions, batch, hidden};
  const Extents last_extents = batch_first ? Extents{batch, directions, hidden} : Extents{directions, batch, hidden};
  std::vector<Tracked> all(static_cast<size_t>(count_of(whole_extents))),
      last(static_cast<size_t>(count_of(last_extents))), cells = last;
  for (int64_t d = 0; d < directions; ++d) {
    const bool is_reverse = d == 1 || direction == "reverse";
    for (int64_t b = 0; b < batch; ++b) {
      Row h = first_state(call, 5, d, b, hidden, batch_first), c = first_state(call, 6, d, b, hidden, batch_first);
      const int64_t length = whole(lengths[static_cast<size_t>(b)]);
      for (int64_t s = 0; s < length; ++s) {
        const int64_t t = is_reverse ? length - 1 - s : s;
        Row input(static_cast<size_t>(x.extents[2]));
        for (int64_t i = 0; i < x.extents[2]; ++i)
          input[static_cast<size_t>(i)] = x.at(batch_first ? Index{b, t, i} : Index{t, b, i});
        h = kStep(call, weights, d, input, h, c);
        for (int64_t u = 0; u < hidden; ++u) {
          const int64_t at = batch_first ? ((b * steps + t) * directions + d) * hidden + u
                                         : ((t * directions + d) * batch + b) * hidden + u;
          all[static_cast<size_t>(at)] = h[static_cast<size_t>(u)];
        }
      }
      for (int64_t u = 0; u < hidden; ++u) {
        const auto at = static_cast<size_t>((batch_first ? b * directions + d : d * batch + b) * hidden + u);
        last[at] = h[static_cast<size_t>(u)];
        cells[at] = c[static_cast<size_t>(u)];
      }
    }
  }
  References results = {tracked_reference(x.dtype, whole_extents, all), tracked_reference(x.dtype, last_extents, last)};
  if (kOutputs == 3) results.push_back(tracked_reference(x.dtype, last_extents, cells));
  require(call.output_count() >= 1 && call.output_count() <= kOutputs, "there are too many outputs or none");
  results.erase(results.begin() + call.output_count(), results.end());
  return results;
}

const Operator kOperators[] = {
    {"LSTM", {14, 22}, recurrent<lstm_step, 4, 3>},
    {"GRU", {14, 22}, recurrent<gru_step, 3, 2>},
    {"RNN", {14, 22}, recurrent<rnn_step, 1, 2>},
};

}  // namespace

std::span<const Operator> recurrent_operators() {
  return kOperators;
}

}  // namespace backplane::conform
