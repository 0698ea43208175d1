// SPDX-License-Identifier: Apache-2.0
// One time step of some units of an LSTM after the products, and the functions of gates that other cells use too.
#pragma once

#include "kernels/recurrent/recurrent.h"

namespace backplane::cpu {

// Clips a row of gate values as the layer says, and applies a function.
void apply_gate(const Layer& layer, const GateFunction& f, float* y, int64_t n);

// Rows of `n` units. `gates` has the gates input, output, forget and cell, each `stride` floats after the one before;
// they are overwritten. `peephole` may be null, or has those of input, output and forget in the same way. `c` is
// updated and `h` written.
struct LstmUnits {
  float* gates;
  const float* peephole;
  float *c, *h;
  int64_t stride, n;
};
void lstm_cell(const Layer& layer, const GateFunction* functions, const LstmUnits& units);

}  // namespace backplane::cpu
