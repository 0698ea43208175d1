// SPDX-License-Identifier: Apache-2.0
#include "ops/infer/rules.h"
#include "ops/infer/window.h"

namespace backplane::ops {
namespace {

Status pool(Context& c) {
  BP_TRY(c.expect_rank(0, 3, BP_MAX_RANK));
  if (!c.ranked(0)) return {};
  size_t spatial = static_cast<size_t>(c.rank(0)) - 2;
  Window window;
  BP_TRY(Window::read(c, spatial, window));
  Shape kernel;
  BP_TRY(kernel_shape(c, BP_NONE, spatial, kernel));
  Shape shape{c.dim(0, 0), c.dim(0, 1)};
  for (size_t i = 0; i < spatial; ++i) {
    shape.push_back(window.positions(c.math(), i, c.dim(0, static_cast<int64_t>(i) + 2), kernel[i]));
  }
  BP_TRY(c.set_shape(0, shape));
  return c.set_shape(1, shape);
}

Status global_pool(Context& c) {
  BP_TRY(c.expect_rank(0, 2, BP_MAX_RANK));
  if (!c.ranked(0)) return {};
  Shape shape(c.rank(0), Scalar(1));
  shape[0] = c.dim(0, 0);
  shape[1] = c.dim(0, 1);
  return c.set_shape(0, shape);
}

Status unpool(Context& c) {
  BP_TRY(c.expect_rank(0, 3, BP_MAX_RANK));
  if (const KnownData* wanted = c.known_data(2)) return c.set_shape(0, *wanted);
  if (!c.ranked(0)) return {};
  size_t spatial = static_cast<size_t>(c.rank(0)) - 2;
  if (c.has(2)) return c.set_rank(0, c.rank(0));
  Window window;
  BP_TRY(Window::read(c, spatial, window));
  Shape kernel;
  BP_TRY(kernel_shape(c, BP_NONE, spatial, kernel));
  Expressions& m = c.math();
  Shape shape{c.dim(0, 0), c.dim(0, 1)};
  for (size_t i = 0; i < spatial; ++i) {
    Scalar size = m.multiply(m.subtract(c.dim(0, static_cast<int64_t>(i) + 2), 1), window.strides[i]);
    shape.push_back(m.subtract(m.add(size, kernel[i]), window.pads[i] + window.pads[i + spatial]));
  }
  return c.set_shape(0, shape);
}

}  // namespace

std::span<const RuleRow> pooling_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "AveragePool", pool},
      {"", "GlobalAveragePool", global_pool},
      {"", "GlobalLpPool", global_pool},
      {"", "GlobalMaxPool", global_pool},
      {"", "LpPool", pool},
      {"", "MaxPool", pool},
      {"", "MaxUnpool", unpool},
  };
  return kRows;
}

}  // namespace backplane::ops
