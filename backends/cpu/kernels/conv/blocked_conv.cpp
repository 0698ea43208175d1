// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/blocked_conv.h"

#include <algorithm>
#include <utility>

#include "kernels/conv/channel_shuffle.h"
#include "kernels/conv/tiled.h"

namespace backplane::cpu {

namespace {

// Whether an image can be treated as one long row: the window is 1×1, without stride or padding.
bool is_flat(const Window& w) {
  return w.kernel_size() == 1 && w.in == w.out && w.stride == Spatial{1, 1, 1} && w.begin == Spatial{0, 0, 0};
}

// Makes an image of one column an image of one row, because tiles lie along rows. The order in memory is the same.
Window with_long_rows(Window w) {
  if (w.in[2] != 1 || w.out[2] != 1 || w.kernel[2] != 1 || w.begin[2] != 0) return w;
  for (Spatial* each : {&w.in, &w.out, &w.kernel, &w.stride, &w.dilation, &w.begin, &w.end})
    std::swap((*each)[1], (*each)[2]);
  return w;
}

// Whether a position of a row other than the first and the last reads outside the row, which tiles do not allow.
bool needs_margins(const Window& w) {
  const int64_t reach = (w.out[2] - 2) * w.stride[2] - w.begin[2] + (w.kernel[2] - 1) * w.dilation[2];
  return !is_flat(w) && (w.begin[2] > w.stride[2] || reach >= w.in[2]);
}

// Whether the stride along a row is larger than those of the kernels, 1 and 2.
bool has_large_stride(const Window& w) {
  return w.stride[2] > 2;
}

// The number of rows that a row of an image becomes in the copy for a large stride (TileCopy::phases).
int64_t phases_of(const Window& w) {
  return has_large_stride(w) ? std::min(w.stride[2], w.kernel[2]) : 1;
}

bool needs_copy(const Window& w) {
  return has_large_stride(w) || needs_margins(w);
}

// The window over the copy of the image, whose rows include the padding that windows read. With a large stride, tap k
// of a row becomes tap k / stride of the copy's row k % stride.
Window over_copy(Window w) {
  if (has_large_stride(w)) {
    const int64_t phases = phases_of(w);
    for (int64_t* each : {&w.in[1], &w.kernel[1], &w.stride[1], &w.begin[1]}) *each *= phases;
    w.kernel[2] = (w.kernel[2] + w.stride[2] - 1) / w.stride[2];
    w.stride[2] = w.dilation[1] = 1;
  }
  w.in[2] = (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
  w.begin[2] = w.end[2] = 0;
  return w;
}

// Returns, for each tap of over_copy(w), the tap of `w`, or -1 if there is none; empty: the taps are the same.
std::vector<int64_t> taps_over_copy(const Window& w) {
  std::vector<int64_t> taps;
  if (!has_large_stride(w)) return taps;
  const int64_t phases = phases_of(w), columns = over_copy(w).kernel[2];
  for (int64_t row = 0; row < w.kernel[1] * phases; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t k = column * w.stride[2] + row % phases;
      taps.push_back(k < w.kernel[2] ? row / phases * w.kernel[2] + k : -1);
    }
  }
  return taps;
}

// Copies larger than this multiple of the image are refused: most of a larger copy would be zeros.
constexpr int64_t kLargestCopy = 4;

TileRows rows_of(const Window& w) {
  if (is_flat(w)) return {.in_width = w.in_size(), .out_width = w.out_size()};
  return {.count = w.out[1],
          .taps = w.kernel[1],
          .first = -w.begin[1],
          .stride = w.stride[1],
          .dilation = w.dilation[1],
          .in_count = w.in[1],
          .in_width = w.in[2],
          .out_width = w.out[2]};
}

std::vector<RowTile> cut_row(const Window& w) {
  const int64_t lanes = channel_block(), most = max_tile_positions(lanes);
  const int64_t width = is_flat(w) ? w.out_size() : w.out[2], stride = is_flat(w) ? 1 : w.stride[2];
  const int64_t count = (width + most - 1) / most;
  std::vector<RowTile> tiles;
  for (int64_t t = 0; t < count; ++t) {
    const int64_t first = t * width / count, positions = (t + 1) * width / count - first;
    const int64_t left = first * stride - w.begin[2], right = left + (positions - 1) * stride;
    RowTile tile{first, left, 0, 0, {}};
    for (int64_t k = 0; k < w.kernel[2] && !is_flat(w); ++k) {
      tile.front += left + k * w.dilation[2] < 0;
      tile.back += right + k * w.dilation[2] >= w.in[2];
    }
    for (int64_t b = 0; b < 2; ++b) tile.kernels[b] = conv_tile_kernel(lanes, b + 1, positions, stride);
    tiles.push_back(tile);
  }
  return tiles;
}

// Returns the offset in an image, in floats, of each input channel after the channel shuffle; empty without a shuffle.
std::vector<int32_t> offsets_of_channels(const ConvPlan& conv) {
  const int64_t lanes = channel_block(), block = conv.window.in_size() * lanes;
  std::vector<int32_t> at;
  if (conv.shuffled_groups == 1) return at;
  for (int64_t c = 0; c < conv.size.in_channels; ++c) {
    const int64_t source = shuffle_source(c, conv.size.in_channels, conv.shuffled_groups);
    at.push_back(static_cast<int32_t>(source / lanes * block + source % lanes));
  }
  return at;
}

}  // namespace

const char* refuse_blocked_conv(const ConvPlan& conv, std::span<const Tensor> inputs) {
  const ConvSize& size = conv.size;
  const Window w = with_long_rows(conv.window);
  const int64_t lanes = channel_block();
  if (inputs[1].data == nullptr || (inputs.size() > 2 && inputs[2].present() && inputs[2].data == nullptr))
    return "its weights or bias are not known";
  if (size.in_channels < lanes / 2) return "its input channels do not fill half a vector";
  if (w.kernel[0] != 1 || w.in[0] != 1 || w.out[0] != 1 || w.begin[0] != 0) return "it has three spatial dimensions";
  // Shuffled channels are read through a list of 32-bit offsets, so no offset may exceed INT32_MAX. Kernels support
  // such lists for stride 1 only.
  if (conv.shuffled_groups > 1 && (w.stride[2] != 1 || blocks_of(size.in_channels) * lanes * w.in_size() > INT32_MAX))
    return "its input channels are shuffled, which requires stride 1 and a small image";
  if (size.groups > 1 && size.groups == size.in_channels) return "it is depthwise";
  if (w.out_size() < 2) return "its result has one position";
  if (!needs_copy(w)) return nullptr;
  if (conv.shuffled_groups > 1) return "its input channels are shuffled, and its windows need a copy of the image";
  if (has_large_stride(w) && (w.dilation[2] != 1 || (w.dilation[1] != 1 && w.kernel[1] != 1)))
    return "its stride is above 2, and it is dilated";
  if (phases_of(w) * over_copy(w).in[2] > kLargestCopy * w.in[2]) return "its windows reach too far outside the image";
  return nullptr;
}

Plan plan_blocked_conv(const PlanContext& context, const ConvPlan& conv, std::span<const Tensor> inputs,
                       PackedWeights& packed) {
  const Window image = with_long_rows(conv.window);
  const Window w = needs_copy(image) ? over_copy(image) : image;
  const int64_t lanes = channel_block();
  TiledWork work{.size = conv.size,
                 .taps = w.kernel_size(),
                 .columns = w.kernel[2],
                 .in_positions = w.in_size(),
                 .out_positions = w.out_size(),
                 .rows = rows_of(w),
                 .tiles = cut_row(w),
                 .x_row = w.dilation[1] * w.in[2] * lanes,
                 .x_column = w.dilation[2] * lanes,
                 .x_position = lanes,
                 .x_block = w.in_size() * lanes,
                 .y_position = lanes,
                 .y_block = w.out_size() * lanes,
                 .blocked = true,
                 .transposed = false,
                 .post_ops = conv.post_ops,
                 .channel_at = offsets_of_channels(conv)};
  if (needs_copy(image)) {
    work.copy = {.width = w.in[2],
                 .given = image.in[2],
                 .before = image.begin[2],
                 .step = has_large_stride(image) ? image.stride[2] : 1,
                 .phases = phases_of(image)};
    work.tap_at = taps_over_copy(image);
  }
  const int bias = inputs.size() > 2 && inputs[2].present() ? 2 : -1;
  return blocked_plan(conv, inputs.size(), make_tiled(context, work, inputs, bias, packed));
}

Plan blocked_plan(const ConvPlan& conv, size_t inputs, std::unique_ptr<Step> step) {
  Plan plan;
  plan.step = std::move(step);
  plan.shapes = {conv.window.output_shape(conv.size.batch, conv.size.out_channels)};
  plan.input_formats.assign(inputs, Format::kDense);
  plan.input_formats[0] = plan.output_format = Format::kBlocked;
  if (plan.step->inplace() >= 0) plan.input_formats.back() = Format::kBlocked;
  plan.packed = 1;
  return plan;
}

}  // namespace backplane::cpu
