// SPDX-License-Identifier: Apache-2.0
// The interface to a library that computes a kind of problem for a driver, as cuBLASLt computes matrix products
// (engine/product_library.h). A driver has one library or none for each kind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backplane/plugin.h"

namespace backplane::gpu {

class DeviceKernel;

// One of the ways in which a library computes a problem. Valid for all problems with the same text().
struct LibraryAlgorithm {
  std::shared_ptr<const void> own;  // the library's description of the algorithm
  uint64_t workspace_bytes = 0;
};

// The arguments of a library's kernel, which ignores those that the problem does not have.
enum LibraryArgument : uint32_t { kLibraryA, kLibraryB, kLibraryC, kLibraryBias, kLibraryY, kLibraryWorkspace };

// What to allocate for measuring a problem, in bytes.
struct LibraryOperands {
  uint64_t largest_input;
  uint64_t y;
};

// Thread-safe. The library is opened by the first call that needs it. A Problem has
//   dtype, compute_types          the type of all tensors, and the BP_COMPUTE_* that are allowed
//   kKind                         "product"
//   std::string text() const      everything that an algorithm depends on, as the key of stored choices
//   double operations() const
//   LibraryOperands operands() const
template <class Problem>
class Library {
 public:
  virtual ~Library() = default;
  // Name and version, for keys of stored choices and for messages. Empty if the library cannot be opened.
  virtual std::string identity() const = 0;
  // The compute types (BP_COMPUTE_*) in which the library computes problems of `dtype` if they are allowed.
  virtual uint32_t compute_types(bp_dtype_t dtype) const = 0;
  // At most `most` algorithms, best first by the library's own estimate. If there are none, sets `why_none`.
  virtual std::vector<LibraryAlgorithm> algorithms(const Problem& problem, size_t most,
                                                   std::string& why_none) const = 0;
  // A kernel whose arguments are LibraryArguments; ranges are ignored. Throws sdk::Error.
  virtual std::shared_ptr<DeviceKernel> kernel(const Problem& problem, const LibraryAlgorithm& algorithm) const = 0;
};

}  // namespace backplane::gpu
