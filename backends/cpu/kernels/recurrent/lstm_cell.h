// SPDX-License-Identifier: Apache-2.0
// The part of an LSTM's time step after the products with the weights, and apply_gate, which other cells use too.
#pragma once

#include "kernels/recurrent/recurrent.h"

namespace backplane::cpu {

// Clips a row of n gate values to the layer's limit, if it has one, and applies a function.
void apply_gate(const Layer& layer, const GateFunction& f, float* y, int64_t n);

// Rows of `n` units. `gates` has the gates input, output, forget and cell, each `stride` floats after the one before;
// they are overwritten. `peephole` may be null, or has the peephole weights of input, output and forget, also `stride`
// floats apart. `c` is updated and `h` written.
struct LstmUnits {
  float* gates;
  const float* peephole;
  float *c, *h;
  int64_t stride, n;
};
void lstm_cell(const Layer& layer, const GateFunction* functions, const LstmUnits& units);

}  // namespace backplane::cpu
