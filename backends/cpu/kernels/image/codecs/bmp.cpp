// SPDX-License-Identifier: Apache-2.0
// Uncompressed BMP: 1, 4 or 8 bits per pixel with a palette; 16 or 32, with or without bit masks; 24.
#include <array>
#include <bit>

#include "kernels/image/codecs/codec.h"

namespace backplane::cpu::image {

namespace {

struct Header {
  Size size;
  bool top_down = false;
  uint32_t bits = 0, pixels = 0;  // pixels: offset of the first row
  uint32_t palette = 0, colors = 0, color_bytes = 4;
  std::array<uint32_t, 3> masks{};  // red, green, blue
};

uint32_t number(Encoded bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint32_t{bytes[at + i]} << (8 * i);
  return value;
}

Problem read_header(Encoded bytes, Header* h) {
  constexpr uint32_t kFileHeader = 14, kCore = 12, kInfo = 40;
  constexpr uint32_t kPlain = 0, kMasks = 3, kAlphaMasks = 6;
  if (bytes.size() < kFileHeader + kCore) return "the file ends within its header";
  h->pixels = number(bytes, 10, 4);
  const uint32_t header = number(bytes, 14, 4);
  if (header != kCore && header < kInfo) return "the header of " + std::to_string(header) + " bytes is not supported";
  if (bytes.size() < uint64_t{kFileHeader} + header) return "the file ends within its header";
  h->palette = kFileHeader + header;
  uint32_t compression = kPlain;
  if (header == kCore) {
    h->size = {number(bytes, 18, 2), number(bytes, 20, 2)};
    h->bits = number(bytes, 24, 2);
    h->color_bytes = 3;
  } else {
    const auto height = int64_t{static_cast<int32_t>(number(bytes, 22, 4))};
    h->top_down = height < 0;
    h->size = {static_cast<int32_t>(number(bytes, 18, 4)), height < 0 ? -height : height};
    h->bits = number(bytes, 28, 2);
    compression = number(bytes, 30, 4);
    h->colors = number(bytes, 46, 4);
  }
  if (h->bits <= 8 && (h->colors == 0 || h->colors > 1u << h->bits)) h->colors = 1u << h->bits;
  if (compression == kMasks || compression == kAlphaMasks) {
    constexpr size_t kMaskAt = 54;
    if (bytes.size() < kMaskAt + 12) return "the file ends within its masks";
    for (size_t c = 0; c < 3; ++c) h->masks[c] = number(bytes, kMaskAt + 4 * c, 4);
  } else if (compression != kPlain) {
    return "compression method " + std::to_string(compression) + " is not supported";
  } else if (h->bits == 16) {
    h->masks = {0x7c00, 0x03e0, 0x001f};
  } else {
    h->masks = {0xff0000, 0x00ff00, 0x0000ff};
  }
  for (uint32_t known : {1u, 4u, 8u, 16u, 24u, 32u})
    if (h->bits == known) return std::nullopt;
  return std::to_string(h->bits) + " bits per pixel are not supported";
}

uint8_t masked(uint32_t value, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t largest = mask >> shift;
  return static_cast<uint8_t>(uint64_t{(value & mask) >> shift} * 255 / largest);
}

Problem read_size(Encoded bytes, Size* size) {
  Header h;
  Problem problem = read_header(bytes, &h);
  *size = h.size;
  return problem;
}

Problem decode(Encoded bytes, const Size& size, uint8_t* rgb, Stop& stop) {
  Header h;
  if (Problem problem = read_header(bytes, &h)) return problem;
  const int64_t stride = (size.width * h.bits + 31) / 32 * 4;
  if (uint64_t{h.pixels} + static_cast<uint64_t>(stride * size.height) > bytes.size())
    return "the file ends within its pixels";
  if (h.bits <= 8 && uint64_t{h.palette} + uint64_t{h.colors} * h.color_bytes > bytes.size())
    return "the file ends within its palette";
  for (int64_t y = 0; y < size.height; ++y) {
    stop.check(8 * size.width);
    const size_t row = h.pixels + static_cast<size_t>((h.top_down ? y : size.height - 1 - y) * stride);
    uint8_t* target = rgb + y * size.width * 3;
    for (int64_t x = 0; x < size.width; ++x, target += 3) {
      const auto bit = static_cast<size_t>(x) * h.bits;
      if (h.bits > 8) {
        const uint32_t value = number(bytes, row + bit / 8, h.bits / 8);
        for (size_t c = 0; c < 3; ++c) target[c] = masked(value, h.masks[c]);
        continue;
      }
      const uint32_t index = bytes[row + bit / 8] >> (8 - h.bits - bit % 8) & ((1u << h.bits) - 1);
      if (index >= h.colors)
        return "color " + std::to_string(index) + " is not in the palette; the number of its colors is " +
               std::to_string(h.colors);
      const size_t color = h.palette + size_t{index} * h.color_bytes;
      for (size_t c = 0; c < 3; ++c)
        target[c] = bytes[color + 2 - c];  // bytes are stored in the order blue, green, red
    }
  }
  return std::nullopt;
}

}  // namespace

const Codec kBmp{"BMP", [](Encoded bytes) { return begins_with(bytes, "BM"); }, read_size, decode};

}  // namespace backplane::cpu::image
