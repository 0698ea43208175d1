// SPDX-License-Identifier: Apache-2.0
// Small files that save work at the next start: kernel binaries, measured rates. An entry is found by a key text, of
// which every byte counts; a damaged or foreign entry counts as missing. What cannot be written costs time and nothing
// else.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace backplane::opencl {

class DiskCache {
 public:
  // In $BACKPLANE_CACHE_DIR, else $XDG_CACHE_HOME/backplane, else $HOME/.cache/backplane; with none of them set
  // absolutely there is no cache. `folder` is below it.
  explicit DiskCache(std::string_view folder);

  std::optional<std::string> read(std::string_view key) const;
  // Atomic: readers see the whole entry or none.
  void write(std::string_view key, std::string_view content) const;

 private:
  std::filesystem::path path_of(std::string_view key) const;
  std::filesystem::path folder_;
};

// Numbers as an entry's content, the same in every locale.
std::string write_numbers(std::initializer_list<double> numbers);
// False if the text does not begin with as many numbers.
bool read_numbers(std::string_view text, std::span<double> numbers);

// 64 bits of a text, the same in every process.
uint64_t fingerprint(std::string_view text);

}  // namespace backplane::opencl
