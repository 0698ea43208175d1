// SPDX-License-Identifier: Apache-2.0
// Decides which matrix products the driver's library computes, and with which of its algorithms. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "engine/product_library.h"

namespace backplane::gpu {

class Device;

class Products {
 public:
  // kMeasured: products above a certain size, with the fastest algorithm. kLibrary: all products, with the library's
  // first algorithm.
  enum class Use { kMeasured, kLibrary };

  // `device` must have a library and outlive this object.
  Products(Device& device, Use use) : device_(device), use_(use) {}

  // Why the engine's own kernel computes this product; empty if the library does.
  std::string refusal(const ProductProblem& problem);
  // An algorithm for a product that is not refused. With `measure`, the fastest one, measured once and stored on disk,
  // otherwise the one stored, or the first.
  ProductAlgorithm algorithm(const ProductProblem& problem, bool measure);

 private:
  struct Known {
    std::vector<ProductAlgorithm> algorithms;
    std::string why_none;  // if there are no algorithms
  };
  Known known(const ProductProblem& problem);
  // nullopt if measuring would take too long or too much memory, or fails.
  std::optional<size_t> fastest(const ProductProblem& problem, const std::vector<ProductAlgorithm>& algorithms) const;

  Device& device_;
  const Use use_;
  std::mutex choosing_;  // measurements would disturb each other
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by ProductProblem::text; only one algorithm once it is chosen
};

}  // namespace backplane::gpu
