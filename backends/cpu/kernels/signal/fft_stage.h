// SPDX-License-Identifier: Apache-2.0
// One stage of a Fourier transform: the loops that are compiled for each instruction set.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// Of x[radix][m][width] each column over the first dimension is transformed, multiplied by the roots of its m and
// stored to y[m][radix][width]. For m from `first` to `last`.
struct FftStage {
  const double *x_re, *x_im;
  double *y_re, *y_im;
  const double* roots;  // m × (radix - 1) pairs of cosine and sine; those of m = 0 are 1 and not read
  int64_t m, width;
};
using RunFftStage = void (*)(const FftStage& stage, int64_t first, int64_t last);

// Null where there is no such radix.
RunFftStage fft_stage(int radix);

}  // namespace backplane::cpu
