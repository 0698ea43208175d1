// SPDX-License-Identifier: Apache-2.0
#include "host/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/file_limit.h"
#include "host/variable.h"

namespace backplane {

namespace fs = std::filesystem;

namespace {

// The mode is the one that the XDG Base Directory Specification requires, whatever the process's umask is.
void create_folders(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno != ENOENT || folder == folder.parent_path()) return;
  create_folders(folder.parent_path());
  ::mkdir(folder.c_str(), 0700);
}

}  // namespace

fs::path cache_folder() {
  const char* cache = variable("XDG_CACHE_HOME");
  const char* home = variable("HOME");
  const fs::path base = cache && *cache ? fs::path(cache) : home && *home ? fs::path(home) / ".cache" : fs::path();
  return base.is_absolute() ? base / "backplane" : fs::path();
}

bool write_whole(const fs::path& file, std::string_view content) {
  create_folders(file.parent_path());
  // The temporary name is random, because processes in different containers may have the same process id.
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) return false;
  fs::path fresh = file;
  fresh += fmt::format(".{:016x}", random);
  const int out = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (out < 0) return false;
  bool whole = true;
  const FileLimitFails limit;
  for (size_t at = 0; whole && at < content.size();) {
    const ssize_t written = ::write(out, content.data() + at, content.size() - at);
    if (written < 0 && errno == EINTR) continue;
    whole = written > 0;
    at += whole ? static_cast<size_t>(written) : 0;
  }
  // Without fsync, a crash of the machine could leave a file that has its final name but lacks bytes.
  whole = whole && ::fsync(out) == 0;
  ::close(out);
  std::error_code error;
  if (whole) fs::rename(fresh, file, error);
  if (!whole || error) fs::remove(fresh, error), whole = false;
  return whole;
}

}  // namespace backplane
