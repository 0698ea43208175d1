// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length in O(n log n): Stockham's form of Cooley-Tukey for lengths whose prime
// factors are at most 13, else Bluestein's convolution of such a length. Several sequences are transformed together,
// interleaved, so that each step is a loop over neighbours.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace backplane::cpu {

// Real and imaginary parts, in separate arrays. Element i of sequence l of `lanes` is at i · lanes + l.
struct ComplexLanes {
  double *re, *im;
  ComplexLanes swapped() const { return {im, re}; }
};

class Fft {
 public:
  // Plans are shared by all users of the same length. Throws sdk::Error if the tables exceed what is left of the
  // thread's budget.
  static std::shared_ptr<const Fft> of(int64_t length);
  // Computes only the first `bins` results, which costs less with Bluestein's algorithm; others are undefined.
  static std::shared_ptr<const Fft> of(int64_t length, int64_t bins);
  Fft(int64_t length, int64_t bins);

  // Returns the cosine and sine of 2π · i / n for i < n, computed from an angle of at most π / 4.
  static std::pair<double, double> root(int64_t i, int64_t n);

  int64_t length() const { return length_; }
  // Returns how many elements of each sequence both buffers must have room for: `length`, or more.
  int64_t room() const { return convolution_ == nullptr ? length_ : convolution_->length(); }

  // Transforms forward, unscaled, from `x`; returns the buffer that has the result. For the inverse, swap real and
  // imaginary parts of input and output. `alone`: uses all threads of the device, for callers outside of parallel
  // loops.
  ComplexLanes operator()(ComplexLanes x, ComplexLanes other, int64_t lanes, bool alone) const;

 private:
  // Splits each sequence of radix · m elements into `radix` sequences of m.
  struct Stage {
    int radix;
    int64_t m;
    std::vector<double> roots;  // m × (radix - 1): cosine and sine
  };

  void plan_stages();
  void plan_convolution();
  ComplexLanes convolve(ComplexLanes x, ComplexLanes other, int64_t lanes, bool alone) const;

  int64_t length_, bins_;
  std::vector<Stage> stages_;
  std::shared_ptr<const Fft> convolution_;  // for Bluestein's algorithm, else null
  std::vector<double> chirp_;               // by element: cosine and sine of π · i² / length
  std::vector<double> filter_;              // the transform of the chirp, divided by the convolution's length
};

}  // namespace backplane::cpu
