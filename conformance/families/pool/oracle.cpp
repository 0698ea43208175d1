// SPDX-License-Identifier: Apache-2.0
// Oracles of pooling over the spatial axes.
#include <cmath>

#include "judge/window.h"

namespace backplane::conform {
namespace {

// Calls `visit(output index, values in the window, number of window positions in the padded input)` for every output
// element.
template <class F>
Array slide(const Call& call, const Window& window, F visit) {
  const Array& x = call.in(0);
  Extents shape = {x.extents[0], x.extents[1]};
  shape.insert(shape.end(), window.out.begin(), window.out.end());
  require_steps(static_cast<double>(count_of(shape)) * static_cast<double>(count_of(window.kernel)));
  Array result(x.dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    std::vector<double> values;
    int64_t padded = 0;
    for_each_index(window.kernel, [&](const Index& tap) {
      Index from = {index[0], index[1]};
      bool inside = true, in_padded = true;
      for (size_t i = 0; i < tap.size(); ++i) {
        from.push_back(window.source(i, index[i + 2], tap[i]));
        inside = inside && from.back() >= 0;
        in_padded = in_padded && window.in_padded(i, index[i + 2], tap[i]);
      }
      padded += in_padded;
      if (inside) values.push_back(x.at(from));
    });
    result.at(index) = visit(values, padded);
  });
  return result;
}

// ONNX defines no result for a window without an element that counts: implementations return 0, NaN, -infinity or the
// lowest number.
constexpr char kNothing[] = "a window has no element of the input";

References max_in(const Call& call, const Window& window) {
  return {Reference(slide(call, window,
                          [](const std::vector<double>& values, int64_t) {
                            require(!values.empty(), kNothing);
                            double best = -HUGE_VAL;
                            for (const double x : values) best = std::fmax(best, x);
                            return best;
                          }),
                    Rule::exact())};
}

References mean_in(const Call& call, const Window& window, bool count_padding) {
  const auto divisor = [&](const std::vector<double>& values, int64_t padded) {
    const auto count = count_padding ? static_cast<double>(padded) : static_cast<double>(values.size());
    require(count > 0, kNothing);
    return count;
  };
  Reference result(slide(call, window,
                         [&](const std::vector<double>& values, int64_t padded) {
                           double sum = 0;
                           for (const double x : values) sum += x;
                           return sum / divisor(values, padded);
                         }),
                   Rule::of(Rule::kSum, static_cast<double>(count_of(window.kernel))));
  result.scale = slide(call, window, [&](const std::vector<double>& values, int64_t padded) {
                   double sum = 0;
                   for (const double x : values) sum += std::fabs(x);
                   return sum / divisor(values, padded);
                 }).values;
  return {result};
}

// One window over the whole image. The call's attributes are ignored.
Window whole(const Call& call) {
  const Extents& extents = call.in(0, 3).extents;
  static const Attributes kNone;
  return Window(Call({}, kNone, 1), extents, {extents.begin() + 2, extents.end()});
}

References max_pool(const Call& call) {
  return max_in(call, Window(call, call.in(0).extents, {}));
}
References average_pool(const Call& call) {
  return mean_in(call, Window(call, call.in(0).extents, {}), call.integer("count_include_pad") != 0);
}
References global_max_pool(const Call& call) {
  return max_in(call, whole(call));
}
References global_average_pool(const Call& call) {
  return mean_in(call, whole(call), false);
}

const Operator kOperators[] = {
    {"MaxPool", {12, 22}, max_pool},
    {"AveragePool", {19, 22}, average_pool},
    {"GlobalMaxPool", {1, 22}, global_max_pool},
    {"GlobalAveragePool", {1, 22}, global_average_pool},
};

}  // namespace

std::span<const Operator> pool_operators() {
  return kOperators;
}

}  // namespace backplane::conform
