// SPDX-License-Identifier: Apache-2.0
// GridSample in two and three dimensions.
#include <algorithm>

#include "ops/table.h"

namespace backplane::gpu {
namespace {

constexpr std::string_view kFilters[] = {"nearest", "linear", "cubic"}, kPaddings[] = {"zeros", "border", "reflection"};

template <size_t kCount>
size_t position(const std::string_view (&names)[kCount], std::string_view name) {
  return static_cast<size_t>(std::ranges::find(names, name) - names);
}

void emit_grid_sample(Emit& e, std::string_view) {
  const Tensor x = e.input(0), grid = e.input(1);
  const size_t dims = x.rank() - 2;
  Shape shape{x.shape[0], x.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  if (grid.shape[0] != x.shape[0] || grid.shape.back() != static_cast<int64_t>(dims) ||
      (elements(x.shape, 2, x.rank()) == 0 && elements(shape) != 0))
    throw sdk::Error(BP_TYPE_MISMATCH, "a grid of shape " + to_string(grid.shape) + " cannot sample input 0 of shape " +
                                           to_string(x.shape) +
                                           ": their first extents must be equal, the grid's last one must be " +
                                           std::to_string(dims) + ", and an image must have elements");
  const Tensor y = e.output(0, shape);
  const size_t filter = position(kFilters, e.node.text_attribute("mode", "linear"));
  const size_t padding = position(kPaddings, e.node.text_attribute("padding_mode", "zeros"));
  e.launch("grid_sample", "grid_sample",
           "-DTYPE=" + Emit::type(x) + " -DDIMS=" + std::to_string(dims) + " -DFILTER=" + std::to_string(filter) +
               " -DPADDING=" + std::to_string(padding) +
               (e.node.int_attribute("align_corners", 0) != 0 ? " -DALIGN" : ""))
      .in(x)
      .in(grid)
      .out(y)
      .arg(y.count())
      .arg(x.shape[1])
      .arg(dims == 3 ? x.shape[2] : 1)
      .arg(x.shape[x.rank() - 2])
      .arg(x.shape[x.rank() - 1])
      .arg(elements(shape, 2, shape.size()))
      .range(y.count());
}

Verdict supports_grid_sample(const Node& node) {
  const std::string_view mode = node.text_attribute("mode", "linear"),
                         padding = node.text_attribute("padding_mode", "zeros");
  if (position(kFilters, mode) == std::size(kFilters) || position(kPaddings, padding) == std::size(kPaddings))
    return sdk::no(BP_REASON_ATTRIBUTE,
                   "mode is '" + std::string(mode) + "' and padding_mode '" + std::string(padding) +
                       "'; mode must be nearest, linear or cubic, padding_mode zeros, border or reflection");
  const int32_t rank = node.input(0).rank();
  if ((rank != 4 && rank != 5) || node.input(1).rank() != rank)
    return sdk::no(BP_REASON_SHAPE, "the inputs have ranks " + std::to_string(rank) + " and " +
                                        std::to_string(node.input(1).rank()) +
                                        "; both must have rank 4, or both rank 5");
  return same_types(node);
}

}  // namespace

std::span<const Row> grid_sample_rows() {
  static constexpr Row kRows[] = {
      {"", "GridSample", 16, kFloats & ~one(BP_DTYPE_DOUBLE), kBinary, supports_grid_sample, emit_grid_sample},
  };
  return kRows;
}

}  // namespace backplane::gpu
