// SPDX-License-Identifier: Apache-2.0
// PNG through libpng's progressive reader. It receives only the chunks that determine pixels, and no image data beyond
// the last row is decompressed, so the work follows from the sizes of the file and the image. Drops the alpha channel.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <string>
#include <string_view>

#include "image_libraries.h"
#include "kernels/image/codecs/codec.h"
#include "kernels/image/codecs/library.h"

namespace backplane::cpu::image {

namespace {

class Png : public Library {
 public:
  Png() : Library(BACKPLANE_PNG_LIBRARY) {}
  IMAGE_FUNCTION(png_create_info_struct);
  IMAGE_FUNCTION(png_create_read_struct);
  IMAGE_FUNCTION(png_destroy_read_struct);
  IMAGE_FUNCTION(png_error);
  IMAGE_FUNCTION(png_get_bit_depth);
  IMAGE_FUNCTION(png_get_color_type);
  IMAGE_FUNCTION(png_get_error_ptr);
  IMAGE_FUNCTION(png_get_image_height);
  IMAGE_FUNCTION(png_get_image_width);
  IMAGE_FUNCTION(png_get_interlace_type);
  IMAGE_FUNCTION(png_get_progressive_ptr);
  IMAGE_FUNCTION(png_get_rowbytes);
  IMAGE_FUNCTION(png_longjmp);
  IMAGE_FUNCTION(png_process_data);
  IMAGE_FUNCTION(png_progressive_combine_row);
  IMAGE_FUNCTION(png_read_update_info);
  IMAGE_FUNCTION(png_set_alpha_mode_fixed);
  IMAGE_FUNCTION(png_set_benign_errors);
  IMAGE_FUNCTION(png_set_expand);
  IMAGE_FUNCTION(png_set_gray_to_rgb);
  IMAGE_FUNCTION(png_set_interlace_handling);
  IMAGE_FUNCTION(png_set_longjmp_fn);
  IMAGE_FUNCTION(png_set_progressive_read_fn);
  IMAGE_FUNCTION(png_set_scale_16);
  IMAGE_FUNCTION(png_set_strip_alpha);
};

const Png& library() {
  static const Png kOpened;
  return kOpened;
}

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";

// ---- Chunks: 4 bytes with the size of the data, 4 with the type, the data, 4 with a checksum

constexpr size_t kHead = 8, kAround = 12;  // bytes before the data, and in addition to the data

uint32_t number(Encoded bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 | bytes[at + 3];
}

std::string_view type_of(Encoded chunk) {
  return {reinterpret_cast<const char*>(chunk.data()) + 4, 4};
}

// Returns the chunk at the beginning of `rest`, or an empty one if it is not complete.
Encoded first_chunk(Encoded rest) {
  if (rest.size() < kAround || rest.size() - kAround < number(rest, 0)) return {};
  return rest.first(kAround + number(rest, 0));
}

Problem read_size(Encoded bytes, Size* size) {
  const Encoded header = first_chunk(bytes.subspan(kSignature.size()));
  if (header.size() != kAround + 13 || type_of(header) != "IHDR") return "the file does not begin with its header";
  *size = {number(header, kHead), number(header, kHead + 4)};
  return std::nullopt;
}

// The chunks that determine the colors of pixels, in addition to IHDR and IDAT.
constexpr std::string_view kUsed[] = {"PLTE", "tRNS", "gAMA", "cHRM", "sRGB", "iCCP", "sBIT"};

bool is_critical(std::string_view type) {
  return (type[0] & 0x20) == 0;
}

// ---- Reading. libpng reports errors by longjmp, which skips destructors. Functions that call setjmp have no local
// variables with destructors, and the callbacks throw nothing.

class Reader {
 public:
  Reader(const Size& size, uint8_t* rgb) : size_(size), rgb_(rgb) {
    png_ = library().png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, [](png_structp, png_const_charp) {});
    if (png_ == nullptr) return;
    info_ = library().png_create_info_struct(png_);
    library().png_set_benign_errors(png_, 1);
    library().png_set_progressive_read_fn(png_, this, on_info, on_row, nullptr);
  }
  ~Reader() { library().png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Returns false after an error. `bytes` follow those of the last call.
  bool feed(Encoded bytes) {
    if (info_ == nullptr) return false;
    if (setjmp(*library().png_set_longjmp_fn(png_, std::longjmp, sizeof(std::jmp_buf))) != 0) return false;
    library().png_process_data(png_, info_, const_cast<uint8_t*>(bytes.data()), bytes.size());
    return true;
  }

  bool done() const { return done_; }  // all rows were read
  std::string message() const { return message_[0] == '\0' ? "there is not enough memory" : message_.data(); }

 private:
  static Reader& reader(png_structp png) { return *static_cast<Reader*>(library().png_get_progressive_ptr(png)); }

  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    auto& text = static_cast<Reader*>(library().png_get_error_ptr(png))->message_;
    size_t size = 0;
    for (; message[size] != '\0' && size + 1 < text.size(); ++size) text[size] = message[size];
    text[size] = '\0';
    library().png_longjmp(png, 1);
    __builtin_unreachable();
  }

