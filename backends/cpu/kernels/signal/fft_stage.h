// SPDX-License-Identifier: Apache-2.0
// One stage of a Fourier transform: the loops that are compiled for each instruction set.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// Transforms x[radix][m][width] along its first dimension, multiplies the results by the roots of their index in m and
// stores them to y[m][radix][width]. Called for the indices [first, last) of m.
struct FftStage {
  const double *x_re, *x_im;
  double *y_re, *y_im;
  const double* roots;  // m × (radix - 1) pairs of cosine and sine; those of index 0 are 1 and not read
  int64_t m, width;
};
using RunFftStage = void (*)(const FftStage& stage, int64_t first, int64_t last);

// Returns null for any radix except 2, 3, 4, 5, 7, 11 and 13.
RunFftStage fft_stage(int radix);

}  // namespace backplane::cpu
