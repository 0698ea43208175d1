// SPDX-License-Identifier: Apache-2.0
#include "engine/products.h"

#include <algorithm>
#include <cmath>

#include "backplane/sdk/file_cache.hpp"
#include "engine/device.h"
#include "engine/shape.h"
#include "engine/tuner.h"

namespace backplane::gpu {
namespace {

constexpr size_t kCandidates = 4;
constexpr size_t kMostKnown = 1024;
// Smaller products do not fill one tile of a tensor core, and the engine's own kernel takes any formula as an epilogue.
constexpr double kLeastOperations = 2.0 * 16 * 16 * 16;
constexpr double kPatienceSeconds = 0.05;  // the expected time of a product above which candidates are not measured
constexpr uint64_t kMemoryShare = 8;       // measuring uses at most this fraction of the device's memory

// Memory for measuring: one buffer serves as a, b, c and bias, as values do not affect the time.
struct Operands {
  uint64_t in_bytes, y_bytes, workspace_bytes = 0;

  Operands(const ProductProblem& problem, const std::vector<ProductAlgorithm>& algorithms) {
    const auto bytes = [&](int64_t rows, int64_t columns, int64_t count) {
      return static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * static_cast<uint64_t>(count) *
             bytes_of(problem.dtype);
    };
    y_bytes = bytes(problem.m, problem.n, problem.batch);
    const uint64_t a_bytes = bytes(problem.m, problem.k, problem.a_repeats ? 1 : problem.batch);
    const uint64_t b_bytes = bytes(problem.k, problem.n, problem.b_repeats ? 1 : problem.batch);
    in_bytes = (std::max({a_bytes, b_bytes, y_bytes}) + 3) / 4 * 4;  // it is filled with words
    for (const ProductAlgorithm& algorithm : algorithms)
      workspace_bytes = std::max(workspace_bytes, algorithm.workspace_bytes);
  }
  uint64_t bytes() const { return in_bytes + y_bytes + workspace_bytes; }
};

// The index in a stored choice, or nullopt if it is not below `count`.
std::optional<size_t> stored_index(const std::optional<std::string>& text, size_t count) {
  std::array<double, 1> number{};
  if (!text || !sdk::read_numbers(*text, number)) return std::nullopt;
  for (size_t i = 0; i < count; ++i)
    if (number[0] == static_cast<double>(i)) return i;
  return std::nullopt;
}

}  // namespace

std::string Products::refusal(const ProductProblem& problem) {
  if (use_ == Use::kMeasured && problem.operations() < kLeastOperations)
    return "fewer than " + std::to_string(static_cast<int64_t>(kLeastOperations)) + " operations";
  return known(problem).why_none;
}

Products::Known Products::known(const ProductProblem& problem) {
  const std::string key = problem.text();
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = known_.find(key); at != known_.end()) return at->second;
  }
  Known found;
  found.algorithms = device_.caps().products->algorithms(problem, kCandidates, found.why_none);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  // A refusal is not remembered: the reason may have been a lack of memory.
  if (found.why_none.empty()) known_.try_emplace(key, found);
  return found;
}

ProductAlgorithm Products::algorithm(const ProductProblem& problem, bool measure) {
  Known found = known(problem);
  if (found.algorithms.empty()) throw sdk::Error(BP_INTERNAL, "product " + problem.text() + ": " + found.why_none);
  if (use_ == Use::kLibrary || found.algorithms.size() == 1) return found.algorithms.front();
  const DeviceCaps& caps = device_.caps();
  const sdk::FileCache disk(caps.backend);
  const std::string key = "product 1\n" + caps.identity + caps.products->identity() + "\n" + problem.text() + "\n";
  std::optional<size_t> index = stored_index(disk.read(key), found.algorithms.size());
  if (!index && !measure) return found.algorithms.front();
  const std::lock_guard choosing(choosing_);
  if (Known now = known(problem); now.algorithms.size() == 1) return now.algorithms.front();  // chosen meanwhile
  if (!index) {
    index = fastest(problem, found.algorithms);
    if (!index) return found.algorithms.front();
    disk.write(key, sdk::write_numbers({static_cast<double>(*index)}));
    device_.host().log(BP_LOG_DEBUG, caps.name + ": of " + std::to_string(found.algorithms.size()) +
                                         " algorithms for " + problem.text() + ", number " +
                                         std::to_string(*index + 1) + " is the fastest");
  }
  found.algorithms = {found.algorithms[*index]};
  const std::lock_guard lock(mutex_);
  known_[problem.text()] = found;
  return found.algorithms.front();
}

std::optional<size_t> Products::fastest(const ProductProblem& problem,
                                        const std::vector<ProductAlgorithm>& algorithms) const {
  const DeviceCaps& caps = device_.caps();
  if (problem.operations() / caps.throughput.flops > kPatienceSeconds) return std::nullopt;
  std::optional<size_t> best;
  const Operands sizes(problem, algorithms);
  if (sizes.bytes() > caps.memory_bytes / kMemoryShare) return std::nullopt;
  const auto failure = sdk::caught([&] {
    const Driver& driver = device_.driver();
    const Buffer in = driver.buffer(sizes.in_bytes), y = driver.buffer(sizes.y_bytes);
    const Buffer workspace = driver.buffer(sizes.workspace_bytes);
    const Queue queue = driver.queue();
    fill_with_0_5(queue, in, sizes.in_bytes);
    double shortest = INFINITY;
    for (size_t i = 0; i < algorithms.size(); ++i) {
      const Kernel kernel = caps.products->kernel(problem, algorithms[i]);
      for (const ProductArgument each : {kProductA, kProductB, kProductC, kProductBias}) kernel->set(each, *in);
      kernel->set(kProductY, *y);
      kernel->set(kProductWorkspace, *workspace);
      const double seconds = shortest_seconds(queue, {{kernel, {{1, 1, 1}, {1, 1, 1}}}});
      if (seconds < shortest) shortest = seconds, best = i;
    }
  });
  return failure ? std::nullopt : best;
}

}  // namespace backplane::gpu
