// SPDX-License-Identifier: Apache-2.0
// PNM images: bitmaps, graymaps and pixmaps, as text (P1 to P3) or binary (P4 to P6).
#include "kernels/image/codecs/codec.h"

namespace backplane::cpu::image {

namespace {

struct Header {
  Size size;
  int kind = 0;         // the digit after P: 1 to 6
  int64_t largest = 1;  // the sample value for full brightness
  size_t end = 0;       // offset of the samples
};

bool is_space(uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Returns the decimal number after white space and comments, or -1 if there is none or it has too many digits.
int64_t next_number(Encoded bytes, size_t* at) {
  while (*at < bytes.size() && (is_space(bytes[*at]) || bytes[*at] == '#')) {
    if (bytes[*at] == '#')
      while (*at < bytes.size() && bytes[*at] != '\n') ++*at;
    else
      ++*at;
  }
  int64_t value = 0;
  const size_t first = *at;
  for (; *at < bytes.size() && bytes[*at] >= '0' && bytes[*at] <= '9'; ++*at) {
    value = value * 10 + (bytes[*at] - '0');
    if (*at - first > 9) return -1;
  }
  return *at == first ? -1 : value;
}

Problem read_header(Encoded bytes, Header* h) {
  h->kind = bytes[1] - '0';
  h->end = 2;
  h->size.width = next_number(bytes, &h->end);
  h->size.height = next_number(bytes, &h->end);
  if (h->kind != 1 && h->kind != 4) h->largest = next_number(bytes, &h->end);
  if (h->size.width < 0 || h->size.height < 0) return "its width or height is missing or has more than 10 digits";
  if (h->largest < 1 || h->largest > 65535) return "its largest sample value is not a number from 1 to 65535";
  if (h->kind >= 4) ++h->end;  // one white-space character precedes binary samples
  return std::nullopt;
}

Problem read_size(Encoded bytes, Size* size) {
  Header h;
  Problem problem = read_header(bytes, &h);
  *size = h.size;
  return problem;
}

uint8_t scaled(int64_t sample, int64_t largest) {
  return static_cast<uint8_t>(sample >= largest ? 255 : (sample * 255 + largest / 2) / largest);
}

Problem decode(Encoded bytes, const Size& size, uint8_t* rgb, Stop& stop) {
  Header h;
  if (Problem problem = read_header(bytes, &h)) return problem;
  const bool text = h.kind <= 3, bitmap = h.kind == 1 || h.kind == 4;
  const int64_t channels = h.kind % 3 == 0 ? 3 : 1;
  const size_t width = h.largest > 255 ? 2 : 1;  // bytes per binary sample
  const int64_t row_bytes = bitmap ? (size.width + 7) / 8 : size.width * channels * static_cast<int64_t>(width);
  if (!text && (h.end > bytes.size() || static_cast<uint64_t>(row_bytes * size.height) > bytes.size() - h.end))
    return "the file ends within its pixels";
  size_t at = h.end;
  for (int64_t y = 0; y < size.height; ++y) {
    stop.check(16 * size.width);
    for (int64_t i = 0; i < size.width * channels; ++i) {
      int64_t sample;
      if (h.kind == 1) {  // digits may follow each other without white space
        while (at < bytes.size() && is_space(bytes[at])) ++at;
        sample = at < bytes.size() ? bytes[at++] - '0' : -1;
      } else if (text) {
        sample = next_number(bytes, &at);
      } else if (bitmap) {
        sample = bytes[h.end + static_cast<size_t>(y * row_bytes + i / 8)] >> (7 - i % 8) & 1;
      } else {
        sample = bytes[at++];
        if (width == 2) sample = sample << 8 | bytes[at++];
      }
      if (sample < 0) return "a sample is missing or not a number";
      const uint8_t value = bitmap ? (sample == 0 ? 255 : 0) : scaled(sample, h.largest);
      uint8_t* target = rgb + (y * size.width * channels + i) * (3 / channels);
      for (int64_t c = 0; c < 3 / channels; ++c) target[c] = value;
    }
  }
  return std::nullopt;
}

bool matches(Encoded bytes) {
  return bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' && is_space(bytes[2]);
}

}  // namespace

const Codec kPnm{"PNM", matches, read_size, decode};

}  // namespace backplane::cpu::image
