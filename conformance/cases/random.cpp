// SPDX-License-Identifier: Apache-2.0
#include "cases/random.h"

#include <cmath>
#include <cstring>

#include "judge/array.h"
#include "judge/float_type.h"

namespace backplane::conform {

Random::Random(uint64_t seed, std::string_view name) : state_(seed ^ 0xcbf29ce484222325u) {
  for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
}

// SplitMix64.
uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::uniform(double low, double high) {
  return low + (high - low) * std::ldexp(static_cast<double>(next() >> 11), -53);
}

int64_t Random::integer(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
}

std::vector<double> special_values(bp_dtype_t dtype) {
  const FloatType& type = float_type(dtype);
  std::vector<double> values = {std::nan("")};
  for (const double x : {0.0, HUGE_VAL, type.ulp(0), type.min_normal() - type.ulp(0), type.min_normal(), type.max, 1.0,
                         0.5, 1.5, 2.5, 3.0, 1 + type.epsilon(), 88.0, 1e-4}) {
    values.push_back(x);
    values.push_back(-x);
  }
  return values;
}

onnx::Tensor random_tensor(Random& random, bp_dtype_t dtype, std::vector<int64_t> extents, Fill fill) {
  Array array(dtype, std::move(extents));
  const bool real = is_float(dtype);
  const std::vector<double> special = real ? special_values(dtype) : std::vector<double>();
  uint64_t turn = random.next();
  const double range = dtype == BP_DTYPE_FLOAT16 ? 12 : 30;  // kMagnitudes: exponents from -range to range
  for (double& x : array.values) {
    if (dtype == BP_DTYPE_BOOL) {
      x = static_cast<double>(random.integer(0, 1));
    } else if (!real) {
      x = static_cast<double>(dtype == BP_DTYPE_UINT8 ? random.integer(0, 15) : random.integer(-8, 8));
      if (fill == Fill::kPositive) x = static_cast<double>(random.integer(1, 9));
    } else if (fill == Fill::kSpecial) {
      x = special[turn++ % special.size()];
    } else if (fill == Fill::kEvery || fill == Fill::kEveryFinite) {
      x = decode16(float_type(dtype), static_cast<uint16_t>(turn++));
      if (fill == Fill::kEveryFinite && !std::isfinite(x)) x = 0;
    } else if (fill == Fill::kWhole) {
      x = static_cast<double>(random.integer(-8, 8));
    } else if (fill == Fill::kMagnitudes) {
      x = std::exp2(random.uniform(-range, range)) * (random.integer(0, 1) == 0 ? 1 : -1);
    } else {
      const double low = fill == Fill::kPositive ? 0.05 : fill == Fill::kWide ? -8 : -1;
      x = random.uniform(low, fill == Fill::kPositive ? 4 : -low);
    }
  }
  return to_tensor(array);
}

onnx::Tensor random_factors(Random& random, bp_dtype_t dtype, std::vector<int64_t> extents, int64_t terms) {
  Array array(dtype, std::move(extents));
  // FLOAT16 has normal numbers from 2^-14 to almost 2^16.
  const double range = std::fmin(3, 13.5 / static_cast<double>(terms));
  for (double& x : array.values) x = std::exp2(random.uniform(-range, range)) * (random.integer(0, 1) == 0 ? 1 : -1);
  return to_tensor(array);
}

onnx::Tensor integers(const std::vector<int64_t>& values) {
  Array array(BP_DTYPE_INT64, {static_cast<int64_t>(values.size())});
  array.values.assign(values.begin(), values.end());
  return to_tensor(array);
}

onnx::Tensor reals(bp_dtype_t dtype, std::vector<int64_t> extents, const std::vector<double>& values) {
  Array array(dtype, std::move(extents));
  array.values = values;
  return to_tensor(array);
}

onnx::Tensor floats(std::vector<int64_t> extents, const std::vector<float>& values) {
  return reals(BP_DTYPE_FLOAT, std::move(extents), {values.begin(), values.end()});
}

}  // namespace backplane::conform
