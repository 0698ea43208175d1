// SPDX-License-Identifier: Apache-2.0
#include "compile/cache.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/abi.h"
#include "base/folder.h"
#include "discover/file.h"
#include "discover/writers.h"
#include "host/cache.h"
#include "view/serialize.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;

// The header of an entry's file; the backend's serialized program (the blob) follows.
struct Header {
  char magic[8];
  char key[32];
  uint64_t size;  // of the blob
  model::Hash hash;
};
constexpr char kMagic[8] = {'B', 'P', 'P', 'R', 'O', 'G', '1', '\n'};

// Temporary files older than this are left over from a process that died while writing.
constexpr auto kAbandoned = std::chrono::hours(1);

// Hashes each part of a key with its length, so that ("ab", "c") and ("a", "bc") have different hashes.
class Digest {
 public:
  void add(std::string_view part) {
    mix(part.size());
    hash_ = model::hash_bytes(part.data(), part.size(), hash_[0] ^ hash_[1]);
  }
  void mix(uint64_t number) {
    const uint64_t parts[] = {hash_[0], hash_[1], number};
    hash_ = model::hash_bytes(parts, sizeof parts, 1);
  }
  std::string text() const {
    char text[33];
    std::snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, hash_[0], hash_[1]);
    return text;
  }

 private:
  model::Hash hash_{};
};

}  // namespace

Result<std::string> cache_key(const Device& device, const model::View& island, const bp_compile_t& what) {
  const bp_plugin_t& plugin = *device.backend().plugin;
  const bp_device_info_t& info = device.info();
  Digest digest;
  // The key identifies the kind of device. The plugin's `validate` decides whether an entry fits this particular
  // device.
  for (const bp_text_t& text : {plugin.id, plugin.release, plugin.build_id, info.name, info.driver, info.arch})
    digest.add(abi::view(text));
  for (const uint64_t number : {uint64_t{plugin.version}, uint64_t{what.compute_types}, uint64_t{what.flags}})
    digest.mix(number);
  for (const auto& [name, value] : device.backend().host->options()) digest.add(name), digest.add(value);
  for (uint32_t i = 0; i < what.option_count; ++i) {
    const bp_option_t option = abi::element(what.options, i, what.option_stride);
    digest.add(abi::view(option.name)), digest.add(abi::view(option.value));
  }
  const auto sink = [](void* self, bp_text_t piece) { static_cast<Digest*>(self)->add(abi::view(piece)); };
  BP_TRY(model::serialize_identity(*island.abi(), sink, &digest));
  return digest.text();
}

bool ProgramCache::read(const std::string& key, std::vector<char>& out_blob, std::string& problem) const {
  const fs::path path = path_of(key);
  File file;
  if (file.open(path)) {
    problem = check_writers(path.parent_path()).text;
    return false;
  }
  const uint64_t size = file.size();
  if (size > limit_) return false;                   // written before the limit was lowered; `evict` removes it
  if (facts_of(path) != file.facts()) return false;  // another process has just replaced it
  if (const Refusal refusal = check_writers(path, file)) {
    problem = refusal.text;
    return false;
  }
  Header header{};
  if (!file.regular() || file.read(0, &header, sizeof header) != sizeof header ||
      std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || std::string_view(header.key, sizeof header.key) != key ||
      header.size != size - sizeof header) {
    problem = path.string() + " is not an entry of this cache, or is truncated";
    remove(key);
    return false;
  }
  out_blob.resize(header.size);
  if (file.read(sizeof header, out_blob.data(), header.size) != header.size ||
      model::hash_bytes(out_blob.data(), out_blob.size(), 0) != header.hash) {
    problem = path.string() + " is damaged: its checksum is wrong";
    remove(key);
    return false;
  }
  std::error_code error;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return true;
}

bool ProgramCache::write(const std::string& key, std::string_view blob) const {
  if (sizeof(Header) > limit_ || blob.size() > limit_ - sizeof(Header)) return false;
  if (check_writers(path_of(key).parent_path())) return false;  // `read` would refuse the entry
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  key.copy(header.key, sizeof header.key);
  header.size = blob.size();
  header.hash = model::hash_bytes(blob.data(), blob.size(), 0);
  std::string content(reinterpret_cast<const char*>(&header), sizeof header);
  content += blob;
  if (!write_whole(path_of(key), content)) return false;
  evict();
  return true;
}

void ProgramCache::remove(const std::string& key) const {
  std::error_code error;
  fs::remove(path_of(key), error);
}

// Removes the least recently used entries first. Ignores errors, because another process may remove the same files.
void ProgramCache::evict() const {
  struct File {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (const std::string& name : names_in(folder_, error)) {
    std::error_code gone;
    File file{{}, 0, folder_ / name};
    file.used = fs::last_write_time(file.path, gone);
    if (!gone) file.bytes = fs::file_size(file.path, gone);
    if (gone) continue;
    if (file.path.extension() != ".program") {
      if (file.path.filename().string().find(".program.") != std::string::npos && now - file.used > kAbandoned)
        fs::remove(file.path, gone);
      continue;
    }
    total += file.bytes;
    files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (total <= limit_) return;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace backplane
