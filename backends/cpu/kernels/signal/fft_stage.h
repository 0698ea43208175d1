// SPDX-License-Identifier: Apache-2.0
// One stage of a Fourier transform. Its loops are compiled for each instruction set.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// Transforms x[radix][m][width] along its first dimension, multiplies the results by the roots for their index in m,
// and stores them in y[m][radix][width]. RunFftStage does this for indices [first, last) of m.
struct FftStage {
  const double *x_re, *x_im;
  double *y_re, *y_im;
  const double* roots;  // m × (radix - 1) pairs of cosine and sine; those of index 0 are not read, as they are 1
  int64_t m, width;
};
using RunFftStage = void (*)(const FftStage& stage, int64_t first, int64_t last);

// Returns the function for a radix, or null if the radix is not 2, 3, 4, 5, 7, 11 or 13.
RunFftStage fft_stage(int radix);

}  // namespace backplane::cpu
