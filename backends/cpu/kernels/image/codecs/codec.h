// SPDX-License-Identifier: Apache-2.0
// The image formats that ImageDecoder reads. Encoded images are untrusted: ImageDecoder checks the size of an image
// before it is decoded, and a damaged image causes an error message, never a crash.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace backplane::cpu::image {

using Encoded = std::span<const uint8_t>;
using Problem = std::optional<std::string>;  // an error message, or nullopt on success

struct Size {
  int64_t width = 0, height = 0;
};

// Larger images are refused, because a file of a few bytes can claim to contain terabytes.
inline constexpr int64_t kMaxPixels = int64_t{1} << 27;

// Ends decoding early, for example after a deadline.
class Stop {
 public:
  // `spend` takes an amount of work, such as a number of pixels or bytes, and throws if decoding must end.
  explicit Stop(std::function<void(int64_t)> spend) : spend_(std::move(spend)) {}
  void check(int64_t work) { spend_(work); }
  // For callbacks of C libraries, through which no exception may pass: returns false where `check` would throw, and in
  // every later call.
  bool spend(int64_t work) noexcept {
    if (reason_) return false;
    try {
      spend_(work);
    } catch (...) {
      reason_ = std::current_exception();
    }
    return !reason_;
  }
  // Rethrows the exception that made `spend` return false, if there was one.
  void rethrow() const {
    if (reason_) std::rethrow_exception(reason_);
  }

 private:
  std::function<void(int64_t)> spend_;
  std::exception_ptr reason_;
};

struct Codec {
  const char* name;
  bool (*matches)(Encoded bytes);
  // Reads only the header.
  Problem (*size)(Encoded bytes, Size* size);
  // `size` is the one that `size()` reads from the header. `rgb` has room for 3 bytes per pixel, top row first.
  // Polls `stop` at least once for each row, strip or tile where the library permits.
  Problem (*decode)(Encoded bytes, const Size& size, uint8_t* rgb, Stop& stop);
  int64_t pixel_bytes = 0;  // memory that `decode` needs for each pixel in addition to `rgb`
  // Opens the library of the format, and returns why it cannot be used, or nullopt. Must be called before `size`. The
  // pointer is null if the format needs no library.
  const Problem& (*open)() = nullptr;
};

extern const Codec kBmp, kJpeg, kJpeg2000, kPng, kPnm, kTiff, kWebp;

// The codecs of this build. The option BACKPLANE_CPU_IMAGES of CMake lists those that need a library.
std::span<const Codec* const> codecs();

inline bool begins_with(Encoded bytes, std::string_view signature, size_t at = 0) {
  if (bytes.size() < at + signature.size()) return false;
  for (size_t i = 0; i < signature.size(); ++i)
    if (bytes[at + i] != static_cast<uint8_t>(signature[i])) return false;
  return true;
}

}  // namespace backplane::cpu::image