  // Requests RGB with 8 bits per sample, encoded as sRGB. Samples of 16 bits are linear unless the file says otherwise.
  static void on_info(png_structp png, png_infop info) {
    const Reader& self = reader(png);
    if (library().png_get_image_width(png, info) != self.size_.width ||
        library().png_get_image_height(png, info) != self.size_.height)
      library().png_error(png, "it has two headers");
    const bool deep = library().png_get_bit_depth(png, info) == 16;
    library().png_set_expand(png);
    if ((library().png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) == 0) library().png_set_gray_to_rgb(png);
    library().png_set_alpha_mode_fixed(png, PNG_ALPHA_PNG, deep ? PNG_GAMMA_LINEAR : PNG_DEFAULT_sRGB);
    if (deep) library().png_set_scale_16(png);
    library().png_set_strip_alpha(png);
    library().png_set_alpha_mode_fixed(png, PNG_ALPHA_PNG, PNG_DEFAULT_sRGB);
    library().png_set_interlace_handling(png);
    library().png_read_update_info(png, info);
    if (library().png_get_rowbytes(png, info) != static_cast<size_t>(self.size_.width) * 3)
      library().png_error(png, "its format is not supported");
  }

  // `row` is null where this pass of an interlaced image has no pixels.
  static void on_row(png_structp png, png_bytep row, png_uint_32 y, int pass) {
    Reader& self = reader(png);
    if (row != nullptr) library().png_progressive_combine_row(png, self.rgb_ + int64_t{y} * self.size_.width * 3, row);
    const int passes = library().png_get_interlace_type(png, self.info_) == PNG_INTERLACE_NONE ? 1 : 7;
    self.done_ = pass == passes - 1 && int64_t{y} + 1 == self.size_.height;
  }

  const Size size_;
  uint8_t* const rgb_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  bool done_ = false;
  std::array<char, 200> message_{};
};

Problem decode(Encoded bytes, const Size& size, uint8_t* rgb, Stop& stop) {
  // Bytes passed to libpng between two checks of `stop`. They decompress to at most about a thousand times as many.
  constexpr size_t kPiece = size_t{1} << 11;
  constexpr int64_t kWork = int64_t{1} << 18;
  Reader reader(size, rgb);
  if (!reader.feed(bytes.first(kSignature.size()))) return reader.message();
  Encoded rest = bytes.subspan(kSignature.size());
  bool has_data = false;
  while (!reader.done()) {
    stop.check(1);
    Encoded chunk = first_chunk(rest);
    if (chunk.empty()) return "the file ends before its last row";
    const std::string_view type = type_of(chunk);
    rest = rest.subspan(chunk.size());
    if (type == "IDAT") {
      has_data = true;
      for (; !chunk.empty(); chunk = chunk.subspan(std::min(kPiece, chunk.size()))) {
        stop.check(kWork);
        if (!reader.feed(chunk.first(std::min(kPiece, chunk.size())))) return reader.message();
      }
    } else if (has_data) {
      return "its image data end before its last row";
    } else if (type == "IHDR" || std::ranges::find(kUsed, type) != std::end(kUsed)) {
      stop.check(kWork);
      if (!reader.feed(chunk)) return reader.message();  // in one piece, so that libpng does not copy it
    } else if (is_critical(type)) {
      return "it needs chunk '" + std::string(type) + "', which is not supported";
    }
  }
  return std::nullopt;
}

const Problem& open() {
  return library().problem();
}

}  // namespace

const Codec kPng{"PNG", [](Encoded bytes) { return begins_with(bytes, kSignature); }, read_size, decode, 0, open};

}  // namespace backplane::cpu::image
