// SPDX-License-Identifier: Apache-2.0
#include "journal/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <stdexcept>

namespace backplane::conform {

namespace {

std::string hex(const std::array<unsigned char, crypto_hash_sha256_BYTES>& hash) {
  std::string text;
  for (const unsigned char byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

// Passes the bytes of the stream to `take` in pieces. Returns false if they cannot be read.
template <typename Take>
bool read_pieces(std::istream& stream, const Take& take) {
  std::array<char, 1 << 16> piece;
  while (stream.read(piece.data(), piece.size()) || stream.gcount() != 0)
    take(std::string_view(piece.data(), static_cast<size_t>(stream.gcount())));
  return stream.eof() && !stream.bad();
}

}  // namespace

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex(hash);
}

std::string sha256_of_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  const bool is_read = read_pieces(stream, [&](std::string_view piece) {
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(piece.data()), piece.size());
  });
  if (!is_read) throw std::runtime_error(fmt::format("'{}' cannot be read", file.string()));
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256_final(&state, hash.data());
  return hex(hash);
}

std::string sha256_of_list(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + '\n';
  return sha256(text);
}

std::string read_file(const std::filesystem::path& file, uint64_t most) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes;
  const bool is_read = read_pieces(stream, [&](std::string_view piece) {
    bytes += piece;
    if (bytes.size() > most) throw std::runtime_error(fmt::format("'{}' has more than {} bytes", file.string(), most));
  });
  if (!is_read) throw std::runtime_error(fmt::format("'{}' cannot be read", file.string()));
  return bytes;
}

std::string read_untrusted_file(const std::filesystem::path& file, uint64_t most) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info = {};
  const bool is_file = descriptor >= 0 && fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  std::string bytes;
  ssize_t read_now = is_file ? 1 : -1;
  for (char piece[1 << 16]; read_now > 0 && bytes.size() <= most;) {
    read_now = read(descriptor, piece, sizeof piece);
    if (read_now > 0) bytes.append(piece, static_cast<size_t>(read_now));
  }
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (descriptor >= 0 ? !is_file : error == ELOOP)
    throw std::runtime_error(fmt::format("'{}' is not a regular file: links are not followed", file.string()));
  if (read_now < 0)
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", file.string(), std::strerror(error)));
  if (bytes.size() > most) throw std::runtime_error(fmt::format("'{}' has more than {} bytes", file.string(), most));
  return bytes;
}

void write_file(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  if (!stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
    throw std::runtime_error(fmt::format("'{}' cannot be written: {}", file.string(), std::strerror(errno)));
}

}  // namespace backplane::conform
