// SPDX-License-Identifier: Apache-2.0
// WebP through libwebp: still images only. Drops the alpha channel.
#include <webp/decode.h>

#include "image_libraries.h"
#include "kernels/image/codecs/codec.h"
#include "kernels/image/codecs/library.h"

namespace backplane::cpu::image {

namespace {

class Webp : public Library {
 public:
  Webp() : Library(BACKPLANE_WEBP_LIBRARY) {}
  // NOLINTBEGIN(readability-identifier-naming): the names are the library's.
  IMAGE_FUNCTION(WebPDecodeRGBInto);
  IMAGE_FUNCTION(WebPGetFeaturesInternal);
  // NOLINTEND(readability-identifier-naming)
};

const Webp& library() {
  static const Webp kOpened;
  return kOpened;
}

Problem read_size(Encoded bytes, Size* size) {
  WebPBitstreamFeatures features;
  if (library().WebPGetFeaturesInternal(bytes.data(), bytes.size(), &features, WEBP_DECODER_ABI_VERSION) !=
      VP8_STATUS_OK)
    return "the header is damaged";
  if (features.has_animation) return "animations are not supported";
  *size = {features.width, features.height};
  return std::nullopt;
}

Problem decode(Encoded bytes, const Size& size, uint8_t* rgb, Stop&) {
  const auto capacity = static_cast<size_t>(size.width * size.height * 3);
  const auto stride = static_cast<int>(size.width * 3);
  if (library().WebPDecodeRGBInto(bytes.data(), bytes.size(), rgb, capacity, stride) == nullptr)
    return "its data are damaged";
  return std::nullopt;
}

bool matches(Encoded bytes) {
  return begins_with(bytes, "RIFF") && begins_with(bytes, "WEBP", 8);
}

const Problem& open() {
  return library().problem();
}

}  // namespace

const Codec kWebp{"WebP", matches, read_size, decode, 4, open};  // a lossless image is held as ARGB

}  // namespace backplane::cpu::image
