// SPDX-License-Identifier: Apache-2.0
#include "judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backplane/graph.hpp"
#include "judge/oracle.h"
#include "onnx/number.h"

namespace backplane::conform {
namespace {

constexpr double kReferenceError = 0x1p-44;  // relative error of the oracle, which sums few terms in double precision

struct Element {
  double expected, seen, bound;
};

// The error as a fraction of the bound. It is 0 for equal values and for an overflow that the bound allows, and
// infinite for any other NaN or infinity and for any error if the bound is 0 or not a number.
double fraction(const Element& e, const FloatType& type) {
  if (std::isnan(e.expected) || std::isnan(e.seen)) return std::isnan(e.expected) && std::isnan(e.seen) ? 0 : HUGE_VAL;
  if (e.expected == e.seen) return 0;
  if (std::isinf(e.expected)) return HUGE_VAL;
  const double over = type.max + type.ulp(type.max) / 2;  // the smallest number that rounds to infinity
  if (std::isinf(e.seen)) {
    const bool overflows = std::fabs(e.expected) + e.bound >= over && std::signbit(e.expected) == std::signbit(e.seen);
    return overflows ? 0 : HUGE_VAL;
  }
  const double error = std::fabs(e.seen - e.expected);
  const double allowed = e.bound + kReferenceError * std::fabs(e.expected);
  return !(e.bound > 0) ? HUGE_VAL : error / allowed;
}

bool close(double expected, double seen) {
  if (std::isnan(expected)) return std::isnan(seen);
  return expected == seen || std::fabs(seen - expected) <= 1e-7 + 1e-3 * std::fabs(expected);
}

// Checks all errors of a dot product's output together, in addition to the check of each element. For T elements,
// Σ(err/u)² must be at most 1.6·ksb·T, which a device that computes fp32 in fp16 exceeds. If the inputs are around
// zero, |Σ err/u| must be at most 4·√(ksb·T), four standard deviations of T sums of ksb roundings; a larger sum means
// that roundings are biased. Returns the fault, or an empty string.
std::string whole_dot_fault(const Reference& reference, const std::vector<double>& seen, const FloatType& type,
                            bool unbiased) {
  double squares = 0, sum = 0, elements = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!std::isfinite(seen[i]) || !std::isfinite(reference.value.values[i])) continue;
    const double error = (seen[i] - reference.value.values[i]) / dot_unit(type, reference.scale[i]);
    squares += error * error;
    sum += error;
    elements += 1;
  }
  const double ksb = piled_up(reference.rule.terms, type, std::max(type.fraction_bits, 23));
  if (squares > 1.6 * ksb * elements) {
    return fmt::format("the squares of all errors add up to {:.3g}, more than {:.3g}", squares, 1.6 * ksb * elements);
  }
  if (unbiased && std::fabs(sum) > 4 * std::sqrt(ksb * elements)) {
    return fmt::format("the errors add up to {:.3g}, more than {:.3g}: they are biased", sum,
                       4 * std::sqrt(ksb * elements));
  }
  return "";
}

// Checks all errors of a graph's output together: the mean square of err / typical must not exceed 1. Returns the
// fault, or an empty string.
std::string mean_square_fault(const Reference& reference, const std::vector<double>& seen) {
  double squares = 0, elements = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!std::isfinite(seen[i]) || reference.typical[i] == 0) continue;
    const double error = (seen[i] - reference.value.values[i]) / reference.typical[i];
    squares += error * error;
    elements += 1;
  }
  if (squares <= elements) return "";
  return fmt::format(
      "the squares of all errors, each as a fraction of its typical size, add up to {:.3g} over {} elements", squares,
      elements);
}

Judgement wrong(std::string reason) {
  return {Judgement::kWrong, std::move(reason), HUGE_VAL, false};
}

