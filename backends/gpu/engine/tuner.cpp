// SPDX-License-Identifier: Apache-2.0
#include "engine/tuner.h"

#include <bit>
#include <chrono>
#include <cmath>

#include "backplane/sdk/file_cache.hpp"
#include "engine/device.h"
#include "engine/throughput.h"

namespace backplane::gpu {
namespace {

// A product of medium size: a convolution with 256 output channels of 28 × 28 positions has about as many rows and
// columns.
constexpr int64_t kRows = 256, kColumns = 768, kDepth = 512;
constexpr double kOperations = 2.0 * kRows * kColumns * kDepth;
constexpr double kPatienceSeconds = 0.2;

KernelSource source_of(const Tile& tile) {
  return {"gemm", "gemm", "-DTYPE=f32 -DBIAS=0" + tile.macros(), {}};
}

// Measures how long products take with a tile.
class TiledProducts {
 public:
  explicit TiledProducts(Device& device)
      : device_(device),
        operands_(device.driver().buffer(sizeof(float) * kDepth * kColumns)),
        result_(device.driver().buffer(sizeof(float) * kRows * kColumns)),
        queue_(device.driver().queue()) {
    fill_with_0_5(queue_, operands_, sizeof(float) * kDepth * kColumns);
  }

  double seconds(const Tile& tile) const {
    const Kernel kernel = device_.kernels().kernel(source_of(tile));
    set_arguments(kernel, {operands_, operands_, operands_, result_}, {kRows, kColumns, kDepth, 1, 1});
    return shortest_seconds(queue_, {{kernel, tile.ranges(kRows, kColumns, 1, 1)}});
  }

 private:
  Device& device_;
  Buffer operands_, result_;
  Queue queue_;
};

}  // namespace

Tile tuned_tile(Device& device) {
  const DeviceCaps& caps = device.caps();
  std::vector<Tile> candidates;
  std::string key = "tile 1\n" + caps.identity;
  for (const Tile& tile : tiles(caps.kind)) {
    if (!fits(caps, tile)) continue;
    candidates.push_back(tile);
    key += tile.text() + "\n";
  }
  if (candidates.empty()) return {4, 4, 1};
  if (too_slow_to_measure(caps)) return candidates.front();
  const sdk::FileCache disk(caps.backend);
  if (const auto known = disk.read(key)) {
    if (const auto tile = tile_named(*known); tile && fits(caps, *tile)) return *tile;
  }
  std::vector<KernelSource> sources;
  for (const Tile& tile : candidates) sources.push_back(source_of(tile));
  std::vector<const KernelSource*> all;
  for (const KernelSource& source : sources) all.push_back(&source);
  device.kernels().build(all);
  const TiledProducts products(device);
  const Tile* best = nullptr;
  double shortest = INFINITY;
  for (const Tile& tile : candidates) {
    const double seconds = products.seconds(tile);
    if (seconds < shortest) shortest = seconds, best = &tile;
  }
  if (best == nullptr) return candidates.front();
  disk.write(key, best->text());
  return *best;
}

double product_flops(Device& device, const Tile& tile) {
  return kOperations / TiledProducts(device).seconds(tile);
}

bool too_slow_to_measure(const DeviceCaps& caps) {
  return kOperations / caps.throughput.flops > kPatienceSeconds;
}

void fill_with_0_5(const Queue& queue, const Buffer& buffer, uint64_t bytes) {
  queue->fill({buffer.get(), 0}, std::bit_cast<uint32_t>(0.5f), bytes, "tuning");
}

void set_arguments(const Kernel& kernel, const std::vector<Buffer>& buffers, const std::vector<int64_t>& numbers) {
  uint32_t index = 0;
  for (const Buffer& buffer : buffers) kernel->set(index++, *buffer);
  for (const int64_t each : numbers) {
    const auto number = static_cast<int32_t>(each);
    kernel->set(index++, &number, sizeof number);
  }
}

double shortest_seconds(const Queue& queue, const std::vector<Start>& starts) {
  return shortest_time([&] {
    const auto begin = std::chrono::steady_clock::now();
    const auto failure = sdk::caught([&] {
      for (const auto& [kernel, ranges] : starts) queue->launch(*kernel, ranges, false);
      queue->finish("tuning");
    });
    if (failure) return static_cast<double>(INFINITY);  // a kernel exceeds the device's limits
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  });
}

}  // namespace backplane::gpu
