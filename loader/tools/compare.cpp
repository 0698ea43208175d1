// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onnx/number.h"

namespace backplane::tools {
namespace {

// The absolute difference. Equal infinities, and NaN and NaN, have difference 0. An infinity or NaN differs infinitely
// from any other value.
double distance(std::complex<double> seen, std::complex<double> expected) {
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  if (same(seen.real(), expected.real()) && same(seen.imag(), expected.imag())) return 0;
  const double far = std::abs(seen - expected);
  return std::isfinite(far) ? far : INFINITY;
}

}  // namespace

void Tolerance::declare(cli::Command command) {
  command.add_option("--rtol", relative, fmt::format("Relative tolerance ({})", relative)).range(0.0, 1e300);
  command.add_option("--atol", absolute, fmt::format("Absolute tolerance ({})", absolute)).range(0.0, 1e300);
}

Difference compare(const onnx::Tensor& seen, const onnx::Tensor& expected, const Tolerance& tolerance) {
  Difference difference;
  if (seen.dtype != expected.dtype || seen.extents != expected.extents) {
    difference.shape = fmt::format("{}, expected {}", onnx::describe(seen), onnx::describe(expected));
    return difference;
  }
  difference.count = seen.count();
  double worst = -1;
  const auto note = [&](uint64_t i, double excess, double absolute, double relative) {
    if (difference.outside++ == 0) difference.first = i;
    if (excess <= worst) return;
    worst = excess;
    difference.worst = i;
    difference.worst_absolute = absolute;
    difference.worst_relative = relative;
    difference.seen = onnx::text_at(seen, i);
    difference.expected = onnx::text_at(expected, i);
  };
  for (uint64_t i = 0; i < difference.count; ++i) {
    if (seen.dtype == BP_DTYPE_STRING) {
      if (seen.text(i) != expected.text(i)) note(i, 0, 0, 0);
      continue;
    }
    const std::complex<double> wanted = onnx::number_at(expected, i);
    double off = distance(onnx::number_at(seen, i), wanted);
    // Large integers that differ may be the same as doubles.
    const bool is_wide = seen.dtype == BP_DTYPE_INT64 || seen.dtype == BP_DTYPE_UINT64;
    if (is_wide && onnx::integer_at(seen, i) != onnx::integer_at(expected, i)) off = std::max(off, 1.0);
    const double size = std::abs(wanted);
    const double bound = tolerance.absolute + (std::isfinite(size) ? tolerance.relative * size : 0);
    if (off > bound) note(i, off - bound, off, size == 0 ? INFINITY : off / size);
  }
  return difference;
}

Json to_json(const Difference& difference) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  Json json = {{"matches", difference.is_none()}};
  if (!difference.shape.empty()) {
    json["types"] = difference.shape;
    return json;
  }
  json["elements"] = difference.count;
  json["outside"] = difference.outside;
  if (difference.outside == 0) return json;
  json["worst"] = {{"index", difference.worst},
                   {"seen", difference.seen},
                   {"expected", difference.expected},
                   {"absolute", number(difference.worst_absolute)},
                   {"relative", number(difference.worst_relative)}};
  return json;
}

std::string text(const Difference& difference) {
  if (!difference.shape.empty()) return difference.shape;
  if (difference.outside == 0) return fmt::format("all {} elements match", difference.count);
  return fmt::format("{} of {} elements differ, the first is {}, the farthest {}: {}, expected {}", difference.outside,
                     difference.count, difference.first, difference.worst, difference.seen, difference.expected);
}

}  // namespace backplane::tools
