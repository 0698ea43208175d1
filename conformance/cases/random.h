// SPDX-License-Identifier: Apache-2.0
// Random numbers that depend only on a seed, the same on every machine.
#pragma once

#include <cstdint>
#include <string_view>

#include "onnx/value.h"

namespace backplane::conform {

class Random {
 public:
  // Each pair of a seed and a name has its own sequence.
  Random(uint64_t seed, std::string_view name);
  uint64_t next();
  double uniform(double low, double high);     // [low, high)
  int64_t integer(int64_t low, int64_t high);  // both included

 private:
  uint64_t state_;
};

enum class Fill {
  kAroundZero,   // [-1, 1)
  kWide,         // [-8, 8)
  kPositive,     // [0.05, 4)
  kWhole,        // integers from -8 to 8: sums of products stay exact
  kMagnitudes,   // both signs, 2^-30 to 2^30; FLOAT16: 2^-12 to 2^12
  kSpecial,      // each of special_values() in turn, starting at a random one
  kEvery,        // each of the 65,536 bit patterns of a 16-bit float in turn, starting at a random one
  kEveryFinite,  // like kEvery, with 0 in place of NaN and infinities
};

// Integer types get 1 to 9 with kPositive. With any other fill, UINT8 gets 0 to 15 and the others get -8 to 8, with
// negative numbers clamped to 0 for unsigned types. BOOL gets both values.
onnx::Tensor random_tensor(Random& random, bp_dtype_t dtype, std::vector<int64_t> extents, Fill fill);
// Floats of both signs, whose magnitudes are so close to 1 that the product of any `terms` or fewer of them is a
// normal number of FLOAT16 and of every type with a larger range. (Products that overflow or underflow on
// the way to a normal result depend on the order and on the type in which a device multiplies.)
onnx::Tensor random_factors(Random& random, bp_dtype_t dtype, std::vector<int64_t> extents, int64_t terms);
onnx::Tensor integers(const std::vector<int64_t>& values);  // INT64, one axis
onnx::Tensor floats(std::vector<int64_t> extents, const std::vector<float>& values);
onnx::Tensor reals(bp_dtype_t dtype, std::vector<int64_t> extents, const std::vector<double>& values);

// NaN, ±infinity, ±0, subnormals, the ends of the range and a few ordinary numbers.
std::vector<double> special_values(bp_dtype_t dtype);

}  // namespace backplane::conform
