// SPDX-License-Identifier: Apache-2.0
#include "engine/tuner.h"

#include <chrono>
#include <cmath>

#include "engine/device.h"
#include "engine/disk_cache.h"

namespace backplane::opencl {
namespace {

// A product of middle size: a convolution of 3 × 3 windows over 256 channels and 28 × 28 places has as many rows and
// columns.
constexpr cl_int rows = 256, columns = 768, depth = 512;
constexpr int repeats = 3;
// A device that takes longer for it is slow, or simulated: no tile makes good what measuring them would cost.
constexpr double patience_seconds = 0.2;

struct Candidate {
  Tile tile;
  KernelSource source;
};

double seconds_of(Device& device, const Queue& queue, const Candidate& candidate, const Buffer& operands,
                  const Buffer& result) {
  const ClKernel kernel = device.kernels().kernel(candidate.source);
  const cl_mem a = operands.get(), y = result.get();
  for (const cl_uint i : {0u, 1u, 2u}) check(clSetKernelArg(kernel.get(), i, sizeof a, &a), "tuning");
  check(clSetKernelArg(kernel.get(), 3, sizeof y, &y), "tuning");
  cl_uint index = 4;
  for (const cl_int number : {rows, columns, depth, 1, 1})
    check(clSetKernelArg(kernel.get(), index++, sizeof number, &number), "tuning");
  const auto [global, local] = candidate.tile.ranges(rows, columns, 1, 1);
  double best = INFINITY;
  for (int i = 0; i <= repeats; ++i) {  // the first one warms up
    const auto begin = std::chrono::steady_clock::now();
    const cl_int status =
        clEnqueueNDRangeKernel(queue.get(), kernel.get(), 3, nullptr, global.data(), local.data(), 0, nullptr, nullptr);
    if (status != CL_SUCCESS || clFinish(queue.get()) != CL_SUCCESS) return INFINITY;  // more than the device allows
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (i != 0) best = std::min(best, time.count());
  }
  return best;
}

}  // namespace

Tile tuned_tile(Device& device) {
  const Facts& facts = device.facts();
  std::vector<Candidate> candidates;
  std::string key = "tile 1\n" + facts.identity();
  for (const Tile& tile : tiles(facts.kind)) {
    if (!fits(facts, tile)) continue;
    candidates.push_back({tile, {"gemm", "gemm", "-DTYPE=f32 -DBIAS=0" + tile.macros(), {}}});
    key += tile.text() + "\n";
  }
  if (candidates.empty()) return {4, 4, 1};
  if (2.0 * rows * columns * depth / facts.rates.flops > patience_seconds) return candidates.front().tile;
  const DiskCache disk("opencl");
  if (const auto known = disk.read(key)) {
    if (const auto tile = tile_named(*known); tile && fits(facts, *tile)) return *tile;
  }
  std::vector<const KernelSource*> sources;
  for (const Candidate& candidate : candidates) sources.push_back(&candidate.source);
  device.kernels().build(sources);
  const Buffer operands = device.buffer(sizeof(float) * depth * columns);
  const Buffer result = device.buffer(sizeof(float) * rows * columns);
  const Queue queue = device.queue();
  // Numbers that make no slow ones.
  static constexpr cl_float half = 0.5f;
  check(clEnqueueFillBuffer(queue.get(), operands.get(), &half, sizeof half, 0, sizeof(float) * depth * columns, 0,
                            nullptr, nullptr),
        "tuning");
  const Candidate* best = nullptr;
  double shortest = INFINITY;
  for (const Candidate& candidate : candidates) {
    const double seconds = seconds_of(device, queue, candidate, operands, result);
    if (seconds < shortest) shortest = seconds, best = &candidate;
  }
  if (best == nullptr) return candidates.front().tile;
  disk.write(key, best->tile.text());
  return best->tile;
}

}  // namespace backplane::opencl
