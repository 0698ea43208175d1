// SPDX-License-Identifier: Apache-2.0
#include "engine/winograd.h"

#include <array>
#include <cmath>

#include "backplane/sdk/file_cache.hpp"
#include "engine/device.h"
#include "engine/tuner.h"

namespace backplane::gpu {
namespace {

// A convolution of medium size: 128 → 128 channels over 56 × 56 positions.
constexpr int64_t kChannels = 128, kSize = 56, kLine = kSize / 2, kWidth = kLine + 1;
constexpr int64_t kCount = (kLine - 1) * kWidth + kLine;
constexpr int64_t kPhase = kWidth * kWidth;

double transform_seconds(Device& device) {
  const WinogradCut cut = winograd_cut(device.caps(), kChannels, kCount, kLine);
  const Kernel input = device.kernels().kernel({"winograd", "winograd_input", cut.input_options(), {}});
  const Kernel output = device.kernels().kernel({"winograd", "winograd_output", cut.output_options(false), {}});
  const auto bytes = [](int64_t elements) { return static_cast<uint64_t>(elements) * sizeof(float); };
  const Driver& driver = device.driver();
  const Buffer x = driver.buffer(bytes(kChannels * 4 * kPhase)),
               v = driver.buffer(bytes(16 * kChannels * cut.columns()));
  const Buffer y = driver.buffer(bytes(kChannels * kSize * kSize));
  const Queue queue = driver.queue();
  fill_with_0_5(queue, x, bytes(kChannels * 4 * kPhase));
  set_arguments(input, {x, v}, {kChannels, kCount, kPhase, kWidth});
  // Passes `v` as products and as bias, because values do not affect the time of the transforms.
  set_arguments(output, {v, v, y}, {kChannels, kCount, kWidth, kSize, kSize});
  const Ranges in = ranges_of_items(device.caps(), (cut.columns() + cut.vector - 1) / cut.vector, kChannels);
  const Ranges out = ranges_of_items(device.caps(), (kLine + cut.lanes - 1) / cut.lanes, kLine, kChannels);
  return shortest_seconds(queue, {{input, in}, {output, out}});
}

}  // namespace

int64_t WinogradCut::columns() const {
  return panel == 0 ? tiles : (tiles + panel - 1) / panel * panel;
}

std::string WinogradCut::input_options() const {
  return "-DBIAS=0" + macro("VECTOR", vector) + (panel == 0 ? "" : macro("PANEL", panel));
}

std::string WinogradCut::output_options(bool bias) const {
  return "-DBIAS=" + std::string(bias ? "1" : "0") + macro("VECTOR", lanes);
}

WinogradCut winograd_cut(const DeviceCaps& caps, int64_t maps, int64_t tiles, int64_t line) {
  const Tile tile = tile_for(caps, maps, tiles, BP_DTYPE_FLOAT);
  if (tile.depth != 0 || caps.kind != BP_DEVICE_CPU)
    return {.panel = tile.depth == 0 ? tile.width() : 0,
            .vector = tile.depth == 0 ? tile.vector : 1,
            .lanes = 1,
            .tiles = tiles};
  return {.panel = tile.width(),
          .vector = tile.vector,
          .lanes = tile_for(caps, 1, line, BP_DTYPE_FLOAT).vector,
          .tiles = tiles};
}

WinogradThroughput winograd_throughput(Device& device) {
  const DeviceCaps& caps = device.caps();
  WinogradThroughput throughput{WinogradThroughput::Use::kMeasured};
  if (too_slow_to_measure(caps)) return {};
  const std::string key = "winograd 1\n" + caps.identity + caps.tile.text() + "\n";
  const sdk::FileCache disk(caps.backend);
  const auto sane = [](double rate) { return std::isfinite(rate) && rate > 0; };
  const std::optional<std::string> known = disk.read(key);
  std::array<double, 2> numbers;
  if (known && sdk::read_numbers(*known, numbers) && sane(numbers[0]) && sane(numbers[1])) {
    throughput.flops = numbers[0];
    throughput.elements = numbers[1];
    return throughput;
  }
  throughput.flops = product_flops(device, caps.tile);
  throughput.elements = static_cast<double>(16 * 2 * kChannels * kCount) / transform_seconds(device);
  if (!sane(throughput.flops) || !sane(throughput.elements)) return {};
  disk.write(key, sdk::write_numbers({throughput.flops, throughput.elements}));
  return throughput;
}

}  // namespace backplane::gpu
