// SPDX-License-Identifier: Apache-2.0
// Small files that save work at the next start, such as kernel binaries and measurements. An entry is found by its key,
// which is compared byte by byte. An entry that is damaged, or that any user can write or replace, counts as missing.
// Failing to write an entry is not an error.
#pragma once

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>

#include "backplane/sdk/blob.hpp"

namespace backplane::sdk {

class FileCache {
 public:
  // The cache is in $BACKPLANE_CACHE_DIR, else in $XDG_CACHE_HOME/backplane, else in $HOME/.cache/backplane. If none of
  // them is an absolute path, or the process has elevated privileges, nothing is cached. `folder` is a subfolder of the
  // cache.
  explicit FileCache(std::string_view folder) : folder_(root()) {
    if (!folder_.empty()) folder_ /= folder;
  }

  std::optional<std::string> read(std::string_view key) const {
    if (folder_.empty()) return std::nullopt;
    const std::filesystem::path path = path_of(key);
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error) || any_user_writes(path) || any_user_replaces(folder_))
      return std::nullopt;
    std::ifstream file(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    std::string why;
    if (check_blob(bytes, kVersion, key, why) != BP_CACHE_EXACT) return std::nullopt;
    bytes.erase(0, sizeof(BlobHeader) + key.size());
    return bytes;
  }
  // Writes atomically: readers see the complete entry or none. Only this user may write to the entry or enter
  // folders that this call creates, whatever the process's umask. The umask decides who may read the entry.
  void write(std::string_view key, std::string_view content) const {
    if (folder_.empty()) return;
    static std::atomic<uint32_t> serial{0};
    std::error_code error;
    std::filesystem::path at;
    for (const std::filesystem::path& part : folder_) {
      at /= part;
      if (std::filesystem::create_directory(at, error))
        std::filesystem::permissions(at, std::filesystem::perms::owner_all, error);
    }
    const std::filesystem::path path = path_of(key);
    std::filesystem::path fresh = path;
    uint64_t random = 0;  // because processes in different containers may have the same id
    if (::getrandom(&random, sizeof random, 0) != sizeof random) return;
    fresh += "." + std::to_string(random) + "." + std::to_string(serial.fetch_add(1));
    BlobWriter entry(kVersion, key, content.size());
    entry.append(content.data(), content.size());
    std::ofstream file(fresh, std::ios::binary);
    file << std::move(entry).finish();
    file.close();
    using std::filesystem::perms;
    std::filesystem::permissions(fresh, perms::group_write | perms::others_write, std::filesystem::perm_options::remove,
                                 error);
    const bool whole = file.good() && !error;
    if (whole) std::filesystem::rename(fresh, path, error);
    if (!whole || error) std::filesystem::remove(fresh, error);
  }

 private:
  static constexpr uint32_t kVersion = 1;

  static bool any_user_writes(const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::perms seen = std::filesystem::status(path, error).permissions();
    return error || (seen & std::filesystem::perms::others_write) != std::filesystem::perms::none;
  }
  // Whether any user can write to the folder, or put another one in its place. Checks all folders on the way to it,
  // both in the path as written and in the path with links resolved. A folder on the way may be world-writable if it
  // has the sticky bit, such as /tmp, and the next part of the path is a folder of this user or root.
  static bool any_user_replaces(const std::filesystem::path& folder) {
    std::error_code error;
    for (const std::filesystem::path& whole : {folder, std::filesystem::canonical(folder, error)}) {
      std::filesystem::path at;
      bool is_shared = false;  // `at` is world-writable and has the sticky bit
      for (const std::filesystem::path& part : whole) {
        at /= part;
        struct stat seen {};
        if (::lstat(at.c_str(), &seen) != 0) return true;
        if (is_shared && (!S_ISDIR(seen.st_mode) || (seen.st_uid != 0 && seen.st_uid != ::geteuid()))) return true;
        is_shared = S_ISDIR(seen.st_mode) && (seen.st_mode & S_IWOTH) != 0;
        if (is_shared && (seen.st_mode & S_ISVTX) == 0) return true;
      }
      if (is_shared) return true;
    }
    return bool(error);
  }
  static std::filesystem::path root() {
    const auto absolute = [](const char* name) {
      const char* value = secure_getenv(name);
      std::filesystem::path path = value != nullptr ? value : "";
      return path.is_absolute() ? path : std::filesystem::path();
    };
    if (std::filesystem::path own = absolute("BACKPLANE_CACHE_DIR"); !own.empty()) return own;
    if (const std::filesystem::path xdg = absolute("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "backplane";
    if (const std::filesystem::path home = absolute("HOME"); !home.empty()) return home / ".cache/backplane";
    return {};
  }
  std::filesystem::path path_of(std::string_view key) const {
    std::string name(16, '0');
    uint64_t number = fingerprint(key);
    for (size_t i = name.size(); i-- > 0; number >>= 4) name[i] = "0123456789abcdef"[number & 15];
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

// Formats numbers as the content of an entry, one per line, with 6 significant digits. Does not depend on the locale.
inline std::string write_numbers(std::initializer_list<double> numbers) {
  std::string text;
  for (const double number : numbers) {
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 6).ptr);
    text += '\n';
  }
  return text;
}
// Returns false if `text` does not start with kCount numbers, one per line.
template <size_t kCount>
bool read_numbers(std::string_view text, std::array<double, kCount>& numbers) {
  for (double& number : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size() || *end != '\n') return false;
    text.remove_prefix(static_cast<size_t>(end + 1 - text.data()));
  }
  return true;
}

}  // namespace backplane::sdk