std::string place(const Extents& extents, size_t i) {
  Index index(extents.size());
  for (size_t axis = extents.size(); axis-- > 0;) {
    index[axis] = static_cast<int64_t>(i) % extents[axis];
    i /= static_cast<size_t>(extents[axis]);
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

// Converts an integer of up to 64 bits to the bits that onnx::integer_at returns.
int64_t integer_of(double value) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  return value < kTwoTo63 ? static_cast<int64_t>(value) : static_cast<int64_t>(static_cast<uint64_t>(value));
}

Judgement judge_exact(const Reference& reference, const onnx::Tensor& seen) {
  const Array& expected = reference.value;
  for (uint64_t i = 0; i < expected.values.size(); ++i) {
    if (is_float(expected.dtype)) {
      const double a = expected.values[i], b = onnx::number_at(seen, i).real();
      const bool same = std::isnan(a)
                            ? std::isnan(b)
                            : a == b && (reference.rule.kind != Rule::kBits || std::signbit(a) == std::signbit(b));
      if (same) continue;
    } else if (!reference.scale.empty() && std::isinf(reference.scale[i])) {
      // In a graph, the device's error may change this decision. A BOOL must still be true or false.
      const int64_t integer = onnx::integer_at(seen, i);
      if (expected.dtype != BP_DTYPE_BOOL || integer == 0 || integer == 1) continue;
      return wrong(
          fmt::format("element {} is {}, expected true or false", place(expected.extents, i), onnx::text_at(seen, i)));
    } else if (onnx::integer_at(seen, i) == integer_of(expected.values[i])) {
      continue;
    }
    return wrong(fmt::format("element {} is {}, expected exactly {:.9g}", place(expected.extents, i),
                             onnx::text_at(seen, i), expected.values[i]));
  }
  return {};
}

// Judges integers whose references are real numbers that are still to be rounded.
Judgement judge_steps(const Reference& reference, const onnx::Tensor& seen) {
  Judgement result;
  for (uint64_t i = 0; i < reference.value.values.size(); ++i) {
    const double expected = reference.value.values[i], allowed = 0.5 + reference.scale[i];
    double part =
        std::fabs(onnx::number_at(seen, i).real() - expected) / (allowed + kReferenceError * std::fabs(expected));
    if (std::isnan(part)) part = HUGE_VAL;
    ++result.errors[bucket_of(part)];
    if (!(part > result.worst)) continue;
    result.worst = part;
    if (part <= 1) continue;
    result.answer = Judgement::kWrong;
    result.close = false;
    result.reason = fmt::format("element {} is {}, expected {:.9g} rounded, within {:.3g}",
                                place(reference.value.extents, i), onnx::text_at(seen, i), expected, allowed);
  }
  return result;
}

}  // namespace

Judgement judge(const Reference& reference, const onnx::Tensor& seen, const JudgeOptions& options) {
  const Array& expected = reference.value;
  if (seen.dtype != expected.dtype || seen.extents != expected.extents) {
    return wrong(fmt::format("the output is {}, expected {}", onnx::describe(seen),
                             onnx::describe(expected.dtype, expected.extents)));
  }
  if (reference.rule.kind == Rule::kBits || reference.rule.kind == Rule::kExact) return judge_exact(reference, seen);
  if (reference.rule.kind == Rule::kStep) return judge_steps(reference, seen);

  const FloatType& type = float_type(expected.dtype);
  Judgement result;
  std::vector<double> numbers(expected.values.size());
  size_t missing = 0;  // number of zeros where the expected value is clearly not 0
  for (size_t i = 0; i < numbers.size(); ++i) {
    Element e = {expected.values[i], onnx::number_at(seen, i).real(), 0};
    numbers[i] = e.seen;
    e.bound = bound(reference.rule, type, e.expected, reference.scale.empty() ? 0 : reference.scale[i]);
    if (options.flushes) e.bound += type.min_normal();
    // An expected value below this may be noise.
    const double noise = reference.typical.empty() ? type.min_normal() : reference.typical[i];
    missing += e.seen == 0 && std::fabs(e.expected) >= std::max(noise, type.min_normal());
    result.close = result.close && close(e.expected, e.seen);
    const double part = fraction(e, type);
    ++result.errors[bucket_of(part)];
    if (!(part > result.worst)) continue;
    result.worst = part;
    if (part > 1) {
      result.answer = Judgement::kWrong;
      result.reason = fmt::format("element {} is {:.9g}, expected {:.9g} within {:.3g}", place(expected.extents, i),
                                  e.seen, e.expected, e.bound);
    }
  }
  if (result.answer == Judgement::kRight && reference.rule.kind == Rule::kDot) {
    result.reason = whole_dot_fault(reference, numbers, type, options.drawn_around_zero);
    if (!result.reason.empty()) result.answer = Judgement::kWrong;
  }
  if (result.answer == Judgement::kRight && reference.rule.kind == Rule::kGraph) {
    result.reason = mean_square_fault(reference, numbers);
    if (!result.reason.empty()) result.answer = Judgement::kWrong;
  }
  // Memory that was never written looks like this: many zeros, all within their bounds.
  if (result.answer == Judgement::kRight && missing > std::max<size_t>(1, numbers.size() / 4)) {
    result.answer = Judgement::kMistrusted;
    result.reason = fmt::format("{} of {} elements are zero, but should not be", missing, numbers.size());
  }
  return result;
}

}  // namespace backplane::conform
