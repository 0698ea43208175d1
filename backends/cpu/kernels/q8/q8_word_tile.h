// SPDX-License-Identifier: Apache-2.0
// The inner loop of a convolution or product of 16-bit integers. A tile is 16 output channels at a few positions of a
// row, whose 32-bit sums stay in registers.
#pragma once

#include <cstdint>

namespace backplane::cpu {

struct WordTile {
  const int16_t* x;      // the inputs of the first position
  int64_t x_position;    // numbers from one position's inputs to the next position's
  const int64_t* lines;  // offset of each line of the window, in numbers
  int64_t line_count;
  int64_t pairs;           // pairs of numbers in a line, which are adjacent in x
  const int16_t* weights;  // [line][pair][output channel][2]
  bool begins;             // false: the sums are added to those that are there
  int32_t* sums;           // [position][output channel]
};

inline constexpr int64_t kWordChannels = 16, kMaxWordPositions = 6;

using WordKernel = void (*)(const WordTile& tile);

// Returns the kernel for `positions` positions (1 to kMaxWordPositions). The processor must have AVX2.
WordKernel word_kernel(int64_t positions);

}  // namespace backplane::cpu
