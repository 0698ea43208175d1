// SPDX-License-Identifier: Apache-2.0
#include "npz.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "onnx/number.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace backplane::tools {
namespace {

using onnx::Malformed;
using onnx::Tensor;

Tensor bytes_of(std::vector<int64_t> extents, char first) {
  Tensor tensor{BP_DTYPE_UINT8, std::move(extents), {}};
  tensor.bytes.assign(tensor.count(), static_cast<std::byte>(first));
  return tensor;
}

// The output of numpy.savez_compressed(file, x=numpy.arange(6, dtype=numpy.uint8).reshape(2, 3)) in numpy 1.24.
constexpr unsigned char kDeflated[] = {
#include "npz_test_data.inc"
};

TEST(Npz, ReadsWhatItWrites) {
  const auto arrays =
      read_npz(write_npz({{"x", bytes_of({2, 3}, 1)}, {"größe", bytes_of({}, 2)}, {"none", bytes_of({0}, 3)}}));
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].first, "x");
  EXPECT_EQ(arrays[1].first, "größe");
  EXPECT_EQ(arrays[0].second.bytes, bytes_of({2, 3}, 1).bytes);
  EXPECT_EQ(arrays[2].second.extents, std::vector<int64_t>{0});
  EXPECT_TRUE(read_npz(write_npz({})).empty());
}

TEST(Npz, ReadsWhatNumpyCompressed) {
  const auto arrays = read_npz({reinterpret_cast<const char*>(kDeflated), sizeof kDeflated});
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(arrays[0].first, "x");
  EXPECT_EQ(arrays[0].second.extents, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(onnx::integer_at(arrays[0].second, 5), 5);
}

TEST(Npz, RefusesMoreThanItMayUse) {
  const std::string two = write_npz({{"x", bytes_of({4}, 1)}, {"y", bytes_of({4}, 1)}});
  const std::string_view deflated(reinterpret_cast<const char*>(kDeflated), sizeof kDeflated);
  EXPECT_EQ(read_npz(two, 2 * 132).size(), 2u);  // a header of 128 bytes and 4 elements each
  EXPECT_THROW(read_npz(two, 2 * 132 - 1), Malformed);
  EXPECT_THROW(read_npz(deflated, 100), Malformed);
}

TEST(Npz, RefusesDamage) {
  const std::string whole = write_npz({{"x", bytes_of({4}, 1)}});
  EXPECT_THROW(read_npz(""), Malformed);
  EXPECT_THROW(read_npz("PK\3\4"), Malformed);
  EXPECT_THROW(read_npz(whole.substr(0, whole.size() - 1)), Malformed);
  std::string other = whole;
  other[whole.find("\1\1\1\1")] = 2;  // changes an element, so the checksum is wrong
  EXPECT_THROW(read_npz(other), Malformed);
  // An archive with four directory entries for the same member.
  const size_t directory = whole.find("PK\1\2"), end = whole.find("PK\5\6");
  other = whole.substr(0, end);
  for (int i = 0; i < 3; ++i) other += whole.substr(directory, end - directory);
  other += whole.substr(end);
  other[other.size() - 12] = other[other.size() - 14] = 4;
  EXPECT_THROW(read_npz(other), Malformed);
}

TEST(Npz, SurvivesMutations) {
  std::mt19937 random(1);
  const std::string seeds[] = {write_npz({{"x", bytes_of({2, 3}, 1)}, {"y", bytes_of({1}, 2)}}),
                               std::string(reinterpret_cast<const char*>(kDeflated), sizeof kDeflated)};
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = seeds[random() % std::size(seeds)];
    for (uint32_t k = random() % 4; k-- > 0;) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % 3 == 0 ? random() % (bytes.size() + 1) : bytes.size());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
}

}  // namespace
}  // namespace backplane::tools
