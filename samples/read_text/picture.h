// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// A picture of 8-bit red, green and blue, row by row.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;

  // Reads a PNG file; transparency is laid over white. Throws std::runtime_error that names the file.
  static Picture read_png(const std::string& path);
};
