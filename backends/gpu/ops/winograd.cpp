// SPDX-License-Identifier: Apache-2.0
#include "ops/winograd.h"

#include "ops/gemm.h"
#include "ops/polyphase.h"

namespace backplane::gpu {
namespace {

// Winograd's tiles as windows: 4 × 4 input elements, 2 apart.
Window tiles_of(const Window& w) {
  Window tiles = w;
  tiles.kernel = {1, 4, 4};
  tiles.stride = {1, 2, 2};
  for (const size_t d : {1u, 2u}) tiles.out[d] = (w.out[d] + 1) / 2;
  return tiles;
}

// The number of tiles, including the unused ones between two lines (kernels/winograd.cl).
int64_t count_of(const Window& tiles) {
  return (tiles.out[1] - 1) * tiles.positions()[2] + tiles.out[2];
}

Tensor transformed_weights(Emit& e, const Tensor& k) {
  const int64_t count = k.shape[0] * k.shape[1];
  const Tensor u = e.scratch(k.dtype, {16, k.shape[0], k.shape[1]});
  e.launch("winograd", "winograd_weights", "-DVECTOR=1 -DBIAS=0").in(k).out(u).arg(count).range(count);
  return u;
}

// The floating-point operations of a product with m × n elements of k terms each, counting whole tiles, which may
// extend beyond the edges or compute elements twice.
double operations(const DeviceCaps& caps, int64_t m, int64_t n, int64_t k) {
  const Tile tile = tile_for(caps, m, n, BP_DTYPE_FLOAT);
  const auto whole = [](int64_t count, int64_t step) { return static_cast<double>((count + step - 1) / step * step); };
  return 2 * whole(m, tile.rows * tile.group_rows) * whole(n, tile.width() * tile.group_columns) *
         static_cast<double>(k);
}

// Winograd's method must be expected to take at most this fraction of the direct method's time: a gain within
// measurement noise does not justify different rounding.
constexpr double kWorth = 0.9;

bool is_faster(const DeviceCaps& caps, const Window& w, int64_t batch, int64_t maps, int64_t channels) {
  const Window tiles = tiles_of(w);
  const int64_t count = count_of(tiles), positions = (w.out[1] - 1) * (w.out[2] + 2) + w.out[2];
  const auto images = static_cast<double>(batch);
  const double weights = 4.0 * static_cast<double>(maps * channels) / caps.throughput.bandwidth;
  const double direct = images * operations(caps, maps, positions, channels * 9) / caps.winograd.flops + 9 * weights;
  const double transformed = images * (16 * operations(caps, maps, count, channels) / caps.winograd.flops +
                                       static_cast<double>(16 * (maps + channels) * count) / caps.winograd.elements) +
                             16 * weights + 2 * caps.throughput.launch_seconds;
  return transformed < kWorth * direct;
}

}  // namespace

std::string refuse_winograd(Emit& e, const Window& w, const Tensor& x, const Tensor& k) {
  using Use = WinogradThroughput::Use;
  const DeviceCaps& caps = e.caps();
  if (caps.winograd.use == Use::kNever) return "the device or the option winograd rules it out";
  if (x.dtype != BP_DTYPE_FLOAT) return "x is not a tensor of FLOAT";
  if (w.dims != 2 || w.kernel != Spatial{1, 3, 3} || w.stride != Spatial{1, 1, 1} || w.dilation != Spatial{1, 1, 1})
    return "its window is not 3x3 with strides and dilations of 1";
  if (k.shape[1] != x.shape[1]) return "it has groups";
  if (!e.constant(k)) return "its weights are not constant";
  if (caps.winograd.use != Use::kAlways && !is_faster(caps, w, x.shape[0], k.shape[0], k.shape[1]))
    return "the direct method is expected to be as fast";
  return {};
}

void emit_winograd(Emit& e, const Window& w, const Tensor& x, const Tensor& k, const Tensor& bias, const Tensor& y) {
  const Window tiles = tiles_of(w);
  const int64_t maps = k.shape[0], channels = k.shape[1], batch = x.shape[0], count = count_of(tiles);
  const Spatial positions = tiles.positions();
  const WinogradCut cut = winograd_cut(e.caps(), maps, count, tiles.out[2]);
  const Tensor u = transformed_weights(e, k), phases = to_polyphase(e, tiles, x);
  const Tensor v = e.scratch(x.dtype, {batch, 16, channels, cut.columns()});
  e.launch("winograd", "winograd_input", cut.input_options())
      .in(phases)
      .out(v)
      .arg(channels)
      .arg(count)
      .arg(positions[1] * positions[2])
      .arg(positions[2])
      .range((cut.columns() + cut.vector - 1) / cut.vector, channels, batch);

  const Tensor m = e.scratch(x.dtype, {batch, 16, maps, count});
  emit_product(e, {.a = u,
                   .b = v,
                   .y = m,
                   .batch = batch * 16,
                   .m = maps,
                   .n = count,
                   .k = channels,
                   .a_count = 16,
                   .b_count = batch * 16,
                   .in_panels = cut.panel != 0});

  LaunchBuilder launch = e.launch("winograd", "winograd_output", cut.output_options(static_cast<bool>(bias)));
  launch.in(m).in(bias ? bias : m).out(y).arg(maps).arg(count).arg(positions[2]).arg(w.out[1]).arg(w.out[2]);
  launch.range((tiles.out[2] + cut.lanes - 1) / cut.lanes, tiles.out[1], batch * maps);
  launch.allow_epilogue(y, maps, w.out_size());
}

}  // namespace backplane::gpu
