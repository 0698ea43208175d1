// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// A picture with 8-bit red, green and blue for each pixel, row by row.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;

  // Reads a PNG file. Transparent pixels are blended with white. Throws std::runtime_error with the file's name.
  static Picture read_png(const std::string& path);
};
