// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files. The programs read the files that users name with these functions, except models that
// the loader opens, so that no named pipe, device or file of any size makes a program wait or read without end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace backplane::cli {

// A file cannot be read or written. The text names the file, and what it is or the system's reason.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr uint64_t kMaxFile = uint64_t{1} << 30;

// Returns the bytes of a regular file. Throws FileError if it is anything else, or has more than `most` bytes; its size
// is checked before it is read.
std::string read_file(const std::filesystem::path& file, uint64_t most = kMaxFile);
// Like read_file, for an untrusted file: refuses symbolic links too.
std::string read_untrusted_file(const std::filesystem::path& file, uint64_t most);
// Like read_file, but passes the bytes to `take` in pieces, in their order.
void read_pieces(const std::filesystem::path& file, uint64_t most, const std::function<void(std::string_view)>& take);

// Replaces the file or creates it. Until all bytes are written, they are in a new file in the same folder, so that the
// earlier content is kept if this fails or the process ends. The permissions and the owner stay. A link, a device and a
// pipe are written through, and so is a file that has several names or an access control list, whose folder allows no
// new file, or whose owner and permissions a new file cannot have. Throws FileError.
void write_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace backplane::cli
