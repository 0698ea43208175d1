// SPDX-License-Identifier: Apache-2.0
// ImageDecoder on small files that claim to need much work: the work follows from the sizes of the file and the image,
// and the deadline ends it. ONNX's own data and scripts/fuzz.sh test the results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/image/codecs/library.h"
#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

extern "C" void function_that_no_library_has();

namespace backplane::cpu::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::string big_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// Compresses bytes, followed by a number of megabytes of zeros. With more than one, the checksum is wrong.
std::string deflated(const std::string& bytes, int zero_megabytes = 0) {
  z_stream stream{};
  deflateInit(&stream, Z_BEST_COMPRESSION);
  std::string result;
  const auto add = [&](const std::string& more, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(more.data()));
    stream.avail_in = static_cast<uInt>(more.size());
    do {
      char buffer[1 << 12];
      stream.next_out = reinterpret_cast<Bytef*>(buffer);
      stream.avail_out = sizeof(buffer);
      deflate(&stream, flush);
      result.append(buffer, sizeof(buffer) - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  add(bytes, Z_FULL_FLUSH);
  if (zero_megabytes > 0) {
    const size_t size = result.size();
    add(std::string(1 << 20, '\0'), Z_FULL_FLUSH);
    const std::string megabyte = result.substr(size);
    for (int i = 1; i < zero_megabytes; ++i) result += megabyte;
  }
  add("", Z_FINISH);
  deflateEnd(&stream);
  return result;
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string both = type + data;
  return big_endian(data.size(), 4) + both +
         big_endian(crc32(0, reinterpret_cast<const Bytef*>(both.data()), static_cast<uInt>(both.size())), 4);
}

// `kind`: bit depth, color type, compression, filter and interlace methods.
std::string png(uint32_t width, uint32_t height, const std::string& kind, const std::string& chunks) {
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", big_endian(width, 4) + big_endian(height, 4) + kind) + chunks +
         chunk("IEND", "");
}

const std::string kRgb8("\x08\x02\0\0\0", 5);

Outcome decode(const std::string& file, uint64_t deadline = 0) {
  GraphBuilder b;
  const std::vector<int64_t> extents{static_cast<int64_t>(file.size())};
  b.input("x", BP_DTYPE_UINT8, extents).node("ImageDecoder", 20, {"x"}, {"y"}, BP_DTYPE_UINT8).output("y");
  Plugin plugin("1");
  return Compiled(plugin, b.graph()).run({{BP_DTYPE_UINT8, extents, file}}, deadline);
}

// ---- libraries of formats

bool is_mapped(const char* library) {
  std::ifstream maps("/proc/self/maps");
  return std::string(std::istreambuf_iterator<char>(maps), {}).find(library) != std::string::npos;
}

// In a process of its own, because other tests open libraries.
TEST(Libraries, AreOpenedByTheFirstImageOfTheirFormat) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr const char* kOthers[] = {"/libjpeg", "/libtiff", "/libwebp", "/libopenjp2"};
  const auto others = [&] { return std::ranges::count_if(kOthers, is_mapped); };
  EXPECT_EXIT(
      {
        decode("BM");
        const bool before = is_mapped("/libpng") || others() > 0;
        const Outcome image = decode(png(1, 1, kRgb8, chunk("IDAT", deflated("\0abc"s))));
        std::exit(before ? 1 : image.status != BP_OK ? 2 : !is_mapped("/libpng") ? 3 : others() > 0 ? 4 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

template <const char* kSoname>
class Fake : public image::Library {
 public:
  Fake() : Library(kSoname) {}
  IMAGE_FUNCTION(crc32);
  IMAGE_FUNCTION(function_that_no_library_has);
};

TEST(Libraries, ThatCannotBeUsedAreNamed) {
  static constexpr char kMissing[] = "libmissing.so.1", kOther[] = "libz.so.1";
  const Fake<kMissing> missing;
  EXPECT_THAT(missing.problem().value_or(""), HasSubstr("install it: libmissing.so.1"));
  const Fake<kOther> other;
  EXPECT_THAT(other.problem().value_or(""), HasSubstr("function_that_no_library_has"));
  EXPECT_NE(other.crc32, nullptr);
}

TEST(Png, IsNotReadBeyondItsLastRow) {
  const std::string file = png(1, 1, kRgb8, chunk("IDAT", deflated("\0abc"s, 1024)));
  const double begin = cpu_seconds();
  const Outcome image = decode(file);
  EXPECT_LT(cpu_seconds() - begin, 1.0);
  ASSERT_EQ(image.status, BP_OK) << image.text;
  EXPECT_EQ(image.outputs[0].bytes, "abc");
}

TEST(Png, IsReadWithoutTexts) {
  const std::string packed = deflated("", 64);
  std::string chunks;
  for (int i = 0; i < 50; ++i) {
    chunks += chunk("iTXt", "Title\0\1\0\0\0"s + packed);
    chunks += chunk("zTXt", "Title\0\0"s + packed);
  }
  const std::string file = png(1, 1, kRgb8, chunks + chunk("IDAT", deflated("\0abc"s)));
  const double begin = cpu_seconds();
  const Outcome image = decode(file);
  EXPECT_LT(cpu_seconds() - begin, 1.0);
  ASSERT_EQ(image.status, BP_OK) << image.text;
  EXPECT_EQ(image.outputs[0].bytes, "abc");
}

TEST(Png, IsRefusedIfRowsAreMissing) {
  EXPECT_THAT(decode(png(1, 2, kRgb8, chunk("IDAT", deflated("\0abc"s)))).text, HasSubstr("PNG"));
  EXPECT_THAT(decode(png(1, 1, kRgb8, chunk("ABCD", "") + chunk("IDAT", deflated("\0abc"s)))).text, HasSubstr("ABCD"));
  const std::string whole = png(1, 1, kRgb8, chunk("IDAT", deflated("\0abc"s)));
  for (size_t size = 8; size + 12 < whole.size(); ++size)
    EXPECT_NE(decode(whole.substr(0, size)).status, BP_OK) << size;
}

// A row of 16-bit gray samples, as the four passes that have pixels of it.
TEST(Png, MayBeDeepAndInterlaced) {
  const auto row = [](std::initializer_list<int> samples) {
    std::string bytes(1, '\0');
    for (int sample : samples) bytes += big_endian(static_cast<uint64_t>(sample), 2);
    return bytes;
  };
  const auto pixels = [&](char interlaced, const std::string& rows) {
    const Outcome image = decode(png(3, 3, "\x10\0\0\0"s + interlaced, chunk("IDAT", deflated(rows))));
    EXPECT_EQ(image.status, BP_OK) << image.text;
    return image.outputs.empty() ? "" : image.outputs[0].bytes;
  };
  const std::string plain = pixels(0, row({1000, 2000, 3000}) + row({4000, 5000, 6000}) + row({7000, 8000, 9000}));
  EXPECT_EQ(plain, pixels(1, row({1000}) + row({3000}) + row({7000, 9000}) + row({2000}) + row({8000}) +
                                 row({4000, 5000, 6000})));
}

// A progressive image whose scans add nothing.
std::string jpeg(uint32_t width, uint32_t height, int scans) {
  const std::string rest = "\x01"s + std::string(15, '\0') + '\0';
  std::string file = "\xff\xd8\xff\xdb\0\x43\0"s + std::string(64, '\1');
  file += "\xff\xc2\0\x0b\x08"s + big_endian(height, 2) + big_endian(width, 2) + "\x01\x01\x11\0"s;
  file += "\xff\xc4\0\x14\0"s + rest + "\xff\xc4\0\x14\x10"s + rest;
  file += "\xff\xda\0\x08\x01\x01\0\0\0\0"s + std::string(8, '0');
  for (int i = 0; i < scans; ++i) file += "\xff\xda\0\x08\x01\x01\0\1\x3f\0"s + std::string(8, '0');
  return file + "\xff\xd9";
}

TEST(Jpeg, EndsSoonAfterTheDeadline) {
  const std::string file = jpeg(5000, 5000, 300);  // takes seconds without a deadline
  const auto deadline = std::chrono::steady_clock::now().time_since_epoch() + std::chrono::milliseconds(20);
  const double begin = cpu_seconds();
  const Outcome late = decode(file, static_cast<uint64_t>(std::chrono::nanoseconds(deadline).count()));
  EXPECT_LT(cpu_seconds() - begin, 1.0);
  EXPECT_EQ(late.status, BP_TIMED_OUT) << late.text;
}

TEST(Jpeg, HasALimitOfScans) {
  EXPECT_EQ(decode(jpeg(16, 16, 100)).status, BP_OK);
  EXPECT_THAT(decode(jpeg(16, 16, 600)).text, HasSubstr("more than 500 scans"));
}

// OpenJPEG would allocate terabytes when it reads the header.
TEST(Jpeg2000, HasLimitsOfTilesAndComponents) {
  const auto file = [](uint32_t size, uint32_t tile, uint32_t components, const std::string& precincts = "") {
    std::string header = "\xff\x4f\xff\x51"s + big_endian(38 + 3 * components, 2) + big_endian(0, 2);
    for (uint32_t field : {size, size, 0u, 0u, tile, tile, 0u, 0u}) header += big_endian(field, 4);
    header += big_endian(components, 2);
    for (uint32_t c = 0; c < components; ++c) header += "\x07\x01\x01";
    return header + "\xff\x52"s + big_endian(12 + precincts.size(), 2) + (precincts.empty() ? "\0"s : "\1"s) +
           "\0\0\x01\0\x05\x04\x04\0\x01"s + precincts + "\xff\x5c\0\x13\x40"s + std::string(16, '\x40') +
           "\xff\x90\0\x0a\0\0\0\0\0\0\0\1"s;
  };
  const double begin = cpu_seconds();
  EXPECT_THAT(decode(file(10000, 10000, 16384)).text, HasSubstr("16384 components"));
  EXPECT_THAT(decode(file(4080, 16, 4)).text, HasSubstr("255×255 tiles"));
  EXPECT_THAT(decode(file(4000, 4000, 3, std::string(6, '\x11'))).text, HasSubstr("packets"));
  EXPECT_LT(cpu_seconds() - begin, 1.0);
}

TEST(Tiff, HasNoTilesMuchLargerThanTheImage) {
  std::string entries;
  const auto entry = [&](uint32_t tag, uint32_t type, uint32_t value) {
    entries += big_endian(tag, 2) + big_endian(type, 2) + big_endian(1, 4) +
               (type == 3 ? big_endian(value, 2) + big_endian(0, 2) : big_endian(value, 4));
  };
  for (const auto& [tag, type, value] : std::vector<std::array<uint32_t, 3>>{{256, 4, 100},
                                                                             {257, 4, 100},
                                                                             {258, 3, 8},
                                                                             {259, 3, 1},
                                                                             {262, 3, 1},
                                                                             {277, 3, 1},
                                                                             {322, 4, 16384},
                                                                             {323, 4, 16384},
                                                                             {324, 4, 8},
                                                                             {325, 4, 100}})
    entry(tag, type, value);
  const std::string file = "MM\0*"s + big_endian(8, 4) + big_endian(10, 2) + entries + big_endian(0, 4);
  EXPECT_THAT(decode(file).text, HasSubstr("16384×16384 pixels"));
}

}  // namespace
}  // namespace backplane::cpu::testing
