// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length in O(n log n): Stockham's form of the Cooley-Tukey algorithm if no prime
// factor of the length exceeds 13, otherwise Bluestein's convolution. Several sequences, called lanes, are transformed
// together, with their elements interleaved, so that each step is a loop over adjacent elements.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/memory.h"

namespace backplane::cpu {

// Real and imaginary parts in separate arrays. Element i of sequence l is at index i · lanes + l.
struct ComplexLanes {
  double *re, *im;
  ComplexLanes swapped() const { return {im, re}; }
};

class Fft {
 public:
  // Returns a plan, which all users of this length share. Throws sdk::Error if its tables exceed the remaining budget
  // of the calling thread.
  static std::shared_ptr<const Fft> of(int64_t length);
  // Like of(length), but the plan computes only the first `bins` results, which is cheaper with Bluestein's algorithm.
  // The other results are undefined.
  static std::shared_ptr<const Fft> of(int64_t length, int64_t bins);
  Fft(int64_t length, int64_t bins);
  // Return the size in bytes of the tables of such a plan, and its room(), without making the plan.
  static int64_t table_bytes(int64_t length, int64_t bins);
  static int64_t room_of(int64_t length, int64_t bins);

  // Returns the cosine and sine of 2π · i / n for 0 <= i < n. They are computed from an angle of at most π / 4, for
  // precision.
  static std::pair<double, double> root(int64_t i, int64_t n);

  int64_t length() const { return length_; }
  // Returns the number of elements per sequence for which both buffers must have room; it is `length` or more.
  int64_t room() const { return convolution_ == nullptr ? length_ : convolution_->length(); }

  // Computes the forward transform of `x`, unscaled. Overwrites `x` and `other`; returns the one that has the result.
  // For the inverse, swap real and imaginary parts of input and result. `alone`: use all threads of the device, for
  // callers outside of parallel loops.
  ComplexLanes operator()(ComplexLanes x, ComplexLanes other, int64_t lanes, bool alone) const;

 private:
  // Splits each sequence of radix · m elements into `radix` sequences of m elements.
  struct Stage {
    int radix;
    int64_t m;
    Block roots;  // m × (radix - 1) pairs of cosine and sine, as doubles
  };

  void plan_stages();
  void plan_convolution();
  ComplexLanes convolve(ComplexLanes x, ComplexLanes other, int64_t lanes, bool alone) const;

  int64_t length_, bins_;
  std::vector<Stage> stages_;
  std::shared_ptr<const Fft> convolution_;  // for Bluestein's algorithm; else null
  Block chirp_;                             // pairs of cosine and sine of π · i² / length, by element i, as doubles
  Block filter_;  // the transform of the chirp, divided by the length of the convolution, as pairs of doubles
};

}  // namespace backplane::cpu
