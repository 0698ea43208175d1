// SPDX-License-Identifier: Apache-2.0
#include "engine/convolution_library.h"

#include <algorithm>

#include "engine/shape.h"

namespace backplane::gpu {
namespace {

double count_of(const ConvolutionProblem& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.maps) * static_cast<double>(p.window.out_size());
}

// The extents of the tensor's spatial dimensions, without those that sdk::Window prepends: "56x56".
std::string joined(const sdk::Window& window, const sdk::Spatial& extents, const char* between = "x") {
  std::string all;
  for (size_t d = extents.size() - window.dims; d < extents.size(); ++d)
    all += (all.empty() ? "" : between) + std::to_string(extents[d]);
  return all;
}

}  // namespace

double ConvolutionProblem::operations() const {
  return 2 * count_of(*this) * static_cast<double>(channels / groups) * static_cast<double>(window.kernel_size());
}

std::string ConvolutionProblem::text() const {
  const sdk::Spatial ones{1, 1, 1}, zeros{0, 0, 0};
  std::string all = std::string(type_name(dtype)) + " " + std::to_string(batch) + "x" + std::to_string(channels) + "x" +
                    joined(window, window.in) + " " + std::to_string(maps) + " maps " + joined(window, window.kernel);
  if (groups != 1) all += " groups " + std::to_string(groups);
  if (window.stride != ones) all += " strides " + joined(window, window.stride, ",");
  if (window.dilation != ones) all += " dilations " + joined(window, window.dilation, ",");
  if (window.begin != zeros || window.end != zeros)
    all += " pads " + joined(window, window.begin, ",") + "," + joined(window, window.end, ",");
  if (has_c) all += " c";
  if (has_bias) all += " bias";
  if (relu) all += " relu";
  if (compute_types != 0) all += " types " + std::to_string(compute_types);
  return all;
}

LibraryOperands ConvolutionProblem::operands() const {
  const auto bytes = [&](int64_t count) { return static_cast<uint64_t>(count) * bytes_of(dtype); };
  const uint64_t y = bytes(batch * maps * window.out_size());
  return {
      std::max({bytes(batch * channels * window.in_size()), bytes(maps * channels / groups * window.kernel_size()), y}),
      y};
}

}  // namespace backplane::gpu
