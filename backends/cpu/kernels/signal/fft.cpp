// SPDX-License-Identifier: Apache-2.0
#include "kernels/signal/fft.h"

#include <numbers>

namespace backplane::cpu {

Fft::Fft(int64_t length, bool inverse) : length_(length) {
  const double angle = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(length);
  for (int64_t k = 0; k < length; ++k) roots_.push_back(std::polar(1.0, angle * static_cast<double>(k)));
}

void Fft::transform(const std::complex<double>* x, std::complex<double>* y, int64_t n, int64_t step) const {
  if (n == 1) {
    *y = *x;
    return;
  }
  int64_t radix = 2;
  while (n % radix != 0) radix = radix * radix > n ? n : radix + 1;
  const int64_t part = n / radix;
  for (int64_t r = 0; r < radix; ++r) transform(x + r * step, y + r * part, part, step * radix);
  std::vector<std::complex<double>> column(static_cast<size_t>(radix));
  for (int64_t k = 0; k < part; ++k) {
    for (int64_t r = 0; r < radix; ++r) column[static_cast<size_t>(r)] = y[r * part + k];
    for (int64_t q = 0; q < radix; ++q) {
      std::complex<double> sum = column[0];
      for (int64_t r = 1; r < radix; ++r)
        sum += column[static_cast<size_t>(r)] * roots_[static_cast<size_t>(r * (k + q * part) % n * step)];
      y[k + q * part] = sum;
    }
  }
}

}  // namespace backplane::cpu
