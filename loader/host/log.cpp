// SPDX-License-Identifier: Apache-2.0
#include "host/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/abi.h"
#include "cli/printable.h"
#include "host/variable.h"

namespace backplane {
namespace {

constexpr std::string_view kLevels[] = {"none", "error", "warning", "info", "debug"};  // indexed by BP_LOG_*
static_assert(BP_LOG_ERROR == 1 && BP_LOG_DEBUG == 4);
constexpr std::string_view kCategories[kLogCategories] = {"loader", "discover", "backend"};

// The index of `word` in `words`, or kCount if it is not one of them.
template <size_t kCount>
size_t index_of(const std::string_view (&words)[kCount], std::string_view word) {
  return static_cast<size_t>(std::find(std::begin(words), std::end(words), word) - std::begin(words));
}

std::string_view setting(const char* name) {
  const char* value = variable(name);
  return value ? value : "";
}

struct LogFile {
  std::shared_ptr<const int> descriptor;  // null: there is none
  std::string fault;                      // why it cannot be used
};

// Opens a log file. Never blocks. Does not follow a link, which another user may have created.
LogFile open_file(const std::string& path) {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
  const int error = errno;
  struct stat seen {};
  // A pipe that no process reads cannot be opened, and one that is read stops the framework when it is full.
  const bool is_seen = file < 0 ? ::lstat(path.c_str(), &seen) == 0 : ::fstat(file, &seen) == 0;
  const bool is_usable = is_seen && (S_ISREG(seen.st_mode) || S_ISCHR(seen.st_mode));
  if (file >= 0 && is_usable)
    return {{new int(file),
             [](const int* descriptor) {
               ::close(*descriptor);
               delete descriptor;
             }},
            {}};
  if (file >= 0) ::close(file);
  if (!is_seen || is_usable) return {nullptr, "cannot be opened: " + std::generic_category().message(error)};
  if (S_ISLNK(seen.st_mode)) return {nullptr, "is a symbolic link, which is not followed"};
  return {nullptr, std::string("is ") + (S_ISDIR(seen.st_mode) ? "a folder" : "a pipe or socket") + ", not a file"};
}

// Quotes text for JSON. The text must not contain control characters.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string json_line(uint32_t level, LogCategory category, std::string_view who, std::string_view text) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string line = fmt::format("{{\"time\": {:.6f}, \"level\": \"{}\", \"category\": \"{}\"",
                                 std::chrono::duration<double>(now).count(), kLevels[level],
                                 kCategories[static_cast<size_t>(category)]);
  if (!who.empty()) line += ", \"backend\": " + quoted(who);
  return line + ", \"text\": " + quoted(text) + "}";
}

}  // namespace

LogLevels parse_log_levels(std::string_view text) {
  LogLevels levels;
  levels.fill(BP_LOG_WARNING);
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t sign = word.find('=');
    const size_t level = index_of(kLevels, sign == word.npos ? word : word.substr(sign + 1));
    if (level == std::size(kLevels)) continue;
    if (sign == word.npos) {
      levels.fill(static_cast<uint32_t>(level));
    } else if (const size_t category = index_of(kCategories, word.substr(0, sign)); category < kLogCategories) {
      levels[category] = static_cast<uint32_t>(level);
    }
  }
  return levels;
}

Log::Log(uint32_t level, Sink sink, void* self) : sink_(sink), self_(self) {
  levels_ = parse_log_levels(setting("BACKPLANE_LOG"));
  if (level) levels_.fill(std::min(level, BP_LOG_DEBUG));
  if (sink) return;
  json_ = setting("BACKPLANE_LOG_FORMAT") == "json";
  const std::string path(setting("BACKPLANE_LOG_FILE"));
  if (path.empty()) return;
  LogFile file = open_file(path);
  file_ = std::move(file.descriptor);
  if (file_) return;
  // Once: a process may create any number of environments.
  static std::atomic_flag is_reported;
  if (enabled(BP_LOG_WARNING) && !is_reported.test_and_set())
    write(BP_LOG_WARNING, {},
          fmt::format("BACKPLANE_LOG_FILE is \"{}\" and is ignored: it {}; lines go to standard error", path,
                      file.fault));
}

Log Log::about(LogCategory category) const {
  Log other = *this;
  other.category_ = category;
  return other;
}

void Log::write(uint32_t level, std::string_view who, std::string_view text) const {
  const LogCategory category = who.empty() ? category_ : LogCategory::kBackend;
  if (level == 0 || level > levels_[static_cast<size_t>(category)]) return;
  const std::string shown = cli::printable(text), by = cli::printable(who);
  if (sink_) return sink_(self_, level, abi::text(by.empty() ? shown : by + ": " + shown));
  std::string line;
  if (json_)
    line = json_line(level, category, by, shown);
  else
    line = fmt::format("backplane: {}: {}{}{}", kLevels[level], by, by.empty() ? "" : ": ", shown);
  line += '\n';
  // Writes the line in one call, so that lines of different threads and processes do not mix.
  [[maybe_unused]] const ssize_t written = ::write(file_ ? *file_ : STDERR_FILENO, line.data(), line.size());
}

}  // namespace backplane
