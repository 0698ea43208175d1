// SPDX-License-Identifier: Apache-2.0
// TIFF through libtiff: the first image of a file, with any compression and sample layout that libtiff converts to
// 8-bit RGBA. Drops the alpha channel.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <vector>

#include "image_libraries.h"
#include "kernels/image/codecs/codec.h"
#include "kernels/image/codecs/library.h"

namespace backplane::cpu::image {

namespace {

class Tiff : public Library {
 public:
  Tiff() : Library(BACKPLANE_TIFF_LIBRARY) {}
  // NOLINTBEGIN(readability-identifier-naming): the names are the library's.
  IMAGE_FUNCTION(TIFFClientOpenExt);
  IMAGE_FUNCTION(TIFFClose);
  IMAGE_FUNCTION(TIFFGetField);
  IMAGE_FUNCTION(TIFFIsTiled);
  IMAGE_FUNCTION(TIFFOpenOptionsAlloc);
  IMAGE_FUNCTION(TIFFOpenOptionsFree);
  IMAGE_FUNCTION(TIFFOpenOptionsSetErrorHandlerExtR);
  IMAGE_FUNCTION(TIFFOpenOptionsSetMaxSingleMemAlloc);
  IMAGE_FUNCTION(TIFFOpenOptionsSetWarningHandlerExtR);
  IMAGE_FUNCTION(TIFFReadRGBAImageOriented);
  // NOLINTEND(readability-identifier-naming)
};

const Tiff& library() {
  static const Tiff kOpened;
  return kOpened;
}

// A strip is checked to be at most as large as the image, and a tile is not much larger.
constexpr int64_t kReadWork = int64_t{1} << 18;
constexpr int64_t kMaxTile = int64_t{1} << 20;  // pixels by which a tile may exceed the image

struct Source {
  Encoded bytes;
  uint64_t position = 0;
  std::string message;
  Stop* stop = nullptr;
};

// libtiff reads each strip or tile when it decodes it.
tmsize_t read(thandle_t self, void* buffer, tmsize_t count) {
  auto& source = *static_cast<Source*>(self);
  if (source.stop != nullptr && !source.stop->spend(kReadWork)) return 0;
  if (count <= 0 || source.position >= source.bytes.size()) return 0;
  const auto n = std::min<uint64_t>(static_cast<uint64_t>(count), source.bytes.size() - source.position);
  std::memcpy(buffer, source.bytes.data() + source.position, n);
  source.position += n;
  return static_cast<tmsize_t>(n);
}

toff_t seek(thandle_t self, toff_t offset, int whence) {
  auto& source = *static_cast<Source*>(self);
  const uint64_t base = whence == SEEK_CUR ? source.position : whence == SEEK_END ? source.bytes.size() : 0;
  return source.position = base + offset;
}

int keep_message(TIFF*, void* self, const char*, const char* format, va_list arguments) {
  auto& source = *static_cast<Source*>(self);
  char text[256];
  if (source.message.empty() && std::vsnprintf(text, sizeof(text), format, arguments) > 0) source.message = text;
  return 1;
}

class File {
 public:
  explicit File(Encoded bytes, Stop* stop = nullptr) : source_{bytes, 0, {}, stop} {
    TIFFOpenOptions* options = library().TIFFOpenOptionsAlloc();
    if (options == nullptr) return;
    library().TIFFOpenOptionsSetMaxSingleMemAlloc(options, tmsize_t{1} << 30);
    library().TIFFOpenOptionsSetErrorHandlerExtR(options, keep_message, &source_);
    library().TIFFOpenOptionsSetWarningHandlerExtR(
        options, [](TIFF*, void*, const char*, const char*, va_list) { return 1; }, nullptr);
    // In the mode, "m" disables memory mapping.
    tiff_ = library().TIFFClientOpenExt(
        "image", "rm", &source_, read, [](thandle_t, void*, tmsize_t) { return tmsize_t{0}; }, seek,
        [](thandle_t) { return 0; },
        [](thandle_t self) { return static_cast<toff_t>(static_cast<Source*>(self)->bytes.size()); }, nullptr, nullptr,
        options);
    library().TIFFOpenOptionsFree(options);
  }
  ~File() {
    if (tiff_ != nullptr) library().TIFFClose(tiff_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  TIFF* get() { return tiff_; }
  std::string message() const { return source_.message.empty() ? "its data are damaged" : source_.message; }

 private:
  Source source_;
  TIFF* tiff_ = nullptr;
};

Problem read_size(Encoded bytes, Size* size) {
  File file(bytes);
  uint32_t width = 0, height = 0;
  if (file.get() == nullptr || !library().TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !library().TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &height))
    return file.message();
  *size = {width, height};
  return std::nullopt;
}

Problem decode(Encoded bytes, const Size& size, uint8_t* rgb, Stop& stop) {
  File file(bytes, &stop);
  if (file.get() == nullptr) return file.message();
  const int64_t pixels = size.width * size.height;
  uint32_t width = 0, height = 0;
  if (library().TIFFIsTiled(file.get()) && library().TIFFGetField(file.get(), TIFFTAG_TILEWIDTH, &width) &&
      library().TIFFGetField(file.get(), TIFFTAG_TILELENGTH, &height) &&
      uint64_t{width} * height > static_cast<uint64_t>(pixels + kMaxTile))
    return "its tiles of " + std::to_string(width) + "×" + std::to_string(height) + " pixels are larger than the image";
  std::vector<uint32_t> raster(static_cast<size_t>(pixels));
  if (!library().TIFFReadRGBAImageOriented(file.get(), static_cast<uint32_t>(size.width),
                                           static_cast<uint32_t>(size.height), raster.data(), ORIENTATION_TOPLEFT, 1)) {
    stop.rethrow();
    return file.message();
  }
  for (int64_t i = 0; i < pixels; ++i) {
    const uint32_t pixel = raster[static_cast<size_t>(i)];
    rgb[i * 3] = static_cast<uint8_t>(TIFFGetR(pixel));
    rgb[i * 3 + 1] = static_cast<uint8_t>(TIFFGetG(pixel));
    rgb[i * 3 + 2] = static_cast<uint8_t>(TIFFGetB(pixel));
  }
  return std::nullopt;
}

bool matches(Encoded bytes) {
  using namespace std::string_view_literals;
  return begins_with(bytes, "II*\0"sv) || begins_with(bytes, "MM\0*"sv) || begins_with(bytes, "II+\0"sv) ||
         begins_with(bytes, "MM\0+"sv);
}

const Problem& open() {
  return library().problem();
}

}  // namespace

const Codec kTiff{"TIFF", matches, read_size, decode, 4, open};

}  // namespace backplane::cpu::image
