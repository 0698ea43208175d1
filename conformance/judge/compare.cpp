// SPDX-License-Identifier: Apache-2.0
#include "judge/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "onnx/number.h"

namespace backplane::conform {
namespace {

using onnx::Tensor;
using onnx::Value;

Comparison different(std::string reason) {
  return {Comparison::kDifferent, std::move(reason)};
}

// Formats the position of element `i`, for example "[1,0,2]" for element 14 of shape [4,3,4].
std::string position(const Tensor& tensor, uint64_t i) {
  std::string text;
  for (size_t axis = tensor.extents.size(); axis-- > 0;) {
    const auto extent = static_cast<uint64_t>(tensor.extents[axis]);
    text = std::to_string(i % extent) + (text.empty() ? "" : ",") + text;
    i /= extent;
  }
  return "[" + text + "]";
}

bool is_close(double expected, double seen, double relative, double absolute) {
  if (std::isnan(expected) || std::isnan(seen)) return std::isnan(expected) && std::isnan(seen);
  if (std::isinf(expected) || std::isinf(seen)) return expected == seen;
  return std::abs(seen - expected) <= absolute + relative * std::abs(expected);
}

bool is_equal(const Tensor& expected, const Tensor& seen, uint64_t i, const Tolerance& tolerance) {
  if (expected.dtype == BP_DTYPE_STRING) return expected.text(i) == seen.text(i);
  if (!onnx::is_inexact(expected.dtype)) return onnx::integer_at(expected, i) == onnx::integer_at(seen, i);
  const std::complex<double> a = onnx::number_at(expected, i);
  const std::complex<double> b = onnx::number_at(seen, i);
  const double relative = expected.dtype == BP_DTYPE_BFLOAT16 ? tolerance.relative_of_bfloat16 : tolerance.relative;
  return is_close(a.real(), b.real(), relative, tolerance.absolute) &&
         is_close(a.imag(), b.imag(), relative, tolerance.absolute);
}

bool is_zero(const Tensor& tensor, uint64_t i) {
  return onnx::number_at(tensor, i) == 0.0;
}

Comparison compare_tensors(const Tensor& expected, const Tensor& seen, const Tolerance& tolerance) {
  if (expected.dtype != seen.dtype || expected.extents != seen.extents) {
    return different(fmt::format("is {}, expected {}", describe(seen), describe(expected)));
  }
  const uint64_t count = expected.count();
  const bool counts_zeros = onnx::is_inexact(expected.dtype);
  uint64_t wrong = 0, first = 0, zeros = 0, expected_zeros = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (!is_equal(expected, seen, i, tolerance) && wrong++ == 0) first = i;
    if (counts_zeros) {
      zeros += is_zero(seen, i);
      expected_zeros += is_zero(expected, i);
    }
  }
  if (wrong > 0) {
    return different(fmt::format("{} of {} elements differ, first at {}: {}, expected {}", wrong, count,
                                 position(expected, first), text_at(seen, first), text_at(expected, first)));
  }
  if (count >= 4 && zeros * 2 > count && expected_zeros * 10 < count) {
    return {Comparison::kMistrusted,
            fmt::format("{} of {} elements are zero, but only {} in the reference", zeros, count, expected_zeros)};
  }
  return {};
}

}  // namespace

Comparison compare(const Value& expected, const Value& seen, const Tolerance& tolerance) {
  if (expected.kind != seen.kind) {
    return different(fmt::format("is a {}, expected a {}", onnx::kind_name(seen.kind), onnx::kind_name(expected.kind)));
  }
  if (expected.kind == BP_KIND_TENSOR) return compare_tensors(expected.tensor, seen.tensor, tolerance);
  if (expected.elements.size() != seen.elements.size()) {
    return different(fmt::format("has {} {}, expected {}", seen.elements.size(),
                                 seen.elements.size() == 1 ? "element" : "elements", expected.elements.size()));
  }
  std::vector<size_t> places(expected.elements.size());  // for each expected element, its index in `seen`
  std::iota(places.begin(), places.end(), size_t{0});
  if (expected.kind == BP_KIND_MAP) {  // the entries of a map have no order
    std::unordered_map<std::string_view, size_t> by_key;
    for (size_t i = 0; i < seen.keys.size(); ++i) by_key.emplace(seen.keys[i], i);
    for (size_t i = 0; i < expected.keys.size(); ++i) {
      const auto found = by_key.find(expected.keys[i]);
      if (found == by_key.end() || by_key.size() != expected.keys.size())
        return different("has keys that differ from the expected ones");
      places[i] = found->second;
    }
  }
  for (size_t i = 0; i < expected.elements.size(); ++i) {
    Comparison element = compare(expected.elements[i], seen.elements[places[i]], tolerance);
    if (element.answer != Comparison::kEqual) {
      element.reason = fmt::format("element {}: {}", i, element.reason);
      return element;
    }
  }
  return {};
}

}  // namespace backplane::conform
