// SPDX-License-Identifier: Apache-2.0
// The attributes of RNN, GRU and LSTM nodes, shared by the reference and the fast implementation.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/post_op/post_op.h"
#include "runtime/row.h"

namespace backplane::cpu {

enum class Cell { kRnn, kGru, kLstm };

struct GateFunction {
  double (*f)(double x, double alpha, double beta);
  double alpha, beta;
  std::optional<Activation> row;  // vectorized form for rows, if there is one
  double operator()(double x) const { return f(x, alpha, beta); }
};

struct Layer {
  Cell cell;
  int64_t hidden, gates, directions;
  bool reverse_first, batch_first, linear_before_reset, input_forget;
  double clip;                          // infinity if the attribute is absent
  std::vector<GateFunction> functions;  // of each direction in turn
  const GateFunction* functions_of(int64_t direction) const {
    return functions.data() + direction * static_cast<int64_t>(functions.size()) / directions;
  }
};

struct RecurrentExtents {
  int64_t times, batch, input;
};

// Offsets, in elements, of a time step in X and in Y, and of an initial or final state. `t`: time, `b`: batch, `d`:
// direction.
struct RecurrentOffsets {
  const Layer& layer;
  RecurrentExtents e;
  int64_t x(int64_t t, int64_t b) const { return (layer.batch_first ? b * e.times + t : t * e.batch + b) * e.input; }
  int64_t y(int64_t t, int64_t b, int64_t d) const {
    return (layer.batch_first ? (b * e.times + t) * layer.directions + d : (t * layer.directions + d) * e.batch + b) *
           layer.hidden;
  }
  int64_t state(int64_t b, int64_t d) const {
    return (layer.batch_first ? b * layer.directions + d : d * e.batch + b) * layer.hidden;
  }
};

// Whether the attributes of a node with this cell are valid.
Verdict check_layer(const Node& node, Cell cell);
// Reads the attributes of a node that check_layer() accepts. `hidden` is the attribute hidden_size, or -1 without it.
Layer read_layer(const Node& node, Cell cell);
// Returns an error message if a sequence length is negative or exceeds the number of time steps, else nullopt.
// `lengths` may be absent.
std::optional<std::string> wrong_length(const Tensor& lengths, RecurrentExtents e);

}  // namespace backplane::cpu
