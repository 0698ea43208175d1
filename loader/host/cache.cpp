// SPDX-License-Identifier: Apache-2.0
#include "host/cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

#include "host/variable.h"

namespace backplane {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const char* cache = variable("XDG_CACHE_HOME");
  const char* home = variable("HOME");
  const fs::path base = cache && *cache ? fs::path(cache) : home && *home ? fs::path(home) / ".cache" : fs::path();
  return base.is_absolute() ? base / "backplane" : fs::path();
}

bool write_whole(const fs::path& file, std::string_view content) {
  static std::atomic<uint64_t> count{0};
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  fs::path fresh = file;
  fresh += "." + std::to_string(::getpid()) + "." + std::to_string(++count);
  const int out = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  bool whole = out >= 0;
  for (size_t at = 0; whole && at < content.size();) {
    const ssize_t written = ::write(out, content.data() + at, content.size() - at);
    if (written < 0 && errno == EINTR) continue;
    whole = written > 0;
    at += whole ? static_cast<size_t>(written) : 0;
  }
  // Without fsync, a crash of the machine could leave a file that has its final name but lacks bytes.
  whole = whole && ::fsync(out) == 0;
  if (out >= 0) ::close(out);
  if (whole) fs::rename(fresh, file, error);
  if (!whole || error) fs::remove(fresh, error), whole = false;
  return whole;
}

}  // namespace backplane
