// SPDX-License-Identifier: Apache-2.0
#include "engine/disk_cache.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace backplane::opencl {
namespace fs = std::filesystem;
namespace {

// An entry: this header, the key, the content.
struct Header {
  char magic[8];
  uint64_t key_bytes;
  uint64_t content_bytes;
  uint64_t checksum;  // of the content
};
constexpr char kMagic[8] = {'B', 'P', 'O', 'C', 'L', '0', '1', '\n'};

fs::path root() {
  const auto absolute = [](const char* name) {
    const char* value = secure_getenv(name);
    fs::path path = value != nullptr ? fs::path(value) : fs::path();
    return path.is_absolute() ? path : fs::path();
  };
  if (const fs::path own = absolute("BACKPLANE_CACHE_DIR"); !own.empty()) return own;
  if (const fs::path xdg = absolute("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "backplane";
  if (const fs::path home = absolute("HOME"); !home.empty()) return home / ".cache/backplane";
  return {};
}

std::string hex(uint64_t number) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; number >>= 4) text[i] = kDigits[number & 15];
  return text;
}

}  // namespace

std::string write_numbers(std::initializer_list<double> numbers) {
  std::string text;
  for (const double number : numbers) {
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 6).ptr);
    text += '\n';
  }
  return text;
}

bool read_numbers(std::string_view text, std::span<double> numbers) {
  for (double& number : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size() || *end != '\n') return false;
    text.remove_prefix(static_cast<size_t>(end + 1 - text.data()));
  }
  return true;
}

uint64_t fingerprint(std::string_view text) {
  // FNV-1a, eight bytes a step, with a final mix: entries are megabytes.
  uint64_t hash = 0xcbf29ce484222325 ^ text.size();
  while (!text.empty()) {
    uint64_t word = 0;
    const size_t bytes = std::min<size_t>(sizeof word, text.size());
    std::memcpy(&word, text.data(), bytes);
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
    text.remove_prefix(bytes);
  }
  return hash ^ (hash >> 32);
}

DiskCache::DiskCache(std::string_view folder) : folder_(root()) {
  if (!folder_.empty()) folder_ /= folder;
}

fs::path DiskCache::path_of(std::string_view key) const {
  return folder_ / hex(fingerprint(key));
}

std::optional<std::string> DiskCache::read(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(path_of(key), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Header header{};
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::string_view rest = std::string_view(bytes).substr(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_bytes != key.size() ||
      rest.size() < key.size() || header.content_bytes != rest.size() - key.size() || !rest.starts_with(key) ||
      header.checksum != fingerprint(rest.substr(key.size()))) {
    return std::nullopt;
  }
  return std::string(rest.substr(key.size()));
}

void DiskCache::write(std::string_view key, std::string_view content) const {
  if (folder_.empty()) return;
  static std::atomic<uint32_t> serial{0};
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path path = path_of(key);
  fs::path fresh = path;
  fresh += "." + std::to_string(::getpid()) + "." + std::to_string(serial.fetch_add(1));
  Header header{{}, key.size(), content.size(), fingerprint(content)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  bool whole;
  {
    std::ofstream file(fresh, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file << key << content << std::flush;
    whole = file.good();
  }
  if (whole) fs::rename(fresh, path, error);
  if (!whole || error) fs::remove(fresh, error);
}

}  // namespace backplane::opencl
