// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/lstm_cell.h"

#include <algorithm>
#include <cmath>

#include "kernels/post_op/activation.h"
#include "kernels/simd/clones.h"

namespace backplane::cpu {

namespace {

CLONED void add_products(float* y, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
}
CLONED void multiply(const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}
CLONED void complement(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = 1 - x[i];
}
CLONED void remember(float* c, const float* forget, const float* input, const float* fresh, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = forget[i] * c[i] + input[i] * fresh[i];
}

void activate_row(const GateFunction& f, float* y, int64_t n) {
  if (f.row) return activate(*f.row, y, n);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(f(y[i]));
}

}  // namespace

void apply_gate(const Layer& layer, const GateFunction& f, float* y, int64_t n) {
  if (std::isfinite(layer.clip)) {
    const auto clip = static_cast<float>(layer.clip);
    activate({Activation::kClip, -clip, clip}, y, n);
  }
  activate_row(f, y, n);
}

void lstm_cell(const Layer& layer, const GateFunction* f, const LstmUnits& u) {
  const int64_t n = u.n;
  float *input = u.gates, *output = input + u.stride, *forget = output + u.stride, *fresh = forget + u.stride;
  const auto peep = [&](float* gate, int64_t which) {
    if (u.peephole != nullptr) clone_of<add_products>(gate, u.peephole + which * u.stride, u.c, n);
  };
  peep(input, 0);
  apply_gate(layer, f[0], input, n);
  if (layer.input_forget) {
    clone_of<complement>(input, forget, n);
  } else {
    peep(forget, 2);
    apply_gate(layer, f[0], forget, n);
  }
  apply_gate(layer, f[1], fresh, n);
  clone_of<remember>(u.c, forget, input, fresh, n);
  peep(output, 1);
  apply_gate(layer, f[0], output, n);
  std::copy_n(u.c, n, u.h);
  activate_row(f[2], u.h, n);
  clone_of<multiply>(u.h, output, u.h, n);
}

}  // namespace backplane::cpu
