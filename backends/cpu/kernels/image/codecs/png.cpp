// SPDX-License-Identifier: Apache-2.0
// PNG through libpng's simplified interface. Drops the alpha channel.
#include <png.h>

#include <vector>

#include "kernels/image/codecs/codec.h"

namespace backplane::cpu::image {

namespace {

// A png_image that frees libpng's memory for it.
struct Image : png_image {
  Image() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~Image() { png_image_free(this); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
};

Problem read_size(Encoded bytes, Size* size) {
  Image image;
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) return std::string(image.message);
  *size = {image.width, image.height};
  return std::nullopt;
}

Problem decode(Encoded bytes, const Size& size, uint8_t* rgb) {
  Image image;
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) return std::string(image.message);
  const bool alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  image.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  const int64_t pixels = size.width * size.height;
  std::vector<uint8_t> rgba(alpha ? static_cast<size_t>(pixels) * 4 : 0);
  if (!png_image_finish_read(&image, nullptr, alpha ? rgba.data() : rgb, 0, nullptr)) return std::string(image.message);
  for (int64_t i = 0; alpha && i < pixels; ++i)
    for (int64_t c = 0; c < 3; ++c) rgb[i * 3 + c] = rgba[static_cast<size_t>(i * 4 + c)];
  return std::nullopt;
}

}  // namespace

const Codec kPng{"PNG", [](Encoded bytes) { return begins_with(bytes, "\x89PNG\r\n\x1a\n"); }, read_size, decode, 4};

}  // namespace backplane::cpu::image
