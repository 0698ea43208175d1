// SPDX-License-Identifier: Apache-2.0
// The inner loop of a product of 8-bit quantized values on AMX's tile registers, whose results are quantized again. A
// block is up to 64 output channels at up to 32 positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/q8/q8_pointwise_tile.h"

namespace backplane::cpu {

inline constexpr int64_t kAmxChannels = 64, kAmxInputs = 64;  // channels of a block; input bytes of a step

// The positions of a block are in one or two tiles, which have the same number of positions and may overlap.
struct AmxBlock {
  const uint8_t* x[2];  // inputs of the first position of each tile; `steps` · kAmxInputs bytes are read at a position
  int64_t x_position;   // bytes from one position's inputs to the next position's
  int64_t tiles;
  int64_t second;  // the second tile's first position, counted from the first tile's
  int64_t steps;
  // Three arrays with one element per channel: the initial values of the sums (int32_t), the scales and the addends
  // (float). A result is sum · scale + addend. Then come the weights as signed bytes: [32 channels][step][half of these
  // channels][16 groups of inputs][16 channels][4 inputs], 0 beyond the last input.
  const std::byte* pack;
  int64_t channels;
  int64_t first, last;  // the positions to store, counted from the first tile's first one
  uint8_t* y;           // the results of position `first`
  int64_t y_position;
  int32_t zero, low, high;  // the result's zero point; results are clamped to [low, high]
  bool result_signed;
  const PointwiseSum* sum;  // null without an addition; otherwise `zero` to `result_signed` are those of the sum
  const uint8_t* other;     // the tensor to add, in the layout of y; may be y
};

using AmxKernel = void (*)(const AmxBlock& block);

// Returns the kernel, with an addition if `adds`. `is_signed` describes the inputs. Returns null if the processor lacks
// AMX, or in builds without Q8_LANES or AMX_TILES (Clang, sanitizers). Call the kernel only while the thread holds
// amx::TileRegisters of as many rows as a tile has positions.
AmxKernel amx_kernel(bool adds, bool is_signed);

}  // namespace backplane::cpu
