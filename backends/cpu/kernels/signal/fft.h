// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length: Cooley-Tukey over the prime factors.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace backplane::cpu {

class Fft {
 public:
  // `inverse` changes the sign of the exponent; nothing is scaled.
  Fft(int64_t length, bool inverse);

  void operator()(const std::complex<double>* x, std::complex<double>* y) const { transform(x, y, length_, 1); }

 private:
  // y[0, n) becomes the transform of x[0], x[step], x[2 step], …
  void transform(const std::complex<double>* x, std::complex<double>* y, int64_t n, int64_t step) const;

  int64_t length_;
  std::vector<std::complex<double>> roots_;  // of unity, `length_` of them
};

}  // namespace backplane::cpu
