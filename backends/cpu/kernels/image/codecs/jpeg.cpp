// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg, which reports errors by longjmp. The jump skips destructors, so functions that call setjmp
// have no local variables with destructors.
#include <csetjmp>
#include <cstdio>
#include <vector>

#include "image_libraries.h"
#include "kernels/image/codecs/codec.h"
#include "kernels/image/codecs/library.h"
// Included after <cstdio>, which it needs.
#include <jpeglib.h>

namespace backplane::cpu::image {

namespace {

class Jpeg : public Library {
 public:
  Jpeg() : Library(BACKPLANE_JPEG_LIBRARY) {}
  // NOLINTBEGIN(readability-identifier-naming): the names are the library's.
  IMAGE_FUNCTION(jpeg_CreateDecompress);
  IMAGE_FUNCTION(jpeg_destroy_decompress);
  IMAGE_FUNCTION(jpeg_finish_decompress);
  IMAGE_FUNCTION(jpeg_has_multiple_scans);
  IMAGE_FUNCTION(jpeg_mem_src);
  IMAGE_FUNCTION(jpeg_read_header);
  IMAGE_FUNCTION(jpeg_read_scanlines);
  IMAGE_FUNCTION(jpeg_start_decompress);
  IMAGE_FUNCTION(jpeg_std_error);
  // NOLINTEND(readability-identifier-naming)
};

const Jpeg& library() {
  static const Jpeg kOpened;
  return kOpened;
}

struct Session {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
  jpeg_progress_mgr progress;
  Stop* stop;
};

// A file of a few hundred kilobytes can have tens of thousands of scans, each of which visits the whole image.
constexpr int kMaxScans = 500;

void fail(j_common_ptr jpeg) {
  auto* session = static_cast<Session*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, session->message);
  std::longjmp(session->failed, 1);
}

// Called for each row of blocks of each scan, and for each row of pixels.
void check(j_common_ptr jpeg) {
  auto* session = static_cast<Session*>(jpeg->client_data);
  if (session->jpeg.input_scan_number > kMaxScans) {
    std::snprintf(session->message, sizeof(session->message), "it has more than %d scans", kMaxScans);
    std::longjmp(session->failed, 1);
  }
  if (session->stop != nullptr && !session->stop->spend(8 * int64_t{session->jpeg.image_width}))
    std::longjmp(session->failed, 1);
}

void begin(Session& session, Encoded bytes) {
  session.jpeg.err = library().jpeg_std_error(&session.errors);
  session.errors.error_exit = fail;
  session.errors.output_message = [](j_common_ptr) {};
  session.jpeg.client_data = &session;
  library().jpeg_CreateDecompress(&session.jpeg, JPEG_LIB_VERSION, sizeof(session.jpeg));
  session.progress.progress_monitor = check;
  session.jpeg.progress = &session.progress;
  library().jpeg_mem_src(&session.jpeg, bytes.data(), static_cast<unsigned long>(bytes.size()));
}

Problem read_size(Encoded bytes, Size* size) {
  Session session{};
  if (setjmp(session.failed) != 0) {
    library().jpeg_destroy_decompress(&session.jpeg);
    return std::string(session.message);
  }
  begin(session, bytes);
  library().jpeg_read_header(&session.jpeg, TRUE);
  *size = {session.jpeg.image_width, session.jpeg.image_height};
  const bool has_scans = library().jpeg_has_multiple_scans(&session.jpeg) != 0;
  library().jpeg_destroy_decompress(&session.jpeg);
  // libjpeg then holds all coefficients, although a few bytes may encode them.
  if (has_scans && size->width != 0 && size->height > kMaxPixels / 2 / size->width)
    return "the image has several scans, and more than " + std::to_string(kMaxPixels / 2) + " pixels";
  return std::nullopt;
}

// Converts a row of inverted CMYK, the form that Adobe writes, to RGB.
void from_cmyk(const uint8_t* cmyk, uint8_t* rgb, int64_t width) {
  for (int64_t x = 0; x < width; ++x)
    for (int64_t c = 0; c < 3; ++c) rgb[x * 3 + c] = static_cast<uint8_t>(cmyk[x * 4 + c] * cmyk[x * 4 + 3] / 255);
}

// `row` is a buffer with four bytes per column, used for CMYK images.
bool read_rows(Session& session, Encoded bytes, const Size& size, uint8_t* rgb, uint8_t* row) {
  if (setjmp(session.failed) != 0) return false;
  begin(session, bytes);
  library().jpeg_read_header(&session.jpeg, TRUE);
  const bool four = session.jpeg.num_components == 4;
  session.jpeg.out_color_space = four ? JCS_CMYK : JCS_RGB;
  library().jpeg_start_decompress(&session.jpeg);
  while (session.jpeg.output_scanline < session.jpeg.output_height) {
    uint8_t* target = rgb + static_cast<int64_t>(session.jpeg.output_scanline) * size.width * 3;
    JSAMPROW rows[] = {four ? row : target};
    library().jpeg_read_scanlines(&session.jpeg, rows, 1);
    if (four) from_cmyk(row, target, size.width);
  }
  library().jpeg_finish_decompress(&session.jpeg);
  return true;
}

Problem decode(Encoded bytes, const Size& size, uint8_t* rgb, Stop& stop) {
  Session session{};
  session.stop = &stop;
  std::vector<uint8_t> row(static_cast<size_t>(size.width) * 4);
  const bool done = read_rows(session, bytes, size, rgb, row.data());
  library().jpeg_destroy_decompress(&session.jpeg);
  stop.rethrow();
  if (done) return std::nullopt;
  return std::string(session.message);
}

const Problem& open() {
  return library().problem();
}

}  // namespace

// For each pixel of a progressive image, libjpeg holds up to four coefficients (one per component) of 16 bits.
const Codec kJpeg{"JPEG", [](Encoded bytes) { return begins_with(bytes, "\xff\xd8\xff"); }, read_size, decode, 8, open};

}  // namespace backplane::cpu::image
