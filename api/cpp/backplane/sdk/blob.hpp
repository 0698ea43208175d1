// SPDX-License-Identifier: Apache-2.0
// A header for data that a plugin stores. It detects damage, and data of another build, before the content is used. A
// blob consists of a header, a key and the content.
//
//   std::string serialize(const sdk::Program& program) override {
//     sdk::BlobWriter blob(kVersion, identity());
//     …blob.append(data, bytes)…
//     return std::move(blob).finish();
//   }
//   uint32_t validate(std::string_view blob, std::string& why) override {
//     return sdk::check_blob(blob, kVersion, identity(), why);
//   }
//   deserialize: const std::string_view content = sdk::open_blob(blob, kVersion, identity());
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backplane/sdk/fence.hpp"

namespace backplane::sdk {

// A 64-bit hash that is the same in every process. Detects accidental damage, not attacks.
inline uint64_t fingerprint(std::string_view text) {
  // FNV-1a over eight bytes per step instead of one, because texts may have megabytes, and a final mix.
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

// The first bytes of a blob, in native byte order.
struct BlobHeader {
  static constexpr char kMagic[8] = {'B', 'P', 'B', 'L', 'O', 'B', '1', '\n'};
  char magic[8];
  uint32_t version;  // format version of the content
  uint32_t reserved;
  uint64_t key_bytes;      // of the key: the device, driver, build and options that the content depends on
  uint64_t content_bytes;  // of everything after the key
  uint64_t checksum;       // of the key, the content, and the fields above

  uint64_t sum(std::string_view rest) const {
    BlobHeader zeroed = *this;
    zeroed.checksum = fingerprint(rest);
    return fingerprint({reinterpret_cast<const char*>(&zeroed), sizeof zeroed});
  }
};
static_assert(sizeof(BlobHeader) == 40 && std::is_trivially_copyable_v<BlobHeader>);

// Builds a blob in one string.
class BlobWriter {
 public:
  // `key` is compared byte by byte. `content_bytes` is the expected size, for a single allocation.
  BlobWriter(uint32_t version, std::string_view key, size_t content_bytes = 0) : key_bytes_(key.size()) {
    BlobHeader header{};
    std::memcpy(header.magic, BlobHeader::kMagic, sizeof header.magic);
    header.version = version;
    header.key_bytes = key.size();
    blob_.reserve(sizeof header + key.size() + content_bytes);
    append(header);
    append(key.data(), key.size());
  }

  void append(const void* data, size_t bytes) {
    if (bytes != 0) blob_.append(static_cast<const char*>(data), bytes);
  }
  template <class T>
  void append(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>, "append its bytes");
    append(&value, sizeof value);
  }

  std::string finish() && {
    BlobHeader header{};
    std::memcpy(&header, blob_.data(), sizeof header);
    header.content_bytes = blob_.size() - sizeof header - key_bytes_;
    header.checksum = header.sum(std::string_view(blob_).substr(sizeof header));
    std::memcpy(blob_.data(), &header, sizeof header);
    return std::move(blob_);
  }

 private:
  std::string blob_;
  size_t key_bytes_;
};

// Returns the content as a view into `blob`. Throws BP_CORRUPT if `blob` is damaged or not a blob, and BP_STALE if
// it is intact but has another version or key. `blob` is untrusted; the 64-bit checksum detects accidents, not attacks.
inline std::string_view open_blob(std::string_view blob, uint32_t version, std::string_view key) {
  const auto corrupt = [](const std::string& why) { return Error(BP_CORRUPT, "the stored data is damaged: " + why); };
  BlobHeader header{};
  if (blob.size() < sizeof header)
    throw corrupt("it has " + std::to_string(blob.size()) + " bytes, fewer than its header");
  std::memcpy(&header, blob.data(), sizeof header);
  const std::string_view rest = blob.substr(sizeof header);
  if (std::memcmp(header.magic, BlobHeader::kMagic, sizeof header.magic) != 0)
    throw corrupt("its first bytes are not those of stored data");
  if (header.key_bytes > rest.size() || header.content_bytes != rest.size() - header.key_bytes)
    throw corrupt("it has " + std::to_string(blob.size()) + " bytes, and its header states another size");
  if (header.checksum != header.sum(rest)) throw corrupt("its checksum does not match its content");
  if (header.version != version)
    throw Error(BP_STALE, "the stored data has version " + std::to_string(header.version) + "; this build reads " +
                              std::to_string(version));
  if (rest.substr(0, header.key_bytes) != key)
    throw Error(BP_STALE, "the stored data is for another device, driver, build or setting");
  return rest.substr(header.key_bytes);
}

// Like open_blob, but does not throw: returns BP_CACHE_EXACT if the blob fits. Otherwise returns another BP_CACHE_* and
// sets `why`.
inline uint32_t check_blob(std::string_view blob, uint32_t version, std::string_view key, std::string& why) {
  try {
    open_blob(blob, version, key);
    return BP_CACHE_EXACT;
  } catch (const Error& error) {
    why = error.text;
    return error.status == BP_STALE ? BP_CACHE_RECOMPILE : BP_CACHE_UNUSABLE;
  }
}

}  // namespace backplane::sdk
