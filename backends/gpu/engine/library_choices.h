// SPDX-License-Identifier: Apache-2.0
// Decides which problems of a kind the driver's library computes, and with which of its algorithms. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "engine/convolution_library.h"
#include "engine/product_library.h"

namespace backplane::gpu {

class Device;

// How a library is used. kMeasured: for problems of at least 2 · 16³ operations, with the fastest algorithm where that
// was measured. kLibrary: for all problems that the library accepts, with its first algorithm.
enum class LibraryUse { kMeasured, kLibrary };

template <class Problem>
class LibraryChoices {
 public:
  // `device` and `library` must outlive this object.
  LibraryChoices(Device& device, const Library<Problem>& library, LibraryUse use)
      : device_(device), library_(library), use_(use) {}

  // Why the engine's own kernels compute this problem; empty if the library does.
  std::string refusal(const Problem& problem);
  // An algorithm for a problem that is not refused. With LibraryUse::kMeasured, the fastest one as stored on disk; if
  // none is stored and `measure` is true, it is measured and stored now. In all other cases, and if measuring would
  // take too long or too much memory, or fails, the library's first algorithm.
  LibraryAlgorithm algorithm(const Problem& problem, bool measure);

 private:
  struct Known {
    std::vector<LibraryAlgorithm> algorithms;
    std::string why_none;  // if there are no algorithms
  };
  Known known(const Problem& problem);
  // nullopt if measuring would take too long or too much memory, or fails.
  std::optional<size_t> fastest(const Problem& problem, const std::vector<LibraryAlgorithm>& algorithms) const;

  Device& device_;
  const Library<Problem>& library_;
  const LibraryUse use_;
  std::mutex choosing_;  // held while measuring, as simultaneous measurements would disturb each other
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by Problem::text; once an algorithm is chosen, it is the only one
};
using Products = LibraryChoices<ProductProblem>;
using Convolutions = LibraryChoices<ConvolutionProblem>;

// The choices for each kind of problem; NULL if the driver has no library for it, or if its option is "own".
struct Libraries {
  Products* products = nullptr;
  Convolutions* convolutions = nullptr;

  Products* of(const ProductProblem&) const { return products; }
  Convolutions* of(const ConvolutionProblem&) const { return convolutions; }
};

}  // namespace backplane::gpu
