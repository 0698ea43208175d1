// SPDX-License-Identifier: Apache-2.0
// The steps of kernels/float16/compute_in_fp32.h: they convert the inputs of a kernel's step for FLOAT, and round its
// results.
#pragma once

#include <memory>

#include "runtime/kernel.h"
#include "runtime/memory.h"

namespace backplane::cpu {

using FloatBlock = std::shared_ptr<const Block>;

// A converted operand's floats have their own memory if the operand is known, otherwise they are in scratch memory.
struct Operand {
  bool converts = false;
  FloatBlock known;
  int64_t offset = 0;
};

// Converts whole operands. `inner` reads `floats` and writes `shapes`; outputs of a 16-bit type are marked in `rounds`.
std::unique_ptr<Step> whole_step(std::unique_ptr<Step> inner, std::vector<Operand> inputs,
                                 std::span<const Tensor> floats, std::span<const Shape> shapes,
                                 const std::vector<bool>& rounds);

// Processes the operands of an operator with one output piece by piece, so that the floats of a piece stay in the
// first-level cache. Operands have the output's extents or one element. `piece` is for kPiece elements, `rest` for the
// last, shorter piece; both need no scratch memory and cannot fail.
inline constexpr int64_t kPiece = 2048;  // fewer than any kernel divides among threads
inline constexpr size_t kMaxPieceInputs = 3;
std::unique_ptr<Step> piecewise_step(std::unique_ptr<Step> piece, std::unique_ptr<Step> rest,
                                     std::vector<Operand> inputs, int inplace);

}  // namespace backplane::cpu
