// SPDX-License-Identifier: Apache-2.0
#include "discover/digest.h"

#include <elf.h>
#include <link.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/release.h"

// The ELF header of the library or program that contains this code. The linker defines it.
extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace backplane {
namespace {

constexpr size_t kPiece = 256 << 10;
static_assert(crypto_generichash_BYTES == 32);

std::string hex(const unsigned char* bytes, size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) text += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  return text;
}

// Passes all bytes to `take`, in order. Returns false if the file cannot be read, or has changed since it was opened.
template <class F>
bool read_all(const File& file, F take) {
  std::vector<unsigned char> piece(static_cast<size_t>(std::min<uint64_t>(kPiece, file.size())));
  for (uint64_t at = 0; at < file.size();) {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(piece.size(), file.size() - at));
    if (file.read(at, piece.data(), wanted) != wanted) return false;
    take(piece.data(), wanted);
    at += wanted;
  }
  return file.facts_now() == file.facts();
}

// The content of the NT_GNU_BUILD_ID note as hexadecimal digits, or an empty string if there is no such note.
std::string linkers_build_id() {
  const auto* image = reinterpret_cast<const char*>(&__ehdr_start);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(image + __ehdr_start.e_phoff);
  for (size_t i = 0; i < __ehdr_start.e_phnum; ++i) {
    if (segments[i].p_type != PT_NOTE) continue;
    const char* at = image + segments[i].p_offset;
    const char* end = at + segments[i].p_filesz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* text = name + (size_t{note.n_namesz} + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        return hex(reinterpret_cast<const unsigned char*>(text), note.n_descsz);
      at = text + (size_t{note.n_descsz} + 3) / 4 * 4;
    }
  }
  return {};
}

}  // namespace

std::optional<std::string> blake2b_of(const File& file) {
  unsigned char digest[crypto_generichash_BYTES];
  crypto_generichash_state state;
  if (sodium_init() < 0) return std::nullopt;
  crypto_generichash_init(&state, nullptr, 0, sizeof digest);
  if (!read_all(file, [&](const unsigned char* bytes, size_t n) { crypto_generichash_update(&state, bytes, n); }))
    return std::nullopt;
  crypto_generichash_final(&state, digest, sizeof digest);
  return hex(digest, sizeof digest);
}

std::optional<std::string> sha256_of(const File& file) {
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_state state;
  if (sodium_init() < 0) return std::nullopt;
  crypto_hash_sha256_init(&state);
  if (!read_all(file, [&](const unsigned char* bytes, size_t n) { crypto_hash_sha256_update(&state, bytes, n); }))
    return std::nullopt;
  crypto_hash_sha256_final(&state, digest);
  return hex(digest, sizeof digest);
}

std::string blake2b_of(std::string_view text) {
  unsigned char digest[crypto_generichash_BYTES];
  crypto_generichash(digest, sizeof digest, reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr,
                     0);
  return hex(digest, sizeof digest);
}

std::string own_build_id() {
  static const std::string kId = [] {
    std::string linkers = linkers_build_id();
    return linkers.empty() ? std::string(kBuildId) : std::move(linkers);
  }();
  return kId;
}

}  // namespace backplane
