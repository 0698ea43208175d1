// SPDX-License-Identifier: Apache-2.0
#include "engine/library_choices.h"

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
// Smaller problems do not fill one tile of a tensor core, and the engine's own kernels can fuse more kinds of formula.
constexpr double kLeastOperations = 2.0 * 16 * 16 * 16;
constexpr double kPatienceSeconds = 0.05;  // the expected time of a problem above which candidates are not measured
constexpr uint64_t kMemoryShare = 8;       // measuring uses at most 1 / kMemoryShare of the device's memory

// The index in a stored choice, or nullopt if it is not below `count`.
std::optional<size_t> stored_index(const std::optional<std::string>& text, size_t count) {
  std::array<double, 1> number{};
  if (!text || !sdk::read_numbers(*text, number)) return std::nullopt;
  for (size_t i = 0; i < count; ++i)
    if (number[0] == static_cast<double>(i)) return i;
  return std::nullopt;
}

}  // namespace

template <class Problem>
std::string LibraryChoices<Problem>::refusal(const Problem& problem) {
  if (use_ == LibraryUse::kMeasured && problem.operations() < kLeastOperations)
    return "fewer than " + std::to_string(static_cast<int64_t>(kLeastOperations)) + " operations";
  return known(problem).why_none;
}

template <class Problem>
typename LibraryChoices<Problem>::Known LibraryChoices<Problem>::known(const Problem& problem) {
  const std::string key = problem.text();
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = known_.find(key); at != known_.end()) return at->second;
  }
  Known found;
  found.algorithms = library_.algorithms(problem, kCandidates, found.why_none);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  // A refusal is not remembered: the reason may have been a lack of memory.
  if (found.why_none.empty()) known_.try_emplace(key, found);
  return found;
}

template <class Problem>
LibraryAlgorithm LibraryChoices<Problem>::algorithm(const Problem& problem, bool measure) {
  Known found = known(problem);
  if (found.algorithms.empty())
    throw sdk::Error(BP_INTERNAL, std::string(Problem::kKind) + " " + problem.text() + ": " + found.why_none);
  if (use_ == LibraryUse::kLibrary || found.algorithms.size() == 1) return found.algorithms.front();
  const DeviceCaps& caps = device_.caps();
  const sdk::FileCache disk(caps.backend);
  const std::string key =
      std::string(Problem::kKind) + " 1\n" + caps.identity + library_.identity() + "\n" + problem.text() + "\n";
  std::optional<size_t> index = stored_index(disk.read(key), found.algorithms.size());
  if (!index && !measure) return found.algorithms.front();
  const std::lock_guard choosing(choosing_);
  if (Known now = known(problem); now.algorithms.size() == 1) return now.algorithms.front();  // by another thread
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

template <class Problem>
std::optional<size_t> LibraryChoices<Problem>::fastest(const Problem& problem,
                                                       const std::vector<LibraryAlgorithm>& algorithms) const {
  const DeviceCaps& caps = device_.caps();
  if (problem.operations() / caps.throughput.flops > kPatienceSeconds) return std::nullopt;
  std::optional<size_t> best;
  const LibraryOperands sizes = problem.operands();
  // One buffer serves as a, b, c and bias, as values do not affect the time. Its size is a multiple of 4 bytes, because
  // fill_with_0_5 writes whole floats.
  const uint64_t in_bytes = (sizes.largest_input + 3) / 4 * 4;
  uint64_t workspace_bytes = 0;
  for (const LibraryAlgorithm& each : algorithms) workspace_bytes = std::max(workspace_bytes, each.workspace_bytes);
  if (in_bytes + sizes.y + workspace_bytes > caps.memory_bytes / kMemoryShare) return std::nullopt;
  const auto failure = sdk::caught([&] {
    const Driver& driver = device_.driver();
    const Buffer in = driver.buffer(in_bytes), y = driver.buffer(sizes.y);
    const Buffer workspace = driver.buffer(workspace_bytes);
    const Queue queue = driver.queue();
    fill_with_0_5(queue, in, in_bytes);
    double shortest = INFINITY;
    for (size_t i = 0; i < algorithms.size(); ++i) {
      const Kernel kernel = library_.kernel(problem, algorithms[i]);
      for (const LibraryArgument each : {kLibraryA, kLibraryB, kLibraryC, kLibraryBias}) kernel->set(each, *in);
      kernel->set(kLibraryY, *y);
      kernel->set(kLibraryWorkspace, *workspace);
      const double seconds = shortest_seconds(queue, {{kernel, {{1, 1, 1}, {1, 1, 1}}}});
      if (seconds < shortest) shortest = seconds, best = i;
    }
  });
  return failure ? std::nullopt : best;
}

template class LibraryChoices<ProductProblem>;
template class LibraryChoices<ConvolutionProblem>;

}  // namespace backplane::gpu
