// SPDX-License-Identifier: Apache-2.0
// The bounds for results, one rule for each class of operators. bounds.cpp derives each bound.
#pragma once

#include "judge/float_type.h"

namespace backplane::conform {

// The bound of a class of operators. The rule holds `terms` and `ulps`; the reference holds a `scale` for each element.
struct Rule {
  enum Kind {
    kBits,     // the same number with the same sign of zero, for data that is only moved
    kExact,    // the same number, for integers, comparisons, rounding and exact sums
    kUlps,     // `ulps` units in the last place of the reference
    kSmooth,   // 16 ULP and an absolute term; scale: Σ|intermediate results|, see bounds.cpp
    kExp,      // scale: |x|
    kSigmoid,  // scale: |x|
    kPower,    // scale: |y·ln|x||
    kProduct,  // a product of `terms` factors
    kDot,      // a dot product of length `terms`; scale: Σ|a·b|
    kSum,      // a sum of `terms` inside a smooth function; scale: Σ|summand| in units of the result
    kResize,   // linear interpolation; scale: max|input|
    kStep,     // a real number rounded to an integer; scale: the error allowed in addition to half a step
    kGraph,    // the result of several operators; scale: the bound itself, see estimate.cpp
  } kind;
  double terms = 1;
  double ulps = 0;

  static Rule bits() { return {kBits}; }
  static Rule exact() { return {kExact}; }
  static Rule within(double ulps) { return {kUlps, 1, ulps}; }
  static Rule smooth(double terms = 1) { return {kSmooth, terms}; }
  static Rule of(Kind kind, double terms = 1) { return {kind, terms}; }
};

// The bound of one element: the largest accepted distance from `value` to either side.
double bound(const Rule& rule, const FloatType& type, double value, double scale);

// The number of roundings that a sum of `terms` terms may accumulate according to TOSA: ksb = ceil(terms / 2^((frac_acc
// - frac) / 2)), where frac_acc is `accumulator_bits`, the fraction bits of the accumulator.
double piled_up(double terms, const FloatType& type, int accumulator_bits);
// The unit of errors of a dot product: u = max(2^-(frac+1)·Σ|a·b|, smallest normal number).
double dot_unit(const FloatType& type, double scale);

}  // namespace backplane::conform
