// SPDX-License-Identifier: Apache-2.0
#include "journal/digest.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace backplane::conform {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::string text;
  for (const unsigned char byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_of_file(const std::filesystem::path& file) {
  return sha256(read_file(file));
}

std::string sha256_of_list(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + '\n';
  return sha256(text);
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad() || std::filesystem::is_directory(file))
    throw std::runtime_error(fmt::format("'{}' cannot be read", file.string()));
  return bytes;
}

void write_file(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  if (!stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
    throw std::runtime_error(fmt::format("'{}' cannot be written", file.string()));
}

}  // namespace backplane::conform
