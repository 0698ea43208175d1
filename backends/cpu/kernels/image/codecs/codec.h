// SPDX-License-Identifier: Apache-2.0
// The image formats that ImageDecoder reads. Encoded images are untrusted: ImageDecoder checks the size of an image
// before it is decoded, and a damaged image causes an error message, never a crash.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>

#include "runtime/watch.h"

namespace backplane::cpu::image {

using Encoded = std::span<const uint8_t>;
using Problem = std::optional<std::string>;  // an error message, or nullopt on success

struct Size {
  int64_t width = 0, height = 0;
};

// Larger images are refused, because a file of a few bytes can claim to contain terabytes.
inline constexpr int64_t kMaxPixels = int64_t{1} << 27;

struct Codec {
  const char* name;
  bool (*matches)(Encoded bytes);
  // Reads only the header.
  Problem (*size)(Encoded bytes, Size* size);
  // `size` is the one that `size()` reads from the header. `rgb` has room for 3 bytes per pixel, top row first.
  Problem (*decode)(Encoded bytes, const Size& size, uint8_t* rgb);
  int64_t pixel_bytes = 0;  // memory that `decode` needs for each pixel in addition to `rgb`
};

extern const Codec kBmp, kJpeg, kJpeg2000, kPng, kPnm, kTiff, kWebp;

// Checks the watch in callbacks of C libraries, through which no exception may pass.
class Stop {
 public:
  // As Pace::spend, but returns false where that throws, and in every later call.
  bool spend(int64_t work) noexcept {
    if (reason_) return false;
    try {
      pace_.spend(work);
    } catch (...) {
      reason_ = std::current_exception();
    }
    return !reason_;
  }
  // Throws what the watch threw, if it did.
  void rethrow() const {
    if (reason_) std::rethrow_exception(reason_);
  }

 private:
  Pace pace_;
  std::exception_ptr reason_;
};

inline bool begins_with(Encoded bytes, std::string_view signature, size_t at = 0) {
  if (bytes.size() < at + signature.size()) return false;
  for (size_t i = 0; i < signature.size(); ++i)
    if (bytes[at + i] != static_cast<uint8_t>(signature[i])) return false;
  return true;
}

}  // namespace backplane::cpu::image
