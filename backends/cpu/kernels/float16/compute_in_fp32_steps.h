// SPDX-License-Identifier: Apache-2.0
// The steps of kernels/float16/compute_in_fp32.h. Each wraps a step of a kernel for FLOAT: it converts the inputs and
// rounds the results.
#pragma once

#include <memory>

#include "runtime/kernel.h"
#include "runtime/memory.h"

namespace backplane::cpu {

using FloatBlock = std::shared_ptr<const Block>;

// An operand of the wrapped step. If it is converted, its floats are in `known` if its value is known, otherwise in
// scratch memory at `offset`.
struct Operand {
  bool converts = false;
  FloatBlock known;
  int64_t offset = 0;
};

// Creates a step that converts whole operands. `inner` takes inputs of the types and extents of `floats` and writes
// outputs of extents `shapes`. rounds[i] is set if output i has a 16-bit type.
std::unique_ptr<Step> whole_step(std::unique_ptr<Step> inner, std::vector<Operand> inputs,
                                 std::span<const Tensor> floats, std::span<const Shape> shapes,
                                 const std::vector<bool>& rounds);

// Creates a step for an operator with one output, which is processed in pieces whose floats stay in the first-level
// cache. Inputs must have the extents of the output or one element. `piece` computes kPiece elements, `rest` the last,
// shorter piece. Neither may need scratch memory or fail. `inplace` is the return value of Step::inplace.
inline constexpr int64_t kPiece = 2048;  // elements; so few that no kernel divides them among threads
inline constexpr size_t kMaxPieceInputs = 3;
std::unique_ptr<Step> piecewise_step(std::unique_ptr<Step> piece, std::unique_ptr<Step> rest,
                                     std::vector<Operand> inputs, int inplace);

}  // namespace backplane::cpu
