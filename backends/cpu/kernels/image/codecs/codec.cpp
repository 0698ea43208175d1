// SPDX-License-Identifier: Apache-2.0
#include "kernels/image/codecs/codec.h"

#include "image_libraries.h"

namespace backplane::cpu::image {

std::span<const Codec* const> codecs() {
  static constexpr const Codec* kCodecs[] = {
      &kBmp,
#ifdef BACKPLANE_JPEG_LIBRARY
      &kJpeg,
#endif
#ifdef BACKPLANE_JPEG2000_LIBRARY
      &kJpeg2000,
#endif
#ifdef BACKPLANE_PNG_LIBRARY
      &kPng,
#endif
      &kPnm,
#ifdef BACKPLANE_TIFF_LIBRARY
      &kTiff,
#endif
#ifdef BACKPLANE_WEBP_LIBRARY
      &kWebp,
#endif
  };
  return kCodecs;
}

}  // namespace backplane::cpu::image
