// SPDX-License-Identifier: Apache-2.0
#include "picture.h"

#include <png.h>

#include <stdexcept>

Picture Picture::read_png(const std::string& path) {
  constexpr unsigned kMaxSide = 16384;  // pixels; the file's header may state any size, and memory is limited
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto fail = [&](const std::string& why) {
    png_image_free(&image);
    throw std::runtime_error(path + ": " + why);
  };
  if (!png_image_begin_read_from_file(&image, path.c_str())) fail(image.message);
  if (image.width > kMaxSide || image.height > kMaxSide)
    fail(std::to_string(image.width) + "x" + std::to_string(image.height) + " pixels; at most " +
         std::to_string(kMaxSide) + " per side are supported");
  image.format = PNG_FORMAT_RGB;
  Picture picture;
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  picture.rgb.resize(PNG_IMAGE_SIZE(image));
  const png_color white{255, 255, 255};
  if (!png_image_finish_read(&image, &white, picture.rgb.data(), 0, nullptr)) fail(image.message);
  return picture;
}
