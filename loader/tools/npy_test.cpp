// SPDX-License-Identifier: Apache-2.0
#include "npy.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "onnx/number.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace backplane::tools {
namespace {

using onnx::Malformed;
using onnx::Tensor;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Returns a version 1 file with this header and these elements, as numpy would write it.
std::string file(const std::string& header, std::string_view data) {
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + std::string(data);
}

Tensor floats(std::vector<int64_t> extents, const std::vector<float>& elements) {
  Tensor tensor{BP_DTYPE_FLOAT, std::move(extents), std::vector<std::byte>(elements.size() * 4)};
  if (!elements.empty()) std::memcpy(tensor.bytes.data(), elements.data(), tensor.bytes.size());
  return tensor;
}

void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.extents, b.extents);
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST(Npy, ReadsWhatItWrites) {
  for (const auto& tensor : {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({}, {7}), floats({1}, {7}), floats({0, 3}, {}),
                             Tensor::of_texts({2}, {"a", "grüße 🙂"}), Tensor::of_texts({1}, {""})}) {
    expect_same(read_npy(write_npy(tensor)), tensor);
  }
  EXPECT_EQ(write_npy(floats({2}, {1, 2})).find('\n') % 64, 63u);
}

TEST(Npy, ReadsNumpysOwnForms) {
  const std::string two("\1\0\0\0\2\0\0\0", 8);
  const Tensor tensor = read_npy(file("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }      \n", two));
  EXPECT_EQ(tensor.dtype, bp_dtype_t{BP_DTYPE_INT32});
  EXPECT_EQ(onnx::integer_at(tensor, 1), 2);
  const Tensor bytes =
      read_npy(file("{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }\n", std::string("ab\0cde", 6)));
  EXPECT_EQ(bytes.text(0), "ab");
  EXPECT_EQ(bytes.text(1), "cde");
}

TEST(Npy, TurnsFortranOrder) {
  const Tensor tensor = read_npy(file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", "\1\4\2\5\3\6"));
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(onnx::integer_at(tensor, i), static_cast<int64_t>(i + 1));
}

TEST(Npy, RefusesWhatItCannotRead) {
  const auto refused = [](const std::string& header, std::string_view data, const char* why = "") {
    EXPECT_THAT([&] { read_npy(file(header, data)); }, ThrowsMessage<Malformed>(HasSubstr(why))) << header;
  };
  EXPECT_THROW(read_npy(""), Malformed);
  EXPECT_THROW(read_npy("PK\3\4"), Malformed);
  EXPECT_THROW(read_npy(std::string_view("\x93NUMPY\1\0\xff\xff{", 11)), Malformed);
  for (const size_t version : {6, 7}) {  // the positions of the major and of the minor version
    std::string other = write_npy(floats({1}, {7}));
    other[version] = 4;
    EXPECT_THAT([&] { read_npy(other); }, ThrowsMessage<Malformed>(HasSubstr("is not known")));
  }
  EXPECT_THROW(read_npy(std::string_view("\x93NUMPY\2\0\xff\xff\xff\xff{", 13)), Malformed);
  refused("{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }", "\0\0\0\1");
  refused("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "xxxxxxxx", "Python objects");
  refused("{'descr': '|O8', 'fortran_order': False, 'shape': (1,), }", "xxxxxxxx", "Python objects");
  refused("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }", "xxxx");
  refused("{'descr': '<M8', 'fortran_order': False, 'shape': (1,), }", "xxxxxxxx");
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", "xxxx");
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (-1,), }", "");
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (1), }", "xxxx", "',' is expected");
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (01,), }", "xxxx", "an extent");
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }", "");
  refused("{'descr': '<U0', 'fortran_order': False, 'shape': (1099511627776,), }", "");
  refused("{'descr': '<i4', 'fortran_order': Perhaps, 'shape': (1,), }", "xxxx");
  refused("{'descr': '<i4', 'shape': (1,), }", "xxxx");
  refused("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\2");
  refused("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", std::string("\0\xd8\0\0", 4));
}

TEST(Npy, WhatNumpyLacksDoesNotFit) {
  EXPECT_FALSE(fits_npy({BP_DTYPE_BFLOAT16, {1}, std::vector<std::byte>(2)}));
  EXPECT_FALSE(fits_npy(Tensor::of_texts({1}, {"\xff"})));
  EXPECT_FALSE(fits_npy(Tensor::of_texts({1}, {std::string("a\0", 2)})));
  EXPECT_TRUE(fits_npy(Tensor::of_texts({1}, {"a"})));
}

TEST(Npy, SurvivesMutations) {
  std::mt19937 random(1);
  const std::string seeds[] = {write_npy(floats({2, 3}, {1, 2, 3, 4, 5, 6})),
                               write_npy(Tensor::of_texts({2}, {"a", "zwei"})),
                               file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", "\1\4\2\5\3\6")};
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = seeds[random() % std::size(seeds)];
    for (uint32_t k = random() % 4; k-- > 0;) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % 3 == 0 ? random() % (bytes.size() + 1) : bytes.size());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
}

}  // namespace
}  // namespace backplane::tools
