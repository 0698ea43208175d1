// SPDX-License-Identifier: Apache-2.0
// JPEG 2000 through OpenJPEG: JP2 files and bare codestreams with grayscale, RGB and YCC images.
#include <openjpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "image_libraries.h"
#include "kernels/image/codecs/codec.h"
#include "kernels/image/codecs/library.h"

namespace backplane::cpu::image {

namespace {

class OpenJpeg : public Library {
 public:
  OpenJpeg() : Library(BACKPLANE_JPEG2000_LIBRARY) {}
  IMAGE_FUNCTION(opj_create_decompress);
  IMAGE_FUNCTION(opj_decode);
  IMAGE_FUNCTION(opj_destroy_codec);
  IMAGE_FUNCTION(opj_end_decompress);
  IMAGE_FUNCTION(opj_image_destroy);
  IMAGE_FUNCTION(opj_read_header);
  IMAGE_FUNCTION(opj_set_default_decoder_parameters);
  IMAGE_FUNCTION(opj_set_error_handler);
  IMAGE_FUNCTION(opj_setup_decoder);
  IMAGE_FUNCTION(opj_stream_create);
  IMAGE_FUNCTION(opj_stream_destroy);
  IMAGE_FUNCTION(opj_stream_set_read_function);
  IMAGE_FUNCTION(opj_stream_set_seek_function);
  IMAGE_FUNCTION(opj_stream_set_skip_function);
  IMAGE_FUNCTION(opj_stream_set_user_data);
  IMAGE_FUNCTION(opj_stream_set_user_data_length);
};

const OpenJpeg& library() {
  static const OpenJpeg kOpened;
  return kOpened;
}

constexpr uint32_t kMaxComponents = 4;       // RGB and alpha; each is decoded to 32 bits per pixel
constexpr size_t kBuffer = size_t{1} << 16;  // bytes that OpenJPEG reads at a time
constexpr int64_t kReadWork = int64_t{1} << 18;
constexpr std::string_view kBoxed("\0\0\0\x0cjP  \r\n\x87\n", 12);
constexpr std::string_view kBare("\xff\x4f\xff\x51", 4);

struct Source {
  Encoded bytes;
  size_t position = 0;
  Stop* stop = nullptr;
};

// ---- Limits on what OpenJPEG allocates before it decodes: even for a small file, some kilobytes for each component of
// each tile

uint32_t number(Encoded bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | bytes[at + i];
  return value;
}

// Returns the contents of the first box of a type among those in `bytes`, or nothing.
Encoded box(Encoded bytes, std::string_view type) {
  while (bytes.size() >= 8) {
    size_t head = 8;
    uint64_t size = number(bytes, 0, 4);
    if (size == 0) size = bytes.size();  // the last box
    if (size == 1 && bytes.size() >= 16) {
      size = uint64_t{number(bytes, 8, 4)} << 32 | number(bytes, 12, 4);
      head = 16;
    }
    if (size < head) return {};
    const Encoded all = bytes.first(static_cast<size_t>(std::min<uint64_t>(size, bytes.size())));
    if (begins_with(all, type, 4)) return all.subspan(head);
    bytes = bytes.subspan(all.size());
  }
  return {};
}

// Returns the number of packets that a tile of these extents has for one component, by a COD or COC marker. `style`
// begins with the number of decomposition levels.
double packets_of(Encoded style, bool has_precincts, double layers, double width, double height) {
  double packets = 0;
  const size_t levels = style[0];
  for (size_t r = 0; r <= levels; ++r) {
    const uint32_t precinct = has_precincts && 5 + r < style.size() ? style[5 + r] : 0xff;
    const double shrunk = std::ldexp(1.0, static_cast<int>(levels - r));
    packets +=
        std::ceil(width / shrunk / (1u << (precinct & 15))) * std::ceil(height / shrunk / (1u << (precinct >> 4)));
  }
  return packets * layers;
}

// Checks the number of packets, each of which has at least one byte in the file. OpenJPEG allocates memory for all
// packets.
Problem check_packets(Encoded stream, double tiles, double width, double height, double components) {
  double layers = 1;
  uint64_t part_end = 0;  // end of the tile-part whose header is read; 0 in the main header
  for (uint64_t at = 2; at + 4 <= stream.size();) {
    const uint32_t marker = number(stream, at, 2), length = number(stream, at + 2, 2);
    if (marker == 0xff90) {  // SOT
      if (at + 12 > stream.size()) return std::nullopt;
      const uint32_t part = number(stream, at + 6, 4);
      part_end = part == 0 ? stream.size() : at + part;
    } else if (marker == 0xff93) {  // SOD: the data of the part
      if (part_end <= at) return std::nullopt;
      at = part_end;
      continue;
    }
    const bool is_cod = marker == 0xff52, is_coc = marker == 0xff53;
    const size_t style = at + (is_cod ? 9 : 6);
    if ((is_cod || is_coc) && at + 2 + length <= stream.size() && style + 5 <= at + 2 + length) {
      if (is_cod) layers = number(stream, at + 6, 2);
      const bool has_precincts = (stream[at + (is_cod ? 4 : 5)] & 1) != 0;
      const double packets =
          (part_end == 0 ? tiles : 1) * (is_cod ? components : 1) *
          packets_of(stream.subspan(style, at + 2 + length - style), has_precincts, layers, width, height);
      if (packets > static_cast<double>(stream.size()) + 4096)
        return "it has " + std::to_string(static_cast<int64_t>(std::min(packets, 0x1p62))) +
               " packets, more than bytes";
    }
    at += 2 + std::max<uint32_t>(length, 2);
  }
  return std::nullopt;
}

// Checks the number of components, tiles and palette columns.
Problem check_counts(Encoded bytes) {
  constexpr uint64_t kTileHeader = 14;  // the bytes that each tile has in the file
  constexpr uint64_t kMinTile = 256;    // pixels of a tile
  if (!begins_with(bytes, kBare)) {
    if (const Encoded palette = box(box(bytes, "jp2h"), "pclr"); palette.size() > 2 && palette[2] > kMaxComponents)
      return "its palette has " + std::to_string(palette[2]) + " columns: at most " + std::to_string(kMaxComponents) +
             " are supported";
    bytes = box(bytes, "jp2c");
  }
  if (!begins_with(bytes, kBare) || bytes.size() < 42) return "the file ends within its header";
  uint64_t field[8];  // right, bottom, left and top of the image; width, height, left and top of the first tile
  for (size_t i = 0; i < 8; ++i) field[i] = number(bytes, 8 + 4 * i, 4);
  const uint32_t components = number(bytes, 40, 2);
  if (components > kMaxComponents)
    return "the image has " + std::to_string(components) + " components: at most " + std::to_string(kMaxComponents) +
           " are supported";
  if (field[0] <= field[2] || field[1] <= field[3] || field[4] == 0 || field[5] == 0 || field[0] <= field[6] ||
      field[1] <= field[7])
    return "the image has no pixels or no tiles";
  const uint64_t columns = (field[0] - field[6] + field[4] - 1) / field[4];
  const uint64_t rows = (field[1] - field[7] + field[5] - 1) / field[5];
  const uint64_t pixels = (field[0] - field[2]) * (field[1] - field[3]);
  const uint64_t most = 16 + std::min<uint64_t>(bytes.size() / kTileHeader, pixels / kMinTile);
  if (columns > most || rows > most || columns * rows > most)
    return "it has " + std::to_string(columns) + "×" + std::to_string(rows) + " tiles: at most " +
           std::to_string(most) + " are supported in a file of this size";
  return check_packets(bytes, static_cast<double>(columns * rows), static_cast<double>(std::min(field[4], field[0])),
                       static_cast<double>(std::min(field[5], field[1])), components);
}

OPJ_SIZE_T read(void* buffer, OPJ_SIZE_T count, void* self) {
  auto& source = *static_cast<Source*>(self);
  if (source.stop != nullptr && !source.stop->spend(kReadWork)) return static_cast<OPJ_SIZE_T>(-1);
  const size_t n = std::min<size_t>(count, source.bytes.size() - source.position);
  if (n == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(buffer, source.bytes.data() + source.position, n);
  source.position += n;
  return n;
}

OPJ_BOOL seek(OPJ_OFF_T position, void* self) {
  auto& source = *static_cast<Source*>(self);
  if (position < 0 || static_cast<uint64_t>(position) > source.bytes.size()) return OPJ_FALSE;
  source.position = static_cast<size_t>(position);
  return OPJ_TRUE;
}

OPJ_OFF_T skip(OPJ_OFF_T count, void* self) {
  auto& source = *static_cast<Source*>(self);
  if (count < 0 || static_cast<uint64_t>(count) > source.bytes.size() - source.position) return -1;
  source.position += static_cast<size_t>(count);
  return count;
}

// An open codestream. image() is null if the header could not be read.
class Stream {
 public:
  explicit Stream(Encoded bytes, Stop* stop = nullptr) : source_{bytes, 0, stop} {
    if (const Problem problem = check_counts(bytes)) {
      message_ = *problem;
      return;
    }
    codec_.reset(library().opj_create_decompress(begins_with(bytes, kBare) ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
    stream_.reset(library().opj_stream_create(kBuffer, OPJ_TRUE));
    if (!codec_ || !stream_) return;
    library().opj_stream_set_user_data(stream_.get(), &source_, nullptr);
    library().opj_stream_set_user_data_length(stream_.get(), bytes.size());
    library().opj_stream_set_read_function(stream_.get(), read);
    library().opj_stream_set_seek_function(stream_.get(), seek);
    library().opj_stream_set_skip_function(stream_.get(), skip);
    library().opj_set_error_handler(codec_.get(), keep_message, &message_);
    opj_dparameters_t parameters;
    library().opj_set_default_decoder_parameters(&parameters);
    opj_image_t* image = nullptr;
    if (library().opj_setup_decoder(codec_.get(), &parameters) &&
        library().opj_read_header(stream_.get(), codec_.get(), &image)) {
      image_.reset(image);
    } else if (image != nullptr) {
      library().opj_image_destroy(image);
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  opj_image_t* image() { return image_.get(); }
  bool decode() {
    return library().opj_decode(codec_.get(), stream_.get(), image_.get()) &&
           library().opj_end_decompress(codec_.get(), stream_.get());
  }
  std::string message() const { return message_.empty() ? "its data are damaged" : message_; }

 private:
  static void keep_message(const char* text, void* self) {
    auto& message = *static_cast<std::string*>(self);
    if (!message.empty()) return;  // later errors are consequences of the first
    message = text;
    while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
  }
  template <auto kDestroy>
  struct Deleter {
    void operator()(auto* object) const { kDestroy(object); }
  };
  Source source_;
  std::string message_;
  std::unique_ptr<opj_codec_t, Deleter<[](opj_codec_t* c) { library().opj_destroy_codec(c); }>> codec_;
  std::unique_ptr<opj_stream_t, Deleter<[](opj_stream_t* s) { library().opj_stream_destroy(s); }>> stream_;
  std::unique_ptr<opj_image_t, Deleter<[](opj_image_t* i) { library().opj_image_destroy(i); }>> image_;
};

Problem size_of(const opj_image_t& image, Size* size) {
  if (image.x1 <= image.x0 || image.y1 <= image.y0) return "the image has no pixels";
  *size = {int64_t{image.x1} - image.x0, int64_t{image.y1} - image.y0};
  return std::nullopt;
}

Problem read_size(Encoded bytes, Size* size) {
  Stream stream(bytes);
  if (stream.image() == nullptr) return stream.message();
  return size_of(*stream.image(), size);
}

// Returns a sample scaled to 8 bits. A component may have a lower resolution than the image.
int sample(const opj_image_comp_t& component, int64_t x, int64_t y) {
  const int64_t column = std::min<int64_t>(x / component.dx, int64_t{component.w} - 1);
  const int64_t row = std::min<int64_t>(y / component.dy, int64_t{component.h} - 1);
  int64_t value = component.data[row * component.w + column];
  if (component.sgnd) value += int64_t{1} << (component.prec - 1);
  value = component.prec > 8 ? value >> (component.prec - 8) : value << (8 - component.prec);
  return static_cast<int>(std::clamp<int64_t>(value, 0, 255));
}

uint8_t rounded(double value) {
  return static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
}

Problem decode(Encoded bytes, const Size& size, uint8_t* rgb, Stop& stop) {
  Stream stream(bytes, &stop);
  if (stream.image() == nullptr) {
    stop.rethrow();
    return stream.message();
  }
  const uint32_t components = stream.image()->numcomps;
  if (components == 0) return "the image has no components";
  if (!stream.decode()) {
    stop.rethrow();
    return stream.message();
  }
  const opj_image_t& image = *stream.image();
  const uint32_t used = components >= 3 ? 3 : 1;
  for (uint32_t c = 0; c < used; ++c) {
    const opj_image_comp_t& component = image.comps[c];
    if (component.data == nullptr || component.w == 0 || component.h == 0 || component.dx == 0 || component.dy == 0 ||
        component.prec == 0 || component.prec > 31)
      return "component " + std::to_string(c) + " is missing or has an unsupported format";
  }
  const bool ycc = used == 3 && image.color_space == OPJ_CLRSPC_SYCC;
  for (int64_t y = 0; y < size.height; ++y) {
    stop.check(16 * size.width);
    for (int64_t x = 0; x < size.width; ++x) {
      uint8_t* pixel = rgb + (y * size.width + x) * 3;
      int values[3];
      for (uint32_t c = 0; c < 3; ++c) values[c] = sample(image.comps[std::min(c, used - 1)], x, y);
      if (ycc) {
        const double luma = values[0], blue = values[1] - 128, red = values[2] - 128;
        pixel[0] = rounded(luma + 1.402 * red);
        pixel[1] = rounded(luma - 0.344136 * blue - 0.714136 * red);
        pixel[2] = rounded(luma + 1.772 * blue);
      } else {
        for (int c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(values[c]);
      }
    }
  }
  return std::nullopt;
}

bool matches(Encoded bytes) {
  return begins_with(bytes, kBoxed) || begins_with(bytes, kBare);
}

const Problem& open() {
  return library().problem();
}

}  // namespace

const Codec kJpeg2000{"JPEG 2000", matches, read_size, decode, kMaxComponents * sizeof(int32_t), open};

}  // namespace backplane::cpu::image
